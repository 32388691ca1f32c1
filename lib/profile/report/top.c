#include "lib/profile/report/top.h"

#include "lib/base/arena.h"

#include <stdlib.h>

/* A row and its sort keys, largest first. */
struct ranked {
    bool is_label;
    uint64_t flat;
    uint64_t cum;
    struct span name;
    struct top_row row;
};

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

int64_t top_delta(const int64_t sides[VIEW_SIDE_COUNT])
{
    int64_t delta;
    if (__builtin_sub_overflow(sides[VIEW_SIDE_B], sides[VIEW_SIDE_A], &delta))
        return sides[VIEW_SIDE_A] > 0 ? INT64_MIN : INT64_MAX;
    return delta;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->is_label != y->is_label)
        return x->is_label ? -1 : 1;
    if (x->flat != y->flat)
        return x->flat > y->flat ? -1 : 1;
    if (x->cum != y->cum)
        return x->cum > y->cum ? -1 : 1;
    int order = span_compare(x->name, y->name);
    return order ? order : (x->row.frame > y->row.frame) - (x->row.frame < y->row.frame);
}

/* Counts a stack once per frame: last_stack has the last stack that was counted for a frame. */
static void add_stack(const struct view *view, uint32_t stack, uint32_t *last_stack,
                      struct top_row *rows)
{
    uint64_t start = view->stack_start[stack], end = view->stack_start[stack + 1];
    uint32_t side = view->value_side[stack];
    int64_t value = view->values[stack];
    for (uint64_t i = start; i < end; i++) {
        uint32_t frame = view->entries[i];
        if (last_stack[frame] == stack + 1)
            continue;
        last_stack[frame] = stack + 1;
        rows[frame].cum[side] = view_add(rows[frame].cum[side], value);
    }
    if (end > start) {
        int64_t *flat = rows[view->entries[end - 1]].flat;
        flat[side] = view_add(flat[side], value);
    }
}

static bool is_empty(const struct top_row *row)
{
    return row->flat[VIEW_SIDE_A] == 0 && row->flat[VIEW_SIDE_B] == 0 &&
           row->cum[VIEW_SIDE_A] == 0 && row->cum[VIEW_SIDE_B] == 0;
}

static struct ranked rank(const struct view *view, const struct top_row *row)
{
    return (struct ranked){.is_label = view->frames[row->frame].flags & FRAME_LABEL,
                           .flat = magnitude(top_delta(row->flat)),
                           .cum = magnitude(top_delta(row->cum)),
                           .name = view->frames[row->frame].name,
                           .row = *row};
}

const struct top *top_create(struct arena *arena, const struct view *view)
{
    arena_auto scratch = arena_create();
    struct top_row *rows = arena_new(scratch, struct top_row, view->frame_count);
    uint32_t *last_stack = arena_new(scratch, uint32_t, view->frame_count);
    struct ranked *ranked = arena_new_raw(scratch, struct ranked, view->frame_count);
    for (uint32_t i = 0; i < view->stack_count; i++)
        add_stack(view, i, last_stack, rows);
    uint32_t count = 0;
    for (uint32_t i = 1; i < view->frame_count; i++) {
        if (is_empty(&rows[i]))
            continue;
        rows[i].frame = i;
        view_scale_sums(view, rows[i].flat);
        view_scale_sums(view, rows[i].cum);
        ranked[count++] = rank(view, &rows[i]);
    }
    qsort(ranked, count, sizeof(*ranked), compare_rows);
    struct top_row *sorted = arena_new_raw(arena, struct top_row, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = ranked[i].row;
    struct top *top = arena_new(arena, struct top, 1);
    *top = (struct top){.view = view, .rows = sorted, .row_count = count};
    return top;
}
