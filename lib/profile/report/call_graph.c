#include "lib/profile/report/call_graph.h"

#include "lib/base/arena.h"
#include "lib/profile/report/top.h"

#include <assert.h>
#include <stdlib.h>

#define NOT_DRAWN UINT32_MAX

enum {
    EDGES_PER_NODE = 3,
    LEAST_SHARE = 1000 /* the smallest edge is the heaviest function's value divided by this */
};

/* The smallest node is the largest one's value times this, divided by the number of requested
 * functions. */
static const double LEAST_NODE_SHARE = 0.3;

struct build {
    const struct view *view;
    struct call_graph_node *nodes;
    uint32_t node_count;
    uint32_t *node_of_frame; /* per frame: its node, or NOT_DRAWN */
    /* One entry per pair of nodes, node_count * node_count: */
    struct call_graph_edge *edges;
    uint32_t *last_stack; /* the last stack counted in the sum, and in the direct part, plus 1 */
    uint32_t *last_direct;
};

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* ---- which functions ---- */

static int compare_nodes(const void *a, const void *b)
{
    const struct call_graph_node *x = a, *y = b;
    const uint64_t cum_x = magnitude(x->cum), cum_y = magnitude(y->cum);
    const uint64_t flat_x = magnitude(x->flat), flat_y = magnitude(y->flat);
    if (cum_x != cum_y)
        return cum_x > cum_y ? -1 : 1;
    if (flat_x != flat_y)
        return flat_x > flat_y ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

static bool is_enough(int64_t value, int64_t largest, uint32_t max_nodes)
{
    return (double)magnitude(value) * max_nodes >= (double)magnitude(largest) * LEAST_NODE_SHARE;
}

/* Chooses nodes; the rows of top are sorted by |flat|. */
static void choose_nodes(struct arena *arena, struct build *build, const struct top *top,
                         uint32_t max_nodes)
{
    arena_auto scratch = arena_create();
    const struct view *view = build->view;
    struct call_graph_node *all = arena_new_raw(scratch, struct call_graph_node, top->row_count);
    bool *is_chosen = arena_new(scratch, bool, view->frame_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < top->row_count; i++) {
        const struct top_row *row = &top->rows[i];
        all[i] = (struct call_graph_node){
            .frame = row->frame, .flat = row->flat[VIEW_SIDE_B], .cum = row->cum[VIEW_SIDE_B]};
        if (i < max_nodes / 2 && all[i].flat && is_enough(all[i].flat, all[0].flat, max_nodes)) {
            is_chosen[row->frame] = true;
            count++;
        }
    }
    if (top->row_count)
        qsort(all, top->row_count, sizeof(*all), compare_nodes);
    for (uint32_t i = 0; i < top->row_count && count < max_nodes; i++) {
        if (!is_enough(all[i].cum, all[0].cum, max_nodes))
            break;
        count += !is_chosen[all[i].frame];
        is_chosen[all[i].frame] = true;
    }
    build->nodes = arena_new_raw(arena, struct call_graph_node, count);
    for (uint32_t i = 0; i < view->frame_count; i++)
        build->node_of_frame[i] = NOT_DRAWN;
    for (uint32_t i = 0; i < top->row_count; i++) {
        if (!is_chosen[all[i].frame])
            continue;
        build->node_of_frame[all[i].frame] = build->node_count;
        build->nodes[build->node_count++] = all[i];
    }
}

/* ---- who calls whom ---- */

static void count_edge(struct build *build, uint32_t from, uint32_t to, bool is_far, uint32_t stack)
{
    const size_t at = (size_t)from * build->node_count + to;
    const int64_t value = build->view->values[stack];
    struct call_graph_edge *edge = &build->edges[at];
    if (build->last_stack[at] != stack + 1) {
        build->last_stack[at] = stack + 1;
        edge->sum = view_add(edge->sum, value);
    }
    if (!is_far && build->last_direct[at] != stack + 1) {
        build->last_direct[at] = stack + 1;
        edge->direct = view_add(edge->direct, value);
        edge->is_direct = true;
    }
}

static void add_stack(struct build *build, uint32_t stack)
{
    const struct view *view = build->view;
    uint32_t from = NOT_DRAWN;
    bool is_far = false;
    for (uint64_t i = view->stack_start[stack]; i < view->stack_start[stack + 1]; i++) {
        const uint32_t to = build->node_of_frame[view->entries[i]];
        if (to == NOT_DRAWN) {
            is_far = true;
            continue;
        }
        if (from != NOT_DRAWN && from != to)
            count_edge(build, from, to, is_far, stack);
        from = to;
        is_far = false;
    }
}

static int compare_edges(const void *a, const void *b)
{
    const struct call_graph_edge *x = a, *y = b;
    const uint64_t sum_x = magnitude(x->sum), sum_y = magnitude(y->sum);
    if (sum_x != sum_y)
        return sum_x > sum_y ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Moves the existing edges to the front and sorts them. */
static uint32_t sort_edges(struct build *build)
{
    const size_t pairs = (size_t)build->node_count * build->node_count;
    uint32_t count = 0;
    for (size_t i = 0; i < pairs; i++) {
        if (!build->last_stack[i])
            continue;
        build->edges[count] = build->edges[i];
        build->edges[count].from = (uint32_t)(i / build->node_count);
        build->edges[count++].to = (uint32_t)(i % build->node_count);
    }
    if (count)
        qsort(build->edges, count, sizeof(*build->edges), compare_edges);
    return count;
}

/* ---- which edges ---- */

/* Whether `to` can be reached over the kept edges. Repeated passes over all of them suffice:
 * they are few. */
static bool is_reached(const struct call_graph_edge *edges, uint32_t count, const bool *is_kept,
                       uint32_t from, uint32_t to, bool *is_seen, uint32_t node_count)
{
    memset(is_seen, 0, node_count * sizeof(*is_seen));
    is_seen[from] = true;
    for (bool has_more = true; has_more && !is_seen[to];) {
        has_more = false;
        for (uint32_t i = 0; i < count; i++) {
            if (!is_kept[i] || !is_seen[edges[i].from] || is_seen[edges[i].to])
                continue;
            is_seen[edges[i].to] = has_more = true;
        }
    }
    return is_seen[to];
}

static enum err_code prune(struct build *build, uint32_t *count, struct err *err)
{
    arena_auto scratch = arena_create();
    struct call_graph_edge *edges = build->edges;
    bool *has_caller = arena_new(scratch, bool, build->node_count);
    bool *is_seen = arena_new(scratch, bool, build->node_count);
    const uint64_t least = build->node_count ? magnitude(build->nodes[0].cum) / LEAST_SHARE : 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const bool is_first = !has_caller[edges[i].to];
        has_caller[edges[i].to] = true;
        if (is_first ||
            (i < EDGES_PER_NODE * build->node_count && magnitude(edges[i].sum) >= least))
            edges[kept++] = edges[i];
    }
    bool *is_kept = arena_new(scratch, bool, kept);
    memset(is_kept, true, kept * sizeof(*is_kept));
    for (uint32_t i = kept; i-- > 0;) {
        if (edges[i].is_direct)
            continue;
        enum err_code code = view_check_cpu(build->view, err);
        if (code)
            return code;
        is_kept[i] = false;
        is_kept[i] = !is_reached(edges, kept, is_kept, edges[i].from, edges[i].to, is_seen,
                                 build->node_count);
    }
    *count = 0;
    for (uint32_t i = 0; i < kept; i++) {
        if (is_kept[i])
            edges[(*count)++] = edges[i];
    }
    return ERR_NONE;
}

static enum err_code add_edges(struct arena *arena, struct build *build, uint32_t *ret_count,
                               struct err *err)
{
    const size_t pairs = (size_t)build->node_count * build->node_count;
    build->edges = arena_new(arena, struct call_graph_edge, pairs);
    build->last_stack = arena_new(arena, uint32_t, pairs);
    build->last_direct = arena_new(arena, uint32_t, pairs);
    for (uint32_t i = 0; i < build->view->stack_count; i++) {
        add_stack(build, i);
        enum err_code code =
            i % VIEW_CHECK_STEPS == 0 ? view_check_cpu(build->view, err) : ERR_NONE;
        if (code)
            return code;
    }
    *ret_count = sort_edges(build);
    return prune(build, ret_count, err);
}

enum err_code call_graph_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                const struct call_graph **ret_graph, struct err *err)
{
    arena_auto scratch = arena_create();
    assert(max_nodes <= CALL_GRAPH_NODES_MAX && !view->is_diff);
    const struct top *top = top_create(scratch, view);
    struct build build = {.view = view,
                          .node_of_frame = arena_new(scratch, uint32_t, view->frame_count)};
    uint32_t edge_count = 0;
    choose_nodes(arena, &build, top, max_nodes);
    enum err_code code = add_edges(scratch, &build, &edge_count, err);
    if (code)
        return code;
    struct call_graph *graph = arena_new(arena, struct call_graph, 1);
    struct call_graph_edge *edges = arena_new_raw(arena, struct call_graph_edge, edge_count);
    if (edge_count)
        memcpy(edges, build.edges, edge_count * sizeof(*edges));
    *graph = (struct call_graph){.view = view,
                                 .nodes = build.nodes,
                                 .node_count = build.node_count,
                                 .edges = edges,
                                 .edge_count = edge_count,
                                 .function_count = top->row_count};
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->flat = view_add(graph->flat, graph->nodes[i].flat);
    *ret_graph = graph;
    return ERR_NONE;
}
