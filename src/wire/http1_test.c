/* Request heads: what is accepted, every refused form with its status, limits at and one past, and
 * that it does not matter where the bytes are cut. */
#include "base/test.h"
#include "wire/http1.h"

#include <errno.h>

#define H "Host: a\r\n"

static const struct {
	const char *says;
	const char *in;
	int want;        /* 0, -EAGAIN, or the status of the refusal */
	const char *sum; /* of an accepted one: method target host body flags */
} cases[] = {
	{"simple", "GET / HTTP/1.1\r\n" H "\r\n", 0, "GET / a - k"},
	{"body follows", "GET / HTTP/1.1\r\n" H "\r\nbody", 0, "GET / a - k"},
	{"query and odd characters", "GET /a?b={c}|\"<>\\^` HTTP/1.1\r\n" H "\r\n", 0,
	 "GET /a?b={c}|\"<>\\^` a - k"},
	{"two slashes, dots, percent stay", "GET //a/../%2F%zz HTTP/1.1\r\n" H "\r\n", 0,
	 "GET //a/../%2F%zz a - k"},
	{"lower-case method is a token", "get / HTTP/1.1\r\n" H "\r\n", 0, "get / a - k"},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0, "OPTIONS * a - k"},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 0, "GET /  - c"},
	{"HTTP/1.0 with Host", "GET / HTTP/1.0\r\n" H "\r\n", 0, "GET / a - c"},
	{"HTTP/1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 0,
	 "GET /  - k"},
	{"close", "GET / HTTP/1.1\r\n" H "Connection: x, Close\r\n\r\n", 0, "GET / a - c"},
	{"close wins", "GET / HTTP/1.1\r\n" H "Connection: close\r\nConnection: keep-alive\r\n\r\n",
	 0, "GET / a - c"},
	{"Content-Length", "POST / HTTP/1.1\r\n" H "Content-Length: 42\r\n\r\n", 0,
	 "POST / a 42 k"},
	{"Content-Length 0", "POST / HTTP/1.1\r\n" H "content-LENGTH:\t0 \r\n\r\n", 0,
	 "POST / a 0 k"},
	{"largest length", "POST / HTTP/1.1\r\n" H "Content-Length: 9223372036854775807\r\n\r\n", 0,
	 "POST / a 9223372036854775807 k"},
	{"chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 0,
	 "POST / a chunked k"},
	{"expect", "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n", 0, "POST / a - ke"},
	{"1.0 expect is ignored", "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", 0,
	 "POST /  - c"},
	{"obs-text in a value", "GET / HTTP/1.1\r\n" H "X: \xc3\xa9\r\n\r\n", 0, "GET / a - k"},
	{"empty value", "GET / HTTP/1.1\r\n" H "X:\r\n\r\n", 0, "GET / a - k"},
	{"tab in a value", "GET / HTTP/1.1\r\n" H "X: a\tb\r\n\r\n", 0, "GET / a - k"},

	{"nothing", "", -EAGAIN, NULL},
	{"no last CRLF", "GET / HTTP/1.1\r\n" H, -EAGAIN, NULL},
	{"half a CRLF", "GET / HTTP/1.1\r\n" H "\r", -EAGAIN, NULL},

	{"leading CRLF", "\r\nGET / HTTP/1.1\r\n" H "\r\n", 400, NULL},
	{"leading blank", " GET / HTTP/1.1\r\n" H "\r\n", 400, NULL},
	{"bare LF after the request line", "GET / HTTP/1.1\n", 400, NULL},
	{"bare LF after a field", "GET / HTTP/1.1\r\nHost: a\n", 400, NULL},
	{"bare LF at the end", "GET / HTTP/1.1\r\n" H "\n", 400, NULL},
	{"bare CR in a value", "GET / HTTP/1.1\r\n" H "X: a\rY: b\r\n\r\n", 400, NULL},
	{"CR and a whole field behind it", "GET / HTTP/1.1\r\n" H "X: a\r.Y: b\r\n\r\n", 400, NULL},
	{"CR CR LF", "GET / HTTP/1.1\r\n" H "X: a\r\r\n\r\n", 400, NULL},
	{"TLS hello", "\x16\x03\x01", 400, NULL},
	{"escape in a value", "GET / HTTP/1.1\r\n" H "X: \033[0m", 400, NULL},
	{"DEL in a value", "GET / HTTP/1.1\r\n" H "X: \x7f", 400, NULL},
	{"HTTP/0.9", "GET /\r\n", 400, NULL},
	{"two blanks before the target", "GET  / HTTP/1.1\r\n", 400, NULL},
	{"two blanks after it", "GET /  HTTP/1.1\r\n", 400, NULL},
	{"tab for a blank", "GET\t/ HTTP/1.1\r\n", 400, NULL},
	{"blank in the target", "GET /a b HTTP/1.1\r\n", 400, NULL},
	{"blank after the version", "GET / HTTP/1.1 \r\n", 400, NULL},
	{"no method", " / HTTP/1.1\r\n", 400, NULL},
	{"method is no token", "G@T{ / HTTP/1.1\r\n", 400, NULL},
	{"8-bit method", "G\xc9T / HTTP/1.1\r\n", 400, NULL},
	{"lower-case version", "GET / http/1.1\r\n", 400, NULL},
	{"version 1.2", "GET / HTTP/1.2\r\n", 505, NULL},
	{"version 2.0", "GET / HTTP/2.0\r\n", 505, NULL},
	{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, NULL},
	{"version 11", "GET / HTTP/11\r\n", 400, NULL},
	{"version 1.10", "GET / HTTP/1.10\r\n", 400, NULL},
	{"absolute form", "GET http://a/ HTTP/1.1\r\n", 400, NULL},
	{"no leading slash", "GET a HTTP/1.1\r\n", 400, NULL},
	{"* with GET", "GET * HTTP/1.1\r\n", 400, NULL},
	{"CONNECT", "CONNECT a:443 HTTP/1.1\r\n", 400, NULL},
	{"CONNECT with a path", "CONNECT /a HTTP/1.1\r\n", 400, NULL},
	{"fragment", "GET /a#b HTTP/1.1\r\n", 400, NULL},
	{"8-bit target", "GET /\xc3\xa9 HTTP/1.1\r\n", 400, NULL},
	{"DEL in the target", "GET /\x7f HTTP/1.1\r\n", 400, NULL},
	{"fold", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400, NULL},
	{"blank line of blanks", "GET / HTTP/1.1\r\n" H " \r\n\r\n", 400, NULL},
	{"first field is folded", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, NULL},
	{"blank before the colon", "GET / HTTP/1.1\r\n" H "X : a\r\n\r\n", 400, NULL},
	{"TE with a blank before the colon",
	 "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n", 400, NULL},
	{"tab before the colon", "GET / HTTP/1.1\r\n" H "X\t: a\r\n\r\n", 400, NULL},
	{"no colon", "GET / HTTP/1.1\r\n" H "X\r\n\r\n", 400, NULL},
	{"no name", "GET / HTTP/1.1\r\n" H ": a\r\n\r\n", 400, NULL},
	{"name is no token", "GET / HTTP/1.1\r\n" H "X(a): a\r\n\r\n", 400, NULL},
	{"8-bit name", "GET / HTTP/1.1\r\n" H "X\xa0: a\r\n\r\n", 400, NULL},

	{"no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", 400, NULL},
	{"two Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", 400, NULL},
	{"two Hosts, other case", "GET / HTTP/1.1\r\n" H "hOSt: a\r\n\r\n", 400, NULL},
	{"two Hosts in 1.0", "GET / HTTP/1.0\r\n" H H "\r\n", 400, NULL},
	{"bad Host in 1.0", "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", 400, NULL},

	{"length and chunked",
	 "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
	 NULL},
	{"chunked and length",
	 "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400,
	 NULL},
	{"two equal lengths",
	 "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, NULL},
	{"list of lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", 400, NULL},
	{"plus", "POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", 400, NULL},
	{"minus", "POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400, NULL},
	{"hex", "POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n", 400, NULL},
	{"empty length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400, NULL},
	{"blank inside", "POST / HTTP/1.1\r\n" H "Content-Length: 1 1\r\n\r\n", 400, NULL},
	{"2^63", "POST / HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n", 400, NULL},
	{"2^64 + 1", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\n", 400,
	 NULL},
	{"TE twice",
	 "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	 400, NULL},
	{"TE list", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, NULL},
	{"TE list, chunked first", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, x\r\n\r\n",
	 501, NULL},
	{"TE with a comma", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked,\r\n\r\n", 501,
	 NULL},
	{"TE with a parameter", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n",
	 501, NULL},
	{"TE identity", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", 501, NULL},
	{"TE xchunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n", 501, NULL},
	{"TE Chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", 501, NULL},
	{"TE quoted", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n", 501, NULL},
	{"TE empty", "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", 501, NULL},
	{"TE with a vertical tab", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \vchunked\r\n\r\n",
	 400, NULL},
	{"TE in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, NULL},
	{"other expectation", "POST / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n", 400, NULL},
	{"two expectations",
	 "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", 400, NULL},
	{"Connection with an empty item", "GET / HTTP/1.1\r\n" H "Connection: a,,b\r\n\r\n", 400,
	 NULL},
	{"empty Connection", "GET / HTTP/1.1\r\n" H "Connection:\r\n\r\n", 400, NULL},
};

static const struct {
	const char *host;
	bool want;
} hosts[] = {
	{"a", true},
	{"EXAMPLE.com", true},
	{"a-b_c.d:1", true},
	{"127.0.0.1:65535", true},
	{"[::1]", true},
	{"[::ffff:1.2.3.4]:80", true},
	{"49983-i0123456789abcdefghi.localhost:3000", true},
	{"", false},
	{"a.", false},
	{".a", false},
	{"a..b", false},
	{"a:", false},
	{"a:65536", false},
	{"a:000080", false},
	{"a:8o", false},
	{"a:80:80", false},
	{"a b", false},
	{"a,b", false},
	{"a/b", false},
	{"u@a", false},
	{"u:p@a", false},
	{"a%2e", false},
	{"\xe3\x80\x82", false},
	{"a\\b", false},
	{"[::1", false},
	{"::1", false},
	{"[]", false},
	{"[1]", false},
	{"[::1]x", false},
	{"[::1]x:80", false},
	{"[::1%25lo]", false},
	{"[::g]", false},
};

static int status_of(const void *p, size_t n, struct http1_request *r, size_t *ret_used)
{
	const char *why = NULL;
	unsigned status = 0;
	int e = http1_request_parse(r, p, n, ret_used, &status, &why);

	if (e == -EBADMSG && (status < 400 || !why || !*why))
		return -1; /* a refusal must say which and why */
	return e == -EBADMSG ? (int)status : e;
}

static void sum(const struct http1_request *r, char *dst, size_t size)
{
	char body[32] = "-";

	if (r->body == HTTP1_BODY_LENGTH)
		(void)snprintf(body, sizeof body, "%" PRIu64, r->length);
	else if (r->body == HTTP1_BODY_CHUNKED)
		(void)snprintf(body, sizeof body, "chunked");
	(void)snprintf(dst, size, "%.*s %.*s %.*s %s %s%s", (int)r->method.n, r->method.p,
		       (int)r->target.n, r->target.p, (int)r->host.n, r->host.p, body,
		       r->keep_alive ? "k" : "c", r->expects_continue ? "e" : "");
}

static void table(void)
{
	static struct http1_request r;
	char got[256];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].in);
		size_t used = 0;

		EXPECT_EQ(cases[i].says, status_of(cases[i].in, len, &r, &used), cases[i].want);
		if (cases[i].want != 0)
			continue;
		sum(&r, got, sizeof got);
		EXPECT_STR(cases[i].says, got, cases[i].sum);
		EXPECT_EQ(cases[i].says, used, strstr(cases[i].in, "\r\n\r\n") + 4 - cases[i].in);
	}
}

static void host_table(void)
{
	static struct http1_request r;
	char in[256];
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		int n = snprintf(in, sizeof in, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n",
				 hosts[i].host);

		EXPECT_EQ(hosts[i].host, status_of(in, (size_t)n, &r, &used),
			  hosts[i].want ? 0 : 400);
	}
}

/* NUL needs a length: it cannot stand in the table. */
static void nul(void)
{
	static const char *const at[] = {"G\1T / HTTP/1.1\r\nHost: a\r\n\r\n",
					 "GET /\1 HTTP/1.1\r\nHost: a\r\n\r\n",
					 "GET / HTTP/1.1\r\nX\1: a\r\nHost: a\r\n\r\n",
					 "GET / HTTP/1.1\r\nX: \1\r\nHost: a\r\n\r\n",
					 "GET / HTTP/1.1\r\nHost: a\1\r\n\r\n"};
	static struct http1_request r;
	char in[64];
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		size_t n = strlen(at[i]);

		memcpy(in, at[i], n);
		*(char *)memchr(in, 1, n) = '\0';
		EXPECT_EQ(at[i], status_of(in, n, &r, &used), 400);
	}
}

/* Cut at every byte: a prefix is either not enough yet or refused as the whole is. The copies have
 * their exact size so that a sanitizer sees the first byte read past the end. */
static void splits(void)
{
	static struct http1_request r;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].in);
		size_t used = 0;
		int whole = status_of(cases[i].in, len, &r, &used);

		for (size_t n = 0; n < (whole == 0 ? used : len); n++) {
			char *part = malloc(n ? n : 1);
			size_t u = 0;
			int e;

			memcpy(part, cases[i].in, n);
			e = status_of(part, n, &r, &u);
			if (e != -EAGAIN && (whole == 0 || e != whole))
				EXPECT_EQ(cases[i].says, e, whole);
			free(part);
		}
	}
	CHECK(true);
}

