#include "lib/profile/report/export_json.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/report/flame.h"

#include <inttypes.h>

/* The part of a node that depends on its frame is written once per frame and copied. */
struct fragments {
    struct buf text;
    size_t *start; /* frame_count + 1 */
};

struct writer {
    const struct flame *flame;
    struct fragments fragments;
    uint32_t *depth; /* per node */
    uint32_t max_depth;
    struct buf *output;
};

void export_json_flags(struct buf *buf, uint8_t flags)
{
    static const struct {
        uint8_t flag;
        const char *name;
    } names[] = {{FRAME_INLINED, "inlined"},
                 {FRAME_KERNEL, "kernel"},
                 {FRAME_INTERPRETED, "interpreted"},
                 {FRAME_NOT_SYMBOLISED, "not_symbolised"},
                 {FRAME_OTHER, "other"},
                 {FRAME_LABEL, "label"}};
    const char *separator = ",\"flags\":[";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!(flags & names[i].flag))
            continue;
        buf_printf(buf, "%s\"%s\"", separator, names[i].name);
        separator = ",";
    }
    if (flags)
        buf_append_byte(buf, ']');
}

static void append_member(struct buf *buf, const char *name, struct span text)
{
    if (text.size == 0)
        return;
    buf_printf(buf, ",\"%s\":", name);
    buf_append_json(buf, text);
}

static void append_frame(struct buf *buf, const struct frame *frame)
{
    buf_append_text(buf, "{\"name\":");
    buf_append_json(buf, frame->name);
    append_member(buf, "file", frame->file);
    if (frame->line)
        buf_printf(buf, ",\"line\":%" PRId64, frame->line);
    append_member(buf, "mapping", frame->mapping);
    if (frame->address)
        buf_printf(buf, ",\"address\":\"0x%" PRIx64 "\"", frame->address);
    export_json_flags(buf, frame->flags);
}

static void make_fragments(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    struct fragments *fragments = &writer->fragments;
    fragments->start = mem_new(size_t, (size_t)flame->frame_count + 1);
    buf_init(&fragments->text, writer->output->max_size);
    for (uint32_t i = 0; i < flame->frame_count && !buf_failed(&fragments->text); i++) {
        append_frame(&fragments->text, &flame->frames[i]);
        fragments->start[i + 1] = fragments->text.size;
    }
}

static uint32_t measure_depths(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    uint32_t omitted_count = 0;
    writer->depth = mem_new(uint32_t, flame->node_count);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        writer->depth[i] = writer->depth[flame->node_parent[i]] + 1;
        omitted_count += writer->max_depth && writer->depth[i] > writer->max_depth;
    }
    return omitted_count;
}

static void append_node(struct writer *writer, uint32_t node)
{
    const struct flame *flame = writer->flame;
    const size_t *start = &writer->fragments.start[flame->node_frame[node]];
    buf_append(writer->output, writer->fragments.text.data + start[0], start[1] - start[0]);
    buf_printf(writer->output, ",\"value\":%" PRId64 ",\"self\":%" PRId64, flame->node_cum[node],
               flame->node_self[node]);
    if (flame->base_self)
        buf_printf(writer->output, ",\"base_value\":%" PRId64 ",\"base_self\":%" PRId64,
                   flame->base_cum[node], flame->base_self[node]);
}

/* Writes nodes in preorder: before each node, all open nodes up to its parent are closed. */
static void append_tree(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    uint32_t last = 0;
    append_node(writer, 0);
    for (uint32_t i = 1; i < flame->node_count && !buf_failed(writer->output); i++) {
        if (writer->max_depth && writer->depth[i] > writer->max_depth)
            continue;
        uint32_t parent = flame->node_parent[i];
        if (last == parent) {
            buf_append_text(writer->output, ",\"children\":[");
        } else {
            buf_append_byte(writer->output, '}');
            for (last = flame->node_parent[last]; last != parent; last = flame->node_parent[last])
                buf_append_text(writer->output, "]}");
            buf_append_byte(writer->output, ',');
        }
        append_node(writer, i);
        last = i;
    }
    buf_append_byte(writer->output, '}');
    for (; last != 0; last = flame->node_parent[last])
        buf_append_text(writer->output, "]}");
}

static void append_head(struct writer *writer, uint32_t omitted_count, struct span symbolization)
{
    const struct flame *flame = writer->flame;
    const struct view *view = flame->view;
    struct buf *output = writer->output;
    buf_append_text(output, "{\"sample_type\":");
    buf_append_json(output, view_sample_type(view));
    buf_append_text(output, ",\"unit\":");
    buf_append_json(output, view_unit(view));
    buf_printf(output, ",\"sample_type_index\":%" PRIu32, view->value_type);
    buf_append_text(output, ",\"group_by\":");
    buf_append_json(output, view->group_by);
    buf_printf(output, ",\"total\":%" PRId64 ",\"kept\":%" PRId64, view->total[VIEW_SIDE_B],
               view->kept[VIEW_SIDE_B]);
    if (view->is_diff)
        buf_printf(output,
                   ",\"base_total\":%" PRId64 ",\"base_kept\":%" PRId64 ",\"normalised\":%s",
                   view->total[VIEW_SIDE_A], view->kept[VIEW_SIDE_A],
                   view->is_normalised ? "true" : "false");
    buf_printf(output, ",\"node_count\":%" PRIu32, flame->node_count);
    if (flame->cut_hidden_count)
        buf_printf(output, ",\"cut\":{\"nodes\":%" PRIu64 ",\"value\":%" PRId64 "}",
                   flame->cut_hidden_count, flame->cut_value);
    else
        buf_append_text(output, ",\"cut\":null");
    buf_printf(output, ",\"omitted_nodes\":%" PRIu32, omitted_count);
    if (symbolization.size) {
        buf_append_text(output, ",\"symbolization\":");
        buf_append_span(output, symbolization);
    }
    buf_append_text(output, ",\"root\":");
}

enum err_code export_json(const struct flame *flame, uint32_t max_depth, struct span symbolization,
                          struct buf *output, struct err *err)
{
    struct writer writer = {.flame = flame, .max_depth = max_depth, .output = output};
    make_fragments(&writer);
    append_head(&writer, measure_depths(&writer), symbolization);
    append_tree(&writer);
    buf_append_text(output, "}\n");
    bool has_failed = buf_failed(output) || buf_failed(&writer.fragments.text);
    buf_fini(&writer.fragments.text);
    mem_free(writer.fragments.start);
    mem_free(writer.depth);
    if (has_failed)
        return err_set(err, ERR_TOO_LARGE, "JSON of more than %zu bytes", output->max_size);
    return ERR_NONE;
}
