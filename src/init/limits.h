/* Every limit of space-init, named. The guest's own memory sets the budgets (budget.h); these are
 * the counts and sizes that do not depend on it. Past a limit the caller gets `resource_exhausted`
 * or `invalid_argument` with the limit in the text, never a half-made process. */
#ifndef SPACE_INIT_LIMITS_H
#define SPACE_INIT_LIMITS_H

#define MESSAGE_MAX (4u * 1024 * 1024) /* one request message, bytes of JSON */

#define PROCESSES_MAX 512 /* live and tracked */
#define RECORDS_MAX   512 /* ended, kept for RECORD_KEEP_MS; the oldest goes first */
#define ARGS_MAX      4096
#define ENVS_MAX      1024
#define EXEC_MAX      (1024u * 1024) /* cmd + args + envs of one process, bytes with their NULs */
#define PATH_SIZE     4096           /* cwd and cmd, with the NUL */
#define TAG_SIZE      257
#define USER_SIZE     65
#define HOSTNAME_SIZE 65 /* Linux: 64 bytes */

#define SUBSCRIBERS_PER_PROCESS 16
#define SUBSCRIBERS_MAX         256          /* of all processes */
#define SUBSCRIBER_QUEUE        (64u * 1024) /* bytes framed but not yet sent, a subscriber */
#define EVENT_DATA_MAX          (32u * 1024) /* output bytes in one event */

#define RING_MAX    (256u * 1024) /* output kept, a process */
#define STDIN_QUEUE 64            /* SendInput calls that wait for one process's pipe */
#define PIPE_READ   (64u * 1024)

#define RECORD_KEEP_MS 30000
/* After the process itself has ended, others may still hold its stdout (a daemon it left behind, a
 * `>(tee)`). What they write within this time still belongs to the stream; then the end event is
 * sent, and later output is read and dropped so that a daemon is not killed by SIGPIPE. */
#define EXIT_DRAIN_MS 500

#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S     86400
#define TIMEOUT_MAX_MS      9999999999ULL /* Connect: at most ten digits */

#endif