/* A head of exactly `total` bytes with `fields` fields, Host among them. */
static size_t head_make(char *dst, size_t target, size_t fields, size_t total)
{
	static const char rest[] = " HTTP/1.1\r\n" H;
	size_t n = 4 + target + sizeof rest - 1;

	memcpy(dst, "GET /", 5);
	memset(dst + 5, 'a', target - 1);
	memcpy(dst + 4 + target, rest, sizeof rest - 1);
	for (size_t i = 1; i < fields; i++) {
		memcpy(dst + n, "X: 1\r\n", 6);
		n += 6;
	}
	if (total > n + 7) {
		memcpy(dst + n, "Y: ", 3);
		memset(dst + n + 3, 'y', total - n - 7);
		memcpy(dst + total - 4, "\r\n", 2);
		n = total - 2;
	}
	memcpy(dst + n, "\r\n", 2);
	return n + 2;
}

static void limits(void)
{
	static char in[2 * HTTP1_HEAD_MAX];
	static struct http1_request r;
	size_t used = 0;
	size_t n;

	n = head_make(in, HTTP1_TARGET_MAX, 1, 0);
	EXPECT_EQ("target at the limit", status_of(in, n, &r, &used), 0);
	EXPECT_EQ("target at the limit", r.target.n, HTTP1_TARGET_MAX);
	n = head_make(in, HTTP1_TARGET_MAX + 1, 1, 0);
	EXPECT_EQ("target one past", status_of(in, n, &r, &used), 414);
	memset(in, 'a', sizeof in);
	EXPECT_EQ("request line without end", status_of(in, sizeof in, &r, &used), 414);
	EXPECT_EQ("request line may go on",
		  status_of(in, HTTP1_METHOD_MAX + HTTP1_TARGET_MAX + 10, &r, &used), -EAGAIN);
	EXPECT_EQ("request line may not go on",
		  status_of(in, HTTP1_METHOD_MAX + HTTP1_TARGET_MAX + 11, &r, &used), 414);

	n = head_make(in, 1, HTTP1_FIELDS_MAX, 0);
	EXPECT_EQ("fields at the limit", status_of(in, n, &r, &used), 0);
	EXPECT_EQ("fields at the limit", r.n_fields, HTTP1_FIELDS_MAX);
	n = head_make(in, 1, HTTP1_FIELDS_MAX + 1, 0);
	EXPECT_EQ("fields one past", status_of(in, n, &r, &used), 431);

	n = head_make(in, 1, 1, HTTP1_HEAD_MAX);
	EXPECT_EQ("head at the limit", status_of(in, n, &r, &used), 0);
	EXPECT_EQ("head at the limit", used, HTTP1_HEAD_MAX);
	EXPECT_EQ("head not whole yet", status_of(in, n - 1, &r, &used), -EAGAIN);
	n = head_make(in, 1, 1, HTTP1_HEAD_MAX + 1);
	EXPECT_EQ("head one past", status_of(in, n, &r, &used), 431);
	EXPECT_EQ("head one past, cut", status_of(in, HTTP1_HEAD_MAX, &r, &used), 431);

	n = (size_t)snprintf(in, sizeof in, "%0*d / HTTP/1.1\r\n" H "\r\n", HTTP1_METHOD_MAX, 0);
	EXPECT_EQ("method at the limit", status_of(in, n, &r, &used), 0);
	n = (size_t)snprintf(in, sizeof in, "%0*d / HTTP/1.1\r\n" H "\r\n", HTTP1_METHOD_MAX + 1,
			     0);
	EXPECT_EQ("method one past", status_of(in, n, &r, &used), 501);

	n = (size_t)snprintf(in, sizeof in, "GET / HTTP/1.1\r\nHost: %0255d:65535\r\n\r\n", 0);
	EXPECT_EQ("host at the limit", status_of(in, n, &r, &used), 0);
	EXPECT_EQ("host at the limit", r.host.n, HTTP1_HOST_MAX);
	n = (size_t)snprintf(in, sizeof in, "GET / HTTP/1.1\r\nHost: %0256d\r\n\r\n", 0);
	EXPECT_EQ("host one past", status_of(in, n, &r, &used), 400);
}

