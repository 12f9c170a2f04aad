/* Which requests pass, what the guest sees of them, and what comes back of its answers. */
#include "daemon/rules.h"

#include "base/alloc.h"
#include "base/test.h"

#include <errno.h>

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct h2_message request(const char *method, const char *path)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":method", method);
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "client");
	(void)h2_add(&m, ":path", path);
	return m;
}

static const struct {
	const char *says;
	const char *method;
	const char *path;
	unsigned client; /* with the right token */
	unsigned platform;
} paths[] = {
	{"start", "POST", "/process.Process/Start", 0, 404},
	{"health", "GET", "/health", 0, 0},
	{"files", "GET", "/files?path=/etc/passwd", 0, 404},
	{"escapes behind the question mark", "GET", "/files?path=%2Fa%20b", 0, 404},
	{"platform's own", "POST", "/space/init", 404, 0},
	{"platform's own, bare", "POST", "/space", 404, 0},
	{"platform's own, query", "POST", "/space?x", 404, 0},
	{"only a prefix", "GET", "/spaceship", 0, 404},
	{"init", "POST", "/init", 404, 404},
	{"init, query", "POST", "/init?a=b", 404, 404},
	{"init, below", "POST", "/init/x", 404, 404},
	{"freeze", "POST", "/freeze", 404, 404},
	{"unfreeze", "POST", "/unfreeze", 404, 404},
	{"collapse", "POST", "/collapse", 404, 404},
	{"fsfreeze", "POST", "/fsfreeze", 404, 404},
	{"fsthaw", "POST", "/fsthaw", 404, 404},
	{"upgrade", "POST", "/upgrade", 404, 404},
	{"empty segment", "POST", "//init", 404, 404},
	{"dot", "POST", "/./init", 404, 404},
	{"dots", "POST", "/a/../init", 404, 404},
	{"dots at the end", "POST", "/a/..", 404, 404},
	{"three dots are a name", "GET", "/a/...", 0, 404},
	{"escape in the path", "POST", "/%69nit", 404, 404},
	{"backslash", "POST", "/a\\init", 404, 404},
	{"semicolon", "POST", "/init;x", 404, 404},
	{"slash at the end", "GET", "/a/", 404, 404},
	{"root", "GET", "/", 404, 404},
	{"no slash", "GET", "a", 404, 404},
	{"empty", "GET", "", 404, 404},
	{"star", "OPTIONS", "*", 404, 404},
	{"absolute form", "GET", "http://x/health", 404, 404},
	{"fragment", "GET", "/a?b#c", 404, 404},
	{"blank", "GET", "/a?b c", 404, 404},
	{"eight bits", "GET", "/a?\xc3\xa9", 404, 404},
	{"capital path", "POST", "/Init", 0, 404},
	{"connect", "CONNECT", "/a", 405, 405},
	{"trace", "TRACE", "/a", 405, 405},
	{"small method", "get", "/health", 405, 405},
	{"health, posted to the platform", "POST", "/health", 0, 404},
};

static void test_paths(void)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct h2_message m = request(paths[i].method, paths[i].path);

		EXPECT_EQ(paths[i].says, request_judge(&m, SIDE_PLATFORM, TOKEN).code,
			  paths[i].platform);
		(void)h2_add(&m, "x-access-token", TOKEN);
		EXPECT_EQ(paths[i].says, request_judge(&m, SIDE_CLIENT, TOKEN).code,
			  paths[i].client);
	}
}

static void test_target_limit(void)
{
	AUTO(str_drop) char *path = xcalloc(1, RULES_TARGET_MAX + 2);
	struct h2_message m;

	memset(path, 'a', RULES_TARGET_MAX);
	path[0] = '/';
	m = request("GET", path);
	EXPECT_EQ("longest target", request_judge(&m, SIDE_CLIENT, "").code, 0);
	path[RULES_TARGET_MAX] = 'a';
	EXPECT_EQ("one more", request_judge(&m, SIDE_CLIENT, "").code, 404);
}

