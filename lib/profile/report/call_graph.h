/*
 * call_graph: functions and who calls whom, few enough to be drawn; and as text for Graphviz (DOT).
 *
 * Numbers are whole whatever is left out: a function's are those of top.h, an edge holds each stack
 * in which one calls the other, once. Where functions in between are left out the edge goes over
 * them: `direct` is what goes without. A function's call of itself is no edge. Chosen are, as in
 * the page's graph (web/src/model/call_graph.ts), half for what they hold themselves, half for what
 * they hold in all, none that holds less than 0.3 / max_nodes of what the largest does (1 in 267
 * where 80 are wanted; pprof: 1 in 200); of the edges the heaviest, each function's heaviest
 * caller, and none round functions that are drawn. Of one profile, not of a diff. Threads: an
 * object belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_CALL_GRAPH_H
#define LIB_PROFILE_REPORT_CALL_GRAPH_H

#include "lib/base/buf.h"
#include "lib/profile/report/view.h"

enum { CALL_GRAPH_NODES_DEFAULT = 80, CALL_GRAPH_NODES_MAX = 1000 };

struct call_graph_node {
    uint32_t frame; /* of the view */
    int64_t flat;
    int64_t cum;
};

struct call_graph_edge {
    uint32_t from; /* nodes */
    uint32_t to;
    int64_t sum;
    int64_t direct;
    bool is_direct; /* some of it is, even if it adds up to 0 */
};

struct call_graph {
    const struct view *view;
    const struct call_graph_node *nodes; /* by |cum|, the largest first */
    uint32_t node_count;
    const struct call_graph_edge *edges; /* by |sum| */
    uint32_t edge_count;
    uint32_t function_count; /* drawn or not */
    int64_t flat;            /* of the nodes together */
};

/* In arena; max_nodes at most CALL_GRAPH_NODES_MAX. Handles: ERR_TOO_LARGE (the view's deadline).
 */
enum err_code call_graph_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                const struct call_graph **ret_graph, struct err *err) MUST_USE;

/* Appends a digraph: boxes as large and edges as wide as they are heavy. */
void call_graph_write_dot(const struct call_graph *graph, struct buf *output);

#endif
