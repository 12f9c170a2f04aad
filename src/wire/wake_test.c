/* Records are found whatever stands around them, however the bytes are cut. */
#include "base/test.h"
#include "wire/wake.h"

#define WAKES_MAX 8

static struct wake wake_of(uint8_t first)
{
	struct wake w = {.generation = 0x0102030405060708u + first};

	for (size_t i = 0; i < WAKE_NONCE; i++)
		w.nonce[i] = (uint8_t)(first + i);
	return w;
}

static size_t scan(const uint8_t *p, size_t n, size_t piece, struct wake *found)
{
	struct wake_scan s;
	size_t count = 0;
	size_t at = 0;

	wake_scan_init(&s);
	while (at < n) {
		size_t used;

		if (wake_scan_step(&s, p + at, size_min(piece, n - at), &used, &found[count]))
			count++;
		at += used;
	}
	return count;
}

/* In every case one record is the true one; `before` stands before it, `cut` bytes of an older
 * record after that. */
static void wakes(void)
{
	static const char *const before[] = {"",         "S",   "SPACEWK", "SSPACEWSPACE",
					     "SPACEPF1", "\xff"};
	const struct wake old = wake_of(99);
	const struct wake want = wake_of(7);
	struct wake found[WAKES_MAX] = {0};

	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		for (size_t cut = 0; cut < WAKE_SIZE; cut++) {
			uint8_t in[16 + 2 * WAKE_SIZE + 1];
			size_t n = strlen(before[i]);
			size_t end;
			bool is_good = true;

			memcpy(in, before[i], n);
			wake_print(in + n, &old);
			n += cut;
			wake_print(in + n, &want);
			end = n + WAKE_SIZE;
			in[end] = 'S';
			for (size_t piece = 1; piece <= end + 1; piece++) {
				size_t count = scan(in, end + 1, piece, found);

				/* What a cut record and the true one's head look like comes
				 * first. */
				is_good &=
					count == (cut >= 8 ? 2 : 1) &&
					found[count - 1].generation == want.generation &&
					memcmp(found[count - 1].nonce, want.nonce, WAKE_NONCE) == 0;
			}
			EXPECT(before[i], is_good);
		}
	}
}

static void wake_used(void)
{
	const struct wake want = wake_of(1);
	uint8_t in[2 * WAKE_SIZE];
	struct wake got = {0};
	struct wake_scan s;
	size_t used = 0;

	wake_print(in, &want);
	wake_print(in + WAKE_SIZE, &want);
	wake_scan_init(&s);
	CHECK(wake_scan_step(&s, in, sizeof in, &used, &got) && used == WAKE_SIZE);
	CHECK(wake_scan_step(&s, in + used, sizeof in - used, &used, &got) && used == WAKE_SIZE);
	CHECK(!wake_scan_step(&s, in, 0, &used, &got) && used == 0);
	EXPECT("bytes", memcmp(in, "SPACEWK1\1\2\3\4\5\6\7\11\1\2\3", 19) == 0);
}

/* A nonce that repeats itself and the magic makes false starts inside the pattern. */
static void prefaces(void)
{
	static const uint8_t nonces[][WAKE_NONCE] = {
		"0123456789abcde",
		{'S', 'P', 'A', 'C', 'E', 'P', 'F', '1', 'S', 'P', 'A', 'C', 'E', 'P', 'F', '1'},
		{'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S', 'S'},
	};

	for (size_t i = 0; i < ARRAY_LEN(nonces); i++) {
		for (size_t cut = 0; cut < PREFACE_SIZE; cut++) {
			uint8_t in[2 * PREFACE_SIZE + 3];
			size_t end = cut + PREFACE_SIZE;
			bool is_good = true;

			preface_print(in, nonces[i]);
			preface_print(in + cut, nonces[i]);
			memcpy(in + end, "abc", 3);
			for (size_t piece = 1; piece <= end; piece++) {
				struct preface_scan s;
				bool is_found = false;
				size_t at = 0;

				preface_scan_init(&s, nonces[i]);
				while (at < end + 3 && !is_found) {
					size_t used;

					is_found = preface_scan_step(
						&s, in + at, size_min(piece, end + 3 - at), &used);
					at += used;
				}
				is_good &= is_found && at <= end;
				is_good &=
					memcmp(in + at - PREFACE_SIZE, s.want, PREFACE_SIZE) == 0;
			}
			EXPECT("preface after a cut one", is_good);
		}
	}
}

static void other_nonce(void)
{
	uint8_t in[PREFACE_SIZE];
	struct preface_scan s;
	size_t used = 0;

	preface_print(in, (const uint8_t *)"0123456789abcde");
	preface_scan_init(&s, (const uint8_t *)"0123456789abcdf");
	CHECK(!preface_scan_step(&s, in, sizeof in, &used) && used == sizeof in);
}

int main(void)
{
	wakes();
	wake_used();
	prefaces();
	other_nonce();
	return test_done();
}
