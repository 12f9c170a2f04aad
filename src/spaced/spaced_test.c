/* The pure parts of spaced: what clients may ask, what they are answered, how names are made. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "spaced/admit.h"
#include "spaced/api.h"
#include "spaced/identity.h"
#include "spaced/idmap.h"
#include "spaced/ids.h"
#include "spaced/options.h"
#include "spaced/params.h"
#include "spaced/query.h"
#include "spaced/route.h"

#include <errno.h>

#define HOURS 24u

void node_stop(struct node *n, const char *why)
{
	(void)n; /* main.c's; nothing here ends a program */
	(void)why;
}

/* --- new sandboxes --- */

static const struct {
	const char *says;
	enum api_version v;
	const char *in;
	int want;
	uint32_t timeout_s;
	bool secure;
	const char *text; /* what the sentence holds */
} news[] = {
	{"the least, v2", API_V2, "{\"templateID\":\"base\"}", 0, 300, true, NULL},
	{"the least, v1", API_V1, "{\"templateID\":\"base\"}", 0, 15, false, NULL},
	{"v1 secure", API_V1, "{\"templateID\":\"base\",\"secure\":true}", 0, 15, true, NULL},
	{"v2 is always secure", API_V2, "{\"templateID\":\"base\",\"secure\":false}", 0, 300, true,
	 NULL},
	{"unknown fields", API_V2, "{\"templateID\":\"b\",\"x\":{}}", 0, 300, true, NULL},
	{"nulls", API_V2, "{\"templateID\":\"b\",\"metadata\":null,\"mcp\":null}", 0, 300, true,
	 NULL},
	{"no template", API_V2, "{}", -EINVAL, 0, false, "templateID"},
	{"a number as template", API_V2, "{\"templateID\":7}", -EINVAL, 0, false, "templateID"},
	{"no body", API_V2, "", -EINVAL, 0, false, NULL},
	{"a list", API_V2, "[]", -EINVAL, 0, false, NULL},
	{"cut", API_V2, "{\"templateID\":", -EINVAL, 0, false, NULL},
	{"timeout 1", API_V2, "{\"templateID\":\"b\",\"timeout\":1}", 0, 1, true, NULL},
	{"timeout 0", API_V2, "{\"templateID\":\"b\",\"timeout\":0}", -EINVAL, 0, false,
	 "Timeout must be greater than 0"},
	{"timeout -1", API_V2, "{\"templateID\":\"b\",\"timeout\":-1}", -EINVAL, 0, false,
	 "Timeout must be greater than 0"},
	{"timeout at its most", API_V2, "{\"templateID\":\"b\",\"timeout\":86400}", 0, 86400, true,
	 NULL},
	{"timeout past it", API_V2, "{\"templateID\":\"b\",\"timeout\":86401}", -EINVAL, 0, false,
	 "Timeout cannot be greater than 24 hours"},
	{"timeout as text", API_V2, "{\"templateID\":\"b\",\"timeout\":\"9\"}", -EINVAL, 0, false,
	 "timeout"},
	{"metadata of numbers", API_V2, "{\"templateID\":\"b\",\"metadata\":{\"a\":1}}", -EINVAL, 0,
	 false, "metadata"},
	{"env of lists", API_V2, "{\"templateID\":\"b\",\"envVars\":{\"a\":[]}}", -EINVAL, 0, false,
	 "envVars"},
	{"env with '='", API_V2, "{\"templateID\":\"b\",\"envVars\":{\"a=b\":\"\"}}", -EINVAL, 0,
	 false, "envVars"},
	{"env with a blank", API_V2, "{\"templateID\":\"b\",\"envVars\":{\"a b\":\"\"}}", -EINVAL,
	 0, false, "envVars"},
	{"secure as text", API_V1, "{\"templateID\":\"b\",\"secure\":\"yes\"}", -EINVAL, 0, false,
	 "secure"},
	{"disk-only pause without pause", API_V2,
	 "{\"templateID\":\"b\",\"autoPauseMemory\":false}", -EINVAL, 0, false, "autoPause"},
	{"disk-only pause with resume", API_V2,
	 "{\"templateID\":\"b\",\"autoPause\":true,\"autoPauseMemory\":false,"
	 "\"autoResume\":{\"enabled\":true}}",
	 -EINVAL, 0, false, "autoResume"},
	{"pause is not there yet", API_V2, "{\"templateID\":\"b\",\"autoPause\":true}", -EOPNOTSUPP,
	 0, false, "autoPause"},
	{"no pause is fine", API_V2, "{\"templateID\":\"b\",\"autoPause\":false}", 0, 300, true,
	 NULL},
};

