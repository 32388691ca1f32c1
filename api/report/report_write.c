#include "api/report/report_write.h"

#include "api/core/assets.h"
#include "api/debuginfo/build_id.h"
#include "api/report/picture_highlights.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"
#include "lib/profile/quantity.h"
#include "lib/profile/report/call_graph.h"
#include "lib/profile/report/callers.h"
#include "lib/profile/report/export_folded.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/export_labels.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/flame_binary.h"
#include "lib/profile/report/flame_zoom.h"
#include "lib/profile/report/labels.h"
#include "lib/profile/report/raw_path.h"
#include "lib/profile/report/top.h"

#include <inttypes.h>

enum {
    RENAMED_MAX_BYTES = 1 << 20,
    BINARIES_MAX_BYTES = 256 << 10,
    BINARY_MAX_BYTES = 4096,
    ESCAPED_BYTES = 6 /* the maximum for a byte in JSON */
};

static enum err_code make_flame(const struct report *report, struct arena *arena,
                                const struct view *view, const struct flame **ret_flame,
                                struct err *err)
{
    if (report->limit > FLAME_NODES_DEFAULT)
        return err_set(err, ERR_INVALID, "limit must be at most %d nodes", FLAME_NODES_DEFAULT);
    if (!report->has_root)
        return flame_create(arena, view, (uint32_t)report->limit, ret_flame, err);
    enum err_code code =
        flame_create_below(arena, view, (uint32_t)report->limit, report->root, ret_flame, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_INVALID, "root is not a path of this tree: leave it out");
    return code;
}

static struct span symbolization_of(const struct report *report)
{
    return report->symbolization ? span_text(report->symbolization) : (struct span){0};
}

static bool has_focus(const struct report *report)
{
    for (size_t i = 0; i < report->rule_count; i++) {
        if (report->rules[i].action == FILTER_FOCUS)
            return true;
    }
    return false;
}

/* "[{"file":…,"build_ids":[…]}, …]": build ids in the form of the profiles and in the form of the
 * symbol tables' keys. Lists only the first binaries if the body has not enough space. */
static void list_binaries(const struct view *view, struct buf *json)
{
    size_t count = 0;
    buf_append_byte(json, '[');
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        const struct profile *profile = view->profiles[side];
        for (uint32_t i = 0; profile && i < profile->mapping_count; i++) {
            char id[BUILD_ID_BYTES];
            const struct span file = profile_string(profile, profile->mappings[i].filename),
                              build_id = profile_string(profile, profile->mappings[i].build_id);
            if (!file.size || !build_id_normalize(build_id, id) || file.size > BINARY_MAX_BYTES ||
                json->size > BINARIES_MAX_BYTES - 2 * BINARY_MAX_BYTES * ESCAPED_BYTES)
                continue;
            buf_append_text(json, count++ ? ",{\"file\":" : "{\"file\":");
            buf_append_json(json, file);
            buf_append_text(json, ",\"build_ids\":[");
            buf_append_json(json, build_id);
            if (!span_equal_text(build_id, id)) {
                buf_append_byte(json, ',');
                buf_append_json(json, span_text(id));
            }
            buf_append_text(json, "]}");
        }
    }
    buf_append_byte(json, ']');
}

/* *ret_now stays 0 if the path does not exist. */
static enum err_code find_from(const struct report *report, const struct view *view,
                               enum raw_path_way way, uint64_t path, uint64_t *ret_now,
                               struct err *err)
{
    enum err_code code =
        raw_path_find_from(view, way, report->rules, report->rule_count, path, ret_now, err);
    return code == ERR_NOT_FOUND ? ERR_NONE : code;
}

static enum err_code write_flame_binary(const struct report *report, struct arena *arena,
                                        const struct profile *profile, const struct view *view,
                                        struct buf *output, struct err *err)
{
    (void)profile;
    const struct flame *flame;
    enum err_code code = make_flame(report, arena, view, &flame, err);
    struct flame_binary_options options = {.rules = report->rules,
                                           .rule_count = report->rule_count,
                                           .symbolization = symbolization_of(report)};
    if (report->side_count == 1)
        options.title = span_text(report->sides[0].title);
    buf_auto renamed;
    buf_init(&renamed, RENAMED_MAX_BYTES);
    if (!code && has_focus(report) && raw_path_may_be(view))
        code = raw_path_list_names(view, report->rules, report->rule_count, &renamed,
                                   &options.renamed_is_cut, err);
    if (!buf_failed(&renamed))
        options.renamed = buf_span(&renamed);
    buf_auto binaries;
    buf_init(&binaries, BINARIES_MAX_BYTES);
    if (report->is_stored)
        list_binaries(view, &binaries);
    options.binaries = buf_span(&binaries);
    if (code)
        return code;
    if (report->above)
        code = find_from(report, view, RAW_PATH_ABOVE, report->above, &options.above, err);
    if (code)
        return code;
    if (report->below)
        code = find_from(report, view, RAW_PATH_BELOW, report->below, &options.below, err);
    if (code)
        return code;
    return flame_binary_write(flame, &options, output, err);
}

