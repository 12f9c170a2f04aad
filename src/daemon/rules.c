/* See rules.h. The path rule is an allow-list of spelling (no escapes, no empty or dot segments
 * before the query), so that no second reader of the path can take it for another one. */
#include "daemon/rules.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

#define TOKEN_HEADER "x-access-token"

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

/* First segments that only the platform may use, or nobody. */
static const char *const closed_segments[] = {
	"space", "init", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw", "upgrade",
};

/* RFC 9110 §7.6.1, and what HTTP/2 forbids anyway (RFC 9113 §8.2.2). */
static const char *const hop_fields[] = {
	"connection",
	"keep-alive",
	"proxy-connection",
	"proxy-authenticate",
	"proxy-authorization",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"http2-settings",
};

/* Credentials of the platform: no guest ever sees one. */
static const char *const secret_fields[] = {
	TOKEN_HEADER,
	"cookie",
	"x-api-key",
	"e2b-traffic-access-token",
};

static bool is_listed(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(s, list[i]) == 0)
			return true;
	return false;
}

static bool is_token_char(unsigned char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
		return true;
	return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool field_name_valid(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!is_token_char((unsigned char)*s))
			return false;
	return true;
}

/* RFC 9110 §5.5: visible bytes, blank and tab; blanks at the ends are another spelling: refused. */
static bool field_value_valid(const char *s)
{
	size_t n = strlen(s);

	if (n && (s[0] == ' ' || s[0] == '\t' || s[n - 1] == ' ' || s[n - 1] == '\t'))
		return false;
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

static bool segment_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

/* Walks "/seg/seg?query"; *ret_first and *ret_n: the first segment. */
static bool target_valid(const char *target, const char **ret_first, size_t *ret_n)
{
	const char *p = target;

	if (*p != '/' || strlen(target) > RULES_TARGET_MAX)
		return false;
	*ret_first = p + 1;
	*ret_n = strcspn(p + 1, "/?");
	while (*p == '/') {
		const char *seg = ++p;

		while (segment_char((unsigned char)*p))
			p++;
		if (p == seg || (p - seg <= 2 && strspn(seg, ".") >= (size_t)(p - seg)))
			return false;
	}
	if (*p && *p != '?')
		return false;
	for (; *p; p++)
		if (*p <= 0x20 || *p >= 0x7f || *p == '#')
			return false;
	return true;
}

/* Whether `name` is there exactly once, with the value `want`, in constant time for the value. */
static bool field_equals(const struct h2_message *m, const char *name, const char *want)
{
	const char *got = NULL;

	for (size_t i = 0; i < m->n; i++) {
		if (strcmp(m->h[i].name, name) != 0)
			continue;
		if (got)
			return false;
		got = m->h[i].value;
	}
	return got && strlen(got) == strlen(want) && mem_eq_const(got, want, strlen(want));
}

static bool segment_closed(const char *seg, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(closed_segments); i++)
		if (strlen(closed_segments[i]) == n && memcmp(closed_segments[i], seg, n) == 0)
			return true;
	return false;
}

static bool is_health(const char *method, const char *path)
{
	return strcmp(path, "/health") == 0 && strcmp(method, "GET") == 0;
}

static struct verdict judge_path(const char *seg, size_t n, bool health, enum side side)
{
	static const struct verdict pass = {RULES_CODE_OK, NULL};
	static const struct verdict closed = {404, "there is no such path"};

	if (side == SIDE_CLIENT)
		return segment_closed(seg, n) ? closed : pass;
	if (health || (n == strlen("space") && memcmp(seg, "space", n) == 0))
		return pass;
	return closed;
}

struct verdict request_judge(const struct h2_message *in, enum side side, const char *token)
{
	const char *method = h2_get(in, ":method");
	const char *path = h2_get(in, ":path");
	const char *seg;
	size_t n;
	struct verdict v;

	if (!method || !path || !is_listed(method, methods, ARRAY_LEN(methods)))
		return (struct verdict){405, "this method is not allowed"};
	if (!target_valid(path, &seg, &n))
		return (struct verdict){404, "there is no such path"};
	v = judge_path(seg, n, is_health(method, path), side);
	if (v.code != RULES_CODE_OK || side == SIDE_PLATFORM || is_health(method, path))
		return v;
	if (*token && !field_equals(in, TOKEN_HEADER, token))
		return (struct verdict){401,
					"the header X-Access-Token does not hold this sandbox's "
					"access token"};
	return v;
}

/* Adds a checked field and keeps account of the bytes. */
static int field_add(struct h2_message *m, size_t *used, const char *name, const char *value)
{
	size_t n = strlen(name) + strlen(value);

	if (m->n >= RULES_FIELDS_MAX || n > RULES_HEAD_MAX - *used)
		return -E2BIG;
	*used += n;
	return h2_add(m, name, value);
}

static bool request_field_passes(const struct h2_header *h)
{
	if (is_listed(h->name, hop_fields, ARRAY_LEN(hop_fields)) ||
	    is_listed(h->name, secret_fields, ARRAY_LEN(secret_fields)) ||
	    strcmp(h->name, "host") == 0)
		return false;
	/* Basic names the user of a process; a bearer token has no meaning in a guest. */
	if (strcmp(h->name, "authorization") == 0)
		return strncasecmp(h->value, "Basic ", 6) == 0;
	return true;
}

static bool answer_field_passes(const struct h2_header *h)
{
	return !is_listed(h->name, hop_fields, ARRAY_LEN(hop_fields));
}

static int fields_copy(struct h2_message *m, size_t *used, const struct h2_message *in,
		       bool (*passes)(const struct h2_header *h))
{
	for (size_t i = 0; i < in->n; i++) {
		const struct h2_header *h = &in->h[i];
		int r;

		if (h->name[0] == ':')
			continue;
		if (!field_name_valid(h->name) || !field_value_valid(h->value))
			return -EBADMSG;
		if (!passes(h))
			continue;
		r = field_add(m, used, h->name, h->value);
		if (r < 0)
			return r;
	}
	return 0;
}

int request_rewrite(struct h2_message *ret, const struct h2_message *in)
{
	struct h2_message m = {0};
	size_t used = 0;
	int r;

	if ((r = field_add(&m, &used, ":method", h2_get(in, ":method"))) < 0 ||
	    (r = field_add(&m, &used, ":scheme", "http")) < 0 ||
	    (r = field_add(&m, &used, ":authority", "envd")) < 0 ||
	    (r = field_add(&m, &used, ":path", h2_get(in, ":path"))) < 0 ||
	    (r = fields_copy(&m, &used, in, request_field_passes)) < 0)
		return r;
	*ret = m;
	return 0;
}

int answer_rewrite(struct h2_message *ret, const struct h2_message *in)
{
	struct h2_message m = {0};
	size_t used = 0;
	uint64_t status = 0;
	const char *text = NULL;
	int r;

	for (size_t i = 0; i < in->n; i++) {
		if (in->h[i].name[0] != ':')
			continue;
		if (text || strcmp(in->h[i].name, ":status") != 0)
			return -EBADMSG;
		text = in->h[i].value;
	}
	if (!text || strlen(text) != 3 || str_u64(text, 599, &status) < 0 || status < 200)
		return -EBADMSG;
	if ((r = field_add(&m, &used, ":status", text)) < 0 ||
	    (r = fields_copy(&m, &used, in, answer_field_passes)) < 0)
		return r;
	*ret = m;
	return 0;
}
