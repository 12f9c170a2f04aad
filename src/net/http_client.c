/* HTTP calls on libcurl's multi interface, driven by the loop: curl says which descriptors and
 * which timeout it waits for, the loop's watches and one timer tell it what happened.
 *
 * curl may not be asked to drop a call, nor to go on with a paused one, from inside its own
 * callbacks, and going on calls us back at once. So what owners ask for is only noted, and done by
 * the kick timer or when curl has returned (client_settle). */
#include "net/http_client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "net/loop.h"
#include "wire/http1.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <sys/un.h>

#define METHOD_MAX  HTTP1_METHOD_MAX
#define URL_MAX     1024u
#define STATUS_LINE "HTTP/1.x nnn"

struct sock {
	struct http_client *client;
	curl_socket_t fd;
	struct watch *watch;
};

struct http_client {
	struct loop *loop;
	CURLM *multi;
	char *url;
	char *sock;
	struct timer *timer; /* curl's */
	struct timer *kick;  /* ours */
	struct http_call *calls;
	bool is_busy; /* curl is on the stack */
	bool is_settling;
	bool is_freed;
};

struct http_call {
	struct http_client *client;
	CURL *easy;
	struct curl_slist *fields;
	void *body;
	const struct http_call_ops *ops;
	void *arg;
	struct buf head; /* name NUL value NUL, each field of the head that came last */
	size_t head_bytes;
	unsigned status;
	size_t held;
	bool has_head; /* told */
	bool is_paused;
	bool is_cancelled;
	bool is_over; /* curl knows it no more */
	bool has_ended;
	bool is_freed;
	int err;
	struct http_call *next;
	struct http_call *prev;
};

/* --- the end of calls --- */

static void call_destroy(struct http_call *k)
{
	struct http_client *c = k->client;

	if (k->next)
		k->next->prev = k->prev;
	if (k->prev)
		k->prev->next = k->next;
	else
		c->calls = k->next;
	if (k->easy && !k->is_over)
		(void)curl_multi_remove_handle(c->multi, k->easy);
	curl_easy_cleanup(k->easy);
	curl_slist_free_all(k->fields);
	buf_done(&k->head);
	free(k->body);
	free(k);
}

static void call_over(struct http_call *k, int err)
{
	if (k->is_over)
		return;
	(void)curl_multi_remove_handle(k->client->multi, k->easy);
	k->is_over = true;
	k->err = k->is_cancelled ? -ECANCELED : err;
}

static int error_of(CURLcode r)
{
	switch ((int)r) { /* as a number: curl has a hundred of them */
	case CURLE_OK:
		return 0;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return -EHOSTUNREACH;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return -ECONNRESET;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return -EKEYREJECTED;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static void results_take(struct http_client *c)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
		struct http_call *k = NULL;

		if (m->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&k) == CURLE_OK)
			call_over(k, error_of(m->data.result));
	}
}

/* One call that has something due; NULL: none. */
static struct http_call *call_due(const struct http_client *c)
{
	struct http_call *k = c->calls;

	while (k && !k->is_freed && !(k->is_over && !k->has_ended) &&
	       !(k->is_cancelled && !k->is_over) &&
	       !(k->is_paused && !k->is_over && k->held <= HTTP_CALL_WINDOW / 2))
		k = k->next;
	return k;
}

static void call_settle(struct http_call *k)
{
	struct http_client *c = k->client;

	if (k->is_freed) {
		call_destroy(k);
	} else if (k->is_over) {
		k->has_ended = true;
		k->ops->on_end(k->arg, k->err);
	} else if (k->is_cancelled) {
		call_over(k, -ECANCELED);
	} else {
		k->is_paused = false;
		c->is_busy = true;
		if (curl_easy_pause(k->easy, CURLPAUSE_CONT) != CURLE_OK)
			k->is_cancelled = true;
		c->is_busy = false;
	}
}

static void client_destroy(struct http_client *c);

/* Does what was noted; every owner's on_end is called from here. */
static void client_settle(struct http_client *c)
{
	struct http_call *k;

	c->is_settling = true;
	results_take(c);
	while (!c->is_freed && (k = call_due(c)) != NULL) {
		call_settle(k);
		if (!c->is_freed)
			results_take(c);
	}
	c->is_settling = false;
	if (c->is_freed)
		client_destroy(c);
}

