#include "lib/profile/report/export_folded.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/report/view.h"
#include "lib/profile/unit.h"

#include <inttypes.h>
#include <stdlib.h>

/* Data for sorting: ranks of frames by name, so that stacks are compared as numbers. */
struct order {
    const struct view *view;
    uint32_t *rank; /* per frame; equal names have equal ranks */
    uint64_t steps; /* since the deadline was last checked */
    bool is_late; /* the deadline has passed: all comparisons return "equal", so that the sort ends
                     soon; its result is not used */
    struct err err; /* of the deadline */
};

static void add_steps(struct order *order, uint64_t steps)
{
    order->steps += steps;
    if (order->steps < VIEW_CHECK_STEPS)
        return;
    order->steps = 0;
    order->is_late = view_check_cpu(order->view, &order->err) != ERR_NONE;
}

static int compare_frames(const void *a, const void *b, void *context)
{
    struct order *order = context;
    const struct frame *frames = order->view->frames;
    if (order->is_late)
        return 0;
    add_steps(order, 1);
    return span_compare(frames[*(const uint32_t *)a].name, frames[*(const uint32_t *)b].name);
}

static void rank_frames(struct order *order)
{
    const struct view *view = order->view;
    uint32_t *sorted = mem_new(uint32_t, view->frame_count);
    for (uint32_t i = 0; i < view->frame_count; i++)
        sorted[i] = i;
    qsort_r(sorted, view->frame_count, sizeof(*sorted), compare_frames, order);
    for (uint32_t i = 0; i < view->frame_count; i++) {
        bool is_same = i && compare_frames(&sorted[i - 1], &sorted[i], order) == 0;
        order->rank[sorted[i]] = is_same ? order->rank[sorted[i - 1]] : i;
    }
    mem_free(sorted);
}

static int compare_stacks(const void *a, const void *b, void *context)
{
    struct order *order = context;
    const uint64_t *start = order->view->stack_start;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const uint32_t *entries = order->view->entries;
    uint64_t at = start[left], end = start[left + 1];
    uint64_t other = start[right], other_end = start[right + 1];
    if (order->is_late)
        return 0;
    for (; at < end && other < other_end; at++, other++) {
        uint32_t rank = order->rank[entries[at]], other_rank = order->rank[entries[other]];
        if (rank != other_rank) {
            add_steps(order, at - start[left] + 1);
            return rank < other_rank ? -1 : 1;
        }
    }
    add_steps(order, at - start[left] + 1);
    return (at < end) - (other < other_end);
}

enum { C1_FIRST_BYTE = 0xc2 }; /* in UTF-8; the second is 0x80 to 0x9f */

static bool is_c1(struct span name, size_t at)
{
    return name.data[at] == C1_FIRST_BYTE && at + 1 < name.size && name.data[at + 1] >= 0x80 &&
           name.data[at + 1] < 0xa0;
}

static bool is_plain(struct span name, size_t at)
{
    const uint8_t byte = name.data[at];
    return byte >= ' ' && byte != ';' && byte != 0x7f && !is_c1(name, at);
}

static void append_name(struct buf *output, struct span name)
{
    if (name.size == 0)
        buf_append_text(output, "<unknown>");
    for (size_t at = 0; at < name.size;) {
        size_t plain = at;
        while (plain < name.size && is_plain(name, plain))
            plain++;
        buf_append(output, name.data + at, plain - at);
        if (plain < name.size)
            buf_append_byte(output, name.data[plain] == ';' ? ':' : ' ');
        at = plain < name.size && is_c1(name, plain) ? plain + 2 : plain + 1;
    }
}

/* The number of bytes that append_name writes for a name that is not empty. */
static uint64_t count_name_bytes(struct span name)
{
    uint64_t bytes = name.size;
    const uint8_t *end = name.data + name.size;
    const uint8_t *at = name.size ? memchr(name.data, C1_FIRST_BYTE, name.size) : NULL;
    while (at) {
        bytes -= is_c1(name, (size_t)(at - name.data));
        at = ++at < end ? memchr(at, C1_FIRST_BYTE, (size_t)(end - at)) : NULL;
    }
    return bytes;
}

