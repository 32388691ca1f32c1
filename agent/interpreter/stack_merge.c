#include "agent/interpreter/stack_merge.h"

/* Behind the last frame of the group that begins at first. */
static uint32_t group_limit(const struct stack_merge *merge, uint32_t first)
{
    while (first < merge->frame_count && !(merge->frames[first].flags & INTERPRETED_LAST))
        first++;
    return first < merge->frame_count ? first + 1 : first;
}

static uint32_t place_of(const struct stack_merge *merge, uint32_t limit)
{
    const struct interpreted_frame *last = &merge->frames[limit - 1];
    return last->flags & INTERPRETED_LAST ? last->native : INTERPRETED_NOWHERE;
}

/* Up to which frame the groups stand in the place of a frame of the machine: to that which says so,
 * with those before it that were not found. */
static uint32_t anchored_limit(const struct stack_merge *merge, uint32_t first, uint32_t native)
{
    for (uint32_t at = first; at < merge->frame_count;) {
        const uint32_t limit = group_limit(merge, at);
        const uint32_t place = place_of(merge, limit);
        if (place != INTERPRETED_NOWHERE)
            return place <= native ? limit : first;
        at = limit;
    }
    return first;
}

static bool is_lost(const struct stack_merge *merge, uint32_t first)
{
    return first < merge->frame_count &&
           place_of(merge, group_limit(merge, first)) == INTERPRETED_NOWHERE;
}

/* Does the innermost call begin or end, without a frame of its own? There is one more of them than
 * groups then; where nothing has an anchor, each group would stand in the place of its callee. */
static bool has_bare_call(const struct stack_merge *merge)
{
    uint32_t calls = 0, groups = 0;
    if (merge->frame_count >= INTERPRETED_FRAMES_MAX) /* there may be more */
        return false;
    for (uint32_t at = 0; at < merge->frame_count; at = group_limit(merge, at), groups++) {
        if (!is_lost(merge, at))
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
        if (next == first && is_lost(merge, next) && merge->is_call(merge->context, native)) {
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
