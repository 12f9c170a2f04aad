/* Header lists: read from a message, gathered as they arrive with every byte counted (the peer's
 * promise to keep to a limit is no limit), checked before they are sent. */
#include "net/h2_internal.h"

#include <errno.h>
#include <string.h>

const char *h2_get(const struct h2_message *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->h[i].name, name) == 0)
			return m->h[i].value;
	return NULL;
}

int h2_add(struct h2_message *m, const char *name, const char *value)
{
	if (m->n >= H2_HEADERS_MAX)
		return -ENOBUFS;
	m->h[m->n++] = (struct h2_header){.name = name, .value = value};
	return 0;
}

void h2_head_init(struct h2_head *h)
{
	*h = (struct h2_head){0};
	buf_init(&h->text, H2_HEADER_LIST_MAX + 2 * H2_HEADERS_MAX); /* and a NUL for each string */
}

void h2_head_done(struct h2_head *h)
{
	buf_done(&h->text);
}

void h2_head_reset(struct h2_head *h)
{
	h->n = 0;
	h->bytes = 0;
	buf_clear(&h->text);
}

static int head_string(struct h2_head *h, const uint8_t *p, size_t n, size_t *ret_at)
{
	int r;

	if (n && memchr(p, '\0', n))
		return -EBADMSG;
	*ret_at = buf_len(&h->text);
	r = buf_append(&h->text, p, n);
	return r < 0 ? r : buf_append(&h->text, "", 1);
}

int h2_head_add(struct h2_head *h, const uint8_t *name, size_t name_n, const uint8_t *value,
		size_t value_n)
{
	int r;

	if (h->n >= H2_HEADERS_MAX || name_n > H2_HEADER_LIST_MAX - h->bytes ||
	    value_n > H2_HEADER_LIST_MAX - h->bytes - name_n)
		return -E2BIG;
	r = head_string(h, name, name_n, &h->at[h->n].name);
	if (r == 0)
		r = head_string(h, value, value_n, &h->at[h->n].value);
	if (r < 0)
		return r;
	h->bytes += name_n + value_n;
	h->n++;
	return 0;
}

void h2_head_message(const struct h2_head *h, struct h2_message *ret)
{
	const char *text = (const char *)buf_data(&h->text);

	ret->n = h->n;
	for (size_t i = 0; i < h->n; i++)
		ret->h[i] = (struct h2_header){text + h->at[i].name, text + h->at[i].value};
}

/* nghttp2's struct is not const, though it only reads. */
static uint8_t *unconst(const char *s)
{
	union {
		const char *in;
		uint8_t *out;
	} u = {.in = s};

	return u.out;
}

int h2_message_nv(const struct h2_message *m, nghttp2_nv nv[H2_HEADERS_MAX])
{
	size_t left = H2_HEADER_LIST_MAX;

	if (m->n > H2_HEADERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < m->n; i++) {
		nghttp2_nv v = {.name = unconst(m->h[i].name), .value = unconst(m->h[i].value)};

		v.namelen = strlen(m->h[i].name);
		v.valuelen = strlen(m->h[i].value);
		if (!nghttp2_check_header_name(v.name, v.namelen) ||
		    !nghttp2_check_header_value(v.value, v.valuelen))
			return -EINVAL;
		if (v.namelen > left || v.valuelen > left - v.namelen)
			return -E2BIG;
		left -= v.namelen + v.valuelen;
		nv[i] = v;
	}
	return 0;
}
