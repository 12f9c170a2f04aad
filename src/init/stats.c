/* Statistics: see stats.h. */
#include "init/stats.h"

#include "base/clock.h"
#include "base/str.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#define TEXT_MAX 1024 /* what is looked for stands at the front of each file */

static const char *read_text(int dir, const char *path, char text[TEXT_MAX])
{
	AUTO(fd_drop) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);

	text[n > 0 ? n : 0] = 0;
	return text;
}

/* The decimal number at the front of *p after blanks; 0 when there is none. Moves *p past it. */
static uint64_t number(const char **p)
{
	uint64_t v = 0;
	size_t n;

	*p += strspn(*p, " \t");
	n = strspn(*p, "0123456789");
	if (str_u64_n(*p, n, UINT64_MAX, &v) != 0)
		v = 0;
	*p += n;
	return v;
}

uint64_t meminfo_bytes(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *p = line + n + 1;

		if (strncmp(line, name, n) == 0 && line[n] == ':')
			return number(&p) * 1024;
	}
	return 0;
}

int cpu_times(const char *text, uint64_t *ret_total, uint64_t *ret_idle)
{
	const char *p = text + 4;
	uint64_t total = 0;
	uint64_t idle = 0;

	if (strncmp(text, "cpu ", 4) != 0)
		return -EBADMSG;
	/* user nice system idle iowait irq softirq steal; guest times are in user already */
	for (unsigned i = 0; i < 8; i++) {
		uint64_t v = number(&p);

		total += v;
		idle += i == 3 || i == 4 ? v : 0;
	}
	*ret_total = total;
	*ret_idle = idle;
	return 0;
}

uint64_t stats_ram_bytes(void)
{
	char text[TEXT_MAX];

	return meminfo_bytes(read_text(AT_FDCWD, "/proc/meminfo", text), "MemTotal");
}

static double cpu_used_pct(struct stats *s)
{
	char text[TEXT_MAX];
	uint64_t total = 0;
	uint64_t idle = 0;
	double pct = 0;

	if (cpu_times(read_text(AT_FDCWD, "/proc/stat", text), &total, &idle) != 0)
		return 0;
	if (total > s->cpu_total && idle >= s->cpu_idle)
		pct = 100.0 - 100.0 * (double)(idle - s->cpu_idle) / (double)(total - s->cpu_total);
	s->cpu_total = total;
	s->cpu_idle = idle;
	return pct < 0 ? 0 : pct;
}

static uint64_t rss_bytes(void)
{
	char text[TEXT_MAX];
	const char *p = read_text(AT_FDCWD, "/proc/self/statm", text);

	(void)number(&p); /* the size */
	return number(&p) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t uptime_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

json_t *stats_object(struct stats *s, int root, int user_cgroup)
{
	char text[TEXT_MAX];
	const char *mem = read_text(AT_FDCWD, "/proc/meminfo", text);
	uint64_t total = meminfo_bytes(mem, "MemTotal");
	uint64_t cache = meminfo_bytes(mem, "Cached") + meminfo_bytes(mem, "Buffers");
	uint64_t free_bytes = meminfo_bytes(mem, "MemFree");
	const char *pids = read_text(user_cgroup, "pids.current", text);
	uint64_t n_pids = number(&pids);
	struct statfs disk = {0};

	(void)fstatfs(root, &disk); /* zeroes when it fails */
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I}", "memTotal",
			 (json_int_t)total, "memUsed",
			 (json_int_t)(total - u64_min(total, free_bytes + cache)), "memCache",
			 (json_int_t)cache, "diskTotal", (json_int_t)disk.f_blocks * disk.f_bsize,
			 "diskUsed", (json_int_t)(disk.f_blocks - disk.f_bfree) * disk.f_bsize,
			 "cpuCount", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "cpuUsedPct",
			 cpu_used_pct(s), "processes", (json_int_t)n_pids, "uptimeNs",
			 (json_int_t)uptime_ns(), "initRssBytes", (json_int_t)rss_bytes());
}
