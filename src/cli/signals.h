/* The signals by which a person or a supervisor tells us to stop, in the loop. One that was ignored
 * when we started stays ignored (nohup). */
#ifndef SPACE_CLI_SIGNALS_H
#define SPACE_CLI_SIGNALS_H

struct loop;
struct sigwatch;

struct signals {
	struct sigwatch *watch[3];
};

void signals_watch(struct signals *s, struct loop *l, void (*cb)(void *arg, int signo), void *arg);
void signals_done(struct signals *s);

#endif
