/* The bounded log: what arrives is there, the file never passes its cap, a flood waits. */
#include "keeper/caplog.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/test_tmp.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#define DEADLINE_MS 10000
#define PIPE_BYTES  (1024 * 1024)
#define LOOK_MS     20 /* between two looks at the other end */

struct world {
	struct test_tmp tmp;
	struct loop *loop;
	struct timer *timer;
	struct caplog *log;
	uint64_t end_ns;
	int from; /* of the pipe, dup'ed */
	int to;
	int file;
	int left; /* stop when no more than this is in the pipe */
};

static int pipe_left(const struct world *w)
{
	int n = -1;

	CHECK(ioctl(w->from, FIONREAD, &n) == 0);
	return n;
}

static void on_look(void *arg)
{
	struct world *w = arg;

	if (pipe_left(w) <= w->left || clock_mono_ns() > w->end_ns)
		loop_stop(w->loop);
	else
		timer_set(w->timer, LOOK_MS);
}

static void world_make(struct world *w, int flags)
{
	int ends[2];

	*w = (struct world){.from = -1};
	test_tmp_make(&w->tmp);
	CHECK(file_open(w->tmp.fd, "log", flags | O_CREAT, 0600, &w->file, NULL) == 0);
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	CHECK(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) >= PIPE_BYTES);
	w->from = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
	w->to = ends[1];
	w->loop = loop_new();
	w->timer = timer_new(w->loop, on_look, w);
	w->log = caplog_new(w->loop, ends[0], w->file);
}

/* Until at most `left` bytes wait in the pipe. */
static void run_until(struct world *w, int left)
{
	w->left = left;
	w->end_ns = clock_mono_ns() + DEADLINE_MS * NS_PER_MS;
	timer_set(w->timer, 0);
	loop_run(w->loop);
	EXPECT("in time", pipe_left(w) <= left);
}

static void world_done(struct world *w)
{
	caplog_free(w->log);
	timer_free(w->timer);
	loop_free(w->loop);
	fd_drop(&w->from);
	fd_drop(&w->to);
	fd_drop(&w->file);
	test_tmp_drop(&w->tmp);
}

static off_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_size : -1;
}

static void test_copies(int flags)
{
	static const char want[] = "one\nmine\ntwo\n\xff";
	struct world w;
	AUTO(str_drop) char *text = NULL;
	size_t n = 0;

	world_make(&w, flags);
	CHECK(fd_write_all(w.to, "one\n", 4) == 0);
	run_until(&w, 0);
	CHECK(pwrite(w.file, "mine\n", 5, size_of(w.file)) == 5); /* another writer */
	CHECK(fd_write_all(w.to, "two\n\xff", 5) == 0);
	fd_drop(&w.to);
	run_until(&w, 0);
	CHECK(fd_slurp(w.file, 4096, &text, &n) == 0);
	EXPECT_EQ("all of it", n, strlen(want));
	EXPECT("in order", n == strlen(want) && !memcmp(text, want, n));
	world_done(&w);
}

static const struct {
	const char *says;
	int flags;
	off_t before; /* size of the file */
	size_t add;
	off_t want;
} caps[] = {
	{"at the cap", O_RDWR, CAPLOG_FILE_MAX - 10, 10, CAPLOG_FILE_MAX},
	{"one past it: the newest half and the rest", O_RDWR, CAPLOG_FILE_MAX - 10, 11,
	 CAPLOG_FILE_MAX / 2 + 11},
	{"appending, one past it", O_RDWR | O_APPEND, CAPLOG_FILE_MAX - 10, 11,
	 CAPLOG_FILE_MAX / 2 + 11},
	{"a file that others made too long", O_RDWR, CAPLOG_FILE_MAX * 2, 1,
	 CAPLOG_FILE_MAX / 2 + 1},
	{"one that cannot be read back is emptied", O_WRONLY, CAPLOG_FILE_MAX, 1, 1},
};

static void test_caps(void)
{
	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		char mark[2] = "";
		struct world w;

		world_make(&w, caps[i].flags);
		CHECK(ftruncate(w.file, caps[i].before) == 0);
		if (caps[i].flags != O_WRONLY)
			CHECK(pwrite(w.file, "z", 1, caps[i].before - 1) == 1);
		CHECK(ftruncate(w.file, caps[i].before) == 0); /* O_APPEND writes at the end */
		CHECK(fd_write_all(w.to, "aaaaaaaaaaaaaaaa", caps[i].add) == 0);
		run_until(&w, 0);
		EXPECT_EQ(caps[i].says, size_of(w.file), caps[i].want);
		if (caps[i].flags != O_WRONLY)
			EXPECT_EQ("the end is the newest", pread(w.file, mark, 1, caps[i].want - 1),
				  1);
		if (caps[i].flags == O_RDWR)
			EXPECT_EQ("before it what was the end",
				  pread(w.file, mark + 1, 1, caps[i].want - 1 - (off_t)caps[i].add),
				  1);
		if (caps[i].flags == O_RDWR)
			EXPECT(caps[i].says, mark[0] == 'a' && mark[1] == 'z');
		world_done(&w);
	}
}

/* A flood is read at its pace: what is left in the pipe after a time shows how much was. */
static void test_rate(void)
{
	struct world w;
	AUTO(mem_drop) char *flood = xcalloc(1, PIPE_BYTES);
	uint64_t start;
	uint64_t may_read;

	world_make(&w, O_RDWR);
	start = clock_mono_ns();
	CHECK(fd_write_all(w.to, flood, PIPE_BYTES) == 0);
	run_until(&w, PIPE_BYTES - (int)CAPLOG_BURST - (int)CAPLOG_PER_S / 4);
	may_read = CAPLOG_BURST + (clock_mono_ns() - start) / NS_PER_MS * CAPLOG_PER_S / 1000 +
		   CAPLOG_PER_S / 50;
	EXPECT("no faster than the rate", (uint64_t)(PIPE_BYTES - pipe_left(&w)) <= may_read);
	EXPECT("what was read is in the file", size_of(w.file) == PIPE_BYTES - pipe_left(&w));
	world_done(&w);
}

static void test_last_words(void)
{
	struct world w;
	int file;

	world_make(&w, O_RDWR);
	file = fcntl(w.file, F_DUPFD_CLOEXEC, 0);
	CHECK(fd_write_all(w.to, "last", 4) == 0);
	world_done(&w);
	EXPECT_EQ("copied by free", size_of(file), 4);
	fd_drop(&file);
}

int main(void)
{
	test_copies(O_RDWR);
	test_copies(O_RDWR | O_APPEND);
	test_caps();
	test_rate();
	test_last_words();
	return test_done();
}