static void finds(void)
{
	static const char in[] = "GET / HTTP/1.1\r\n" H "X-A:  1 \r\nX-B: 2\r\nx-b: 3\r\n\r\n";
	static struct http1_request r;
	const struct http1_str *v;
	size_t used;

	EXPECT_EQ("parses", status_of(in, sizeof in - 1, &r, &used), 0);
	v = http1_find(&r, "x-a");
	EXPECT("one", v && v->n == 1 && v->p[0] == '1');
	EXPECT("two are none", !http1_find(&r, "X-B"));
	EXPECT("none", !http1_find(&r, "X-"));
	EXPECT("longer name", !http1_find(&r, "X-A1"));
	EXPECT("spelling is kept",
	       r.field[1].name.n == 3 && memcmp(r.field[1].name.p, "X-A", 3) == 0);
	CHECK(http1_name_valid("X-a", 3) && !http1_name_valid("", 0) &&
	      !http1_name_valid("a b", 3));
	CHECK(http1_value_valid("", 0) && http1_value_valid("a b", 3));
	CHECK(!http1_value_valid(" a", 2) && !http1_value_valid("a\t", 2));
	CHECK(!http1_value_valid("a\r\nb", 4) && !http1_value_valid("a\0b", 3));
	EXPECT_STR("status", http1_status_text(431), "Request Header Fields Too Large");
	EXPECT_STR("status", http1_status_text(299), "");
}

/* What was there before a failed call is there after it. */
static void untouched(void)
{
	static struct http1_request r = {.n_fields = 7};
	size_t used = 42;

	EXPECT_EQ("refused", status_of("GET / HTTP/1.1\n", 15, &r, &used), 400);
	EXPECT("outputs stay", r.n_fields == 7 && used == 42);
}

int main(void)
{
	table();
	host_table();
	nul();
	splits();
	limits();
	finds();
	untouched();
	return test_done();
}
