# kernels/<id>/: vmlinuz, modules/*.ko and modules.list out of Debian's cloud kernel. The package is
# downloaded by apt, which checks it, and unpacked; it is never installed.

# What space-init needs before it can see its disk and its ports, and the network's interface.
readonly KERNEL_META=linux-image-cloud-amd64
readonly KERNEL_MODULES="virtio_ring virtio virtio_mmio virtio_blk virtio_console virtio-rng dummy"

kernel_id=

kernel_package() {
	apt-cache depends --important "$KERNEL_META" 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ {print $2; exit}'
}

kernel_version() {
	apt-cache policy "$1" | awk '$1 == "Candidate:" {print $2; exit}'
}

module_file() {
	find "$1/lib/modules" -name "${2//[-_]/[-_]}.ko" -print -quit
}

# Writes the module and, before it, those it depends on, each once.
module_add() {
	local from=$1 to=$2 name=$3 file need
	file=$(module_file "$from" "$name")
	[ -n "$file" ] || die "Debian's kernel has no module '$name'"
	name=$(basename -- "$file" .ko)
	[ ! -e "$to/modules/$name.ko" ] || return 0
	# The list stands in the module itself: "depends=a,b", ended by a zero byte.
	for need in $(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | tr ',' ' '); do
		module_add "$from" "$to" "$need"
	done
	cp -- "$file" "$to/modules/"
	echo "$name" >>"$to/modules.list"
}

kernel_unpack() {
	local package=$1 new=$2 module
	mkdir -p "$work/kernel" "$new/modules"
	run env --chdir="$work/kernel" apt-get -q -o APT::Sandbox::User=root download "$package" ||
		die "cannot download the kernel package '$package'"
	run dpkg-deb -x "$work/kernel/$package"_*.deb "$work/kernel" ||
		die "cannot unpack the kernel package '$package'"
	cp -- "$work/kernel/boot/vmlinuz-"* "$new/vmlinuz"
	for module in $KERNEL_MODULES; do
		module_add "$work/kernel" "$new" "$module"
	done
	rm -rf -- "$work/kernel"
	chmod -R u=rwX,go=rX "$new"
}

kernel_make() {
	local package new=$data/kernels/.new-$$
	package=$(kernel_package)
	[ -n "$package" ] || die "apt knows no package '$KERNEL_META'; as root: apt-get update"
	kernel_id=${package#linux-image-}_$(kernel_version "$package")
	[ ! -e "$data/kernels/$kernel_id" ] || return 0
	step 2 "unpacking the guest's kernel $kernel_id"
	kernel_unpack "$package" "$new"
	sync -- "$new/vmlinuz" "$new/modules.list"
	mv -T -- "$new" "$data/kernels/$kernel_id"
}
