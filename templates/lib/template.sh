# Makes a template out of a recipe, for templates/<name>/build:
#
#   build --data DIR --libexec DIR [--force]
#
# stderr gets lines `step N/M text`, and what went wrong; DIR/templates/<name>.log gets everything.
# Ends with 0 when the template is there and nothing it is made of has changed; that takes
# milliseconds. What is half made carries a temporary name and is removed at the end, whatever end it
# is: the renames come last. Packages come from the host's own apt sources and only those of Debian;
# nothing is mounted on the host, nothing is installed on it, no loop device is used.
#
# Each step is a file beside this one: kernel.sh, root.sh, initrd.sh.

set -euo pipefail
export LC_ALL=C
umask 022

readonly FORMAT=1           # of what is written below the data folder
readonly SPACE_WANTED_MIB=3072
readonly STEPS=5

name= here= data= libexec= force=
work=                       # scratch outside the data folder, for many uids
log=/dev/null
child=                      # the process group that works for us

say() {
	printf '%s\n' "$*" >&2
}

die() {
	if [ "$log" != /dev/null ] && [ -s "$log" ]; then
		tail -n 6 -- "$log" >&2
	fi
	say "$*"
	exit 1
}

step() {
	local n=$1
	shift
	say "step $n/$STEPS $*"
	printf '== %s\n' "$*" >>"$log"
}

# Runs a long command in a session of its own, so that we hear of a signal at once and can end all of
# it. Its output goes to the log.
run() {
	local status=0
	setsid -- "$@" </dev/null >>"$log" 2>&1 9>&- &
	child=$!
	wait "$child" || status=$?
	child=
	return $status
}

is_root() {
	[ "$(id -u)" = 0 ]
}

# A command as root of a user namespace that holds our subordinate ids; root needs none.
as_owner() {
	if is_root; then
		"$@"
	else
		unshare --user --map-auto --map-root-user -- "$@"
	fi
}

end_child() {
	local i
	[ -n "$child" ] || return 0
	kill -TERM -- "-$child" 2>/dev/null || :
	for i in {1..100}; do
		kill -0 -- "-$child" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL -- "-$child" 2>/dev/null || :
	wait "$child" 2>/dev/null || :
}

clean_up() {
	trap '' INT TERM HUP
	end_child
	if [ -n "$work" ]; then
		as_owner rm -rf --one-file-system -- "$work" || :
	fi
	if [ -n "$data" ]; then
		rm -rf -- "$data"/{kernels,images,initrds,templates}/.new-*
	fi
}

parse_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--data | --libexec)
			[ $# -ge 2 ] || die "$1 wants a folder"
			[ -d "$2" ] || die "there is no folder '$2'"
			case $1 in
			--data) data=$(realpath -- "$2") ;;
			--libexec) libexec=$(realpath -- "$2") ;;
			esac
			shift 2
			;;
		--force) force=1 && shift ;;
		*) die "unknown argument '$1'" ;;
		esac
	done
	[ -n "$data" ] && [ -n "$libexec" ] || die "want --data DIR and --libexec DIR"
	for file in space-init mkinitrd; do
		[ -x "$libexec/$file" ] || die "there is no '$libexec/$file': install SPACE again"
	done
}

hash_of() {
	sha256sum | cut -c1-40
}

# A field of a JSON file that we wrote: one field a line, plain values.
json_field() {
	sed -n "s/^[[:space:]]*\"$2\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p" "$1" 2>/dev/null | head -n 1
}

# Everything that could make this template another one, as cheaply as it can be told.
ingredients() {
	{
		echo "$FORMAT"
		cat -- "$here/recipe" "$here/customize" "$here"/../lib/*.sh
		cat -- "$libexec/space-init" "$libexec/mkinitrd"
		cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || :
	} | hash_of
}

is_fresh() {
	local json=$data/templates/$name.json image kernel initrd
	[ -z "$force" ] && [ -f "$json" ] || return 1
	[ "$(json_field "$json" ingredients)" = "$1" ] || return 1
	image=$(json_field "$json" image)
	kernel=$(json_field "$json" kernel)
	initrd=$(json_field "$json" initrd)
	[ -f "$data/$image" ] && [ -f "$data/$kernel/vmlinuz" ] && [ -f "$data/$initrd" ]
}

check_programs() {
	local program missing=
	for program in apt-get dpkg-deb mmdebstrap mke2fs setsid flock cpio; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing+=" $program"
	done
	[ -z "$missing" ] || die "these programs are missing:$missing; on Debian 12: apt-get install apt dpkg mmdebstrap e2fsprogs util-linux cpio"
}

check_user_ids() {
	is_root || unshare --user --map-auto --map-root-user -- true 2>/dev/null ||
		die "this user may not map other user ids, which a root file system is made of; as root: apt-get install uidmap && usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)"
}

check_space() {
	local where have
	for where in "$data" "${work%/*}"; do
		have=$(($(df -Pk -- "$where" | awk 'NR == 2 {print $4}') / 1024))
		[ "$have" -ge $SPACE_WANTED_MIB ] ||
			die "not enough space in '$where': $have MiB are free, making template '$name' wants $SPACE_WANTED_MIB MiB"
	done
}

# The host's apt sources of this suite whose origin is Debian, as mmdebstrap takes them.
debian_sources() {
	apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
		awk -v suite="$suite" '$4 == "Debian" && $3 == "main" && index($2, suite) == 1 &&
			($2 == suite || $2 == suite "-updates" || $2 == suite "-security") {
				print "deb " $1 " " $2 " main"
			}' | sort -u
}

write_json() {
	local json=$data/templates/$name.json new=$data/templates/.new-$name.json
	cat >"$new" <<-J
		{
		  "name": "$name",
		  "templateId": "$image_id",
		  "image": "images/$image_id/root.ext4",
		  "kernel": "kernels/$kernel_id",
		  "initrd": "initrds/$initrd_id.cpio",
		  "memoryMiB": $memory_mib,
		  "vcpus": $vcpus,
		  "diskMiB": $disk_mib,
		  "env": {},
		  "created": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
		  "ingredients": "$1"
		}
	J
	sync -- "$new"
	mv -- "$new" "$json"
}

make_all() {
	local sources
	check_programs
	check_user_ids
	work=$(mktemp -d "${TMPDIR:-/var/tmp}/space-template.XXXXXX")
	chmod 755 "$work"
	check_space
	log=$data/templates/$name.log
	: >"$log"
	step 1 "looking for Debian $suite in this machine's apt sources"
	sources=$(debian_sources)
	[ -n "$sources" ] ||
		die "this machine's apt sources have no index of Debian $suite (main); it takes a Debian 12 machine, and as root: apt-get update"
	kernel_make
	root_make "$sources"
	initrd_make
	step 5 "writing it down"
	write_json "$1"
}

template_main() {
	local key
	name=$1
	here=$(dirname -- "$(realpath -- "$0")")
	shift
	parse_arguments "$@"
	. "$here/recipe"
	. "$here/../lib/kernel.sh"
	. "$here/../lib/root.sh"
	. "$here/../lib/initrd.sh"
	key=$(ingredients)
	if is_fresh "$key"; then
		return 0
	fi
	mkdir -p -- "$data"/{kernels,images,initrds,templates}
	exec 9>"$data/templates/.lock"
	if ! flock -n 9; then
		say "step 1/$STEPS waiting for another build"
		flock 9
		if is_fresh "$key"; then
			return 0
		fi
	fi
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	make_all "$key"
}
