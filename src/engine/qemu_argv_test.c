/* The command line: boot and restore must describe one machine, or the saved device state does
 * not load. So both are made and compared, option by option. */
#include "engine/qemu_argv.h"

#include "base/alloc.h"
#include "base/test.h"

#define MEMORY_MIB 512
#define VCPUS      2
#define TSC_KHZ    2100000

static struct engine_plan plan_of(const struct vm_spec *spec, bool is_boot)
{
	return (struct engine_plan){.spec = spec, .is_boot = is_boot};
}

/* All arguments, one a line. */
static char *text_of(char **argv)
{
	char *text = xstrdup("\n");

	for (char **p = argv; *p; p++) {
		char *longer = xasprintf("%s%s\n", text, *p);

		free(text);
		text = longer;
	}
	return text;
}

static char *made(const struct vm_spec *spec, bool is_boot)
{
	struct engine_plan p = plan_of(spec, is_boot);
	char **argv = qemu_argv(&p, TSC_KHZ);
	char *text = text_of(argv);

	qemu_argv_free(argv);
	return text;
}

static const struct {
	const char *says;
	enum accel accel;
	bool is_boot;
	const char *part;
	bool want;
} cases[] = {
	{"emulated CPU", ACCEL_TCG, true, "\nmax,-la57\n", true},
	{"a cap on translated code", ACCEL_TCG, false, "\ntcg,tb-size=128\n", true},
	{"KVM is KVM", ACCEL_KVM, true, "\nkvm\n", true},
	{"never the host's CPU", ACCEL_KVM, false, "\nhost", false},
	{"the counter is told", ACCEL_TCG, true, " tsc_early_khz=2100000 tsc=reliable lpj=4000000 ",
	 true},
	{"under KVM it is not", ACCEL_KVM, true, "tsc_early_khz", false},
	{"mitigations stay under KVM", ACCEL_KVM, true, "mitigations", false},
	{"a panic ends the VM", ACCEL_TCG, true, " panic=-1 reboot=t ", true},
	{"under KVM too", ACCEL_KVM, true, " panic=-1 reboot=t ", true},
	{"spaced's words come last", ACCEL_TCG, true, " space.x=1\n", true},
	{"boot writes RAM", ACCEL_TCG, true, "size=512M,mem-path=/proc/self/fd/8,share=on\n", true},
	{"restore does not", ACCEL_TCG, false, "size=512M,mem-path=/proc/self/fd/8,share=off\n",
	 true},
	{"no kernel on restore", ACCEL_TCG, false, "-kernel", false},
	{"no state on boot", ACCEL_TCG, true, "-incoming", false},
	{"no template layer on boot", ACCEL_TCG, true, "/dev/fdset/2", false},
	{"one on restore", ACCEL_TCG, false, "/dev/fdset/2", true},
	{"no balloon", ACCEL_TCG, false, "balloon", false},
	{"no network", ACCEL_TCG, false, "-net", false},
	{"no format is guessed", ACCEL_TCG, false, "\ndriver=raw,node-name=base,read-only=on,",
	 true},
	{"QEMU's own filter", ACCEL_TCG, false,
	 "\n-sandbox\non,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny\n",
	 true},
	{"control is port 1", ACCEL_TCG, false, "name=space.control,nr=1\n", true},
	{"egress is port 2", ACCEL_TCG, false, "name=space.egress,nr=2\n", true},
	{"wake is port 3", ACCEL_TCG, false, "name=space.wake,nr=3\n", true},
};

static void test_table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct vm_spec spec = {.accel = cases[i].accel,
					     .memory_mib = MEMORY_MIB,
					     .vcpus = VCPUS,
					     .cmdline = "space.x=1"};
		AUTO(str_drop) char *text = made(&spec, cases[i].is_boot);

		EXPECT_EQ(cases[i].says, strstr(text, cases[i].part) != NULL, cases[i].want);
	}
}

/* The arguments that make the guest's machine: what follows -M, -accel, -cpu, -m, -smp, -device
 * and -global, in order. */
static char *machine_of(char **argv)
{
	static const char *const options[] = {"-M",   "-accel",  "-cpu",   "-m",
					      "-smp", "-device", "-global"};
	char *text = xstrdup("");

	for (char **p = argv; *p && p[1]; p++)
		for (size_t i = 0; i < ARRAY_LEN(options); i++)
			if (!strcmp(*p, options[i])) {
				char *longer = xasprintf("%s%s %s\n", text, *p, p[1]);

				free(text);
				text = longer;
			}
	return text;
}

static void test_same_machine(enum accel accel)
{
	const struct vm_spec spec = {.accel = accel, .memory_mib = MEMORY_MIB, .vcpus = VCPUS};
	struct engine_plan boot = plan_of(&spec, true);
	struct engine_plan restore = plan_of(&spec, false);
	char **boot_argv = qemu_argv(&boot, TSC_KHZ);
	char **restore_argv = qemu_argv(&restore, 0);
	AUTO(str_drop) char *a = machine_of(boot_argv);
	AUTO(str_drop) char *b = machine_of(restore_argv);

	EXPECT("there is a machine", strlen(a) > 100);
	EXPECT_STR("boot and restore have the same", a, b);
	qemu_argv_free(boot_argv);
	qemu_argv_free(restore_argv);
}

/* The longest command line that a message can carry. */
static void test_longest(void)
{
	struct vm_spec spec = {.memory_mib = VM_MEMORY_MAX_MIB, .vcpus = VM_VCPUS_MAX};
	AUTO(str_drop) char *text = NULL;

	memset(spec.cmdline, 'x', sizeof spec.cmdline - 1);
	text = made(&spec, true);
	EXPECT("it is whole", strstr(text, spec.cmdline) != NULL);
}

int main(void)
{
	test_table();
	test_same_machine(ACCEL_TCG);
	test_same_machine(ACCEL_KVM);
	test_longest();
	return test_done();
}
