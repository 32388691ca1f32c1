#include "lib/symbols/symbol_sweep.h"

#include "lib/base/mem.h"
#include "lib/base/radix_sort.h"
#include "lib/base/vec.h"
#include "lib/symbols/symbol_table_facts.h"

#include <assert.h>
#include <string.h>

enum { NUMBER_BITS = 24 };

static_assert(SYMBOL_RANGE_MAX_COUNT <= 1 << NUMBER_BITS, "a number fits behind its key");

void symbol_sweep_init(struct symbol_sweep *sweep, const struct symbol_range *ranges,
                       uint32_t count)
{
    assert(count <= SYMBOL_RANGE_MAX_COUNT);
    *sweep = (struct symbol_sweep){.ranges = ranges, .count = count, .first = UINT64_MAX};
    if (count == 0)
        return;
    bool is_ascending = true;
    for (uint32_t i = 0; i < count; i++) {
        is_ascending = is_ascending && (i == 0 || ranges[i].begin >= ranges[i - 1].begin);
        if (ranges[i].begin < sweep->first)
            sweep->first = ranges[i].begin;
    }
    sweep->keys = mem_resize(NULL, count, sizeof(*sweep->keys));
    for (uint32_t i = 0; i < count; i++) {
        assert(ranges[i].begin - sweep->first <= UINT32_MAX);
        sweep->keys[i] = (ranges[i].begin - sweep->first) << NUMBER_BITS | i;
    }
    if (!is_ascending)
        radix_sort_by_bits(&sweep->keys, sweep->count, NUMBER_BITS);
}

void symbol_sweep_fini(struct symbol_sweep *sweep)
{
    mem_free(sweep->keys);
    mem_free(sweep->heap);
    *sweep = (struct symbol_sweep){0};
}

static void heap_push(struct symbol_sweep *sweep, uint32_t number)
{
    vec_reserve(sweep->heap, sweep->heap_capacity, sweep->heap_count + 1);
    uint32_t at = sweep->heap_count++;
    for (; at && sweep->heap[(at - 1) / 2] > number; at = (at - 1) / 2)
        sweep->heap[at] = sweep->heap[(at - 1) / 2];
    sweep->heap[at] = number;
}

static void heap_pop(struct symbol_sweep *sweep)
{
    const uint32_t moved = sweep->heap[--sweep->heap_count];
    const uint32_t count = sweep->heap_count;
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < count && sweep->heap[child + 1] < sweep->heap[child])
            child++;
        if (child >= count || sweep->heap[child] >= moved)
            break;
        sweep->heap[at] = sweep->heap[child];
        at = child;
    }
    sweep->heap[at] = moved;
}

static uint64_t range_end(const struct symbol_range *range)
{
    return range->begin + range->bytes;
}

static uint64_t next_begin(const struct symbol_sweep *sweep)
{
    return sweep->next < sweep->count ? sweep->first + (sweep->keys[sweep->next] >> NUMBER_BITS)
                                      : UINT64_MAX;
}

bool symbol_sweep_next(struct symbol_sweep *sweep, struct symbol_piece *ret_piece)
{
    while (sweep->heap_count && range_end(&sweep->ranges[sweep->heap[0]]) <= sweep->position)
        heap_pop(sweep);
    if (sweep->heap_count == 0) {
        if (sweep->next == sweep->count)
            return false;
        sweep->position = next_begin(sweep);
    }
    for (; next_begin(sweep) == sweep->position && sweep->next < sweep->count; sweep->next++)
        heap_push(sweep, (uint32_t)(sweep->keys[sweep->next] & ((1u << NUMBER_BITS) - 1)));
    const uint64_t end = range_end(&sweep->ranges[sweep->heap[0]]);
    const uint64_t other = next_begin(sweep);
    *ret_piece = (struct symbol_piece){
        .begin = sweep->position, .end = other < end ? other : end, .number = sweep->heap[0]};
    sweep->position = ret_piece->end;
    return true;
}
