/* See accel.h. The guest is one page of code in long mode: 2 MiB identity map, flat segments, a
 * loop of loads and stores, hlt (Intel SDM 3A §9.8.5 gives the register values). Native KVM runs
 * it one to three times as slow as here, an interpreter hundreds of times. */
#include "engine/accel.h"

#include "base/clock.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LOOPS      4000u
#define TRIES      3
#define SLOW       30u             /* times native */
#define GRACE_NS   (1 * NS_PER_MS) /* entry and exit, which nesting makes dear */
#define GUEST_MEM  0x10000u
#define GUEST_CODE 0x4000u
#define GUEST_DATA 0x5000u

/* 1: mov (%rsi),%rax; inc %rax; mov %rax,(%rsi); dec %rcx; jnz 1b; hlt */
static const uint8_t guest_code[] = {0x48, 0x8b, 0x06, 0x48, 0xff, 0xc0, 0x48, 0x89,
				     0x06, 0x48, 0xff, 0xc9, 0x75, 0xf2, 0xf4};

struct probe {
	int kvm;
	int vm;
	int cpu;
	uint8_t *mem;
	struct kvm_run *run;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* counts KVM_RUN, not preemption */
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t native_ns(void)
{
	volatile uint64_t cell = 0;
	uint64_t n = LOOPS;
	uint64_t start = cpu_ns();

	__asm__ volatile("1: mov (%1),%%rax; inc %%rax; mov %%rax,(%1); dec %0; jnz 1b"
			 : "+r"(n)
			 : "r"(&cell)
			 : "rax", "memory", "cc");
	return cpu_ns() - start;
}

static void put64(uint8_t *mem, size_t at, uint64_t v)
{
	memcpy(mem + at, &v, sizeof v);
}

static const char *memory_make(struct probe *p)
{
	struct kvm_userspace_memory_region r = {.memory_size = GUEST_MEM};

	p->mem = mmap(NULL, GUEST_MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->mem == MAP_FAILED)
		return "no memory for the probe";
	put64(p->mem, 0x1000, 0x2003); /* PML4 -> PDPT -> PD -> one 2 MiB page */
	put64(p->mem, 0x2000, 0x3003);
	put64(p->mem, 0x3000, 0x0083);
	memcpy(p->mem + GUEST_CODE, guest_code, sizeof guest_code);
	r.userspace_addr = (uintptr_t)p->mem;
	return ioctl(p->vm, KVM_SET_USER_MEMORY_REGION, &r) < 0 ? "KVM takes no memory" : NULL;
}

static const char *cpu_make(struct probe *p)
{
	struct kvm_segment data = {
		.limit = ~0u, .selector = 0x10, .type = 3, .present = 1, .s = 1, .db = 1, .g = 1};
	struct kvm_segment code = data;
	struct kvm_sregs s;
	int size = ioctl(p->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	if ((p->cpu = ioctl(p->vm, KVM_CREATE_VCPU, 0)) < 0 || size < (int)sizeof *p->run)
		return "KVM makes no CPU";
	p->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, p->cpu, 0);
	if (p->run == MAP_FAILED || ioctl(p->cpu, KVM_GET_SREGS, &s) < 0)
		return "KVM shows no CPU";
	code.selector = 8;
	code.type = 11;
	code.db = 0;
	code.l = 1;
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.cr0 = 0x80050033; /* PG AM WP NE ET MP PE */
	s.cr3 = 0x1000;
	s.cr4 = 0x20;   /* PAE */
	s.efer = 0x500; /* LMA LME */
	return ioctl(p->cpu, KVM_SET_SREGS, &s) < 0 ? "KVM refuses long mode" : NULL;
}

static const char *loop_run_once(struct probe *p, uint64_t loops, uint64_t *ret_ns)
{
	struct kvm_regs r = {.rip = GUEST_CODE, .rflags = 2, .rsi = GUEST_DATA, .rcx = loops};
	uint64_t start;

	if (ioctl(p->cpu, KVM_SET_REGS, &r) < 0)
		return "KVM refuses registers";
	start = cpu_ns();
	if (ioctl(p->cpu, KVM_RUN, 0) < 0)
		return "KVM does not run";
	*ret_ns = cpu_ns() - start;
	return p->run->exit_reason == KVM_EXIT_HLT ? NULL : "KVM does not run plain code";
}

static const char *speed_check(struct probe *p)
{
	uint64_t best = UINT64_MAX;
	uint64_t base = UINT64_MAX;
	uint64_t ns;
	const char *why = loop_run_once(p, 10, &ns); /* brings the pages in */

	for (int i = 0; !why && i < TRIES; i++) {
		why = loop_run_once(p, LOOPS, &ns);
		best = u64_min(best, ns);
		base = u64_min(base, native_ns());
	}
	if (!why && best > SLOW * base + GRACE_NS)
		why = "/dev/kvm interprets kernel code instead of running it (no SVM or VMX)";
	return why;
}

/* In the child: whatever it opens ends with it. */
static const char *probe_run(void)
{
	struct probe p = {.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC)};
	const char *why;

	if (p.kvm < 0)
		return errno == ENOENT ? "there is no /dev/kvm" : "/dev/kvm cannot be opened";
	if (ioctl(p.kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return "KVM has another version";
	if ((p.vm = ioctl(p.kvm, KVM_CREATE_VM, 0)) < 0)
		return "KVM makes no VM";
	if (!(why = memory_make(&p)) && !(why = cpu_make(&p)))
		why = speed_check(&p);
	return why;
}

static size_t wait_answer(int fd, char *dst, size_t size)
{
	uint64_t end_ns = clock_mono_ns() + ACCEL_PROBE_MS * NS_PER_MS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;
	int r;

	do {
		uint64_t now = clock_mono_ns();

		r = poll(&p, 1, now < end_ns ? (int)((end_ns - now) / NS_PER_MS) : 0);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return 0;
	n = read(fd, dst, size);
	return n > 0 ? (size_t)n : 0;
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void accel_probe(struct accel_report *ret)
{
	char text[ACCEL_WHY_SIZE] = "";
	int fds[2] = {-1, -1};
	pid_t pid = -1;
	size_t n;

	ret->accel = ACCEL_TCG;
	(void)snprintf(ret->why, sizeof ret->why, "the probe could not be started");
	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		goto out;
	if (!pid) {
		const char *why = probe_run();

		n = (size_t)snprintf(text, sizeof text, "%s", why ? why : "ok");
		_exit(write(fds[1], text, n) == (ssize_t)n ? 0 : 1);
	}
	n = wait_answer(fds[0], text, sizeof text - 1);
	text[n] = '\0';
	end_child(pid);
	if (n && !strcmp(text, "ok")) {
		ret->accel = ACCEL_KVM;
		ret->why[0] = '\0';
	} else {
		(void)snprintf(ret->why, sizeof ret->why, "%s",
			       n ? text : "/dev/kvm did not answer in time");
	}
out:
	fd_drop(&fds[0]);
	fd_drop(&fds[1]);
}
