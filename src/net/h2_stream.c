/* HTTP/2 streams: heads in and out, the queue of bytes to send, the window of bytes received. */
#include "net/h2_impl.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>

const char *h2_get(const struct h2_message *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++) {
		if (!strcmp(m->h[i].name, name))
			return m->h[i].value;
	}
	return NULL;
}

int h2_add(struct h2_message *m, const char *name, const char *value)
{
	if (m->n >= H2_HEADERS_MAX)
		return -ENOBUFS;
	m->h[m->n++] = (struct h2_header){name, value};
	return 0;
}

int h2_head_add(struct h2_head *hd, const uint8_t *name, size_t name_n, const uint8_t *value,
		size_t value_n)
{
	static const uint8_t nul;

	if (!hd->text.max)
		buf_init(&hd->text, H2_HEADER_LIST_MAX);
	if (hd->n >= H2_HEADERS_MAX || buf_room(&hd->text) < name_n + value_n + 2)
		return -ENOBUFS;
	if (memchr(name, 0, name_n) || memchr(value, 0, value_n))
		return -EBADMSG;
	hd->name[hd->n] = (uint32_t)buf_len(&hd->text);
	(void)buf_append(&hd->text, name, name_n); /* fits, asked above */
	(void)buf_append(&hd->text, &nul, 1);
	hd->value[hd->n] = (uint32_t)buf_len(&hd->text);
	(void)buf_append(&hd->text, value, value_n);
	(void)buf_append(&hd->text, &nul, 1);
	hd->n++;
	return 0;
}

void h2_head_message(const struct h2_head *hd, struct h2_message *ret)
{
	const char *text = (const char *)buf_data(&hd->text);

	ret->n = hd->n;
	for (size_t i = 0; i < hd->n; i++)
		ret->h[i] = (struct h2_header){text + hd->name[i], text + hd->value[i]};
}

void h2_head_free(struct h2_head *hd)
{
	if (!hd)
		return;
	buf_done(&hd->text);
	free(hd);
}

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id)
{
	struct h2_stream *s = xcalloc(1, sizeof *s);

	s->h = h;
	s->id = id;
	buf_init(&s->queue, H2_STREAM_QUEUE);
	s->next = h->streams;
	if (s->next)
		s->next->prev = s;
	h->streams = s;
	h->n_streams++;
	return s;
}

static void undrain(struct h2_stream *s)
{
	struct h2_stream **at = &s->h->drained;

	while (*at != s)
		at = &(*at)->next_drained;
	*at = s->next_drained;
	if (!*at)
		s->h->drained_last = at;
}

void h2_stream_end(struct h2_stream *s, uint32_t code)
{
	struct h2 *h = s->h;

	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		h->streams = s->next;
	h->n_streams--;
	if (s->is_drained_listed)
		undrain(s);
	(void)nghttp2_session_set_stream_user_data(h->ng, s->id, NULL);
	if (s->ops)
		s->ops->on_close(s, code);
	h2_head_free(s->head);
	buf_done(&s->queue);
	free(s);
}

void h2_stream_listed(struct h2_stream *s, size_t drained)
{
	s->drained += drained;
	if (s->is_drained_listed)
		return;
	s->is_drained_listed = true;
	s->next_drained = NULL;
	*s->h->drained_last = s;
	s->h->drained_last = &s->next_drained;
}

/* nghttp2 pulls the body when the windows allow it. */
static ssize_t on_pull(nghttp2_session *ng, int32_t id, uint8_t *dst, size_t max, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);
	size_t n;

	(void)source;
	(void)arg;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = size_min(max, buf_len(&s->queue));
	if (n) {
		memcpy(dst, buf_data(&s->queue), n);
		buf_consume(&s->queue, n);
		h2_stream_listed(s, n);
	}
	if (s->is_finished && !buf_len(&s->queue)) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return (ssize_t)n;
	}
	if (!n) {
		s->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)n;
}

static const nghttp2_data_provider body_provider = {.read_callback = on_pull};

/* nghttp2 copies the fields; its type only lacks the const. */
static size_t fields_of(nghttp2_nv nv[H2_HEADERS_MAX], const struct h2_message *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct h2_header *f = &m->h[i];

		nv[i] = (nghttp2_nv){
			.name = (uint8_t *)(uintptr_t)f->name,
			.value = (uint8_t *)(uintptr_t)f->value,
			.namelen = strlen(f->name),
			.valuelen = strlen(f->value),
			.flags = NGHTTP2_NV_FLAG_NONE,
		};
	}
	return m->n;
}

struct h2_stream *h2_request(struct h2 *h, const struct h2_message *m, bool is_end,
			     const struct h2_stream_ops *ops, void *arg)
{
	nghttp2_nv nv[H2_HEADERS_MAX];
	struct h2_stream *s;
	int32_t id;

	if (h->is_over || h->is_freed || h->n_streams >= H2_STREAMS_MAX)
		return NULL;
	id = nghttp2_submit_request(h->ng, NULL, nv, fields_of(nv, m),
				    is_end ? NULL : &body_provider, NULL);
	if (id < 0)
		return NULL; /* out of memory or of stream numbers, or the peer said goodbye */
	s = h2_stream_new(h, id);
	(void)nghttp2_session_set_stream_user_data(h->ng, id, s);
	s->ops = ops;
	s->arg = arg;
	s->is_finished = is_end;
	h2_flush_later(h);
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

	if (s->has_responded)
		return -EALREADY;
	r = nghttp2_submit_response(s->h->ng, s->id, nv, fields_of(nv, m),
				    is_end ? NULL : &body_provider);
	if (r)
		return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
	s->has_responded = true;
	s->is_finished = is_end;
	h2_flush_later(s->h);
	return 0;
}

void *h2_stream_arg(const struct h2_stream *s)
{
	return s->arg;
}

struct h2 *h2_stream_session(const struct h2_stream *s)
{
	return s->h;
}

size_t h2_room(const struct h2_stream *s)
{
	return s->is_finished ? 0 : buf_room(&s->queue);
}

static void resume(struct h2_stream *s)
{
	if (s->is_deferred) {
		s->is_deferred = false;
		(void)nghttp2_session_resume_data(s->h->ng,
						  s->id); /* fails when it is being reset */
	}
	h2_flush_later(s->h);
}

int h2_write(struct h2_stream *s, const void *p, size_t n)
{
	if (n > h2_room(s) || buf_append(&s->queue, p, n) < 0)
		return -ENOBUFS;
	resume(s);
	return 0;
}

void h2_finish(struct h2_stream *s)
{
	if (s->is_finished)
		return;
	s->is_finished = true;
	resume(s);
}

void h2_consume(struct h2_stream *s, size_t n)
{
	assert(n <= s->held);
	s->held -= n;
	(void)nghttp2_session_consume_stream(s->h->ng, s->id, n); /* the stream may be ending */
	h2_flush_later(s->h);
}

void h2_reset(struct h2_stream *s, uint32_t code)
{
	if (s->is_reset)
		return;
	s->is_reset = true;
	(void)nghttp2_submit_rst_stream(s->h->ng, NGHTTP2_FLAG_NONE, s->id, code);
	buf_clear(&s->queue);
	h2_flush_later(s->h);
}
