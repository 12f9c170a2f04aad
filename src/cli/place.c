/* See place.h. */
#include "cli/place.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/cli.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY    65534
#define HOST_SIZE 64

int place_make_data(const struct cli *c, struct fail *f)
{
	AUTO(str_drop) char *path = xstrdup(c->data);
	mode_t mode = geteuid() == 0 ? 0755 : 0700;

	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(path, mode) < 0 && errno != EEXIST && errno != EROFS)
			return fail_errno(f, -errno, "cannot make the folder '%s'", path);
		*p = '/';
	}
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return fail_errno(f, -errno, "cannot make the data folder '%s'", path);
	return 0;
}

static bool is_program(const char *dir, size_t n, const char *name)
{
	AUTO(str_drop) char *path = xasprintf("%.*s/%s", (int)n, dir, name);

	return access(path, X_OK) == 0;
}

static bool program_exists(const char *name)
{
	const char *path = getenv("PATH");

	if (!path || !*path)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, ":");

		if (n && is_program(p, n, name))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

/* In a child, as a user without rights, as the jails are. Returns 0 or a positive errno. */
static int userns_try(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
				       setresuid(NOBODY, NOBODY, NOBODY) < 0))
			_exit(0); /* cannot tell: the jail itself will */
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}

int place_check(const struct cli *c, struct fail *f)
{
	static const struct {
		const char *name;
		const char *why;
	} programs[] = {
		{"bwrap", "every sandbox runs in its jails; as root: apt-get install bubblewrap"},
		{"qemu-system-x86_64",
		 "it runs the microVMs; as root: apt-get install qemu-system-x86"},
	};
	AUTO(str_drop) char *jailer = xasprintf("%s/space-jailer", c->libexec);
	int err;

	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!program_exists(programs[i].name))
			return fail_set(f, -ENOENT, "cannot find the program '%s': %s",
					programs[i].name, programs[i].why);
	if (access(jailer, X_OK) < 0)
		return fail_set(f, -ENOENT,
				"cannot find '%s': the installation is not whole; install it again",
				jailer);
	err = userns_try();
	if (err)
		return fail_set(f, -err,
				"user namespaces are not allowed here (%s), and jails are made of "
				"them; as root: sysctl -w kernel.unprivileged_userns_clone=1 "
				"user.max_user_namespaces=15000 (on Ubuntu also "
				"kernel.apparmor_restrict_unprivileged_userns=0)",
				strerror(err));
	return 0;
}

static int listen_parse(const char *text, char host[HOST_SIZE], uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;
	size_t n;

	if (!colon || str_u64(colon + 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= HOST_SIZE)
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	*ret_port = (uint16_t)port;
	return 0;
}

int place_check_listen(const char *listen, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	char host[HOST_SIZE];
	struct fail why = {0};
	uint16_t port;
	int r;

	if (listen_parse(listen, host, &port) < 0)
		return fail_set(
			f, -EINVAL,
			"'%s' is no address to listen on: want HOST:PORT, a numeric host and "
			"a port up to 65535, such as 127.0.0.1:7722",
			listen);
	if (!str_starts(host, "127.") && strcmp(host, "::1") != 0)
		return fail_set(f, -EINVAL,
				"'%s' is no loopback address, and the API has no TLS: want "
				"127.0.0.1:PORT or [::1]:PORT",
				listen);
	r = sock_tcp_listen(host, port, &fd, &port, &why);
	if (r == -EADDRINUSE)
		return fail_set(f, r,
				"cannot listen on %s: the port is taken; choose another with "
				"--listen HOST:PORT (port 0: any free one)",
				listen);
	return r < 0 ? fail_set(f, r, "%s", why.text) : 0;
}
