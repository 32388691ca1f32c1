#include "lib/base/buf.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/call_graph.h"

#include <inttypes.h>
#include <math.h>

enum { NAME_BYTES = 400 };

/* Appends text for a quoted label, in which quotes and backslashes are escaped. */
static void append_text(struct buf *dot, struct span text)
{
    const bool is_cut = text.size > NAME_BYTES;
    size_t size = is_cut ? NAME_BYTES : text.size;
    while (is_cut && size && (text.data[size] & 0xc0) == 0x80) /* not within a character */
        size--;
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\')
            buf_append_byte(dot, '\\');
        buf_append_byte(dot, byte < ' ' || byte == 0x7f ? ' ' : byte);
    }
    buf_append_text(dot, is_cut ? "\xe2\x80\xa6" : "");
}

static double share_of(const struct call_graph *graph, int64_t value)
{
    const double total = (double)graph->view->total[VIEW_SIDE_B];
    return total != 0 ? (double)value / total : 0;
}

static void append_value(const struct call_graph *graph, struct buf *dot, int64_t value)
{
    char text[QUANTITY_TEXT_BYTES];
    quantity_format((double)value, view_unit(graph->view), text);
    append_text(dot, span_text(text));
}

static void append_amount(const struct call_graph *graph, struct buf *dot, int64_t value)
{
    append_value(graph, dot, value);
    buf_printf(dot, " (%.2f%%)", 100 * share_of(graph, value));
}

static void append_legend(const struct call_graph *graph, struct buf *dot)
{
    const struct view *view = graph->view;
    buf_append_text(dot, "  L [shape=box style=\"\" fontsize=16 label=\"Type: ");
    append_text(dot, view_sample_type(view));
    buf_append_text(dot, "\\lTotal: ");
    append_value(graph, dot, view->total[VIEW_SIDE_B]);
    buf_printf(dot, "\\lShowing %u of %u functions, which hold ", graph->node_count,
               graph->function_count);
    append_amount(graph, dot, graph->flat);
    buf_append_text(dot, " themselves\\l\"]\n");
}

/* The colour, from pale to red, shows the share of the total. */
static void append_node(const struct call_graph *graph, uint32_t index, struct buf *dot)
{
    const struct call_graph_node *node = &graph->nodes[index];
    const double flat = fmin(1, fabs(share_of(graph, node->flat)));
    const double cum = fmin(1, fabs(share_of(graph, node->cum)));
    buf_printf(dot, "  N%u [fontsize=%d fillcolor=\"0.03 %.2f 0.98\" label=\"", index,
               8 + (int)(24 * sqrt(flat)), 0.04 + 0.5 * sqrt(cum));
    append_text(dot, graph->view->frames[node->frame].name);
    buf_append_text(dot, "\\n");
    append_amount(graph, dot, node->flat);
    if (node->cum != node->flat) {
        buf_append_text(dot, "\\nof ");
        append_amount(graph, dot, node->cum);
    }
    buf_printf(dot, "\" comment=\"flat=%" PRId64 " cum=%" PRId64 "\"]\n", node->flat, node->cum);
}

static void append_edge(const struct call_graph *graph, const struct call_graph_edge *edge,
                        struct buf *dot)
{
    const double share = fmin(1, fabs(share_of(graph, edge->sum)));
    buf_printf(dot, "  N%u -> N%u [weight=%d penwidth=%.2f%s label=\" ", edge->from, edge->to,
               1 + (int)(100 * share), 1 + 5 * share, edge->is_direct ? "" : " style=dashed");
    append_value(graph, dot, edge->sum);
    buf_printf(dot, "\" comment=\"sum=%" PRId64 " direct=%" PRId64 "\"]\n", edge->sum,
               edge->direct);
}

void call_graph_write_dot(const struct call_graph *graph, struct buf *output)
{
    buf_append_text(output,
                    "digraph profile {\n"
                    "  node [shape=box style=filled fontname=\"Helvetica,Arial,sans-serif\"]\n"
                    "  edge [fontname=\"Helvetica,Arial,sans-serif\" fontsize=10]\n");
    append_legend(graph, output);
    for (uint32_t i = 0; i < graph->node_count; i++)
        append_node(graph, i, output);
    for (uint32_t i = 0; i < graph->edge_count; i++)
        append_edge(graph, &graph->edges[i], output);
    buf_append_text(output, "}\n");
}
