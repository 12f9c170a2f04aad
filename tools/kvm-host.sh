#!/bin/bash
# Runs a command on an emulated machine that has a working /dev/kvm, for hosts that have none.
#
#   kvm-host.sh [-t SECONDS] [-v] CACHE DIR COMMAND [ARG...]
#
# The machine is QEMU's emulation of an AMD processor with its virtualisation, so that the kernel's
# kvm_amd and microVMs under KVM run in it: slowly, but on the very path they take on hardware. It gets a
# copy of DIR as /job, which is the command's working directory, runs the command as root, and ends.
# stdout, stderr and exit status are the command's; 124: out of time (default 600 s), 125: it did not
# come up. Its root file system, Debian with what SPACE needs to run, is made once and kept in CACHE.
# -v shows the machine's console. Needs root, mmdebstrap, mke2fs, busybox, cpio and QEMU.
set -euo pipefail
here=$(dirname -- "$(realpath -- "$0")")

suite=bookworm
packages=(
	bash bubblewrap iproute2 kmod procps qemu-system-x86
	libuv1 libnghttp2-14 libjansson4 libsqlite3-0 libgnutls30 libcurl3-gnutls libseccomp2
)
boot_modules="virtio_pci virtio_blk virtio_console virtio-rng"
memory_mib=3072
limit_s=600
verbose=

work= machine= readers=()

die() {
	echo "kvm-host: ${*:2}" >&2
	exit "$1"
}

clean_up() {
	trap '' INT TERM
	if [ -n "$machine" ]; then
		kill -KILL "$machine" 2>/dev/null || :
		wait "$machine" 2>/dev/null || :
	fi
	[ ${#readers[@]} = 0 ] || kill "${readers[@]}" 2>/dev/null || :
	[ -z "$work" ] || rm -rf --one-file-system -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

while getopts t:v option; do
	case $option in
	t) limit_s=$OPTARG ;;
	v) verbose=1 ;;
	*) die 2 "see the head of this script" ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || die 2 "want CACHE DIR COMMAND"
[ "$(id -u)" = 0 ] || die 2 "needs root, to make the machine's disk"
mkdir -p -- "$1"
cache=$(realpath -- "$1") dir=$(realpath -- "$2")
shift 2

# ---- process 1 of the machine, after the initial file system ----

first_process() {
	cat <<'I'
#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
exec </dev/null >/dev/ttyS0 2>&1
mkdir -p /dev/shm /dev/pts /job
for folder in /tmp /run /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd; ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
ip link set lo up
hostname kvm-host
modprobe -a kvm_amd
[ ! -c /dev/kvm ] || chmod 666 /dev/kvm
port=$(echo /dev/vport*p1); port=${port%1}
status=125
if mount -t ext4 /dev/vdb /job && [ -c /dev/kvm ] && cd /job; then
	# A port can be opened once only; pipes behave as a command expects.
	mkfifo /run/out /run/err
	cat /run/out >"$port"1 & out=$!
	cat /run/err >"$port"2 & err=$!
	setsid bash /job/.command </dev/null >/run/out 2>/run/err
	status=$?
	# What it left behind may hold the pipes: do not wait long for their end.
	for i in {1..20}; do kill -0 $out || kill -0 $err || break; sleep 0.1; done 2>/dev/null
fi
echo $status >"$port"3
echo b >/proc/sysrq-trigger
I
}

initial_process() {
	cat <<'I'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t devtmpfs dev /dev; $b mount -t sysfs sys /sys
for m in $($b cat /modules.list); do $b insmod /modules/$m.ko; done
i=0; while [ ! -b /dev/vda ] && [ $i -lt 500 ]; do $b usleep 10000; i=$((i + 1)); done
$b mount -t ext4 /dev/vda /new
for d in dev proc sys; do $b mount --move /$d /new/$d; done
exec $b switch_root /new /first-process
I
}

# ---- its disk, kernel and initial file system: once per list of packages and kernel ----

