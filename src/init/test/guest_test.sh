#!/bin/sh
# Boots space-init in a real guest and runs guest-test against it.
#
#   guest_test.sh GUEST_TEST SPACE_INIT MKINITRD [CASE]
#
# SPACE_TEST_KERNEL: a vmlinuz; SPACE_TEST_MODULES: a folder with its modules (<name>.ko, flat or as in
# /lib/modules); without them, those of the template that the other tests use ($SPACE_TEST_DATA/seed).
# Skipped (77) without a kernel, qemu-system-x86_64, mke2fs or a static busybox, and when not root.
set -eu
export PATH="$PATH:/usr/sbin:/sbin"

skip() {
	echo "skipped: $*"
	exit 77
}

guest_test=$1 init=$2 mkinitrd=$3
if [ -z "${SPACE_TEST_KERNEL:-}" ]; then
	for kernel in "${SPACE_TEST_DATA:-/nonexistent}"/seed/kernels/*/vmlinuz; do
		[ -f "$kernel" ] || skip "there is no kernel: SPACE_TEST_KERNEL, or a template"
		SPACE_TEST_KERNEL=$kernel SPACE_TEST_MODULES=${kernel%/*}/modules
	done
fi
for tool in qemu-system-x86_64 mke2fs busybox; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
busybox=$(command -v busybox)
# The interpreter of a dynamic program stands in its first page.
! head -c 4096 "$busybox" | grep -aq ld-linux || skip "busybox is not static (busybox-static)"

dir=$(mktemp -d "${TMPDIR:-/tmp}/guest-test.XXXXXX")
child=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$dir/modules"
for m in virtio_ring virtio virtio_mmio virtio_blk virtio_console virtio-rng dummy; do
	find "$SPACE_TEST_MODULES" -name "$m.ko" -exec cp {} "$dir/modules/" \;
	echo $m
done >"$dir/modules.list"
cp "$init" "$dir/init"
strip "$dir/init" 2>/dev/null || :
"$mkinitrd" "$dir/init" "$dir/modules" "$dir/modules.list" "$dir/initrd"

# A root made of busybox, with users.
mkdir -p "$dir/root/bin" "$dir/root/etc" "$dir/root/home/user" "$dir/root/root"
cp "$busybox" "$dir/root/bin/busybox"
for applet in $("$busybox" --list); do
	[ "$applet" = busybox ] || ln -s busybox "$dir/root/bin/$applet"
done
cat >"$dir/root/etc/passwd" <<'EOF'
root:x:0:0:root:/root:/bin/sh
user:x:1000:1000::/home/user:/bin/sh
EOF
cat >"$dir/root/etc/group" <<'EOF'
root:x:0:
user:x:1000:
extra:x:2000:user
EOF
chmod 700 "$dir/root/root"
mkdir "$dir/one"
cp "$busybox" "$dir/one/busybox"

# mke2fs -d copies owners as they are here; user's home is its own.
chown -R 1000:1000 "$dir/root/home/user" 2>/dev/null || skip "only root can make the test's file system"
mke2fs -q -F -t ext4 -d "$dir/root" "$dir/root.ext4" 256M >/dev/null
mke2fs -q -F -t ext4 -d "$dir/one" "$dir/one.ext4" 64M >/dev/null

"$guest_test" "$SPACE_TEST_KERNEL" "$dir/initrd" "$dir/root.ext4" "$dir/one.ext4" "$dir/console" ${4:+"$4"} &
child=$!
wait $child && rc=0 || rc=$?
child=
exit $rc
