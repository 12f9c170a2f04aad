/* What nghttp2 calls while it reads frames, turned into the callbacks of net/h2.h.
 *
 * A callback of ours may reset streams, open others, or free the whole session; so nothing found
 * before it is used after it without being looked up again. */
#include "net/h2_impl.h"

#include "base/alloc.h"

#include <errno.h>

/* RFC 9113 §10.5.1: a field costs its name, its value and 32 bytes. */
#define FIELD_OVERHEAD 32

static struct h2_stream *stream_of(const struct h2 *h, int32_t id)
{
	return h->is_freed ? NULL : nghttp2_session_get_stream_user_data(h->ng, id);
}

static bool is_heard(const struct h2_stream *s)
{
	return s && s->ops && !s->is_reset;
}

static int verdict(const struct h2 *h)
{
	return h->is_freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = stream_of(h, frame->hd.stream_id);

	h->list_bytes = 0;
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (!s && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		s = h2_stream_new(h, frame->hd.stream_id);
		(void)nghttp2_session_set_stream_user_data(ng, s->id, s);
	}
	if (s && !s->has_head && !s->head) /* else these are trailers, which end here */
		s->head = xcalloc(1, sizeof *s->head);
	return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = stream_of(h, frame->hd.stream_id);

	(void)ng;
	(void)flags;
	/* Also of lists that nobody wants: a few bytes can stand for a huge list (HPACK bomb). */
	h->list_bytes += name_n + value_n + FIELD_OVERHEAD;
	if (h->list_bytes > H2_HEADER_LIST_MAX && (h->flags & H2_HOSTILE_PEER))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (h->list_bytes > H2_HEADER_LIST_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (!s || !s->head)
		return 0;
	return h2_head_add(s->head, name, name_n, value, value_n) < 0
		       ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
		       : 0;
}

static void head_deliver(struct h2 *h, struct h2_stream *s)
{
	struct h2_head *hd = s->head;
	struct h2_message m;
	const char *status;

	s->head = NULL;
	h2_head_message(hd, &m);
	status = h2_get(&m, ":status");
	if (h->flags & H2_SERVER) {
		s->has_head = true;
		h->ops->on_request(h, s, &m);
	} else if (status && status[0] != '1') { /* an interim answer (1xx) is not the head */
		s->has_head = true;
		if (is_heard(s))
			s->ops->on_head(s, &m);
	}
	h2_head_free(hd);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = stream_of(h, frame->hd.stream_id);

	(void)ng;
	if (s && frame->hd.type == NGHTTP2_HEADERS && s->head)
		head_deliver(h, s);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return verdict(h);
	s = stream_of(h, frame->hd.stream_id);
	if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && is_heard(s))
		s->ops->on_end(s);
	return verdict(h);
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
			 void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = stream_of(h, id);

	(void)flags;
	/* The connection's window only bounds what is in flight; holding back is the streams' part. */
	(void)nghttp2_session_consume_connection(ng, n);
	if (!is_heard(s)) {
		(void)nghttp2_session_consume_stream(ng, id, n);
		return verdict(h);
	}
	s->held += n;
	s->ops->on_data(s, p, n);
	return verdict(h);
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = stream_of(h, id);

	(void)ng;
	if (s)
		h2_stream_end(s, code);
	return verdict(h);
}

void h2_callbacks_fill(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
}
