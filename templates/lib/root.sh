# images/<id>/: root.ext4 and manifest.json. mmdebstrap makes the root as a tar archive, mke2fs makes
# a file system of it. The id names the content: the recipe, the packages with their versions and
# the bytes of the image, so an image is never changed, only followed by another one.

image_id=

# All that decides what the root will be, but for the versions that the mirror has today.
root_recipe() {
	{
		echo "$FORMAT $suite $disk_mib ${packages[*]} $1"
		cat -- "$here/customize" "$here/../lib/root.sh"
	} | hash_of
}

# The host's proxies, for the time of the building.
proxy_options() {
	apt-config dump | grep -E '^Acquire::(http|https)::(Proxy|Proxy-Auto-Detect|[^: ]*::Proxy) ' || :
}

root_tar() {
	local sources=$1 list option args=()
	readarray -t list <<<"$sources"
	while read -r option; do
		[ -z "$option" ] || args+=("--aptopt=$option")
	done < <(proxy_options)
	# A copy, and in $work: our own folders may be closed to the ids that run it.
	cp -- "$here/customize" "$work/customize"
	chmod 755 "$work/customize"
	run env --chdir="$work" TMPDIR="$work" PATH="$PATH:/usr/sbin:/sbin" mmdebstrap --verbose --format=tar \
		--variant=minbase --include="$(
			IFS=,
			echo "${packages[*]}"
		)" \
		--aptopt='APT::Install-Recommends "false"' "${args[@]}" \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-include=/usr/share/doc/*/copyright' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook="$work/customize" \
		"$suite" "$work/root.tar" "${list[@]}"
}

# Run by root_image, as root of a user namespace or of the machine: $1 folder, $2 image, $3 MiB.
# The journal is small for a small disk; tables are written now, so that no guest does it later.
root_image_script='
set -eu
mkdir "$1/root"
tar -C "$1/root" --numeric-owner --xattrs --xattrs-include="*" --exclude="./dev/*" -xf "$1/root.tar"
PATH=$PATH:/usr/sbin:/sbin mke2fs -q -t ext4 -b 4096 -m 1 -L space \
	-J size=32 -E lazy_itable_init=0,lazy_journal_init=0 -d "$1/root" "$2" "$3M"
cp "$1/root/var/lib/dpkg/status" "$1/status"
sha256sum <"$2" | cut -d" " -f1 >"$1/digest"
chmod 644 "$1/status" "$1/digest" "$2"
rm -rf --one-file-system "$1/root" "$1/root.tar"
'

root_image() {
	local owner=()
	is_root || owner=(unshare --user --map-auto --map-root-user --)
	run "${owner[@]}" sh -c "$root_image_script" sh "$work" "$1" "$disk_mib"
}

# "name version" of each package, sorted.
root_packages() {
	awk '$1 == "Package:" {p = $2} $1 == "Version:" {print p, $2}' "$work/status" | sort
}

root_manifest() {
	local id=$1 recipe=$2 digest=$3 list=$4 first=1 p v
	echo '{'
	echo '  "format": '"$FORMAT,"
	echo '  "templateId": "'"$id"'",'
	echo '  "recipe": "'"$recipe"'",'
	echo '  "suite": "'"$suite"'",'
	echo '  "sha256": "'"$digest"'",'
	echo '  "keyId": null,'
	echo '  "created": "'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'",'
	echo '  "packages": {'
	while read -r p v; do
		[ -n "$first" ] || echo ','
		first=
		printf '    "%s": "%s"' "$p" "$v"
	done <<<"$list"
	printf '\n  }\n}\n'
}

# The image of that recipe, if there is one; the newest of several.
root_find() {
	local dir
	for dir in $(ls -dt -- "$data"/images/[0-9a-f]* 2>/dev/null); do
		if [ -f "$dir/root.ext4" ] && [ "$(json_field "$dir/manifest.json" recipe)" = "$1" ]; then
			basename -- "$dir"
			return 0
		fi
	done
}

root_make() {
	local recipe digest list new=$data/images/.new-$$
	recipe=$(root_recipe "$1")
	[ -n "$force" ] || image_id=$(root_find "$recipe")
	[ -z "$image_id" ] || return 0
	step 3 "installing Debian $suite and ${#packages[@]} packages into a new root (minutes)"
	root_tar "$1" || die "cannot make the root file system; all of it is in '$log'"
	step 4 "making a disk of it"
	mkdir -p -- "$new"
	root_image "$new/root.ext4" || die "cannot make the disk image"
	digest=$(<"$work/digest")
	list=$(root_packages)
	image_id=$(printf '%s\n' "$recipe" "$digest" "$list" | hash_of | cut -c1-20)
	root_manifest "$image_id" "$recipe" "$digest" "$list" >"$new/manifest.json"
	sync -- "$new/root.ext4" "$new/manifest.json"
	[ ! -e "$data/images/$image_id" ] || return 0
	mv -T -- "$new" "$data/images/$image_id"
}
