/* One line an event: time, level, program, message, then key=value. Programs log; libraries return.
 *
 *   log_info("vm stopped", "sandbox=%s cause=%s ran_ms=%" PRIu64, id, cause, ms);
 *
 * The finished line is escaped and cut at LOG_LINE_MAX, so bytes from outside cannot forge a
 * line. */
#ifndef SPACE_BASE_LOG_H
#define SPACE_BASE_LOG_H

#include "base/defs.h"

#define LOG_LINE_MAX 2048

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

/* `fd` is borrowed and written with one write(2) a line. Before log_init: stderr, info. */
void log_init(const char *program, enum log_level max, int fd);
void log_event(enum log_level level, const char *message, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(message, ...) log_event(LOG_ERROR, message, __VA_ARGS__)
#define log_warn(message, ...)  log_event(LOG_WARN, message, __VA_ARGS__)
#define log_info(message, ...)  log_event(LOG_INFO, message, __VA_ARGS__)
#define log_debug(message, ...) log_event(LOG_DEBUG, message, __VA_ARGS__)

#endif