build() {
	local new=$1 root=$1/root initrd=$1/initrd.d package=$2
	echo "kvm-host: making the emulated machine (once, some minutes)" >&2
	mkdir -p "$root" "$initrd"/{bin,modules,dev,proc,sys,new}
	(cd "$new" && apt-get -q -o APT::Sandbox::User=root download "$package") || return
	dpkg-deb -x "$new"/linux-image-*.deb "$new/kernel" || return
	mmdebstrap --variant=minbase --include="$(IFS=, && echo "${packages[*]}")" \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$new/root.tar" || return
	tar -C "$root" --exclude='./dev/*' -xf "$new/root.tar"
	mkdir -p "$root/lib/modules"
	cp -a "$new"/kernel/lib/modules/* "$root/lib/modules/"
	depmod -b "$root" "${package#linux-image-}"
	first_process >"$root/first-process"
	chmod 755 "$root/first-process"
	mke2fs -q -t ext4 -O ^has_journal -d "$root" "$new/root.ext4" 4G || return

	(
		die() { echo "$*" >&2 && exit 1; }
		. "$here/../templates/lib/kernel.sh"
		for module in $boot_modules; do module_add "$new/kernel" "$initrd" "$module"; done
	) || return
	cp -- "$(command -v busybox)" "$initrd/bin/busybox"
	initial_process >"$initrd/init"
	chmod 755 "$initrd/init"
	(cd "$initrd" && find . | cpio -o -H newc --quiet) >"$new/initrd"
	cp "$new"/kernel/boot/vmlinuz-* "$new/vmlinuz"
	rm -rf --one-file-system "$root" "$initrd" "$new/kernel" "$new/root.tar" "$new"/*.deb
}

package=$(apt-cache depends --important linux-image-cloud-amd64 | awk '$2 ~ /^linux-image-[0-9]/ {print $2; exit}')
[ -n "$package" ] || die 125 "apt knows no linux-image-cloud-amd64; run apt-get update"
image=$cache/$({ cat -- "$0" && echo "$package"; } | sha256sum | cut -c1-16)
exec 9>"$cache/lock"
flock 9
if [ ! -e "$image/vmlinuz" ]; then
	work=$(mktemp -d "$cache/new.XXXXXX")
	chmod 755 "$work"
	build "$work" "$package" >"$cache/log" 2>&1 9>&- || {
		tail -n 5 "$cache/log" >&2
		die 125 "cannot make the emulated machine"
	}
	mv -T -- "$work" "$image"
	work=
fi
exec 9>&-

# ---- one run ----

work=$(mktemp -d "${TMPDIR:-/var/tmp}/kvm-host.XXXXXX")
mkdir "$work/job"
cp -a --sparse=always -- "$dir/." "$work/job/"
printf '%q ' exec "$@" >"$work/job/.command"
mke2fs -q -t ext4 -O ^has_journal -d "$work/job" "$work/job.ext4" \
	"$(($(du -sm -- "$work/job" | cut -f1) * 5 / 4 + 2048))M" >/dev/null || die 125 "cannot copy '$dir'"
rm -rf -- "$work/job"
mkfifo "$work/out" "$work/err"
: >"$work/status"
: >"$work/console"
cat "$work/out" &
readers+=($!)
cat "$work/err" >&2 &
readers+=($!)
if [ -n "$verbose" ]; then
	tail -f "$work/console" >&2 &
	readers+=($!)
fi

# One processor: with two the machine sometimes freezes as a whole while they enter and leave guests.
# Without la57, whose early switch is slow and fragile under emulation; tsc=reliable, or the clock is the
# HPET, each reading of which leaves the machine.
TMPDIR=$work qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-M q35 -accel tcg,thread=multi,tb-size=512 -cpu max,-la57 -smp 1 -m "$memory_mib" \
	-kernel "$image/vmlinuz" -initrd "$image/initrd" \
	-append "console=ttyS0 quiet tsc=reliable mitigations=off panic=-1" -serial "file:$work/console" \
	-drive "if=none,id=d0,file=$image/root.ext4,format=raw,snapshot=on" -device virtio-blk-pci,drive=d0 \
	-drive "if=none,id=d1,file=$work/job.ext4,format=raw,cache=unsafe" -device virtio-blk-pci,drive=d1 \
	-device virtio-rng-pci -device virtio-serial-pci \
	-chardev "file,id=out,path=$work/out" -device virtserialport,chardev=out,nr=1 \
	-chardev "file,id=err,path=$work/err" -device virtserialport,chardev=err,nr=2 \
	-chardev "file,id=status,path=$work/status" -device virtserialport,chardev=status,nr=3 \
	</dev/null >"$work/qemu.log" 2>&1 &
machine=$!

deadline=$((SECONDS + limit_s))
while kill -0 "$machine" 2>/dev/null && [ ! -s "$work/status" ]; do
	if [ "$SECONDS" -ge "$deadline" ]; then
		tail -n 5 "$work/console" >&2
		die 124 "not done within $limit_s s"
	fi
	sleep 0.1
done
if [ ! -s "$work/status" ]; then
	cat "$work/qemu.log" >&2
	tail -n 20 "$work/console" >&2
	die 125 "the emulated machine died"
fi
kill -KILL "$machine" 2>/dev/null || : # all output has arrived, and its disks are scratch
wait "$machine" 2>/dev/null || :
machine=
wait "${readers[0]}" "${readers[1]}" || :
exit "$(<"$work/status")"