static const struct {
	const char *says;
	const char *method;
	const char *path;
	const char *token; /* what the client sends; NULL: nothing */
	const char *second;
	unsigned want;
} tokens[] = {
	{"right", "POST", "/x", TOKEN, NULL, 0},
	{"none", "POST", "/x", NULL, NULL, 401},
	{"empty", "POST", "/x", "", NULL, 401},
	{"last digit", "POST", "/x",
	 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee", NULL, 401},
	{"a prefix", "POST", "/x", "0123456789abcdef", NULL, 401},
	{"longer", "POST", "/x", TOKEN "0", NULL, 401},
	{"twice", "POST", "/x", TOKEN, TOKEN, 401},
	{"right and wrong", "POST", "/x", TOKEN, "x", 401},
	{"health needs none", "GET", "/health", NULL, NULL, 0},
	{"health with a query does", "GET", "/health?x", NULL, NULL, 401},
	{"only GET of it", "POST", "/health", NULL, NULL, 401},
	{"files", "GET", "/files?path=a", NULL, NULL, 401},
	{"closed paths say nothing of tokens", "POST", "/init", NULL, NULL, 404},
};

static void test_tokens(void)
{
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		struct h2_message m = request(tokens[i].method, tokens[i].path);
		struct verdict v;

		if (tokens[i].token)
			(void)h2_add(&m, "x-access-token", tokens[i].token);
		if (tokens[i].second)
			(void)h2_add(&m, "x-access-token", tokens[i].second);
		v = request_judge(&m, SIDE_CLIENT, TOKEN);
		EXPECT_EQ(tokens[i].says, v.code, tokens[i].want);
		EXPECT_EQ(tokens[i].says, v.message != NULL, tokens[i].want != 0);
		v = request_judge(&m, SIDE_CLIENT, "");
		EXPECT_EQ("an open sandbox asks for none", v.code, tokens[i].want == 404 ? 404 : 0);
	}
}

static const struct {
	const char *says;
	const char *name;
	const char *value;
	int request; /* 1 passed, 0 dropped, or an error */
	int answer;
} fields[] = {
	{"ordinary", "content-type", "application/json", 1, 1},
	{"range", "range", "bytes=0-1", 1, 1},
	{"length", "content-length", "5", 1, 1},
	{"eight bits", "x-name", "\xc3\xa9", 1, 1},
	{"tab inside", "x-name", "a\tb", 1, 1},
	{"empty value", "x-name", "", 1, 1},
	{"access token", "x-access-token", "t", 0, 1},
	{"api key", "x-api-key", "k", 0, 1},
	{"traffic token", "e2b-traffic-access-token", "k", 0, 1},
	{"cookie", "cookie", "a=b", 0, 1},
	{"host", "host", "x", 0, 1},
	{"user", "authorization", "Basic cm9vdDo=", 1, 1},
	{"user, other case", "authorization", "basic cm9vdDo=", 1, 1},
	{"bearer", "authorization", "Bearer x", 0, 1},
	{"connection", "connection", "close", 0, 0},
	{"chunked", "transfer-encoding", "chunked", 0, 0},
	{"upgrade", "upgrade", "h2c", 0, 0},
	{"te", "te", "trailers", 0, 0},
	{"capital name", "X-Name", "a", -EBADMSG, -EBADMSG},
	{"blank in the name", "x name", "a", -EBADMSG, -EBADMSG},
	{"colon in the name", "x:", "a", -EBADMSG, -EBADMSG},
	{"no name", "", "a", -EBADMSG, -EBADMSG},
	{"line end", "x-name", "a\r\nb: c", -EBADMSG, -EBADMSG},
	{"escape", "x-name", "\x1b[2J", -EBADMSG, -EBADMSG},
	{"delete", "x-name", "\x7f", -EBADMSG, -EBADMSG},
	{"blank before", "x-name", " a", -EBADMSG, -EBADMSG},
	{"blank behind", "x-name", "a ", -EBADMSG, -EBADMSG},
};

