/* What the peer did, as nghttp2 tells it. Nothing here trusts the peer: header lists are counted,
 * a stream that offends is reset alone, a session that offends is ended by the turn that called us.
 *
 * nghttp2 settings that matter: window updates are ours (a connection's bytes are given back on
 * receipt, a stream's when its owner consumed them, so one stalled stream stops no other and a
 * closed one leaks nothing); closed streams are forgotten; acknowledgements, settings and resets
 * are bounded. */
#include "net/h2_internal.h"

#include <errno.h>
#include <string.h>

#define OUTBOUND_ACK_MAX 64
#define SETTINGS_MAX     16
#define CONTINUATION_MAX 8
#define RESET_BURST      2000
#define RESET_RATE       500
#define HPACK_TABLE      4096
#define SEND_BLOCK_MAX   (128u * 1024) /* above any list that h2_message_nv() lets through */

/* What a receiving callback returns after it called the owner. */
static int go_on(const struct h2 *h)
{
	return h->is_freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s;

	h2_head_reset(&h->head);
	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = h2_stream_new(h, f->hd.stream_id);
	return nghttp2_session_set_stream_user_data(ng, s->id, s) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE
								      : 0;
}

/* Offences that cost a stream each. A peer of ours commits none; true: it was one too many. */
static bool strike(struct h2 *h)
{
	return (h->flags & H2_HOSTILE_PEER) && ++h->strikes > H2_STRIKES_MAX;
}

/* What nghttp2 refuses of its own. A stream over the limit is a race that honest peers can lose. */
static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *f, int why, void *arg)
{
	(void)ng, (void)f;
	if (why == NGHTTP2_ERR_REFUSED_STREAM)
		return 0;
	return strike(arg) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct h2 *h = arg;
	int r = h2_head_add(&h->head, name, name_n, value, value_n);

	(void)ng, (void)f, (void)flags;
	if (r == 0)
		return 0;
	/* resets the stream */
	return strike(h) ? NGHTTP2_ERR_CALLBACK_FAILURE : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* nghttp2 would leave such a field out and go on: we do not repair. */
static int on_invalid_header(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name,
			     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
			     void *arg)
{
	(void)ng, (void)f, (void)name, (void)name_n, (void)value, (void)value_n, (void)flags;
	return strike(arg) ? NGHTTP2_ERR_CALLBACK_FAILURE : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void request_arrived(struct h2 *h, struct h2_stream *s)
{
	struct h2_message m;
	const char *method;

	h2_head_message(&h->head, &m);
	method = h2_get(&m, ":method");
	s->has_no_body = method && strcmp(method, "HEAD") == 0;
	h->ops->on_request(h, s, &m);
	if (!h->is_freed && !s->ops && !s->is_closed)
		h2_reset(s, H2_INTERNAL_ERROR);
}

/* 1xx heads and trailers are read over. */
static void answer_arrived(struct h2 *h, struct h2_stream *s)
{
	struct h2_message m;
	const char *status;

	if (s->has_head)
		return;
	h2_head_message(&h->head, &m);
	status = h2_get(&m, ":status");
	if (!status || status[0] == '1')
		return;
	s->has_head = true;
	s->ops->on_head(s, &m);
}

static int headers_arrived(struct h2 *h, struct h2_stream *s, const nghttp2_frame *f)
{
	if (f->headers.cat == NGHTTP2_HCAT_REQUEST)
		request_arrived(h, s);
	else if (!(h->flags & H2_SERVER) && !s->is_closed)
		answer_arrived(h, s);
	if (!h->is_freed)
		h2_head_reset(&h->head);
	return go_on(h);
}

static int end_arrived(struct h2 *h, struct h2_stream *s)
{
	s->has_peer_end = true;
	if (!s->is_closed && s->ops)
		s->ops->on_end(s);
	return go_on(h);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s;
	int r = 0;

	if (f->hd.type == NGHTTP2_GOAWAY && f->goaway.error_code != NGHTTP2_NO_ERROR)
		h->goaway_err = -EPROTO;
	if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
		return 0;
	s = nghttp2_session_get_stream_user_data(ng, f->hd.stream_id);
	if (!s)
		return 0; /* we reset it */
	if (f->hd.type == NGHTTP2_HEADERS)
		r = headers_arrived(h, s, f);
	/* The owner may have reset it: looked up anew. */
	if (r == 0 && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    nghttp2_session_get_stream_user_data(ng, f->hd.stream_id))
		r = end_arrived(h, s);
	return r;
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct h2 *h = arg;

	(void)ng;
	if (f->hd.type == NGHTTP2_GOAWAY && f->goaway.error_code != NGHTTP2_NO_ERROR)
		h->goaway_err = -EPROTO;
	return 0;
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
			 void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);

	(void)flags;
	h->data_taken += n;
	if (nghttp2_session_consume_connection(ng, n) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!s || !s->ops)
		return 0;
	s->ops->on_data(s, p, n);
	return go_on(h);
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);

	(void)arg;
	if (s)
		h2_stream_closed(s, code);
	return 0;
}

static void callbacks_set(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
}

static void options_set(nghttp2_option *o)
{
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_outbound_ack(o, OUTBOUND_ACK_MAX);
	nghttp2_option_set_max_settings(o, SETTINGS_MAX);
	nghttp2_option_set_max_continuations(o, CONTINUATION_MAX);
	nghttp2_option_set_stream_reset_rate_limit(o, RESET_BURST, RESET_RATE);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, HPACK_TABLE);
	nghttp2_option_set_peer_max_concurrent_streams(o, H2_STREAMS_MAX);
	nghttp2_option_set_max_send_header_block_length(o, SEND_BLOCK_MAX);
}

static int session_start(nghttp2_session *ng)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEADER_LIST_MAX},
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	/* A server may not mention push. */
	size_t n = ARRAY_LEN(settings) - (nghttp2_session_check_server_session(ng) ? 1 : 0);
	int r = nghttp2_submit_settings(ng, NGHTTP2_FLAG_NONE, settings, n);

	if (r == 0)
		r = nghttp2_session_set_local_window_size(ng, NGHTTP2_FLAG_NONE, 0,
							  (int32_t)H2_CONNECTION_WINDOW);
	return r < 0 ? -ENOMEM : 0;
}

int h2_events_session(struct h2 *h, nghttp2_session **ret)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *o = NULL;
	nghttp2_session *ng = NULL;
	int r = -ENOMEM;

	if (nghttp2_session_callbacks_new(&cb) < 0 || nghttp2_option_new(&o) < 0)
		goto out;
	callbacks_set(cb);
	options_set(o);
	if ((h->flags & H2_SERVER ? nghttp2_session_server_new2(&ng, cb, h, o)
				  : nghttp2_session_client_new2(&ng, cb, h, o)) < 0)
		goto out;
	r = session_start(ng);
	if (r == 0)
		*ret = ng;
	else
		nghttp2_session_del(ng);
out:
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(cb);
	return r;
}
