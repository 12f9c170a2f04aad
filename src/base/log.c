/* One line an event; see log.h. Never fails, never blocks for longer than one write(2). */
#include "base/log.h"

#include "base/clock.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *program;
	enum log_level max;
	int fd;
} logger = {.program = "space", .max = LOG_INFO, .fd = STDERR_FILENO};

void log_init(const char *program, enum log_level max, int fd)
{
	logger.program = program;
	logger.max = max;
	logger.fd = fd;
}

void log_event(enum log_level level, const char *message, const char *fmt, ...)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	static_assert(ARRAY_LEN(names) == LOG_LEVELS, "a name for every level");
	char raw[LOG_LINE_MAX];
	char line[LOG_LINE_MAX];
	char at[RFC3339_SIZE];
	va_list ap;
	size_t n;

	if (level > logger.max)
		return;
	rfc3339_print(at, clock_real_ns());
	at[23] = '\0'; /* milliseconds are enough for a person */
	(void)snprintf(raw, sizeof raw, "%sZ %s %s: %s", at, names[level], logger.program, message);
	n = strlen(raw);
	if (fmt[0] && n < sizeof raw - 1) {
		raw[n++] = ' ';
		va_start(ap, fmt);
		(void)vsnprintf(raw + n, sizeof raw - n, fmt, ap);
		va_end(ap);
	}
	n = str_escape(line, sizeof line - 1, raw, strlen(raw), NULL);
	line[n++] = '\n';
	(void)!write(logger.fd, line, n); /* a full disk must not stop a sandbox */
}
