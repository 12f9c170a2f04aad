/* The processes of user code: started, watched, ended, remembered. Owns their pipes, rings, stdin
 * queues and cgroup leaves. Whoever looks at one is a `struct reader` (output.h): it keeps the
 * process in memory and is told of every change; the process never depends on its readers.
 *
 *   state      waits for                                          leaves to
 *   STARTING   the child's exec, or its error record              RUNNING, FAILED
 *   RUNNING    the exit (reaped by main), then its output's end   ENDED
 *   ENDED      RECORD_KEEP_MS; readers                            (freed)
 *   FAILED     the exit of the child; readers                     (freed)                        */
#ifndef SPACE_INIT_PROCESS_H
#define SPACE_INIT_PROCESS_H

#include "init/exit_status.h"
#include "init/input.h"
#include "init/launch.h"
#include "init/output.h"
#include "init/request.h"

enum process_state {
	PROCESS_STARTING,
	PROCESS_RUNNING,
	PROCESS_ENDED,
	PROCESS_FAILED,
	PROCESS_STATES
};

struct process;

struct processes {
	struct loop *loop;
	struct cgroups *cgroups;
	const struct userspace *userspace;
	struct budget
		bytes; /* arguments and queued input; bodies of requests are counted here too */
	struct budget rings;
	struct process *live;    /* newest first */
	struct process *records; /* newest first */
	size_t n_live;
	size_t n_records;
	size_t n_readers;
	struct timer *sweep;   /* of cgroup leaves that were not empty */
	struct timer *prepare; /* of the next start's cgroup: not while the last start is busy */
};

void processes_init(struct processes *ps, struct loop *l, struct cgroups *c,
		    const struct userspace *u, uint64_t ram_bytes);

/* Takes *q when it succeeds. `reader` is attached at the first byte. timeout_ms 0: none; when it
 * runs out the whole group is killed. user NULL: the default. Errors as connect codes with a
 * sentence. */
enum connect_code process_start(struct processes *ps, const struct identity *id,
				struct start_request *q, const char *user, uint64_t timeout_ms,
				struct reader *reader, struct process **ret, struct fail *f);
void processes_reaped(struct processes *ps, pid_t pid, int wait_status);

/* A live process, or NULL; with records: also one that ended less than RECORD_KEEP_MS ago. */
struct process *process_find(const struct processes *ps, const struct selector *s,
			     bool with_records);
struct process *process_next(const struct processes *ps,
			     const struct process *p); /* live; NULL: first */

/* -ENOBUFS: SUBSCRIBERS_PER_PROCESS or SUBSCRIBERS_MAX. */
int process_attach(struct process *p, struct reader *r, struct ring_cursor at);
void process_detach(struct process *p, struct reader *r); /* may free p */
void process_moved(struct process *p);                    /* a reader's cursor went on */

enum process_state process_state(const struct process *p);
pid_t process_pid(const struct process *p);
const char *process_tag(const struct process *p);                     /* NULL: none */
const struct start_request *process_request(const struct process *p); /* live ones */
const struct ring *process_ring(const struct process *p);
struct input *process_input(struct process *p);
bool process_timed_out(const struct process *p);
const struct exit_status *process_status(const struct process *p);                 /* ENDED */
enum connect_code process_failure(const struct process *p, const char **ret_text); /* FAILED */

/* To the whole process group. -ESRCH when it has ended. */
int process_signal(struct process *p, int signo);
int process_resize(struct process *p, uint16_t cols, uint16_t rows); /* -ENOTTY */

#endif
