/* Fills struct fail; see fail.h. Never allocates. */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fail_vset(struct fail *f, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void fail_vset(struct fail *f, int code, const char *fmt, va_list ap)
{
	char text[FAIL_TEXT_MAX]; /* not in place: an argument may be f->text itself */

	(void)vsnprintf(text, sizeof text, fmt, ap);
	f->code = code;
	memcpy(f->text, text, sizeof text);
}

int fail_set(struct fail *f, int code, const char *fmt, ...)
{
	va_list ap;

	if (f) {
		va_start(ap, fmt);
		fail_vset(f, code, fmt, ap);
		va_end(ap);
	}
	return code;
}

int fail_errno(struct fail *f, int code, const char *fmt, ...)
{
	const char *why = strerrordesc_np(-code);
	va_list ap;
	size_t n;

	if (f) {
		va_start(ap, fmt);
		fail_vset(f, code, fmt, ap);
		va_end(ap);
		n = strlen(f->text);
		(void)snprintf(f->text + n, sizeof f->text - n, ": %s",
			       why ? why : "unknown error");
	}
	return code;
}

int fail_prefix(struct fail *f, const char *fmt, ...)
{
	char old[FAIL_TEXT_MAX];
	va_list ap;
	size_t n;

	if (!f)
		return -EIO;
	memcpy(old, f->text, sizeof old);
	va_start(ap, fmt);
	fail_vset(f, f->code, fmt, ap);
	va_end(ap);
	n = strlen(f->text);
	(void)snprintf(f->text + n, sizeof f->text - n, ": %s", old);
	return f->code;
}
