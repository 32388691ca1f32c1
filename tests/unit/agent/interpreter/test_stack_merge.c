#include "tests/unit/test.h"

#include "agent/interpreter/stack_merge.h"
#include "lib/base/buf.h"

enum { NOWHERE = INTERPRETED_NOWHERE, ITEMS_MAX = 32 };

/* context: a bit per native frame, 1 if it is in the interpreter's C function. */
static bool is_call(const void *context, uint32_t native)
{
    return *(const uint32_t *)context >> native & 1;
}

/* Merges native_count native frames with frames. calls: see is_call. wanted: the merged stack, leaf
 * first, with n for native and i for interpreted frames, for example "n0 i0 i1 n2". */
static void assert_merged(uint32_t native_count, uint32_t calls,
                          const struct interpreted_frame *frames, uint32_t frame_count,
                          const char *wanted)
{
    const struct stack_merge merge = {.native_count = native_count,
                                      .frames = frames,
                                      .frame_count = frame_count,
                                      .is_call = is_call,
                                      .context = &calls};
    uint32_t items[ITEMS_MAX];
    buf_auto text;
    buf_init(&text, 4096);
    assert_true(native_count + frame_count <= ITEMS_MAX);
    const uint32_t count = stack_merge_frames(&merge, items);
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&text, "%s%c%u", i ? " " : "", items[i] & STACK_MERGE_INTERPRETED ? 'i' : 'n',
                   items[i] & ~STACK_MERGE_INTERPRETED);
    buf_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, wanted);
}

/* A frame of a group that is not the group's last one. */
static struct interpreted_frame inner(void)
{
    return (struct interpreted_frame){.native = NOWHERE};
}

/* The last frame of a group. native: the group's anchor, or NOWHERE if there is none. */
static struct interpreted_frame last(uint16_t native)
{
    return (struct interpreted_frame){.native = native, .flags = INTERPRETED_LAST};
}

static void groups_replace_their_anchors(void **state)
{
    (void)state;
    const struct interpreted_frame frames[] = {inner(), last(1), last(3)};
    assert_merged(5, 0, frames, 3, "n0 i0 i1 n2 i2 n4");
    /* The anchor decides, even if another frame looks like a call. */
    assert_merged(5, 1, frames, 3, "n0 i0 i1 n2 i2 n4");
}

static void groups_without_anchors_replace_calls(void **state)
{
    (void)state;
    const struct interpreted_frame frames[] = {last(NOWHERE), last(NOWHERE)};
    assert_merged(4, 1 << 1 | 1 << 2, frames, 2, "n0 i0 i1 n3");
    assert_merged(4, 1 << 1, frames, 2, "n0 i0 n2 n3 i1");
    assert_merged(4, 0, frames, 2, "n0 n1 n2 n3 i0 i1");
}

static void a_call_that_begins_or_ends_is_not_replaced(void **state)
{
    (void)state;
    const struct interpreted_frame frames[] = {last(NOWHERE), inner(), last(NOWHERE)};
    assert_merged(6, 1 << 0 | 1 << 2 | 1 << 4, frames, 3, "n0 n1 i0 n3 i1 i2 n5");
    /* Two calls more than groups: they cannot all be one that begins or ends, so none is skipped.
     */
    assert_merged(6, 1 << 0 | 1 << 2 | 1 << 4 | 1 << 5, frames, 3, "i0 n1 i1 i2 n3 n4 n5");
    const struct interpreted_frame known[] = {last(NOWHERE), last(2)};
    assert_merged(4, 1 << 0 | 1 << 1 | 1 << 2, known, 2, "i0 n1 i1 n3");
}

static void a_group_without_a_native_frame_joins_the_next_one(void **state)
{
    (void)state;
    const struct interpreted_frame frames[] = {last(NOWHERE), last(2)};
    assert_merged(4, 0, frames, 2, "n0 n1 i0 i1 n3");
}

static void a_truncated_stack_keeps_its_frames(void **state)
{
    (void)state;
    const struct interpreted_frame frames[] = {last(1), inner(), inner()};
    assert_merged(4, 1 << 2, frames, 3, "n0 i0 i1 i2 n3");
    assert_merged(0, 0, frames, 3, "i0 i1 i2");
    assert_merged(3, 0, NULL, 0, "n0 n1 n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_replace_their_anchors),
        cmocka_unit_test(groups_without_anchors_replace_calls),
        cmocka_unit_test(a_call_that_begins_or_ends_is_not_replaced),
        cmocka_unit_test(a_group_without_a_native_frame_joins_the_next_one),
        cmocka_unit_test(a_truncated_stack_keeps_its_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
