/* One stream of a process's events: Start's or Connect's. Reads the process's ring with a cursor of
 * its own and keeps at most SUBSCRIBER_QUEUE bytes framed, so a client that reads slowly holds back
 * the process and nothing else. Owned by its call; gone when the HTTP/2 stream is. */
#ifndef SPACE_INIT_SUBSCRIBER_H
#define SPACE_INIT_SUBSCRIBER_H

#include "init/call.h"

struct process;

/* Starts a process with this call as its first subscriber, or answers why not. */
void subscriber_start(struct call *c, struct start_request *q);
/* Subscribes to one that is there already. */
void subscriber_connect(struct call *c, struct process *p);

#endif
