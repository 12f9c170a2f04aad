/* The child's half of launch.c, between clone and exec. Not for others. */
#ifndef SPACE_INIT_LAUNCH_CHILD_H
#define SPACE_INIT_LAUNCH_CHILD_H

struct launch_plan;

struct child_fds {
	int in; /* -1: /dev/null */
	int out;
	int err;
	int slave; /* the terminal, in place of the three; -1: none */
	int error;
};

_Noreturn void launch_child(const struct launch_plan *p, const struct child_fds *fds);

#endif
