#include "store/totals.h"

#include "lib/base/mem.h"

struct columns {
    uint32_t *stacks;
    uint32_t *ordinals;
    int64_t *values;
    uint32_t count;
};

/* Rows of one stack and profile are one; what adds up to nothing is none. */
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

/* From row i on, those of one stack and profile: how many, and their sum. */
static uint32_t take_equal(const struct block_rows *rows, uint32_t i, int64_t *ret_sum)
{
    uint32_t end = i;
    for (*ret_sum = 0; end < rows->row_count && rows->stacks[end] == rows->stacks[i] &&
                       rows->ordinals[end] == rows->ordinals[i];
         end++)
        *ret_sum += rows->values[end];
    return end - i;
}

/* began[i]: some stack has less in snapshot i than in i - 1; one without a row has 0. */
static void find_begins(const struct block_rows *rows, bool *began)
{
    for (uint32_t i = 0; i < rows->row_count;) {
        int64_t value, after = 0;
        const uint32_t next_row = i + take_equal(rows, i, &value);
        const uint32_t next = rows->ordinals[i] + 1;
        if (next_row < rows->row_count && rows->stacks[next_row] == rows->stacks[i] &&
            rows->ordinals[next_row] == next)
            take_equal(rows, next_row, &after);
        if (next < rows->profile_count && after < value)
            began[next] = true;
        i = next_row;
    }
}

/* Profiles move up to where others were left out: numbers[i] is where i is, or UINT32_MAX. */
static uint32_t *keep_ends(struct arena *arena, struct block_rows *rows)
{
    const uint32_t count = rows->profile_count;
    bool *began = arena_new(arena, bool, count + (size_t)1);
    uint32_t *numbers = arena_new_raw(arena, uint32_t, count);
    find_begins(rows, began);
    rows->profile_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_end = i == 0 || i == count - 1 || began[i] || began[i + 1];
        numbers[i] = is_end ? rows->profile_count : UINT32_MAX;
        if (is_end)
            rows->profiles[rows->profile_count++] = rows->profiles[i];
    }
    return numbers;
}

void totals_reduce(struct arena *arena, enum store_rule rule, struct block_rows *rows)
{
    struct columns columns = {.stacks = arena_new_raw(arena, uint32_t, rows->row_count),
                              .ordinals = arena_new_raw(arena, uint32_t, rows->row_count),
                              .values = arena_new_raw(arena, int64_t, rows->row_count)};
    const uint32_t *numbers = rule == STORE_DIFFERENCE ? keep_ends(arena, rows) : NULL;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = numbers ? numbers[rows->ordinals[i]] : 0;
        if (ordinal != UINT32_MAX)
            append_row(&columns, rows->stacks[i], ordinal, rows->values[i]);
    }
    replace_rows(&columns, rows);
}
