/* See qemu_argv.h. Options and their reasons:
 *  - microvm with nothing on it: no PIC, PIT, RTC, serial, option ROMs: less to attack
 *  - file.locking=off: locks belong to open files, ours are shared with the keeper
 *  - werror=stop: a full host disk stops the guest instead of corrupting it; rerror=report
 *  - no balloon, no free-page reporting: QEMU punches holes through the shared template RAM
 *  - -sandbox: QEMU's own seccomp list on top of the jail
 *  - CPU models: fixed and named, so that a saved state may move. Emulated: everything TCG has,
 *    but not 57-bit paging, which early boot code does slowly. KVM: the oldest server model of
 *    each maker that has what Debian 12's user space may use; nested virtualisation and the PMU
 *    hidden. */
#include "engine/qemu_argv.h"

#include "base/alloc.h"

#include <cpuid.h>
#include <stdarg.h>

#define ARGS_MAX    96
#define TB_SIZE_MIB 128 /* a cap, filled lazily; below 64 heavy programs thrash */

struct args {
	char *v[ARGS_MAX];
	size_t n;
};

PRINTF_LIKE(2, 3) static void add(struct args *a, const char *fmt, ...)
{
	char text[CMDLINE_SIZE + 512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	assert(n >= 0 && (size_t)n < sizeof text && a->n < ARGS_MAX - 1);
	a->v[a->n++] = xstrdup(text);
}

PRINTF_LIKE(3, 4) static void opt(struct args *a, const char *name, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	assert(n >= 0 && (size_t)n < sizeof text);
	add(a, "%s", name);
	add(a, "%s", text);
}

static bool is_amd(void)
{
	unsigned a;
	unsigned b;
	unsigned c;
	unsigned d;

	return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && d == signature_AMD_edx;
}

static void add_machine(struct args *a, const struct engine_plan *p)
{
	const struct vm_spec *s = p->spec;

	opt(a, "-M",
	    "microvm,memory-backend=ram,rtc=off,pit=off,pic=off,isa-serial=off,x-option-roms=off,"
	    "suppress-vmdesc=on,mem-merge=off,dump-guest-core=off");
	if (s->accel == ACCEL_KVM) {
		opt(a, "-accel", "kvm");
		opt(a, "-cpu", "%s", is_amd() ? "EPYC-v1,-svm,pmu=off" : "Haswell-v2,-vmx,pmu=off");
	} else {
		opt(a, "-accel", "tcg,tb-size=%d", TB_SIZE_MIB);
		opt(a, "-cpu", "max,-la57");
	}
	opt(a, "-m", "%u", s->memory_mib);
	opt(a, "-smp", "%u", s->vcpus);
	opt(a, "-object", "memory-backend-file,id=ram,size=%uM,mem-path=/proc/self/fd/%d,share=%s",
	    s->memory_mib, QEMU_FD_RAM, p->is_boot ? "on" : "off");
}

static void add_disk(struct args *a, const struct engine_plan *p)
{
	const char *backing = p->is_boot ? "base" : "template";

	opt(a, "-add-fd", "fd=%d,set=1", QEMU_FD_BASE);
	opt(a, "-blockdev",
	    "driver=raw,node-name=base,read-only=on,file.driver=file,"
	    "file.filename=/dev/fdset/1,file.locking=off");
	if (!p->is_boot) {
		opt(a, "-add-fd", "fd=%d,set=2", QEMU_FD_TEMPLATE_LAYER);
		opt(a, "-blockdev",
		    "driver=qcow2,node-name=template,read-only=on,file.driver=file,"
		    "file.filename=/dev/fdset/2,file.locking=off,backing=base");
	}
	opt(a, "-add-fd", "fd=%d,set=3", QEMU_FD_LAYER);
	opt(a, "-blockdev",
	    "driver=qcow2,node-name=top,discard=unmap,detect-zeroes=unmap,file.driver=file,"
	    "file.filename=/dev/fdset/3,file.discard=unmap,file.locking=off,backing=%s",
	    backing);
	opt(a, "-device", "virtio-blk-device,drive=top,id=disk,werror=stop,rerror=report");
}

static void add_ports(struct args *a)
{
	static const char *const names[] = {"space.control", "space.egress", "space.wake"};

	opt(a, "-device", "virtio-rng-device");
	opt(a, "-device", "virtio-serial-device,id=serial");
	opt(a, "-chardev", "socket,id=console,fd=%d", QEMU_FD_CONSOLE);
	opt(a, "-device", "virtconsole,chardev=console,nr=0");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		opt(a, "-chardev", "socket,id=port%zu,fd=%zu", i, QEMU_FD_CONTROL + i);
		opt(a, "-device", "virtserialport,chardev=port%zu,name=%s,nr=%zu", i, names[i],
		    i + 1);
	}
}

/* A panic ends the VM at once (panic=-1) by a triple fault (reboot=t): without ACPI and a keyboard
 * controller the kernel's other ways to reset take minutes, in which a dead guest would spin.
 * cmos_init looks for a clock that this machine lacks, and cryptomgr tests what the distribution
 * has tested: together a quarter of an emulated boot. */
static const char cmdline_head[] = "console=hvc0 quiet panic=-1 reboot=t random.trust_cpu=on "
				   "initcall_blacklist=cmos_init cryptomgr.notests";

static void add_source(struct args *a, const struct engine_plan *p, uint32_t tsc_khz)
{
	char timing[128] = "";

	if (!p->is_boot) {
		opt(a, "-incoming", "defer");
		return;
	}
	/* Mitigations guard against speculation, of which emulation has none. Programs at the
	 * same addresses each time are translated once instead of at every start (half the time
	 * of an exec); what that gives up, a guest's defence against its own input, KVM guests
	 * keep. The guest's TSC is the host's, and exact; its kernel would measure it against
	 * lost timer ticks, take those for the truth and fall behind by seconds a minute:
	 * tsc=reliable. Accounting and hooks that nothing here uses are code to translate. */
	if (p->spec->accel == ACCEL_TCG)
		(void)snprintf(
			timing, sizeof timing,
			" tsc_early_khz=%u tsc=reliable lpj=4000000 mitigations=off norandmaps"
			" psi=0 lsm=landlock,yama",
			tsc_khz);
	opt(a, "-kernel", "/proc/self/fd/%d", QEMU_FD_KERNEL);
	opt(a, "-initrd", "/proc/self/fd/%d", QEMU_FD_INITRD);
	add(a, "-append");
	add(a, "%s%s%s%s", cmdline_head, timing, *p->spec->cmdline ? " " : "", p->spec->cmdline);
}

char **qemu_argv(const struct engine_plan *p, uint32_t tsc_khz)
{
	struct args a = {.n = 0};
	char **v;

	opt(&a, "-name", "sandbox");
	add_machine(&a, p);
	add(&a, "-nodefaults");
	add(&a, "-no-user-config");
	add(&a, "-no-reboot");
	opt(&a, "-display", "none");
	add_disk(&a, p);
	add_ports(&a);
	opt(&a, "-chardev", "socket,id=qmp,fd=%d", QEMU_FD_QMP);
	opt(&a, "-mon", "chardev=qmp,mode=control");
	opt(&a, "-global", "migration.send-configuration=off");
	opt(&a, "-sandbox",
	    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	add_source(&a, p, tsc_khz);
	v = xcalloc(a.n + 1, sizeof *v);
	memcpy(v, a.v, a.n * sizeof *v);
	return v;
}

void qemu_argv_free(char **argv)
{
	for (char **p = argv; p && *p; p++)
		free(*p);
	free(argv);
}
