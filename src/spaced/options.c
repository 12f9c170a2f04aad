/* See options.h. */
#include "spaced/options.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>

#define FD_MAX 1023u

static int is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int listen_parse(const char *text, char host[46], uint16_t *ret_port, struct fail *f)
{
	const char *colon = strrchr(text, ':');
	const char *start = text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	uint64_t port = 0;

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		start++;
		n -= 2;
	}
	if (!colon || n == 0 || n > 45 || str_u64(colon + 1, 65535, &port) < 0)
		return fail_set(f, -EINVAL, "--listen wants ADDRESS:PORT, not '%s'", text);
	memcpy(host, start, n);
	host[n] = '\0';
	if (!is_loopback(host))
		return fail_set(f, -EINVAL, "--listen takes loopback addresses only, not '%s'",
				host);
	*ret_port = (uint16_t)port;
	return 0;
}

static int number(const char *name, const char *text, uint64_t min, uint64_t max, uint32_t *ret,
		  struct fail *f)
{
	uint64_t v = 0;

	if (str_u64(text, max, &v) < 0 || v < min)
		return fail_set(f, -EINVAL, "%s wants a number from %llu to %llu, not '%s'", name,
				(unsigned long long)min, (unsigned long long)max, text);
	*ret = (uint32_t)v;
	return 0;
}

static int choice(const char *text, enum accel_choice *ret, struct fail *f)
{
	static const char *const names[] = {"auto", "tcg", "kvm"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], text) == 0) {
			*ret = (enum accel_choice)i;
			return 0;
		}
	return fail_set(f, -EINVAL, "--accel wants auto, tcg or kvm, not '%s'", text);
}

static int one(const char *name, const char *value, struct options *o, struct fail *f)
{
	uint32_t fd = 0;
	int r;

	if (strcmp(name, "--data") == 0) {
		o->data = value;
		return 0;
	}
	if (strcmp(name, "--accel-why") == 0) {
		o->accel_why = value;
		return 0;
	}
	if (strcmp(name, "--listen") == 0)
		return listen_parse(value, o->host, &o->port, f);
	if (strcmp(name, "--max-sandboxes") == 0)
		return number(name, value, 1, MAX_SANDBOXES_MAX, &o->max_sandboxes, f);
	if (strcmp(name, "--max-hours") == 0)
		return number(name, value, 1, MAX_HOURS_MAX, &o->max_hours, f);
	if (strcmp(name, "--accel") == 0)
		return choice(value, &o->accel, f);
	if (strcmp(name, "--jailer-fd") == 0) {
		r = number(name, value, 3, FD_MAX, &fd, f);
		o->jailer_fd = (int)fd;
		return r;
	}
	return fail_set(f, -EINVAL, "unknown option '%s'", name);
}

int options_parse(int argc, char **argv, struct options *ret, struct fail *f)
{
	struct options o = {.jailer_fd = -1,
			    .accel_why = "",
			    .host = "127.0.0.1",
			    .max_sandboxes = MAX_SANDBOXES_DEFAULT,
			    .max_hours = MAX_HOURS_DEFAULT};

	for (int i = 1; i < argc; i += 2) {
		int r;

		if (i + 1 >= argc)
			return fail_set(f, -EINVAL, "'%s' wants a value", argv[i]);
		if ((r = one(argv[i], argv[i + 1], &o, f)) < 0)
			return r;
	}
	if (!o.data || o.jailer_fd < 0)
		return fail_set(f, -EINVAL,
				"--data and --jailer-fd are needed; space up gives them");
	*ret = o;
	return 0;
}
