/* See term.h. */
#include "cli/term.h"

#include "base/fail.h"
#include "base/str.h"
#include "cli/exitcode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define LINE_MAX_BYTES 2048
#define CELL_MAX       512
#define WIDTH_MAX      100u

static struct {
	bool is_live;              /* stderr */
	bool has_colour;           /* stderr */
	bool has_bold;             /* stdout */
	bool has_progress;         /* a moving line stands there */
	char last[LINE_MAX_BYTES]; /* progress that was told, where no line can move */
} term;

void term_init(void)
{
	const char *kind = getenv("TERM");
	const char *no_colour = getenv("NO_COLOR");
	bool can = kind && *kind && strcmp(kind, "dumb") != 0;
	bool may = can && !(no_colour && *no_colour);

	term.is_live = can && isatty(STDERR_FILENO);
	term.has_colour = may && term.is_live;
	term.has_bold = may && isatty(STDOUT_FILENO);
}

bool term_is_live(void)
{
	return term.is_live;
}

void term_progress_end(void)
{
	if (!term.has_progress)
		return;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	term.has_progress = false;
}

PRINTF_LIKE(2, 0) static void say(const char *colour, const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES];
	char line[LINE_MAX_BYTES];
	int n = vsnprintf(text, sizeof text, fmt, ap);

	if (n < 0)
		return;
	str_escape(line, sizeof line, text, size_min((size_t)n, sizeof text - 1), "\n");
	term_progress_end();
	if (term.has_colour)
		(void)fprintf(stderr, "%sspace:\033[0m %s\n", colour, line);
	else
		(void)fprintf(stderr, "space: %s\n", line);
}

int term_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("\033[31m", fmt, ap);
	va_end(ap);
	return EXIT_OURS;
}

int term_fail(const struct fail *f)
{
	return term_error("%s", f->text);
}

void term_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("\033[1m", fmt, ap);
	va_end(ap);
}

/* A line that wraps cannot be taken back. */
static int line_width(void)
{
	struct winsize size = {0};

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return (int)WIDTH_MAX;
	return (int)size_min(size.ws_col - 1u, WIDTH_MAX);
}

void term_progress(const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	char line[LINE_MAX_BYTES];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	str_escape(line, sizeof line, text, size_min((size_t)n, sizeof text - 1), NULL);
	if (!term.is_live) {
		if (strcmp(line, term.last) != 0)
			(void)fprintf(stderr, "%s\n", line);
		(void)str_copy(term.last, sizeof term.last, line); /* of the same size */
		return;
	}
	(void)fprintf(stderr, "\r\033[K%.*s", line_width(), line);
	(void)fflush(stderr);
	term.has_progress = true;
}

void term_cell(const char *text, int width)
{
	char cell[CELL_MAX];

	str_escape(cell, sizeof cell, text, strlen(text), NULL);
	(void)printf("%-*s", width, cell);
}

const char *term_bold(void)
{
	return term.has_bold ? "\033[1m" : "";
}

const char *term_plain(void)
{
	return term.has_bold ? "\033[0m" : "";
}
