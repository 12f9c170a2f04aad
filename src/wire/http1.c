/* The head of an HTTP/1.1 request, read strictly (RFC 9110, RFC 9112); see http1.h. Pure. The bytes
 * are a client's: nothing is repaired, nothing is guessed, and what two readers could understand in
 * two ways is refused. Lines are checked in the order in which they arrive and never looked at
 * again, so a head that comes in pieces meets the same fate as one that comes whole. */
#include "wire/http1.h"

#include "base/str.h"
#include "wire/http1_chars.h"

#include <errno.h>
#include <string.h>

#define VERSION_LEN      8 /* "HTTP/1.1" */
#define REQUEST_LINE_MAX (HTTP1_METHOD_MAX + 1 + HTTP1_TARGET_MAX + 1 + VERSION_LEN)
#define PORT_MAX         65535

struct reader {
	const char *p;
	const char *end;
	unsigned status;
	const char *why;
};

static int refuse(struct reader *in, unsigned status, const char *why)
{
	in->status = status;
	in->why = why;
	return -EBADMSG;
}

/* Takes one line of at most max bytes without its CRLF. -EAGAIN, -EBADMSG; past max: -E2BIG. */
static int line_take(struct reader *in, size_t max, struct http1_str *ret)
{
	size_t left = (size_t)(in->end - in->p);
	size_t n = 0;

	while (n < left && n <= max && http1_is_text(in->p[n]))
		n++;
	if (n > max)
		return -E2BIG;
	if (n == left)
		return -EAGAIN;
	if (in->p[n] == '\n')
		return refuse(in, 400, "a line must end in CR LF");
	if (in->p[n] != '\r')
		return refuse(in, 400, "control character in the head");
	if (n + 1 == left)
		return -EAGAIN;
	if (in->p[n + 1] != '\n')
		return refuse(in, 400, "CR without LF in the head");
	*ret = (struct http1_str){.p = in->p, .n = n};
	in->p += n + 2;
	return 0;
}

bool http1_name_valid(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!http1_is_token(p[i]))
			return false;
	return n > 0;
}

bool http1_value_valid(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!http1_is_text(p[i]))
			return false;
	return n == 0 || (!http1_is_blank(p[0]) && !http1_is_blank(p[n - 1]));
}