static enum err_code write_flame_json(const struct report *report, struct arena *arena,
                                      const struct profile *profile, const struct view *view,
                                      struct buf *output, struct err *err)
{
    (void)profile;
    const struct flame *flame;
    enum err_code code = make_flame(report, arena, view, &flame, err);
    if (code)
        return code;
    uint32_t zoomed = 0;
    if (report->zoom)
        code = flame_find_path(flame, report->zoom, &zoomed, err);
    if (code)
        return code;
    if (report->zoom)
        flame = flame_zoom(arena, flame, zoomed);
    return export_json(flame, (uint32_t)report->depth, symbolization_of(report), output, err);
}

static enum err_code check_json(const struct buf *output, struct err *err)
{
    if (!buf_failed(output))
        return ERR_NONE;
    return err_set(err, ERR_TOO_LARGE, "the response would be larger than %zu bytes: set limit",
                   output->max_size);
}

static void append_begin(const struct view *view, struct buf *json)
{
    buf_append_text(json, "{\"sample_type\":");
    buf_append_json(json, view_sample_type(view));
    buf_append_text(json, ",\"unit\":");
    buf_append_json(json, view_unit(view));
    buf_printf(json, ",\"sample_type_index\":%" PRIu32 ",\"group_by\":", view->value_type);
    buf_append_json(json, view->group_by);
}

/* Appends a frame's name and its file and line, and the fields that distinguish frames of one name
 * in this grouping. */
static void append_frame(const struct view *view, uint32_t index, struct buf *json)
{
    const struct frame *frame = &view->frames[index];
    buf_append_text(json, "{\"name\":");
    buf_append_json(json, frame->name);
    buf_append_text(json, ",\"file\":");
    buf_append_json(json, frame->file);
    if (view->group == VIEW_BY_LINE || view->group == VIEW_BY_ADDRESS)
        buf_printf(json, ",\"line\":%" PRId64, frame->line);
    if (view->group == VIEW_BY_ADDRESS || view->group == VIEW_BY_BINARY) {
        buf_append_text(json, ",\"mapping\":");
        buf_append_json(json, frame->mapping);
    }
    if (view->group == VIEW_BY_ADDRESS)
        buf_printf(json, ",\"address\":\"0x%" PRIx64 "\"", frame->address);
    export_json_flags(json, frame->flags);
}

static uint32_t shown_count(const struct report *report, uint32_t row_count)
{
    return report->limit && report->limit < row_count ? (uint32_t)report->limit : row_count;
}

/* Appends the last member of a JSON result, and its end. */
static void append_symbolization(const struct report *report, struct buf *json)
{
    if (report->symbolization)
        buf_printf(json, ",\"symbolization\":%s", report->symbolization);
    buf_append_byte(json, '}');
}

static void append_end(const struct report *report, uint32_t row_count, uint32_t shown,
                       struct buf *json)
{
    buf_printf(json, "],\"function_count\":%" PRIu32 ",\"truncated\":%s", row_count,
               shown < row_count ? "true" : "false");
    append_symbolization(report, json);
}

static enum err_code write_top(const struct report *report, struct arena *arena,
                               const struct profile *profile, const struct view *view,
                               struct buf *json, struct err *err)
{
    (void)profile;
    const struct top *top = top_create(arena, view);
    uint32_t shown = shown_count(report, top->row_count);
    append_begin(view, json);
    buf_printf(json, ",\"total\":%" PRId64 ",\"kept\":%" PRId64 ",\"functions\":[",
               view->total[VIEW_SIDE_B], view->kept[VIEW_SIDE_B]);
    for (uint32_t i = 0; i < shown; i++) {
        const struct top_row *row = &top->rows[i];
        buf_append_text(json, i ? "," : "");
        append_frame(view, row->frame, json);
        buf_printf(json, ",\"flat\":%" PRId64 ",\"cum\":%" PRId64 "}", row->flat[VIEW_SIDE_B],
                   row->cum[VIEW_SIDE_B]);
    }
    append_end(report, top->row_count, shown, json);
    return check_json(json, err);
}

