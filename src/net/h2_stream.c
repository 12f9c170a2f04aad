/* What a stream's owner does with it. A stream lives from nghttp2's (or the owner's) opening until
 * its on_close has returned; nghttp2 may know it a little shorter or longer, so nghttp2's side
 * finds it by its id and never by a kept pointer. */
#include "net/h2_internal.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id)
{
	struct h2_stream *s = xcalloc(1, sizeof *s);

	s->h2 = h;
	s->id = id;
	buf_init(&s->out, H2_STREAM_QUEUE);
	s->next = h->streams;
	if (s->next)
		s->next->prev = s;
	h->streams = s;
	h->n_streams++;
	return s;
}

/* --- telling the owner --- */

void h2_stream_tell(struct h2_stream *s)
{
	struct h2 *h = s->h2;

	if (s->is_telling)
		return;
	s->is_telling = true;
	s->tell_next = NULL;
	*h->tell_last = s;
	h->tell_last = &s->tell_next;
}

void h2_stream_closed(struct h2_stream *s, uint32_t code)
{
	if (s->is_closed)
		return;
	s->is_closed = true;
	s->code = code;
	(void)nghttp2_session_set_stream_user_data(s->h2->ng, s->id, NULL);
	h2_stream_tell(s);
}

void h2_stream_end(struct h2_stream *s)
{
	struct h2 *h = s->h2;

	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		h->streams = s->next;
	h->n_streams--;
	if (s->ops)
		s->ops->on_close(s, s->code);
	buf_done(&s->out);
	free(s);
}

static void stream_tell(struct h2_stream *s)
{
	struct h2 *h = s->h2;
	size_t n = s->drained;

	s->is_telling = false;
	s->drained = 0;
	if (n && s->ops && s->ops->on_drain && !s->is_reset)
		s->ops->on_drain(s, n);
	if (!h->is_freed && s->is_closed && !s->is_telling)
		h2_stream_end(s);
}

void h2_streams_tell(struct h2 *h)
{
	struct h2_stream *s;

	while (!h->is_freed && (s = h->tell_first) != NULL) {
		h->tell_first = s->tell_next;
		if (!h->tell_first)
			h->tell_last = &h->tell_first;
		stream_tell(s);
	}
}

/* --- bodies out --- */

static ssize_t on_body_read(nghttp2_session *ng, int32_t id, uint8_t *p, size_t max,
			    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);
	size_t n;

	(void)source, (void)arg;
	if (!s)
		return NGHTTP2_ERR_DEFERRED; /* reset: its RST_STREAM goes out first */
	n = size_min(max, buf_len(&s->out));
	if (n == 0 && !s->is_finished) {
		s->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n > 0) {
		memcpy(p, buf_data(&s->out), n);
		buf_consume(&s->out, n);
		s->drained += n;
		h2_stream_tell(s);
	}
	if (s->is_finished && buf_len(&s->out) == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static const nghttp2_data_provider body_provider = {.read_callback = on_body_read};

static void stream_resume(struct h2_stream *s)
{
	if (s->is_deferred) {
		s->is_deferred = false;
		(void)nghttp2_session_resume_data(s->h2->ng, s->id); /* fails: it is closing */
	}
	h2_kick(s->h2);
}

size_t h2_room(const struct h2_stream *s)
{
	if (s->has_no_body && !s->is_closed)
		return H2_STREAM_QUEUE;
	return s->is_closed || s->is_finished ? 0 : buf_room(&s->out);
}

int h2_write(struct h2_stream *s, const void *p, size_t n)
{
	int r;

	if (s->has_no_body && !s->is_closed) { /* RFC 9110 §9.3.2: as if it had left */
		s->drained += n;
		h2_stream_tell(s);
		h2_kick(s->h2);
		return 0;
	}
	if (s->is_closed || s->is_finished)
		return -EPIPE;
	r = buf_append(&s->out, p, n);
	if (r == 0 && n > 0)
		stream_resume(s);
	return r;
}

void h2_finish(struct h2_stream *s)
{
	if (s->is_closed || s->is_finished)
		return;
	s->is_finished = true;
	stream_resume(s);
}

/* --- bodies in --- */

void h2_consume(struct h2_stream *s, size_t n)
{
	if (s->is_closed || n == 0)
		return;
	(void)nghttp2_session_consume_stream(s->h2->ng, s->id, n); /* fails: it is closing */
	h2_kick(s->h2);
}

/* --- life --- */

struct h2_stream *h2_request(struct h2 *h, const struct h2_message *m, bool is_end,
			     const struct h2_stream_ops *ops, void *arg)
{
	nghttp2_nv nv[H2_HEADERS_MAX];
	struct h2_stream *s;
	int32_t id;

	if (h->is_over || h->is_freed || h->n_streams >= H2_STREAMS_MAX ||
	    h->n_streams >= nghttp2_session_get_remote_settings(
				    h->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) ||
	    !nghttp2_session_check_request_allowed(h->ng) || h2_message_nv(m, nv) < 0)
		return NULL;
	s = h2_stream_new(h, 0);
	id = nghttp2_submit_request(h->ng, NULL, nv, m->n, is_end ? NULL : &body_provider, s);
	if (id < 0) {
		h2_stream_end(s); /* without ops: silent */
		return NULL;
	}
	s->id = id;
	s->ops = ops;
	s->arg = arg;
	s->is_finished = is_end;
	h2_kick(h);
	return s;
}

void h2_accept(struct h2_stream *s, const struct h2_stream_ops *ops, void *arg)
{
	s->ops = ops;
	s->arg = arg;
}

int h2_respond(struct h2_stream *s, const struct h2_message *m, bool is_end)
{
	nghttp2_nv nv[H2_HEADERS_MAX];
	int r;

	if (s->is_closed)
		return -EPIPE;
	if (s->has_head)
		return -EALREADY;
	r = h2_message_nv(m, nv);
	if (r < 0)
		return r;
	is_end = is_end || s->has_no_body;
	r = nghttp2_submit_response(s->h2->ng, s->id, nv, m->n, is_end ? NULL : &body_provider);
	if (r < 0)
		return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
	s->has_head = true;
	s->is_finished = s->is_finished || is_end;
	h2_kick(s->h2);
	return 0;
}

void h2_reset(struct h2_stream *s, uint32_t code)
{
	struct h2 *h = s->h2;

	if (s->is_closed)
		return;
	s->is_reset = true;
	if (!s->has_peer_end) /* what the peer sent meanwhile finds no stream any more */
		h->dead_data_allow += H2_STREAM_WINDOW;
	(void)nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, s->id, code);
	h2_stream_closed(s, code);
	h2_kick(h);
}

void *h2_stream_arg(const struct h2_stream *s)
{
	return s->arg;
}

struct h2 *h2_stream_session(const struct h2_stream *s)
{
	return s->h2;
}
