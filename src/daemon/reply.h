/* Answers of space-daemon's own: {"code":N,"message":"..."}, and the request's body read over. */
#ifndef SPACE_DAEMON_REPLY_H
#define SPACE_DAEMON_REPLY_H

struct h2_stream;

/* Takes a stream of on_request and answers it. `message` is our own: plain ASCII, no quotes. */
void reply_send(struct h2_stream *s, unsigned status, const char *message);
/* The same for a stream that was taken before and has had no answer; its ops go on. */
void reply_write(struct h2_stream *s, unsigned status, const char *message);

#endif
