/* Messages. Property: there is one spelling, so whatever a parser accepts is printed as the very
 * bytes that came in, and lies within the table's sizes. */
#include "base/fuzz.h"
#include "wire/msg.h"

#include <string.h>

#define CHECK_KIND(name, type)                                                                     \
	do {                                                                                       \
		struct name v;                                                                     \
		struct wr w = wr_of(out, sizeof out);                                              \
                                                                                                   \
		memset(&v, 0, sizeof v);                                                           \
		if (name##_parse(&v, in) < 0)                                                      \
			break;                                                                     \
		name##_print(&w, &v);                                                              \
		assert(!w.bad && wr_len(&w) == rd_left(&in));                                      \
		assert(memcmp(out, in.p, wr_len(&w)) == 0);                                        \
		assert(wr_len(&w) >= msg_rules[type].min && wr_len(&w) <= msg_rules[type].max);    \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[MSG_BODY_MAX];
	struct rd in = rd_of(data, size);
	enum msg_type type = MSG_NONE;
	uint32_t seq = 0;
	struct wr head = wr_of(out, sizeof out);

	if (msg_head_parse(&in, &type, &seq) < 0)
		return 0;
	assert(type > MSG_NONE && type < MSG_TYPES);
	msg_head_print(&head, type, seq);
	assert(wr_len(&head) == MSG_HEAD && memcmp(out, data, MSG_HEAD) == 0);
	CHECK_KIND(jail_start, MSG_JAIL_START);
	CHECK_KIND(jail_hello, MSG_JAIL_HELLO);
	CHECK_KIND(vm_spec, MSG_VM_BOOT);
	CHECK_KIND(vm_event, MSG_VM_STATE);
	CHECK_KIND(keeper_hello, MSG_KEEPER_HELLO);
	return 0;
}
