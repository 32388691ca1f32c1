/*
 * call_graph: the functions of a view and their calls, reduced to a size that can be drawn; also as
 * DOT text for Graphviz.
 *
 * Values stay exact when nodes are left out. A function has the values of top.h. The value of an
 * edge is the sum of the stacks in which one function calls the other, each counted once. Where
 * functions in between are left out, the edge skips them; `direct` is the part without skipped
 * functions. A function calling itself makes no edge.
 *
 * The choice of nodes is that of the page's graph (web/src/model/functions/call_graph.ts): half of
 * them by flat value, half by cumulative value, and none with less than 0.3 / max_nodes of the
 * largest (1 in 267 for 80 nodes; pprof: 1 in 200). The choice of edges: the heaviest ones, up to
 * three per node and none with less than a thousandth of the heaviest function, and each function's
 * heaviest caller; but no edge without direct calls if other edges already lead from the one
 * function to the other. Only for a view of one profile, not of a diff. Threads: an object
 * belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_CALL_GRAPH_H
#define LIB_PROFILE_REPORT_CALL_GRAPH_H

#include "lib/profile/report/view.h"

struct buf;

enum { CALL_GRAPH_NODES_DEFAULT = 80, CALL_GRAPH_NODES_MAX = 1000 };

struct call_graph_node {
    uint32_t frame; /* index in the view */
    int64_t flat;
    int64_t cum;
};

struct call_graph_edge {
    uint32_t from; /* the caller, an index in call_graph.nodes */
    uint32_t to;   /* the callee, likewise */
    int64_t sum;
    int64_t direct; /* the part of sum without skipped functions */
    bool is_direct; /* the edge has direct calls, even if their values sum to 0 */
};

struct call_graph {
    const struct view *view;
    const struct call_graph_node *nodes; /* by descending |cum| */
    uint32_t node_count;
    const struct call_graph_edge *edges; /* by descending |sum| */
    uint32_t edge_count;
    uint32_t function_count; /* functions of the view, drawn or not */
    int64_t flat;            /* sum of the flat values of the drawn nodes */
};

/* Allocates in arena. max_nodes is at most CALL_GRAPH_NODES_MAX. Errors: ERR_TOO_LARGE (the
 * view's deadline). */
enum err_code call_graph_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                const struct call_graph **ret_graph, struct err *err) MUST_USE;

/* Appends a digraph in which text sizes and edge widths grow with the values; see buf_failed. */
void call_graph_write_dot(const struct call_graph *graph, struct buf *output);

#endif
