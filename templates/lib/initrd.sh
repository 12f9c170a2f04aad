# initrds/<id>.cpio: space-init and the kernel's modules. The id names the content.

initrd_id=

initrd_make() {
	local new=$data/initrds/.new-$$ kernel=$data/kernels/$kernel_id
	"$libexec/mkinitrd" "$libexec/space-init" "$kernel/modules" "$kernel/modules.list" "$new" >>"$log" 2>&1 ||
		die "cannot make the initial file system"
	chmod 644 "$new"
	initrd_id=$(hash_of <"$new")
	sync -- "$new"
	mv -- "$new" "$data/initrds/$initrd_id.cpio"
}
