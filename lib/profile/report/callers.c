#include "lib/profile/report/callers.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdlib.h>

struct build {
    const struct view *view;
    struct callers *callers;
    /* Each for callers and for callees, per frame of the view: its row; the last stack that was
     * counted in it, plus 1. */
    struct callers_row *by_frame[2];
    uint32_t *last_stack[2];
};
enum { CALLERS, CALLEES };

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static int64_t row_delta(const struct callers_row *row)
{
    int64_t delta;
    if (__builtin_sub_overflow(row->value[VIEW_SIDE_B], row->value[VIEW_SIDE_A], &delta))
        return row->value[VIEW_SIDE_A] > 0 ? INT64_MIN : INT64_MAX;
    return delta;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct callers_row *x = a, *y = b;
    const struct view *view = context;
    uint64_t value_x = magnitude(row_delta(x)), value_y = magnitude(row_delta(y));
    if (value_x != value_y)
        return value_x > value_y ? -1 : 1;
    int order = span_compare(view->frames[x->frame].name, view->frames[y->frame].name);
    return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

static void count_edge(struct build *build, int which, uint32_t frame, uint32_t stack)
{
    if (frame == build->callers->frame || build->last_stack[which][frame] == stack + 1)
        return;
    build->last_stack[which][frame] = stack + 1;
    int64_t *value = &build->by_frame[which][frame].value[build->view->value_side[stack]];
    *value = view_add(*value, build->view->values[stack]);
}

static void add_stack(struct build *build, uint32_t stack)
{
    const struct view *view = build->view;
    struct callers *callers = build->callers;
    uint64_t start = view->stack_start[stack], end = view->stack_start[stack + 1];
    uint32_t side = view->value_side[stack];
    bool is_there = false;
    for (uint64_t i = start; i < end; i++) {
        if (view->entries[i] != callers->frame)
            continue;
        is_there = true;
        if (i > start)
            count_edge(build, CALLERS, view->entries[i - 1], stack);
        if (i + 1 < end)
            count_edge(build, CALLEES, view->entries[i + 1], stack);
    }
    if (is_there)
        callers->cum[side] = view_add(callers->cum[side], view->values[stack]);
    if (is_there && view->entries[end - 1] == callers->frame)
        callers->flat[side] = view_add(callers->flat[side], view->values[stack]);
}

/* Edges whose values sum to 0 are kept, because the calls exist. */
static struct callers_row *sorted_rows(struct arena *arena, const struct build *build, int which,
                                       uint32_t *ret_count)
{
    const struct view *view = build->view;
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->frame_count; i++)
        count += build->last_stack[which][i] != 0;
    struct callers_row *rows = arena_new_raw(arena, struct callers_row, count);
    count = 0;
    for (uint32_t i = 0; i < view->frame_count; i++) {
        if (build->last_stack[which][i] == 0)
            continue;
        rows[count] = build->by_frame[which][i];
        view_scale_sums(view, rows[count].value);
        rows[count++].frame = i;
    }
    struct view borrowed = *view;
    qsort_r(rows, count, sizeof(*rows), compare_rows, &borrowed);
    *ret_count = count;
    return rows;
}

static enum err_code find_frame(const struct view *view, struct span name, uint32_t *ret_frame,
                                struct err *err)
{
    for (uint32_t i = 1; i < view->frame_count; i++) {
        if (span_equal(view->frames[i].name, name)) {
            *ret_frame = i;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "no frame of this profile is named '%.*s'",
                   name.size > 200 ? 200 : (int)name.size, (const char *)name.data);
}

enum err_code callers_create(struct arena *arena, const struct view *view, struct span name,
                             const struct callers **ret_callers, struct err *err)
{
    arena_auto scratch = arena_create();
    struct callers *callers = arena_new(arena, struct callers, 1);
    callers->view = view;
    enum err_code code = find_frame(view, name, &callers->frame, err);
    if (code)
        return code;
    struct build build = {.view = view, .callers = callers};
    for (int which = 0; which < 2; which++) {
        build.by_frame[which] = arena_new(scratch, struct callers_row, view->frame_count);
        build.last_stack[which] = arena_new(scratch, uint32_t, view->frame_count);
    }
    for (uint32_t i = 0; i < view->stack_count; i++)
        add_stack(&build, i);
    view_scale_sums(view, callers->flat);
    view_scale_sums(view, callers->cum);
    callers->callers = sorted_rows(arena, &build, CALLERS, &callers->caller_count);
    callers->callees = sorted_rows(arena, &build, CALLEES, &callers->callee_count);
    *ret_callers = callers;
    return ERR_NONE;
}