static void client_kick(struct http_client *c)
{
	if (!c->is_busy && !c->is_settling)
		timer_set(c->kick, 0);
}

static void on_kick(void *arg)
{
	client_settle(arg);
}

/* --- curl in the loop --- */

static void client_act(struct http_client *c, curl_socket_t fd, int what)
{
	int running;

	c->is_busy = true;
	(void)curl_multi_socket_action(c->multi, fd, what, &running); /* results tell of failures */
	c->is_busy = false;
	client_settle(c);
}

static void on_ready(void *arg, int events)
{
	struct sock *s = arg;

	client_act(s->client, s->fd,
		   (events & WATCH_READ ? CURL_CSELECT_IN : 0) |
			   (events & WATCH_WRITE ? CURL_CSELECT_OUT : 0));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *sock_arg)
{
	struct http_client *c = arg;
	struct sock *s = sock_arg;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			watch_free(s->watch);
		free(s);
		return 0;
	}
	if (!s) {
		s = xcalloc(1, sizeof *s);
		s->client = c;
		s->fd = fd;
		s->watch = watch_new(c->loop, fd, on_ready, s);
		(void)curl_multi_assign(c->multi, fd, s);
	}
	watch_set(s->watch, (what & CURL_POLL_IN ? WATCH_READ : 0) |
				    (what & CURL_POLL_OUT ? WATCH_WRITE : 0));
	return 0;
}

static void on_timer(void *arg)
{
	client_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
	struct http_client *c = arg;

	(void)multi;
	if (ms < 0)
		timer_clear(c->timer);
	else
		timer_set(c->timer, (uint64_t)ms);
	return 0;
}

/* --- answers --- */

static int field_take(struct http_call *k, const char *p, size_t n)
{
	const char *colon = memchr(p, ':', n);
	size_t name_n = colon ? (size_t)(colon - p) : 0;
	size_t at = name_n + 1;

	while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == '\n' || p[n - 1] == ' '))
		n--;
	while (at < n && (p[at] == ' ' || p[at] == '\t'))
		at++;
	if (!http1_name_valid(p, name_n) || at > n || !http1_value_valid(p + at, n - at))
		return -EBADMSG;
	if (buf_append(&k->head, p, name_n) < 0 || buf_append(&k->head, "", 1) < 0 ||
	    buf_append(&k->head, p + at, n - at) < 0)
		return -ENOBUFS;
	return buf_append(&k->head, "", 1);
}

static int status_take(struct http_call *k, const char *p, size_t n)
{
	uint64_t status;

	if (n < sizeof STATUS_LINE - 1 || str_u64_n(p + 9, 3, 999, &status) < 0)
		return -EBADMSG;
	k->status = (unsigned)status;
	buf_clear(&k->head); /* of a 1xx head */
	return 0;
}

static int head_line_take(struct http_call *k, const char *p, size_t n)
{
	k->head_bytes += n; /* 1xx heads and trailers count too */
	if (k->head_bytes > HTTP_CALL_HEAD_MAX)
		return -EMSGSIZE;
	if (k->has_head) /* trailers: read over */
		return 0;
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
		return status_take(k, p, n);
	if (n > 2)
		return field_take(k, p, n);
	if (k->status >= 200) {
		k->has_head = true;
		k->ops->on_head(k->arg, k->status);
	}
	return 0;
}

/* Anything but n makes curl end the call. */
static size_t on_head_line(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *k = arg;

	(void)size; /* is 1 */
	if (k->is_freed || k->is_cancelled || head_line_take(k, p, n) < 0)
		return 0;
	return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *k = arg;

	(void)size;
	if (k->is_freed || k->is_cancelled || !k->has_head)
		return 0;
	if (k->held > 0 && k->held + n > HTTP_CALL_WINDOW) {
		k->is_paused = true;
		return CURL_WRITEFUNC_PAUSE; /* curl keeps these and brings them again */
	}
	k->held += n;
	k->ops->on_data(k->arg, (const uint8_t *)p, n);
	return n;
}

/* --- requests --- */

