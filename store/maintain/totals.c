#include "store/maintain/totals.h"

#include "lib/base/arena.h"

struct columns {
    uint32_t *stacks;
    uint32_t *ordinals;
    int64_t *values;
    uint32_t count;
};

/* Joins rows of one stack and profile; a sum of 0 is no row. */
static void append_row(struct columns *columns, uint32_t stack, uint32_t ordinal, int64_t value)
{
    const uint32_t last = columns->count - 1;
    if (columns->count && columns->stacks[last] == stack && columns->ordinals[last] == ordinal) {
        columns->values[last] += value;
        return;
    }
    if (columns->count && !columns->values[last])
        columns->count--;
    columns->stacks[columns->count] = stack;
    columns->ordinals[columns->count] = ordinal;
    columns->values[columns->count++] = value;
}

static void replace_rows(struct columns *columns, struct block_rows *rows)
{
    if (columns->count && !columns->values[columns->count - 1])
        columns->count--;
    rows->stacks = columns->stacks;
    rows->ordinals = columns->ordinals;
    rows->values = columns->values;
    rows->row_count = columns->count;
    rows->label_sets = NULL;
    rows->timestamp_counts = NULL;
    rows->timestamps = NULL;
    rows->are_totals = true;
}

void totals_reduce(struct arena *arena, enum store_aggregation aggregation, struct block_rows *rows)
{
    struct columns columns = {.stacks = arena_new_raw(arena, uint32_t, rows->row_count),
                              .ordinals = arena_new_raw(arena, uint32_t, rows->row_count),
                              .values = arena_new_raw(arena, int64_t, rows->row_count)};
    for (uint32_t i = 0; i < rows->row_count; i++)
        append_row(&columns, rows->stacks[i], aggregation == STORE_SUM ? 0 : rows->ordinals[i],
                   rows->values[i]);
    replace_rows(&columns, rows);
}
