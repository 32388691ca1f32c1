#include "agent/interpreter/stack_merge.h"

/* Behind the last frame of the group that begins at first. */
static uint32_t group_limit(const struct stack_merge *weave, uint32_t first)
{
    while (first < weave->frame_count && !(weave->frames[first].flags & INTERPRETED_LAST))
        first++;
    return first < weave->frame_count ? first + 1 : first;
}

static uint32_t place_of(const struct stack_merge *weave, uint32_t limit)
{
    const struct interpreted_frame *last = &weave->frames[limit - 1];
    return last->flags & INTERPRETED_LAST ? last->native : INTERPRETED_NOWHERE;
}

/* Up to which frame the groups stand in the place of a frame of the machine: to that which says so,
 * with those before it that were not found. */
static uint32_t anchored_limit(const struct stack_merge *weave, uint32_t first, uint32_t native)
{
    for (uint32_t at = first; at < weave->frame_count;) {
        const uint32_t limit = group_limit(weave, at);
        const uint32_t place = place_of(weave, limit);
        if (place != INTERPRETED_NOWHERE)
            return place <= native ? limit : first;
        at = limit;
    }
    return first;
}

static bool is_lost(const struct stack_merge *weave, uint32_t first)
{
    return first < weave->frame_count &&
           place_of(weave, group_limit(weave, first)) == INTERPRETED_NOWHERE;
}

/* Does the innermost call begin or end, without a frame of its own? There is one more of them than
 * groups then; where nothing has an anchor, each group would stand in the place of its callee. */
static bool has_bare_call(const struct stack_merge *weave)
{
    uint32_t calls = 0, groups = 0;
    if (weave->frame_count >= INTERPRETED_FRAMES_MAX) /* there may be more */
        return false;
    for (uint32_t at = 0; at < weave->frame_count; at = group_limit(weave, at), groups++) {
        if (!is_lost(weave, at))
            return false;
    }
    for (uint32_t native = 0; groups && native < weave->native_count; native++)
        calls += weave->is_call(weave->context, native);
    return groups && calls == groups + 1;
}

uint32_t stack_merge_frames(const struct stack_merge *weave, uint32_t *items)
{
    uint32_t count = 0, next = 0;
    bool is_bare = has_bare_call(weave);
    for (uint32_t native = 0; native < weave->native_count; native++) {
        const uint32_t first = next;
        next = anchored_limit(weave, next, native);
        if (next == first && is_lost(weave, next) && weave->is_call(weave->context, native)) {
            next = is_bare ? next : group_limit(weave, next);
            is_bare = false;
        }
        for (uint32_t i = first; i < next; i++)
            items[count++] = i | STACK_MERGE_INTERPRETED;
        if (next == first)
            items[count++] = native;
    }
    for (; next < weave->frame_count; next++)
        items[count++] = next | STACK_MERGE_INTERPRETED;
    return count;
}