static bool spec_valid(const struct http_call_spec *s)
{
	size_t method_n = strlen(s->method);
	const char *p = s->path;

	if (method_n > METHOD_MAX || !http1_name_valid(s->method, method_n) || *p != '/')
		return false;
	while (*p > 0x20 && *p < 0x7f && *p != '#')
		p++;
	if (*p != '\0')
		return false;
	for (size_t i = 0; i < s->n_fields; i++)
		if (!http1_name_valid(s->fields[i].name, strlen(s->fields[i].name)) ||
		    !http1_value_valid(s->fields[i].value, strlen(s->fields[i].value)))
			return false;
	return true;
}

static bool field_add(struct http_call *k, const char *line)
{
	struct curl_slist *longer = curl_slist_append(k->fields, line);

	if (longer)
		k->fields = longer;
	return longer != NULL;
}

static bool fields_set(struct http_call *k, const struct http_call_spec *s)
{
	bool has_type = false;
	bool is_good = field_add(k, "Expect:"); /* of its own accord curl would wait for a 100 */

	for (size_t i = 0; i < s->n_fields && is_good; i++) {
		const struct http_call_field *f = &s->fields[i];
		/* curl's way to write an empty value */
		AUTO(str_drop)
		char *line = *f->value ? xasprintf("%s: %s", f->name, f->value)
				       : xasprintf("%s;", f->name);

		has_type = has_type || str_eq_nocase(f->name, "content-type");
		is_good = field_add(k, line);
	}
	if (is_good && !has_type)
		is_good = field_add(k, "Content-Type:"); /* curl's default would be a form's */
	return is_good && curl_easy_setopt(k->easy, CURLOPT_HTTPHEADER, k->fields) == CURLE_OK;
}

static bool method_set(struct http_call *k, const struct http_call_spec *s)
{
	CURL *e = k->easy;
	bool has_body = s->body != NULL || strcmp(s->method, "POST") == 0 ||
			strcmp(s->method, "PUT") == 0 || strcmp(s->method, "PATCH") == 0;

	if (strcmp(s->method, "HEAD") == 0)
		return curl_easy_setopt(e, CURLOPT_NOBODY, 1L) == CURLE_OK;
	if (has_body && (curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE,
					  (curl_off_t)(s->body ? s->body_n : 0)) != CURLE_OK ||
			 curl_easy_setopt(e, CURLOPT_POSTFIELDS, k->body) != CURLE_OK))
		return false;
	return curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, s->method) == CURLE_OK;
}

#define SET(option, value) (curl_easy_setopt(e, (option), (value)) == CURLE_OK)

static bool options_set(struct http_call *k, const struct http_call_spec *s)
{
	const struct http_client *c = k->client;
	CURL *e = k->easy;
	AUTO(str_drop) char *url = xasprintf("%s%s", c->url, s->path);

	return SET(CURLOPT_URL, url) && SET(CURLOPT_PATH_AS_IS, 1L) &&
	       SET(CURLOPT_PROTOCOLS_STR, "http,https") && SET(CURLOPT_FOLLOWLOCATION, 0L) &&
	       SET(CURLOPT_PROXY, "") && SET(CURLOPT_NOPROXY, "*") && SET(CURLOPT_NOSIGNAL, 1L) &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(CURLOPT_USERAGENT, "space/" SPACE_VERSION) && SET(CURLOPT_TCP_KEEPALIVE, 1L) &&
	       SET(CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CALL_CONNECT_MS) &&
	       SET(CURLOPT_TIMEOUT_MS, (long)s->timeout_ms) && SET(CURLOPT_PRIVATE, k) &&
	       SET(CURLOPT_HEADERFUNCTION, on_head_line) && SET(CURLOPT_HEADERDATA, k) &&
	       SET(CURLOPT_WRITEFUNCTION, on_body) && SET(CURLOPT_WRITEDATA, k) &&
	       (!c->sock || SET(CURLOPT_UNIX_SOCKET_PATH, c->sock)) && method_set(k, s) &&
	       fields_set(k, s);
}

struct http_call *http_call_start(struct http_client *c, const struct http_call_spec *s,
				  const struct http_call_ops *ops, void *arg)
{
	struct http_call *k;

	if (!spec_valid(s))
		return NULL;
	k = xcalloc(1, sizeof *k);
	k->client = c;
	k->ops = ops;
	k->arg = arg;
	buf_init(&k->head, HTTP_CALL_HEAD_MAX);
	k->body = xcalloc(1, s->body_n + 1);
	if (s->body_n)
		memcpy(k->body, s->body, s->body_n);
	k->next = c->calls;
	if (k->next)
		k->next->prev = k;
	c->calls = k;
	k->easy = curl_easy_init();
	if (!k->easy || !options_set(k, s) ||
	    curl_multi_add_handle(c->multi, k->easy) != CURLM_OK) {
		k->is_over = true;
		call_destroy(k);
		return NULL;
	}
	return k;
}

