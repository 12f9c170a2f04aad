/* The exit record: what ended a sandbox, in a file that survives it. */
#ifndef SPACE_KEEPER_RECORD_H
#define SPACE_KEEPER_RECORD_H

/* Replaces the content of fd (a regular file) by one JSON line; best effort, logged. From then on
 * it survives every process, and the host when it was synced, which takes milliseconds. */
void record_write(int fd, const char *id, const char *why, int wait_status);
void record_sync(int fd);

#endif
