/* One line about this machine, to stand beside figures. */
#ifndef SPACE_CLI_HOST_H
#define SPACE_CLI_HOST_H

#define HOST_TEXT_MAX 256

struct host {
	char cpu[HOST_TEXT_MAX];
	char kernel[HOST_TEXT_MAX];
	long cores;
	double load; /* runnable processes, one minute's mean */
};
void host_look(struct host *ret);

#endif
