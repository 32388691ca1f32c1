#include "lib/profile/picture/picture_layout.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/flame.h"

#include <math.h>
#include <stdio.h>

/* The run of narrow nodes at one depth that is being collected. */
struct run {
    double left;
    double right;
    uint32_t node_count;
    uint32_t widest_node; /* determines the colour of the run */
    double widest;
};

/*
 * Nodes are placed in preorder, so a node's left edge is where its previous sibling ended:
 * next[parent], which each child advances by its own width. Nodes narrower than narrow_width are
 * not drawn one by one; those of one depth are collected in a run, which is drawn when a gap, a
 * wide node or the maximum width of a run ends it. So at most about width / narrow_width boxes are
 * drawn per level.
 */
struct placement {
    const struct picture_layout *layout;
    double *weight; /* per node */
    double *next;   /* per node: left edge of its next child */
    uint32_t *depth;
    struct run *runs; /* per depth */
    struct picture_extent extent;
};

static double magnitude(int64_t value)
{
    return fabs((double)value);
}

/* Uses the values before rounding: in a diff that is scaled to a few samples, most rounded values
 * are 0, and their boxes would have no width. */
void picture_weigh(const struct flame *flame, double *weight)
{
    const int64_t *self = flame->unscaled_self ? flame->unscaled_self : flame->node_self;
    double scale = flame->unscaled_self ? fabs(flame->view->scale) : 1;
    for (uint32_t i = 0; i < flame->node_count; i++)
        weight[i] =
            magnitude(self[i]) * scale + (flame->base_self ? magnitude(flame->base_self[i]) : 0);
    for (uint32_t i = flame->node_count; i-- > 1;)
        weight[flame->node_parent[i]] += weight[i];
}

static void flush_run(struct placement *placement, uint32_t depth)
{
    struct run *run = &placement->runs[depth];
    if (run->right - run->left < placement->layout->least_width)
        placement->extent.undrawn_count += run->node_count;
    else if (run->right > run->left)
        placement->layout->draw(&(struct picture_box){.node = run->widest_node,
                                                      .is_run = true,
                                                      .depth = depth,
                                                      .left = run->left,
                                                      .right = run->right},
                                placement->layout->context);
    *run = (struct run){0};
}

/* Draws a wide node, or adds a narrow one to the run of its depth. A gap of less than half a pixel
 * does not end a run. */
static void place(struct placement *placement, uint32_t node, double left, double right)
{
    const struct picture_layout *layout = placement->layout;
    uint32_t depth = placement->depth[node];
    struct run *run = &placement->runs[depth];
    if (right <= 0 || left >= layout->width)
        return; /* outside of the window */
    left = left < 0 ? 0 : left;
    right = right > layout->width ? layout->width : right;
    if (right - left >= layout->narrow_width) {
        flush_run(placement, depth);
        layout->draw(
            &(struct picture_box){.node = node, .depth = depth, .left = left, .right = right},
            layout->context);
        return;
    }
    if (run->node_count && (left - run->right > 0.5 || right - run->left > layout->run_width))
        flush_run(placement, depth);
    if (run->node_count == 0)
        run->left = left;
    run->right = right;
    if (run->node_count == 0 || right - left > run->widest) {
        run->widest = right - left;
        run->widest_node = node;
    }
    run->node_count++;
}

