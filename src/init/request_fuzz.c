/* process.Process requests. The first byte chooses the parser, the rest is its text. Properties:
 * what is accepted is within its limits and adds up; what is refused leaves the output alone and
 * says why. */
#include "base/fuzz.h"

#include "base/alloc.h"
#include "init/limits.h"
#include "init/request.h"

#include <signal.h>

static void start(const uint8_t *p, size_t n)
{
	AUTO(start_request_done) struct start_request q = {.cols = 7};
	struct fail f = {0};
	int err = start_request_parse(&q, p, n, &f);
	size_t bytes = 0;

	if (err) {
		assert(err < 0 && f.text[0] && !q.cmd && q.cols == 7);
		return;
	}
	assert(q.cmd[0] && strlen(q.cmd) < PATH_SIZE && strlen(q.cwd) < PATH_SIZE);
	assert(q.n_args <= ARGS_MAX && !q.args[q.n_args] && q.envs.n <= ENVS_MAX);
	assert(!q.tag || strlen(q.tag) < TAG_SIZE);
	for (size_t i = 0; i < q.n_args; i++)
		bytes += strlen(q.args[i]) + 1;
	for (size_t i = 0; i < q.envs.n; i++)
		assert(strchr(q.envs.v[i], '=') > q.envs.v[i]);
	bytes += strlen(q.cmd) + strlen(q.cwd) + 2 + q.envs.bytes;
	assert(q.bytes == bytes && bytes <= EXEC_MAX);
}

static void selector_check(const struct selector *s)
{
	assert((s->pid > 0) != (s->tag != NULL));
	assert(!s->tag || strlen(s->tag) < TAG_SIZE);
}

static void selector(const uint8_t *p, size_t n)
{
	AUTO(selector_done) struct selector s = {0};
	struct fail f = {0};

	if (selector_request_parse(&s, p, n, &f) == 0)
		selector_check(&s);
	else
		assert(f.text[0] && !s.pid && !s.tag);
}

static void input(const uint8_t *p, size_t n)
{
	AUTO(input_request_done) struct input_request q = {0};
	struct fail f = {0};

	if (input_request_parse(&q, p, n, &f) != 0) {
		assert(f.text[0] && !q.data);
		return;
	}
	selector_check(&q.process);
	assert(q.data && q.n <= n); /* base64 only shrinks */
}

static void signal_(const uint8_t *p, size_t n)
{
	AUTO(signal_request_done) struct signal_request q = {0};
	struct fail f = {0};

	if (signal_request_parse(&q, p, n, &f) != 0) {
		assert(f.text[0] && !q.signo);
		return;
	}
	selector_check(&q.process);
	assert(q.signo == SIGTERM || q.signo == SIGKILL);
}

static void update(const uint8_t *p, size_t n)
{
	AUTO(update_request_done) struct update_request q = {0};
	struct fail f = {0};

	if (update_request_parse(&q, p, n, &f) == 0)
		selector_check(&q.process);
	else
		assert(f.text[0]);
}

/* Fields of a head: the same text in each place. */
static void head(const uint8_t *p, size_t n)
{
	AUTO(str_drop) char *text = xstrndup((const char *)p, n);

	for (unsigned place = 0; place < 4; place++) {
		AUTO(head_options_done) struct head_options o = {0};
		struct fail f = {0};
		const char *field[4] = {NULL, NULL, NULL, NULL};

		field[place] = text;
		if (head_options_parse(&o, field[0], field[1], field[2], field[3], &f) != 0) {
			assert(f.text[0] && !o.has_user && !o.user);
			continue;
		}
		assert(o.has_user == (o.user != NULL));
		assert(!o.user ||
		       (o.user[0] && strlen(o.user) < USER_SIZE && !strchr(o.user, ':')));
		assert(o.timeout_ms <= TIMEOUT_MAX_MS && o.has_after == (place == 3));
		assert(o.keepalive_s >= 1 && o.keepalive_s <= KEEPALIVE_MAX_S);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(const uint8_t *p, size_t n) = {start,   selector, input,
								      signal_, update,   head};

	if (size)
		parsers[data[0] % ARRAY_LEN(parsers)](data + 1, size - 1);
	return 0;
}
