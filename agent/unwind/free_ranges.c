#include "agent/unwind/free_ranges.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <assert.h>
#include <string.h>

void free_ranges_init(struct free_ranges *ranges, uint32_t size)
{
    *ranges = (struct free_ranges){0};
    free_ranges_give(ranges, 0, size);
}

void free_ranges_fini(struct free_ranges *ranges)
{
    mem_free(ranges->list);
    *ranges = (struct free_ranges){0};
}

static void insert_at(struct free_ranges *ranges, size_t at, struct free_range range)
{
    vec_reserve(ranges->list, ranges->capacity, ranges->count + 1);
    memmove(&ranges->list[at + 1], &ranges->list[at], (ranges->count - at) * sizeof range);
    ranges->list[at] = range;
    ranges->count++;
}

static void remove_at(struct free_ranges *ranges, size_t at)
{
    ranges->count--;
    memmove(&ranges->list[at], &ranges->list[at + 1],
            (ranges->count - at) * sizeof ranges->list[0]);
}

int64_t free_ranges_take(struct free_ranges *ranges, uint32_t size)
{
    for (size_t i = 0; i < ranges->count; i++) {
        struct free_range *range = &ranges->list[i];
        if (range->size < size)
            continue;
        uint32_t start = range->start;
        range->start += size;
        range->size -= size;
        ranges->free_size -= size;
        if (!range->size)
            remove_at(ranges, i);
        return start;
    }
    return FREE_RANGES_NONE;
}

void free_ranges_give(struct free_ranges *ranges, uint32_t start, uint32_t size)
{
    if (!size)
        return;
    size_t at = 0;
    while (at < ranges->count && ranges->list[at].start < start)
        at++;
    struct free_range *before = at ? &ranges->list[at - 1] : NULL;
    struct free_range *after = at < ranges->count ? &ranges->list[at] : NULL;
    assert(!before || before->start + before->size <= start);
    assert(!after || start + size <= after->start);
    ranges->free_size += size;
    if (before && before->start + before->size == start) {
        before->size += size;
        if (after && start + size == after->start) {
            before->size += after->size;
            remove_at(ranges, at);
        }
    } else if (after && start + size == after->start) {
        after->start = start;
        after->size += size;
    } else {
        insert_at(ranges, at, (struct free_range){start, size});
    }
}