static enum err_code write_diff_top(const struct report *report, struct arena *arena,
                                    const struct profile *profile, const struct view *view,
                                    struct buf *json, struct err *err)
{
    (void)profile;
    const struct top *top = top_create(arena, view);
    uint32_t shown = shown_count(report, top->row_count);
    append_begin(view, json);
    buf_printf(json, ",\"mode\":\"%s\",\"total_a\":%" PRId64 ",\"total_b\":%" PRId64,
               view->is_normalised ? "normalised" : "absolute", view->total[VIEW_SIDE_A],
               view->total[VIEW_SIDE_B]);
    buf_append_text(json, ",\"functions\":[");
    for (uint32_t i = 0; i < shown; i++) {
        const struct top_row *row = &top->rows[i];
        buf_append_text(json, i ? "," : "");
        append_frame(view, row->frame, json);
        buf_printf(json,
                   ",\"flat_a\":%" PRId64 ",\"flat_b\":%" PRId64 ",\"flat_delta\":%" PRId64
                   ",\"cum_a\":%" PRId64 ",\"cum_b\":%" PRId64 ",\"cum_delta\":%" PRId64 "}",
                   row->flat[VIEW_SIDE_A], row->flat[VIEW_SIDE_B], top_delta(row->flat),
                   row->cum[VIEW_SIDE_A], row->cum[VIEW_SIDE_B], top_delta(row->cum));
    }
    append_end(report, top->row_count, shown, json);
    return check_json(json, err);
}

static void append_edges(const struct report *report, const struct view *view, const char *name,
                         const struct callers_row *rows, uint32_t row_count, struct buf *json)
{
    uint32_t shown = shown_count(report, row_count);
    buf_printf(json, ",\"%s\":[", name);
    for (uint32_t i = 0; i < shown; i++) {
        buf_append_text(json, i ? "," : "");
        append_frame(view, rows[i].frame, json);
        buf_printf(json, ",\"value\":%" PRId64 "}", rows[i].value[VIEW_SIDE_B]);
    }
    buf_printf(json, "],\"%s_count\":%" PRIu32 ",\"%s_truncated\":%s", name, row_count, name,
               shown < row_count ? "true" : "false");
}

static enum err_code write_callers(const struct report *report, struct arena *arena,
                                   const struct profile *profile, const struct view *view,
                                   struct buf *json, struct err *err)
{
    (void)profile;
    const struct callers *callers;
    enum err_code code = callers_create(arena, view, report->function, &callers, err);
    if (code)
        return err_add(err, "fn");
    append_begin(view, json);
    buf_append_text(json, ",\"function\":");
    buf_append_json(json, view->frames[callers->frame].name);
    buf_printf(json, ",\"total\":%" PRId64 ",\"flat\":%" PRId64 ",\"cum\":%" PRId64,
               view->total[VIEW_SIDE_B], callers->flat[VIEW_SIDE_B], callers->cum[VIEW_SIDE_B]);
    append_edges(report, view, "callers", callers->callers, callers->caller_count, json);
    append_edges(report, view, "callees", callers->callees, callers->callee_count, json);
    append_symbolization(report, json);
    return check_json(json, err);
}

static enum err_code write_labels(const struct report *report, struct arena *arena,
                                  const struct profile *profile, const struct view *view,
                                  struct buf *json, struct err *err)
{
    (void)profile;
    const struct labels *labels;
    enum err_code code = labels_create(arena, view, report->label_key, &labels, err);
    if (code == ERR_INVALID)
        return err_add(err, "key");
    return code ? code : export_labels(labels, (uint32_t)report->limit, json, err);
}

static enum err_code write_pprof(const struct report *report, struct arena *arena,
                                 const struct profile *profile, const struct view *view,
                                 struct buf *output, struct err *err)
{
    (void)arena, (void)view;
    buf_auto message;
    buf_init(&message, report->max_bytes);
    enum err_code code = pprof_encode(profile, &message, err);
    if (code == ERR_TOO_LARGE && buf_failed(&message))
        return report_too_large(report, err);
    return code ? code : compress_gzip(buf_span(&message), COMPRESS_GZIP_DEFAULT, output, err);
}

static enum err_code write_folded(const struct report *report, struct arena *arena,
                                  const struct profile *profile, const struct view *view,
                                  struct buf *output, struct err *err)
{
    (void)report, (void)arena, (void)profile;
    return export_folded(view, output, err);
}