static int parse_new(const char *in, enum api_version v, struct new_sandbox *n, struct fail *f)
{
	return new_sandbox_parse(in, strlen(in), v, HOURS, n, f);
}

static void check_news(void)
{
	for (size_t i = 0; i < ARRAY_LEN(news); i++) {
		struct new_sandbox n = {.secure = false};
		struct fail f = {0};

		EXPECT_EQ(news[i].says, parse_new(news[i].in, news[i].v, &n, &f), news[i].want);
		if (news[i].text)
			EXPECT(news[i].says, strstr(f.text, news[i].text) != NULL);
		EXPECT_EQ(news[i].says, n.timeout_s, news[i].timeout_s);
		EXPECT_EQ(news[i].says, n.secure, news[i].secure);
		new_sandbox_done(&n);
	}
}

/* {"templateID":"b","<key>":{"k0":"vv..",...}} with `count` entries of `bytes`. */
static char *with_map(const char *key, unsigned count, unsigned bytes)
{
	char *value = xcalloc(1, bytes + 1);
	char *text = xasprintf("{\"templateID\":\"b\",\"%s\":{", key);

	memset(value, 'v', bytes);
	for (unsigned i = 0; i < count; i++) {
		char *longer = xasprintf("%s%s\"k%u\":\"%s\"", text, i ? "," : "", i, value);

		free(text);
		text = longer;
	}
	free(value);
	value = text;
	text = xasprintf("%s}}", value);
	free(value);
	return text;
}

static void check_limits(void)
{
	static const struct {
		const char *says;
		const char *key;
		unsigned count;
		unsigned bytes;
		int want;
	} cases[] = {
		{"metadata entries, at most", "metadata", METADATA_COUNT_MAX, 1, 0},
		{"metadata entries, one more", "metadata", METADATA_COUNT_MAX + 1, 1, -EINVAL},
		{"metadata value, at most", "metadata", 1, METADATA_VALUE_MAX, 0},
		{"metadata value, one more", "metadata", 1, METADATA_VALUE_MAX + 1, -EINVAL},
		{"metadata in all", "metadata", 5, METADATA_VALUE_MAX, -EINVAL},
		{"env entries, at most", "envVars", ENV_COUNT_MAX, 1, 0},
		{"env entries, one more", "envVars", ENV_COUNT_MAX + 1, 1, -EINVAL},
		{"env value, at most", "envVars", 1, ENV_VALUE_MAX, 0},
		{"env value, one more", "envVars", 1, ENV_VALUE_MAX + 1, -EINVAL},
		{"env in all", "envVars", 3, ENV_VALUE_MAX, -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop) char *text = with_map(cases[i].key, cases[i].count, cases[i].bytes);
		struct new_sandbox n = {.secure = false};
		struct fail f = {0};

		EXPECT_EQ(cases[i].says, parse_new(text, API_V2, &n, &f), cases[i].want);
		new_sandbox_done(&n);
	}
}