static void test_fields(void)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct h2_message q = request("GET", "/x");
		struct h2_message a = {0};
		struct h2_message out = {0};
		int r;

		(void)h2_add(&q, fields[i].name, fields[i].value);
		r = request_rewrite(&out, &q);
		EXPECT_EQ(fields[i].says, r < 0 ? r : h2_get(&out, fields[i].name) != NULL,
			  fields[i].request);
		(void)h2_add(&a, ":status", "200");
		(void)h2_add(&a, fields[i].name, fields[i].value);
		r = answer_rewrite(&out, &a);
		EXPECT_EQ(fields[i].says, r < 0 ? r : h2_get(&out, fields[i].name) != NULL,
			  fields[i].answer);
	}
}

static void test_rewritten_request(void)
{
	struct h2_message in = request("POST", "/a?b");
	struct h2_message out = {0};

	EXPECT_EQ("rewrite", request_rewrite(&out, &in), 0);
	EXPECT_STR("method", h2_get(&out, ":method"), "POST");
	EXPECT_STR("path", h2_get(&out, ":path"), "/a?b");
	EXPECT_STR("authority", h2_get(&out, ":authority"), "envd");
	EXPECT_STR("scheme", h2_get(&out, ":scheme"), "http");
	EXPECT_EQ("nothing more", out.n, 4);
}

static const struct {
	const char *says;
	const char *status;
	const char *second; /* another pseudo field */
	int want;
} statuses[] = {
	{"ok", "200", NULL, 0},
	{"last", "599", NULL, 0},
	{"interim", "100", NULL, -EBADMSG},
	{"below", "199", NULL, -EBADMSG},
	{"above", "600", NULL, -EBADMSG},
	{"short", "20", NULL, -EBADMSG},
	{"long", "0200", NULL, -EBADMSG},
	{"sign", "+20", NULL, -EBADMSG},
	{"word", "abc", NULL, -EBADMSG},
	{"missing", NULL, NULL, -EBADMSG},
	{"twice", "200", ":status", -EBADMSG},
	{"a request's", "200", ":path", -EBADMSG},
};

static void test_statuses(void)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct h2_message in = {0};
		struct h2_message out;

		if (statuses[i].status)
			(void)h2_add(&in, ":status", statuses[i].status);
		if (statuses[i].second)
			(void)h2_add(&in, statuses[i].second, "200");
		EXPECT_EQ(statuses[i].says, answer_rewrite(&out, &in), statuses[i].want);
	}
}

static void test_limits(void)
{
	AUTO(str_drop) char *value = xcalloc(1, RULES_HEAD_MAX + 1);
	size_t rest = RULES_HEAD_MAX - strlen(":status200") - strlen("x");
	struct h2_message in = {0};
	struct h2_message out;

	memset(value, 'a', rest);
	(void)h2_add(&in, ":status", "200");
	(void)h2_add(&in, "x", value);
	EXPECT_EQ("largest head", answer_rewrite(&out, &in), 0);
	value[rest] = 'a';
	EXPECT_EQ("one byte more", answer_rewrite(&out, &in), -E2BIG);
	in = (struct h2_message){0};
	(void)h2_add(&in, ":status", "200");
	while (in.n < RULES_FIELDS_MAX)
		(void)h2_add(&in, "x", "a");
	EXPECT_EQ("most fields", answer_rewrite(&out, &in), 0);
	(void)h2_add(&in, "x", "a");
	EXPECT_EQ("one field more", answer_rewrite(&out, &in), -E2BIG);
}

int main(void)
{
	test_paths();
	test_target_limit();
	test_tokens();
	test_fields();
	test_rewritten_request();
	test_statuses();
	test_limits();
	return test_done();
}