static enum err_code write_call_graph(const struct report *report, struct arena *arena,
                                      const struct profile *profile, const struct view *view,
                                      struct buf *output, struct err *err)
{
    (void)profile;
    const struct call_graph *graph;
    const int64_t nodes = report->limit && report->limit < CALL_GRAPH_NODES_MAX
                              ? report->limit
                              : CALL_GRAPH_NODES_MAX;
    enum err_code code = call_graph_create(arena, view, (uint32_t)nodes, &graph, err);
    if (code)
        return code;
    call_graph_write_dot(graph, output);
    return check_json(output, err);
}

/* "main.work: 3.20 s (25.0 %)": the node that the picture is zoomed into. */
static struct span describe_zoom(struct arena *arena, const struct flame *flame, uint32_t node)
{
    enum { NAME_BYTES = 200 };
    const struct view *view = flame->view;
    struct span name = flame->frames[flame->node_frame[node]].name;
    char value[QUANTITY_TEXT_BYTES], share[QUANTITY_TEXT_BYTES];
    if (name.size > NAME_BYTES)
        for (name.size = NAME_BYTES; name.size && (name.data[name.size] & 0xc0) == 0x80;)
            name.size--; /* not within a character */
    quantity_format((double)flame->node_cum[node], view_unit(view), value);
    double total = (double)view->total[VIEW_SIDE_B];
    double percent = total != 0 ? 100 * (double)flame->node_cum[node] / total : 0;
    return span_text(arena_printf(arena, "zoomed into %.*s: %s (%s)", SPAN_PRINT(name), value,
                                  quantity_format_percent(percent, share)));
}

/* Describes the parts of the page's address that the picture leaves out, for its foot. */
static struct span describe_left_out(const struct report *report, struct arena *arena,
                                     bool lacks_zoom)
{
    uint32_t count = report->left_out_count;
    const char *zoom = lacks_zoom ? "the zoomed frame is not in this profile" : "";
    if (count == 0)
        return span_text(zoom);
    return span_text(arena_printf(arena, "%" PRIu32 " %s not applied%s%s", count,
                                  count == 1 ? "rule" : "rules", lacks_zoom ? "; " : "", zoom));
}

/* Describes the two sides of a comparison, as the pages do. */
static struct span describe_sides(const struct report *report, struct arena *arena)
{
    const char *names[2] = {"", ""};
    for (size_t i = 0; i < report->side_count; i++)
        names[i] = report->sides[i].title[0] ? report->sides[i].title : report->sides[i].filename;
    if (report->side_count == 1)
        return span_text(names[0]);
    return span_text(arena_printf(arena, "%s \xe2\x86\x92 %s", names[0][0] ? names[0] : "Before",
                                  names[1][0] ? names[1] : "After"));
}

static struct span join_texts(struct arena *arena, struct span a, struct span b)
{
    if (a.size == 0 || b.size == 0)
        return a.size ? a : b;
    return span_text(arena_printf(arena, "%.*s \xc2\xb7 %.*s", SPAN_PRINT(a), SPAN_PRINT(b)));
}

/* The graph of the view with its highlights, and the node that it is zoomed into; 0: the root. */
static enum err_code make_marked(const struct report *report, struct arena *arena,
                                 const struct view *view, const struct flame **ret_flame,
                                 struct picture_highlights *ret_marks, uint32_t *ret_node,
                                 struct err *err)
{
    enum err_code code = make_flame(report, arena, view, ret_flame, err);
    if (code)
        return code;
    picture_highlights_find(arena, *ret_flame, report->search, report->marked, ret_marks);
    *ret_node = 0;
    return report->zoom ? flame_find_path(*ret_flame, report->zoom, ret_node, err) : ERR_NONE;
}

static struct span describe_seen(struct arena *arena, const struct flame *flame, uint32_t node,
                                 const struct picture_highlights *marks)
{
    return node ? join_texts(arena, describe_zoom(arena, flame, node), marks->text) : marks->text;
}

enum err_code report_write_seen(const struct report *report, struct arena *arena,
                                const struct view *view, struct span *ret_text, struct err *err)
{
    const struct flame *flame;
    struct picture_highlights marks;
    uint32_t node;
    enum err_code code = make_marked(report, arena, view, &flame, &marks, &node, err);
    if (code)
        return code;
    *ret_text = describe_seen(arena, flame, node, &marks);
    return ERR_NONE;
}