/* Writes a value with the decimals of its unit, because a line of folded stacks has no unit. */
static void append_value(struct buf *output, int64_t value, unsigned decimals)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value, divisor = 1;
    for (unsigned i = 0; i < decimals; i++)
        divisor *= 10;
    uint64_t fraction = size % divisor;
    for (; fraction && fraction % 10 == 0; decimals--)
        fraction /= 10;
    buf_printf(output, value < 0 ? " -%" PRIu64 : " %" PRIu64, size / divisor);
    if (fraction)
        buf_printf(output, ".%0*" PRIu64, (int)decimals, fraction);
}

/* One line of the output. */
struct line {
    uint32_t stack; /* the first of the stacks with these frames */
    int64_t sums[VIEW_SIDE_COUNT];
};

static void append_line(const struct view *view, const struct line *line, unsigned decimals,
                        struct buf *output)
{
    uint64_t start = view->stack_start[line->stack], end = view->stack_start[line->stack + 1];
    for (uint64_t at = start; at < end; at++) {
        if (at > start)
            buf_append_byte(output, ';');
        append_name(output, view->frames[view->entries[at]].name);
    }
    if (view->is_diff)
        append_value(output, line->sums[VIEW_SIDE_A], decimals);
    append_value(output, line->sums[VIEW_SIDE_B], decimals);
    buf_append_byte(output, '\n');
}

/* The minimum size of a line, with a value of one digit. */
static uint64_t count_line_bytes(struct order *order, uint32_t stack)
{
    const struct view *view = order->view;
    const uint64_t start = view->stack_start[stack], end = view->stack_start[stack + 1];
    uint64_t bytes = sizeof(" 0") - 1;
    for (uint64_t at = start; at < end; at++)
        bytes += count_name_bytes(view->frames[view->entries[at]].name) + 1;
    add_steps(order, end - start);
    return bytes;
}

/* Sums equal stacks, which are adjacent in sorted. Returns the number of lines, and in
 * *ret_bytes their minimum size. */
static uint32_t make_lines(struct order *order, const uint32_t *sorted, uint32_t count,
                           struct line *lines, uint64_t *ret_bytes)
{
    uint32_t line_count = 0;
    *ret_bytes = 0;
    for (uint32_t i = 0; i < count && !order->is_late;) {
        struct line line = {.stack = sorted[i]};
        do {
            int64_t *sum = &line.sums[order->view->value_side[sorted[i]]];
            *sum = view_add(*sum, order->view->values[sorted[i++]]);
        } while (i < count && compare_stacks(&line.stack, &sorted[i], order) == 0);
        if (line.sums[VIEW_SIDE_A] == 0 && line.sums[VIEW_SIDE_B] == 0)
            continue;
        view_scale_sums(order->view, line.sums);
        *ret_bytes += count_line_bytes(order, line.stack);
        lines[line_count++] = line;
    }
    return line_count;
}

/* Reserves space for the whole output first, so that an output above the maximum is refused before
 * any of it is written: a small profile of deep stacks and long names makes a very large file, and
 * clients may request it again and again. */
static enum err_code append_lines(struct order *order, const uint32_t *sorted, uint32_t count,
                                  struct buf *output, struct err *err)
{
    const unsigned decimals = unit_decimals(view_unit(order->view));
    struct line *lines = mem_new(struct line, count);
    uint64_t bytes;
    const uint32_t line_count = make_lines(order, sorted, count, lines, &bytes);
    if (!order->is_late)
        buf_reserve(output, bytes);
    for (uint32_t i = 0; i < line_count && !order->is_late && !buf_failed(output); i++)
        append_line(order->view, &lines[i], decimals, output);
    mem_free(lines);
    if (order->is_late) {
        *err = order->err;
        return order->err.code;
    }
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "folded stacks of more than %zu bytes",
                       output->max_size);
    return ERR_NONE;
}

enum err_code export_folded(const struct view *view, struct buf *output, struct err *err)
{
    struct order order = {.view = view, .rank = mem_new(uint32_t, view->frame_count)};
    uint32_t *sorted = mem_new(uint32_t, view->stack_count);
    uint32_t count = 0;
    rank_frames(&order);
    for (uint32_t i = 0; i < view->stack_count; i++) {
        if (view->stack_start[i] < view->stack_start[i + 1])
            sorted[count++] = i;
    }
    qsort_r(sorted, count, sizeof(*sorted), compare_stacks, &order);
    const enum err_code code = append_lines(&order, sorted, count, output, err);
    mem_free(sorted);
    mem_free(order.rank);
    return code;
}