static bool is(struct http1_str s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static bool is_nocase(struct http1_str s, const char *text)
{
	for (size_t i = 0; i < s.n; i++)
		if (text[i] == '\0' || http1_lower(s.p[i]) != http1_lower(text[i]))
			return false;
	return text[s.n] == '\0';
}

/* Takes the bytes before the next `stop`, and `stop`; without one, everything. */
static struct http1_str cut(struct http1_str *s, char stop, bool *ret_found)
{
	const char *at = memchr(s->p, stop, s->n);
	struct http1_str head = {.p = s->p, .n = at ? (size_t)(at - s->p) : s->n};
	size_t used = head.n + (at ? 1 : 0);

	s->p += used;
	s->n -= used;
	*ret_found = at != NULL;
	return head;
}

static struct http1_str trim(struct http1_str s)
{
	while (s.n > 0 && http1_is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && http1_is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

static int version_parse(struct reader *in, struct http1_str v, unsigned *ret_minor)
{
	if (is(v, "HTTP/1.1") || is(v, "HTTP/1.0")) {
		*ret_minor = v.p[VERSION_LEN - 1] == '1';
		return 0;
	}
	if (v.n == VERSION_LEN && memcmp(v.p, "HTTP/", 5) == 0 && http1_is_digit(v.p[5]) &&
	    v.p[6] == '.' && http1_is_digit(v.p[7]))
		return refuse(in, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
	return refuse(in, 400, "malformed request line");
}

static int target_check(struct reader *in, struct http1_str method, struct http1_str target)
{
	if (target.n > HTTP1_TARGET_MAX)
		return refuse(in, 414, "request target is too long");
	for (size_t i = 0; i < target.n; i++)
		if (target.p[i] <= 0x20 || target.p[i] >= 0x7f || target.p[i] == '#')
			return refuse(in, 400, "bad character in the request target");
	if (is(method, "CONNECT"))
		return refuse(in, 400, "CONNECT is not served here");
	if (is(target, "*") && is(method, "OPTIONS"))
		return 0;
	if (target.n == 0 || target.p[0] != '/')
		return refuse(in, 400, "request target must begin with a slash");
	return 0;
}

static int request_line(struct reader *in, struct http1_request *r)
{
	struct http1_str line;
	bool has_target, has_version;
	int e = line_take(in, REQUEST_LINE_MAX, &line);

	if (e == -E2BIG)
		return refuse(in, 414, "request line is too long");
	if (e < 0)
		return e;
	r->method = cut(&line, ' ', &has_target);
	r->target = cut(&line, ' ', &has_version);
	if (!has_target || !has_version || !http1_name_valid(r->method.p, r->method.n))
		return refuse(in, 400, "malformed request line");
	if (r->method.n > HTTP1_METHOD_MAX)
		return refuse(in, 501, "request method is too long");
	e = version_parse(in, line, &r->minor);
	if (e < 0)
		return e;
	return target_check(in, r->method, r->target);
}

/* Returns 1 after a field, 0 after the empty line that ends the head. */
static int field_line(struct reader *in, struct http1_request *r)
{
	struct http1_str line;
	struct http1_field f;
	bool has_colon;
	int e = line_take(in, HTTP1_HEAD_MAX, &line);

	if (e < 0)
		return e;
	if (line.n == 0)
		return 0;
	if (http1_is_blank(line.p[0]))
		return refuse(in, 400, "folded header line");
	if (r->n_fields == HTTP1_FIELDS_MAX)
		return refuse(in, 431, "too many header fields");
	f.name = cut(&line, ':', &has_colon);
	if (!has_colon || !http1_name_valid(f.name.p, f.name.n))
		return refuse(in, 400, "malformed header field name");
	f.value = trim(line);
	r->field[r->n_fields++] = f;
	return 1;
}

static bool ipv6_like(struct http1_str s)
{
	size_t colons = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ':')
			colons++;
		else if (!http1_is_hex(s.p[i]) && s.p[i] != '.')
			return false;
	}
	return colons >= 2 && s.n <= 45;
}

/* Labels of letters, digits, '-' and '_', none empty; no trailing dot: one spelling of a name. */
static bool name_like(struct http1_str s)
{
	bool is_label = false;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.' && !is_label)
			return false;
		is_label = s.p[i] != '.';
		if (is_label && !http1_is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_')
			return false;
	}
	return is_label && s.n <= 255;
}

static bool host_valid(struct http1_str s)
{
	bool has_end = false;
	bool has_port;
	struct http1_str host;
	uint64_t port;

	if (s.n == 0 || s.n > HTTP1_HOST_MAX)
		return false;
	if (s.p[0] == '[') {
		s.p++;
		s.n--;
		host = cut(&s, ']', &has_end);
		if (!has_end || !ipv6_like(host))
			return false;
		if (s.n == 0)
			return true;
		host = cut(&s, ':', &has_port); /* the colon must come at once */
		if (host.n > 0)
			return false;
	} else {
		host = cut(&s, ':', &has_port);
		if (!name_like(host))
			return false;
	}
	return !has_port || (s.n <= 5 && str_u64_n(s.p, s.n, PORT_MAX, &port) == 0);
}

/* The one field of that name: 1, *ret; 0: none; -EBADMSG: several. */
static int only(struct reader *in, const struct http1_request *r, const char *name,
		struct http1_str *ret)
{
	int n = 0;

	for (size_t i = 0; i < r->n_fields; i++) {
		if (!is_nocase(r->field[i].name, name))
			continue;
		*ret = r->field[i].value;
		if (++n > 1)
			return refuse(in, 400, "a header field that must be single comes twice");
	}
	return n;
}

static int host_read(struct reader *in, struct http1_request *r)
{
	int n = only(in, r, "host", &r->host);

	if (n < 0)
		return n;
	if (n == 0) {
		r->host = (struct http1_str){.p = ""};
		return r->minor == 0 ? 0 : refuse(in, 400, "Host is missing");
	}
	return host_valid(r->host) ? 0 : refuse(in, 400, "malformed Host");
}

/* RFC 9112 §6. Whatever could let two readers disagree about where the body ends is refused. */
static int body_read(struct reader *in, struct http1_request *r)
{
	struct http1_str te = {0};
	struct http1_str cl = {0};
	int has_te = only(in, r, "transfer-encoding", &te);
	int has_cl = only(in, r, "content-length", &cl);

	if (has_te < 0 || has_cl < 0)
		return -EBADMSG;
	if (has_te && has_cl)
		return refuse(in, 400, "both Content-Length and Transfer-Encoding");
	if (has_te && r->minor == 0)
		return refuse(in, 400, "Transfer-Encoding in HTTP/1.0");
	if (has_te && !is(te, "chunked"))
		return refuse(in, 501, "the only transfer coding here is chunked");
	if (has_cl && str_u64_n(cl.p, cl.n, INT64_MAX, &r->length) < 0)
		return refuse(in, 400, "malformed Content-Length");
	r->body = has_te ? HTTP1_BODY_CHUNKED : has_cl ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE;
	return 0;
}

static int expect_read(struct reader *in, struct http1_request *r)
{
	struct http1_str v = {0};
	int n = only(in, r, "expect", &v);

	if (n <= 0)
		return n;
	if (!is_nocase(v, "100-continue"))
		return refuse(in, 400, "unknown expectation");
	r->expects_continue = r->minor == 1; /* RFC 9110 §10.1.1: a 1.0 client's is ignored */
	return 0;
}

/* Connection: close wins over keep-alive, whatever their order. */
static int connection_read(struct reader *in, struct http1_request *r)
{
	bool has_close = false;
	bool has_keep = false;

	for (size_t i = 0; i < r->n_fields; i++) {
		struct http1_str list = r->field[i].value;
		bool is_more = is_nocase(r->field[i].name, "connection");

		while (is_more) {
			struct http1_str item = trim(cut(&list, ',', &is_more));

			if (!http1_name_valid(item.p, item.n))
				return refuse(in, 400, "malformed Connection");
			has_close |= is_nocase(item, "close");
			has_keep |= is_nocase(item, "keep-alive");
		}
	}
	r->keep_alive = !has_close && (r->minor == 1 || has_keep);
	return 0;
}

static int head_read(struct reader *in, struct http1_request *r)
{
	int e = request_line(in, r);

	if (e < 0)
		return e;
	do
		e = field_line(in, r);
	while (e > 0);
	if (e == 0)
		e = host_read(in, r);
	if (e == 0)
		e = body_read(in, r);
	if (e == 0)
		e = expect_read(in, r);
	if (e == 0)
		e = connection_read(in, r);
	return e;
}

int http1_request_parse(struct http1_request *ret, const void *p, size_t n, size_t *ret_used,
			unsigned *ret_status, const char **ret_why)
{
	struct http1_request r = {0};
	struct reader in = {.p = p, .end = (const char *)p + size_min(n, HTTP1_HEAD_MAX)};
	int e = n > 0 ? head_read(&in, &r) : -EAGAIN;

	if (e == -EAGAIN && n >= HTTP1_HEAD_MAX)
		e = refuse(&in, 431, "request head is too long");
	if (e == -EBADMSG) {
		*ret_status = in.status;
		*ret_why = in.why;
	}
	if (e < 0)
		return e;
	*ret_used = (size_t)(in.p - (const char *)p);
	*ret = r;
	return 0;
}

const struct http1_str *http1_find(const struct http1_request *r, const char *name)
{
	const struct http1_str *found = NULL;

	for (size_t i = 0; i < r->n_fields; i++) {
		if (!is_nocase(r->field[i].name, name))
			continue;
		if (found)
			return NULL;
		found = &r->field[i].value;
	}
	return found;
}

const char *http1_status_text(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} words[] = {
		{100, "Continue"},
		{101, "Switching Protocols"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{425, "Too Early"},
		{426, "Upgrade Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{499, "Client Closed Request"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].status == status)
			return words[i].text;
	return "";
}