void http_call_consume(struct http_call *k, size_t n)
{
	assert(n <= k->held);
	k->held -= n;
	if (k->is_paused && k->held <= HTTP_CALL_WINDOW / 2)
		client_kick(k->client);
}

void http_call_cancel(struct http_call *k)
{
	k->is_cancelled = true;
	client_kick(k->client);
}

void http_call_free(struct http_call *k)
{
	if (!k || k->is_freed)
		return;
	k->is_freed = true;
	if (k->client->is_busy || k->client->is_settling)
		return; /* client_settle() drops it */
	call_destroy(k);
}

const char *http_call_field(const struct http_call *k, const char *name)
{
	const char *p = (const char *)buf_data(&k->head);
	const char *end = p + buf_len(&k->head);
	const char *found = NULL;

	while (k->has_head && p < end) {
		const char *value = p + strlen(p) + 1;

		if (str_eq_nocase(p, name)) {
			if (found)
				return NULL;
			found = value;
		}
		p = value + strlen(value) + 1;
	}
	return found;
}

/* --- the client --- */

static bool part_is(CURLU *u, CURLUPart part, const char *const *wanted)
{
	char *got = NULL;
	bool is_good = false;

	if (curl_url_get(u, part, &got, 0) != CURLUE_OK)
		return wanted[0] == NULL;
	for (size_t i = 0; wanted[i] && !is_good; i++)
		is_good = strcmp(got, wanted[i]) == 0;
	curl_free(got);
	return is_good;
}

/* Scheme, host and port, and nothing else. */
static bool url_valid(const char *url)
{
	static const char *const schemes[] = {"http", "https", NULL};
	static const char *const paths[] = {"/", NULL};
	static const char *const none[] = {NULL};
	CURLU *u = curl_url();
	size_t n = strlen(url);
	bool is_good = u && n > 0 && n < URL_MAX && url[n - 1] != '/' && str_starts(url, "http") &&
		       curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
		       part_is(u, CURLUPART_SCHEME, schemes) && part_is(u, CURLUPART_PATH, paths) &&
		       part_is(u, CURLUPART_QUERY, none) && part_is(u, CURLUPART_FRAGMENT, none) &&
		       part_is(u, CURLUPART_USER, none) && part_is(u, CURLUPART_PASSWORD, none);

	curl_url_cleanup(u);
	return is_good;
}

int http_client_new(struct loop *l, const char *url, const char *sock, struct http_client **ret,
		    struct fail *f)
{
	struct http_client *c;
	struct sockaddr_un sa;

	if (sock && strlen(sock) >= sizeof sa.sun_path)
		return fail_set(f, -ENAMETOOLONG, "the socket's path '%s' is too long", sock);
	if (!url_valid(url))
		return fail_set(f, -EINVAL, "'%s' is not an http or https address without a path",
				url);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fail_set(f, -ENOMEM, "cannot start the HTTP client");
	c = xcalloc(1, sizeof *c);
	c->loop = l;
	c->url = xstrdup(url);
	c->sock = xstrdup(sock);
	c->multi = curl_multi_init();
	if (!c->multi)
		abort(); /* out of memory for a few KiB */
	c->timer = timer_new(l, on_timer, c);
	c->kick = timer_new(l, on_kick, c);
	(void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	(void)curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	(void)curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	*ret = c;
	return 0;
}

static void client_destroy(struct http_client *c)
{
	while (c->calls)
		call_destroy(c->calls);
	(void)curl_multi_cleanup(c->multi); /* closes connections: watches go with them */
	timer_free(c->timer);
	timer_free(c->kick);
	free(c->url);
	free(c->sock);
	free(c);
	curl_global_cleanup();
}

void http_client_free(struct http_client *c)
{
	if (!c || c->is_freed)
		return;
	assert(!c->is_busy);
	c->is_freed = true;
	if (!c->is_settling)
		client_destroy(c);
}