static void place_all(struct placement *placement)
{
    const struct flame *flame = placement->layout->flame;
    const struct picture_window *window = &placement->layout->window;
    const double seen = picture_window_is_part(window) ? window->to - window->from : 1;
    const double root_width = placement->layout->width / seen;
    double scale = placement->weight[0] > 0 ? root_width / placement->weight[0] : 0;
    uint32_t *level_count = &placement->extent.level_count;
    *level_count = 1;
    placement->next[0] = seen < 1 ? -window->from * root_width : 0;
    place(placement, 0, placement->next[0], placement->next[0] + root_width);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        uint32_t parent = flame->node_parent[i];
        double left = placement->next[parent], right = left + placement->weight[i] * scale;
        placement->next[parent] = right;
        placement->next[i] = left;
        placement->depth[i] = placement->depth[parent] + 1;
        if (placement->depth[i] >= *level_count)
            *level_count = placement->depth[i] + 1;
        if (placement->depth[i] < placement->layout->max_depth)
            place(placement, i, left, right);
    }
    for (uint32_t depth = 0; depth < placement->layout->max_depth; depth++)
        flush_run(placement, depth);
}

struct picture_extent picture_layout_run(const struct picture_layout *layout)
{
    uint32_t count = layout->flame->node_count;
    struct placement placement = {.layout = layout,
                                  .weight = mem_new(double, count),
                                  .next = mem_new(double, count),
                                  .depth = mem_new(uint32_t, count),
                                  .runs = mem_new(struct run, layout->max_depth)};
    picture_weigh(layout->flame, placement.weight);
    place_all(&placement);
    mem_free(placement.weight);
    mem_free(placement.next);
    mem_free(placement.depth);
    mem_free(placement.runs);
    return placement.extent;
}

uint32_t picture_layout_depth(const struct flame *flame, double least_part)
{
    double *weight = mem_new(double, flame->node_count);
    uint32_t *depth = mem_new(uint32_t, flame->node_count);
    uint32_t deepest = 0;
    picture_weigh(flame, weight);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        depth[i] = depth[flame->node_parent[i]] + 1;
        if (depth[i] > deepest && weight[i] >= weight[0] * least_part)
            deepest = depth[i];
    }
    mem_free(weight);
    mem_free(depth);
    return deepest + 1;
}

struct span picture_name(const struct flame *flame, uint32_t node)
{
    return node ? flame->frames[flame->node_frame[node]].name : SPAN_LITERAL("all");
}

void picture_shorten(const struct flame *flame, uint32_t node, struct short_name *ret_short)
{
    ret_short->count = 0;
    if (!(flame->frames[flame->node_frame[node]].flags & FRAME_LABEL))
        short_name_make(picture_name(flame, node), ret_short);
}

uint32_t picture_colour(const struct flame *flame, const uint8_t *marks, const uint8_t *fills,
                        uint32_t node)
{
    if (marks && node && !marks[flame->node_frame[node]])
        return PICTURE_PALE_COLOUR;
    if (flame->base_self)
        return picture_diff_colour(flame->base_cum[node], flame->node_cum[node]);
    return node ? fills[flame->node_frame[node]] : PICTURE_ROOT_COLOUR;
}

static void append_value(const struct flame *flame, int64_t value, struct buf *text)
{
    char number[QUANTITY_TEXT_BYTES];
    buf_append_text(text, quantity_format((double)value, view_unit(flame->view), number));
}

void picture_summary(const struct flame *flame, struct buf *text)
{
    const struct view *view = flame->view;
    struct span type = view_sample_type(view);
    if (type.size) {
        buf_append_span(text, type);
        buf_append_text(text, ": ");
    }
    if (view->is_diff) {
        append_value(flame, view->total[VIEW_SIDE_A], text);
        buf_append_text(text, " \xe2\x86\x92 "); /* an arrow */
    }
    append_value(flame, view->total[VIEW_SIDE_B], text);
    if (view->kept[VIEW_SIDE_B] != view->total[VIEW_SIDE_B] && view->total[VIEW_SIDE_B]) {
        buf_append_text(text, ", shown: ");
        append_value(flame, view->kept[VIEW_SIDE_B], text);
        char share[QUANTITY_TEXT_BYTES];
        buf_printf(text, " (%s)",
                   quantity_format_percent(100 * (double)view->kept[VIEW_SIDE_B] /
                                               (double)view->total[VIEW_SIDE_B],
                                           share));
    }
}