static void check_times(void)
{
	static const struct {
		const char *says;
		const char *in;
		int timeout;
		int v1;
		int v2;
	} cases[] = {
		{"a time", "{\"timeout\":5}", 5, 5, 5},
		{"none", "{}", -EINVAL, -EINVAL, 300},
		{"no body", "", -EINVAL, -EINVAL, 300},
		{"zero", "{\"timeout\":0}", 0, -EINVAL, -EINVAL},
		{"negative", "{\"timeout\":-5}", -EINVAL, -EINVAL, -EINVAL},
		{"at most", "{\"timeout\":86400}", 86400, 86400, 86400},
		{"too much", "{\"timeout\":86401}", -EINVAL, -EINVAL, -EINVAL},
		{"memory", "{\"timeout\":5,\"memory\":false}", 5, 5, 5},
		{"memory as text", "{\"timeout\":5,\"memory\":\"no\"}", 5, -EINVAL, -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *in = cases[i].in;
		size_t n = strlen(in);
		uint32_t s = 0;
		struct fail f = {0};
		int r = timeout_parse(in, n, HOURS, &s, &f);

		EXPECT_EQ(cases[i].says, r < 0 ? r : (int)s, cases[i].timeout);
		r = connect_parse(in, n, API_V1, HOURS, &s, &f);
		EXPECT_EQ(cases[i].says, r < 0 ? r : (int)s, cases[i].v1);
		r = connect_parse(in, n, API_V2, HOURS, &s, &f);
		EXPECT_EQ(cases[i].says, r < 0 ? r : (int)s, cases[i].v2);
	}
}

/* --- list queries --- */

static void check_queries(void)
{
	static const struct {
		const char *says;
		const char *in;
		int want;
		size_t filters;
		const char *key;
		const char *value;
		uint32_t limit;
	} cases[] = {
		{"nothing", "", 0, 0, NULL, NULL, 100},
		{"a plain pair", "metadata=who%3Dproof", 0, 1, "who", "proof", 100},
		{"encoded three times", "metadata=a%252520b%3Dc%252526d", 0, 1, "a b", "c&d", 100},
		{"two pairs", "metadata=a%3D1%26b%3D2", 0, 2, "a", "1", 100},
		{"an equals sign inside", "metadata=a%3Db%25253Dc", 0, 1, "a", "b=c", 100},
		{"a plus is a plus in the end", "metadata=a%3D1%25252B1", 0, 1, "a", "1+1", 100},
		{"states and limit", "state=running%2Cpaused&limit=7", 0, 0, NULL, NULL, 7},
		{"another state", "state=dead", -EINVAL, 0, NULL, NULL, 0},
		{"limit 1", "limit=1", 0, 0, NULL, NULL, 1},
		{"limit 0", "limit=0", -EINVAL, 0, NULL, NULL, 0},
		{"limit 100", "limit=100", 0, 0, NULL, NULL, 100},
		{"limit 101", "limit=101", -EINVAL, 0, NULL, NULL, 0},
		{"limit twice", "limit=1&limit=2", -EINVAL, 0, NULL, NULL, 0},
		{"a broken escape", "limit=%zz", -EINVAL, 0, NULL, NULL, 0},
		{"a cut escape", "metadata=a%3", -EINVAL, 0, NULL, NULL, 0},
		{"a NUL", "metadata=a%00", -EINVAL, 0, NULL, NULL, 0},
		{"a NUL inside", "metadata=a%252500", -EINVAL, 0, NULL, NULL, 0},
		{"order", "order=asc", 0, 0, NULL, NULL, 100},
		{"another order", "order=up", -EINVAL, 0, NULL, NULL, 0},
		{"a time", "startedAfter=2026-01-01T00%3A00%3A00Z", 0, 0, NULL, NULL, 100},
		{"no time", "startedAfter=yesterday", -EINVAL, 0, NULL, NULL, 0},
		{"a token", "nextToken=123-iabc", 0, 0, NULL, NULL, 100},
		{"no token", "nextToken=hello", -EINVAL, 0, NULL, NULL, 0},
		{"unknown", "who=knows", 0, 0, NULL, NULL, 100},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct list_query q = {.limit = 0};
		struct fail f = {0};

		EXPECT_EQ(cases[i].says, list_query_parse(cases[i].in, strlen(cases[i].in), &q, &f),
			  cases[i].want);
		EXPECT_EQ(cases[i].says, q.n_filters, cases[i].filters);
		EXPECT_EQ(cases[i].says, q.limit, cases[i].limit);
		if (q.n_filters && cases[i].key) {
			EXPECT_STR(cases[i].says, q.filter[0].key, cases[i].key);
			EXPECT_STR(cases[i].says, q.filter[0].value, cases[i].value);
		}
		list_query_done(&q);
	}
}

static void check_tokens(void)
{
	AUTO(str_drop) char *query = NULL;
	char token[LIST_TOKEN_SIZE];
	struct list_query q = {.limit = 0};
	struct fail f = {0};

	list_token_print(token, UINT64_MAX, "iaaaaaaaaaaaaaaaaaa1");
	query = xasprintf("nextToken=%s&state=paused", token);
	EXPECT_EQ("its own token", list_query_parse(query, strlen(query), &q, &f), 0);
	EXPECT("goes on after it", q.has_after && q.after_started_ns == UINT64_MAX);
	EXPECT_STR("and its id", q.after_id, "iaaaaaaaaaaaaaaaaaa1");
	EXPECT("only paused ones", q.paused && !q.running);
	list_query_done(&q);
}

/* --- paths --- */

static void check_paths(void)
{
	static const struct {
		const char *method;
		const char *path;
		enum api_call want;
		const char *id;
	} cases[] = {
		{"GET", "/health", API_HEALTH, ""},
		{"POST", "/health", API_METHOD, ""},
		{"POST", "/sandboxes", API_CREATE_V1, ""},
		{"POST", "/v2/sandboxes", API_CREATE_V2, ""},
		{"GET", "/v2/sandboxes", API_LIST_V2, ""},
		{"GET", "/sandboxes/iaaaaaaaaaaaaaaaaaa1", API_GET, "iaaaaaaaaaaaaaaaaaa1"},
		{"DELETE", "/sandboxes/iaaaaaaaaaaaaaaaaaa1-clientid", API_KILL,
		 "iaaaaaaaaaaaaaaaaaa1"},
		{"GET", "/sandboxes/IAAAAAAAAAAAAAAAAAA1", API_GET, ""},
		{"GET", "/sandboxes/short", API_GET, ""},
		{"GET", "/sandboxes/", API_NONE, ""},
		{"GET", "/sandboxes/iaaaaaaaaaaaaaaaaaa1/", API_NONE, ""},
		{"GET", "/sandboxes//timeout", API_NONE, ""},
		{"POST", "/sandboxes/iaaaaaaaaaaaaaaaaaa1/timeout", API_TIMEOUT,
		 "iaaaaaaaaaaaaaaaaaa1"},
		{"POST", "/v2/sandboxes/iaaaaaaaaaaaaaaaaaa1/connect", API_CONNECT_V2,
		 "iaaaaaaaaaaaaaaaaaa1"},
		{"POST", "/sandboxes/iaaaaaaaaaaaaaaaaaa1/pause", API_LATER,
		 "iaaaaaaaaaaaaaaaaaa1"},
		{"PUT", "/sandboxes/iaaaaaaaaaaaaaaaaaa1/pause", API_METHOD, ""},
		{"GET", "/etc/passwd", API_NONE, ""},
		{"GET", "", API_NONE, ""},
		{"get", "/health", API_METHOD, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char id[SANDBOX_ID_SIZE];

		EXPECT_EQ(cases[i].path,
			  api_find(cases[i].method, strlen(cases[i].method), cases[i].path,
				   strlen(cases[i].path), id),
			  cases[i].want);
		EXPECT_STR(cases[i].path, id, cases[i].id);
	}
}

static void check_private(void)
{
	static const struct {
		const char *path;
		bool want;
	} cases[] = {
		{"/health", false},    {"/process.Process/Start", false},
		{"/init", true},       {"/init?x=1", true},
		{"/init/", true},      {"/initial", false},
		{"/space/init", true}, {"/space", true},
		{"/spaceship", false}, {"/freeze", true},
		{"/upgrade", true},    {"/", false},
		{"*", true},           {"", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		EXPECT_EQ(cases[i].path,
			  route_path_is_private(cases[i].path, strlen(cases[i].path)),
			  cases[i].want);
}

/* --- names, options, the rest --- */

static void check_ids(void)
{
	static char seen[200][SANDBOX_ID_SIZE];
	struct idmap m = {.n = 0};
	static struct idnode node[200];
	char key[API_KEY_SIZE], token[TOKEN_SIZE], uuid[UUID_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		id_make(seen[i]);
		EXPECT("a valid id", sandbox_id_valid(seen[i]));
		EXPECT("never seen before", !idmap_find(&m, seen[i]));
		memcpy(node[i].id, seen[i], sizeof node[i].id);
		idmap_add(&m, &node[i]);
	}
	EXPECT_EQ("all are counted", m.n, ARRAY_LEN(seen));
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		EXPECT("is found", idmap_find(&m, seen[i]) == &node[i]);
	for (size_t i = 0; i < ARRAY_LEN(seen); i += 2)
		idmap_remove(&m, &node[i]);
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		EXPECT("is found or not", (idmap_find(&m, seen[i]) != NULL) == (i % 2 == 1));
	api_key_make(key);
	EXPECT("a key's form", strlen(key) == 44 && str_starts(key, "e2b_") &&
				       strspn(key + 4, "0123456789abcdef") == 40);
	token_make(token);
	EXPECT_EQ("a token's form", strspn(token, "0123456789abcdef"), 64);
	uuid_make(uuid);
	EXPECT("a uuid's form", strlen(uuid) == 36 && uuid[14] == '4' && uuid[8] == '-');
}

static void check_options(void)
{
	static const struct {
		const char *text;
		int want;
		const char *host;
		unsigned port;
	} cases[] = {
		{"127.0.0.1:8080", 0, "127.0.0.1", 8080}, {"127.9.0.1:0", 0, "127.9.0.1", 0},
		{"[::1]:65535", 0, "::1", 65535},         {"::1:7", 0, "::1", 7},
		{"127.0.0.1:65536", -EINVAL, "", 0},      {"127.0.0.1", -EINVAL, "", 0},
		{"0.0.0.0:80", -EINVAL, "", 0},           {"192.168.0.1:80", -EINVAL, "", 0},
		{"localhost:80", -EINVAL, "", 0},         {":80", -EINVAL, "", 0},
		{"127.0.0.1:", -EINVAL, "", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char host[46] = "";
		uint16_t port = 0;
		struct fail f = {0};
		int r = listen_parse(cases[i].text, host, &port, &f);

		EXPECT_EQ(cases[i].text, r, cases[i].want);
		if (r == 0) {
			EXPECT_STR(cases[i].text, host, cases[i].host);
			EXPECT_EQ(cases[i].text, port, cases[i].port);
		}
	}
}

static void check_meminfo(void)
{
	uint64_t mib = 0;

	EXPECT_EQ("a usual one",
		  meminfo_available_mib("MemTotal: 1 kB\nMemAvailable:    2097152 kB\n", &mib), 0);
	EXPECT_EQ("in MiB", mib, 2048);
	EXPECT_EQ("without it", meminfo_available_mib("MemTotal: 1 kB\n", &mib), -EINVAL);
	EXPECT_EQ("without a number", meminfo_available_mib("x\nMemAvailable: kB\n", &mib),
		  -EINVAL);
}

static void check_identity(void)
{
	AUTO(json_drop) json_t *env = json_pack("{s:s, s:s}", "A", "b", "E2B_SANDBOX", "mine");
	struct identity who = {.id = "iaaaaaaaaaaaaaaaaaa1",
			       .template_id = "base01",
			       .hostname = "iaaaaaaaaaaaaaaaaaa1",
			       .generation = 1,
			       .env = env};
	uint8_t entropy[IDENTITY_ENTROPY] = {0};
	size_t n = 0;
	AUTO(str_drop)
	char *text = identity_print(&who, 1796000000000000000u, entropy,
				    "0123456789abcdef0123456789abcdef",
				    "01234567-89ab-4def-8123-456789abcdef", &n);
	json_error_t e;
	AUTO(json_drop) json_t *o = text ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &e) : NULL;
	const json_t *vars = json_object_get(o, "envVars");

	EXPECT_STR("the clock is a text", json_string_value(json_object_get(o, "realtimeNs")),
		   "1796000000000000000");
	EXPECT_EQ("entropy is base64 of all bytes",
		  json_string_length(json_object_get(o, "entropy")), 88);
	EXPECT_STR("the id is in the environment",
		   json_string_value(json_object_get(vars, "E2B_SANDBOX_ID")),
		   "iaaaaaaaaaaaaaaaaaa1");
	EXPECT_STR("the client's own wins", json_string_value(json_object_get(vars, "E2B_SANDBOX")),
		   "mine");
	EXPECT_STR("and is there", json_string_value(json_object_get(vars, "A")), "b");
}

int main(void)
{
	check_news();
	check_limits();
	check_times();
	check_queries();
	check_tokens();
	check_paths();
	check_private();
	check_ids();
	check_options();
	check_meminfo();
	check_identity();
	return test_done();
}
