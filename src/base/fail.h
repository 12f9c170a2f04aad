/* What went wrong, for a person: a code and a sentence, in fixed storage, so that failing never
 * allocates and can cross a pipe. Filled once, where the detail is known; callers pass it up and
 * may prefix it ("restoring 'web-7': ..."). The text is for the operator, never for an API
 * client. */
#ifndef SPACE_BASE_FAIL_H
#define SPACE_BASE_FAIL_H

#include "base/defs.h"

#define FAIL_TEXT_MAX 512

struct fail {
	int code; /* 0 or a negative errno */
	char text[FAIL_TEXT_MAX];
};

/* Sets code and text and returns code, so that `return fail_set(f, -EINVAL, "...")` reads well.
 * A text that does not fit is cut. `f` may be NULL: then only the code is returned. */
int fail_set(struct fail *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same, with ": <what errno says of -code>" at the end. */
int fail_errno(struct fail *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts a sentence and ": " before the text and returns f->code; -EIO when f is NULL. */
int fail_prefix(struct fail *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
