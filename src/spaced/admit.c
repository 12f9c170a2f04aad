/* See admit.h. Guests share their template's memory and touch their own late, so declared memory
 * is no measure; what counts is what the host has left, less what the starts in hand will take. */
#include "spaced/admit.h"

#include "base/str.h"

#include <errno.h>

#define MEMINFO_MAX 4096

static const struct refusal full_count = {
	429, 10, "this node has as many sandboxes as it may have, end one or try again later"};
static const struct refusal full_memory = {
	429, 10, "this node has not enough free memory for another sandbox, try again later"};

int meminfo_available_mib(const char *text, uint64_t *ret)
{
	const char *p = strstr(text, "\nMemAvailable:");
	uint64_t kib = 0;

	if (!p)
		return -EINVAL;
	p += strlen("\nMemAvailable:");
	p += strspn(p, " ");
	if (str_u64_n(p, strspn(p, "0123456789"), UINT64_MAX, &kib) < 0)
		return -EINVAL;
	*ret = kib / 1024;
	return 0;
}

static bool memory_left(struct node *n, const struct sandbox_counts *c)
{
	char text[MEMINFO_MAX + 1];
	uint64_t available = 0;
	ssize_t got;

	if (n->meminfo < 0)
		return true; /* said in the log at the start */
	got = pread(n->meminfo, text, MEMINFO_MAX, 0);
	if (got <= 0)
		return true;
	text[got] = '\0';
	if (meminfo_available_mib(text, &available) < 0)
		return true;
	return available >= ADMIT_RESERVE_MIB + (c->queued + c->starting + 1) * ADMIT_START_MIB;
}

const struct refusal *admit(struct node *n)
{
	struct sandbox_counts c;

	sandboxes_count(n, &c);
	if (c.running + c.starting + c.queued + c.ending >= n->cfg.max_sandboxes)
		return &full_count;
	return memory_left(n, &c) ? NULL : &full_memory;
}
