/* What a person sees: messages and progress on stderr, tables on stdout. Text that came from the
 * platform or a guest goes through here, escaped; colours and moving lines only on a terminal. */
#ifndef SPACE_CLI_TERM_H
#define SPACE_CLI_TERM_H

#include "base/defs.h"

struct fail;

void term_init(void);    /* looks at stderr, TERM and NO_COLOR once */
bool term_is_live(void); /* stderr is a terminal on which lines may move */

/* "space: <text>", escaped. Both return EXIT_OURS, so that `return term_error(...)` reads well. */
int term_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
int term_fail(const struct fail *f);
/* The same without ending anything. */
void term_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* One line of progress; on a terminal it replaces the one before, else it is a line of its own. */
void term_progress(const char *fmt, ...) PRINTF_LIKE(1, 2);
void term_progress_end(void); /* removes a moving line */

/* Escaped text to stdout; `width` pads with blanks (0: not). */
void term_cell(const char *text, int width);
const char *term_bold(void); /* start of bold on stdout, or "" */
const char *term_plain(void);

#endif
