/* The exit record: what ended a sandbox, in a file that survives it. */
#ifndef SPACE_KEEPER_RECORD_H
#define SPACE_KEEPER_RECORD_H

/* Replaces the content of fd (a regular file) by one JSON line and syncs it; best effort, logged.
 * */
void record_write(int fd, const char *id, const char *why, int wait_status);

#endif
