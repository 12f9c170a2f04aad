#!/bin/sh
# Makes the guest's initramfs: space-init and the kernel modules it loads, as a newc cpio archive
# (Linux: Documentation/driver-api/early-userspace/buffer-format.rst). The same input gives the same
# bytes: no times, no inode numbers of this machine. Not compressed: the archive is small, and an
# emulated guest would spend longer on unpacking than it takes to load the rest.
#
#   mkinitrd INIT MODULES_DIR MODULES_LIST OUT
#
# MODULES_LIST: names of modules, one a line, in load order; MODULES_DIR/<name>.ko must exist.
set -eu
export LC_ALL=C
umask 022

die() {
	echo "mkinitrd: $*" >&2
	exit 1
}

[ $# -eq 4 ] || die "usage: mkinitrd INIT MODULES_DIR MODULES_LIST OUT"
init=$1 modules=$2 list=$3 out=$4
[ -f "$init" ] || die "there is no '$init'"
[ -f "$list" ] || die "there is no '$list'"

ino=0

# entry NAME MODE(octal) [FILE [RDEV_MAJOR RDEV_MINOR]]: one archive member on stdout
entry() {
	name=$1 mode=$2 file=${3:-} size=0
	[ -z "$file" ] || size=$(wc -c <"$file")
	ino=$((ino + 1))
	printf '070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\0' \
		$ino "0$mode" 0 0 1 0 "$size" 0 0 "${4:-0}" "${5:-0}" $((${#name} + 1)) 0 "$name"
	pad $((110 + ${#name} + 1))
	[ -z "$file" ] || cat "$file"
	pad "$size"
}

# Zero bytes up to the next multiple of four.
pad() {
	case $(($1 % 4)) in
	1) printf '\0\0\0' ;;
	2) printf '\0\0' ;;
	3) printf '\0' ;;
	esac
}

tmp=$out.tmp.$$
trap 'rm -f "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
{
	entry dev 40755
	entry dev/console 20600 "" 5 1
	entry modules 40755
	while read -r name; do
		name=${name%.ko}
		case $name in
		'') continue ;;
		*/* | .*) die "'$list' has a bad line: $name" ;;
		esac
		[ -f "$modules/$name.ko" ] || die "there is no '$modules/$name.ko'"
		entry "modules/$name.ko" 100644 "$modules/$name.ko"
	done <"$list"
	entry modules.list 100644 "$list"
	entry init 100755 "$init"
	entry 'TRAILER!!!' 0
} >"$tmp"
mv -T "$tmp" "$out"
