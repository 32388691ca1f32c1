/*
 * Native frames N0 (leaf), N1, ... and interpreted frames I0, I1, ... are merged from the leaf on.
 * A group of interpreted frames replaces the native frame that runs it:
 *
 *   native:       N0 read   N1 call*   N2 helper   N3 call*   N4 main
 *   interpreted:  I0 I1 (group at N1)   I2 (group at N3)
 *   merged:       N0 I0 I1 N2 I2 N4
 *
 * (* is_call: a frame of the C function that runs frames.) The last frame of a group has the number
 * of its native frame, which the kernel found by the group's anchor. A group without a number
 * (INTERPRETED_NOWHERE) replaces the next native frame that is_call, or is placed before the next
 * group that has a number.
 */
#include "agent/interpreter/stack_merge.h"

/* The end of the group that begins at first: the index after its last frame. */
static uint32_t group_limit(const struct stack_merge *merge, uint32_t first)
{
    while (first < merge->frame_count && !(merge->frames[first].flags & INTERPRETED_LAST))
        first++;
    return first < merge->frame_count ? first + 1 : first;
}

static uint32_t native_of(const struct stack_merge *merge, uint32_t limit)
{
    const struct interpreted_frame *last = &merge->frames[limit - 1];
    return last->flags & INTERPRETED_LAST ? last->native : INTERPRETED_NOWHERE;
}

/* The end of the groups that replace the native frame: the next group with a number, if that number
 * is not above the frame's, and the groups without a number before it. Returns first if there are
 * none. */
static uint32_t anchored_limit(const struct stack_merge *merge, uint32_t first, uint32_t native)
{
    for (uint32_t at = first; at < merge->frame_count;) {
        const uint32_t limit = group_limit(merge, at);
        const uint32_t number = native_of(merge, limit);
        if (number != INTERPRETED_NOWHERE)
            return number <= native ? limit : first;
        at = limit;
    }
    return first;
}

static bool is_unnumbered(const struct stack_merge *merge, uint32_t first)
{
    return first < merge->frame_count &&
           native_of(merge, group_limit(merge, first)) == INTERPRETED_NOWHERE;
}

/* Whether the innermost call is just beginning or ending and has no interpreted frame. There is
 * then one call more than groups. Without this check, groups without a number would each replace
 * the call that is one further in than their own. */
static bool has_bare_call(const struct stack_merge *merge)
{
    uint32_t calls = 0, groups = 0;
    if (merge->frame_count >= INTERPRETED_FRAMES_MAX) /* frames may be missing */
        return false;
    for (uint32_t at = 0; at < merge->frame_count; at = group_limit(merge, at), groups++) {
        if (!is_unnumbered(merge, at))
            return false;
    }
    for (uint32_t native = 0; groups && native < merge->native_count; native++)
        calls += merge->is_call(merge->context, native);
    return groups && calls == groups + 1;
}

uint32_t stack_merge_frames(const struct stack_merge *merge, uint32_t *items)
{
    uint32_t count = 0, next = 0;
    bool is_bare = has_bare_call(merge);
    for (uint32_t native = 0; native < merge->native_count; native++) {
        const uint32_t first = next;
        next = anchored_limit(merge, next, native);
        if (next == first && is_unnumbered(merge, next) && merge->is_call(merge->context, native)) {
            next = is_bare ? next : group_limit(merge, next);
            is_bare = false;
        }
        for (uint32_t i = first; i < next; i++)
            items[count++] = i | STACK_MERGE_INTERPRETED;
        if (next == first)
            items[count++] = native;
    }
    for (; next < merge->frame_count; next++)
        items[count++] = next | STACK_MERGE_INTERPRETED;
    return count;
}