static enum err_code make_picture(const struct report *report, struct arena *arena,
                                  const struct view *view, const struct flame **ret_flame,
                                  struct picture_options *ret_options, struct err *err)
{
    const struct flame *flame;
    struct picture_highlights marks;
    uint32_t node;
    enum err_code code = make_marked(report, arena, view, &flame, &marks, &node, err);
    if (code)
        return code;
    *ret_options = (struct picture_options){
        .title = describe_sides(report, arena),
        .subtitle = describe_seen(arena, flame, node, &marks),
        .marks = marks.frames,
        .fills = picture_fills(arena, flame, report->colouring),
        .note = describe_left_out(report, arena, report->zoom && !node),
        .svg_depth = (uint32_t)report->depth,
        .is_upright = report->is_upright,
        .window = report->window,
    };
    *ret_flame = flame_zoom(arena, flame, node);
    return ERR_NONE;
}

static enum err_code write_svg(const struct report *report, struct arena *arena,
                               const struct profile *profile, const struct view *view,
                               struct buf *output, struct err *err)
{
    (void)profile;
    const struct flame *flame;
    struct picture_options options;
    enum err_code code = make_picture(report, arena, view, &flame, &options, err);
    return code ? code : picture_svg(flame, &options, output, err);
}

static enum err_code write_png(const struct report *report, struct arena *arena,
                               const struct profile *profile, const struct view *view,
                               struct buf *output, struct err *err)
{
    (void)profile;
    const struct flame *flame;
    struct picture_options options;
    const struct asset *font = assets_find(SPAN_LITERAL("DejaVuSans.ttf"));
    if (!font)
        return err_set(err, ERR_INTERNAL, "the font is missing in the assets");
    enum err_code code = make_picture(report, arena, view, &flame, &options, err);
    return code ? code : picture_png(flame, &options, font->bytes, output, err);
}

const struct report_kind report_flame_binary = {.name = "flame",
                                                .content_type = FLAME_BINARY_CONTENT_TYPE,
                                                .compresses = true,
                                                .needs_view = true,
                                                .shows_title = true,
                                                .write = write_flame_binary};
const struct report_kind report_flame_json = {.name = "flame-json",
                                              .content_type = "application/json",
                                              .compresses = true,
                                              .needs_view = true,
                                              .shows_zoom = true,
                                              .write = write_flame_json};
const struct report_kind report_top = {.name = "top",
                                       .content_type = "application/json",
                                       .compresses = true,
                                       .needs_view = true,
                                       .write = write_top};
const struct report_kind report_callers = {.name = "callers",
                                           .content_type = "application/json",
                                           .compresses = true,
                                           .needs_view = true,
                                           .write = write_callers};
const struct report_kind report_diff_top = {.name = "diff-top",
                                            .content_type = "application/json",
                                            .compresses = true,
                                            .needs_view = true,
                                            .write = write_diff_top};
const struct report_kind report_labels = {.name = "labels",
                                          .content_type = "application/json",
                                          .compresses = true,
                                          .needs_view = true,
                                          .counts_labels = true,
                                          .write = write_labels};
const struct report_kind report_diff_labels = {.name = "diff-labels",
                                               .content_type = "application/json",
                                               .compresses = true,
                                               .needs_view = true,
                                               .counts_labels = true,
                                               .write = write_labels};
const struct report_kind report_pprof = {
    .name = "pprof", .content_type = "application/octet-stream", .write = write_pprof};
const struct report_kind report_folded = {.name = "folded",
                                          .content_type = "text/plain; charset=utf-8",
                                          .compresses = true,
                                          .needs_view = true,
                                          .write = write_folded};
const struct report_kind report_call_graph = {.name = "callgraph",
                                              .content_type = "text/vnd.graphviz; charset=utf-8",
                                              .compresses = true,
                                              .needs_view = true,
                                              .write = write_call_graph};
const struct report_kind report_svg = {.name = "svg",
                                       .content_type = "image/svg+xml",
                                       .compresses = true,
                                       .needs_view = true,
                                       .shows_zoom = true,
                                       .shows_title = true,
                                       .write = write_svg};
const struct report_kind report_png = {.name = "png",
                                       .content_type = "image/png",
                                       .needs_view = true,
                                       .shows_zoom = true,
                                       .shows_title = true,
                                       .write = write_png};

/* Whether the client prefers JSON to the binary form. */
static bool wants_json(const struct request *request)
{
    struct span accept = request_field(request, "accept");
    return accept.size && memmem(accept.data, accept.size, "application/json", 16) &&
           !memmem(accept.data, accept.size, "application/vnd.perfolio.flame", 30);
}

const struct report_kind *report_choose_flame(struct request *request, struct response *response,
                                              unsigned *ret_parameters)
{
    const bool is_json = wants_json(request);
    response_add(request, response, "vary", "accept");
    *ret_parameters = REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_ROOT |
                      (is_json ? REPORT_TAKES_DEPTH : 0);
    return is_json ? &report_flame_json : &report_flame_binary;
}
