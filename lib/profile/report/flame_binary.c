#include "lib/profile/report/flame_binary.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/raw_path.h"

#include <assert.h>

enum {
    HEADER_BYTES = 64,
    SECTION_BYTES = 24,
    SECTIONS_MAX = 17,
    STRING_BYTES_MAX = 1 << 30,
    METADATA_BYTES_MAX = 2 << 20
};

enum { FLAG_DIFF = 1, FLAG_CUT = 2, FLAG_INEXACT = 4 };

enum section {
    SECTION_NODE_FRAME = 1,
    SECTION_NODE_DEPTH,
    SECTION_SELF_GAP,
    SECTION_SELF,
    SECTION_FRAME_NAME,
    SECTION_FRAME_FILE,
    SECTION_FRAME_LINE,
    SECTION_FRAME_MAPPING,
    SECTION_FRAME_FLAGS,
    SECTION_STRING_OFFSETS,
    SECTION_STRING_BYTES,
    SECTION_METADATA,
    SECTION_FRAME_ADDRESS,
    SECTION_CUT,
    SECTION_BASE_SELF_GAP,
    SECTION_BASE_SELF,
    SECTION_SHARED_ORIGIN
};

struct writer {
    const struct flame *flame;
    struct arena *scratch;
    struct buf *output;
    size_t start; /* of the header in output */
    struct {
        uint32_t id;
        uint64_t offset;
        uint64_t length;
    } sections[SECTIONS_MAX];
    uint32_t section_count;
    struct map_bytes strings;
    /* from struct span to string: a text usually occurs at one address in memory */
    struct map_bytes spans;
    struct buf string_bytes;
    uint32_t *string_ends;
    uint32_t string_count;
    bool is_inexact;
};

static_assert(sizeof(struct span) == 16, "compared as bytes: no padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are written as they are");

/* ---- sections ---- */

static void align(struct writer *writer)
{
    while ((writer->output->size - writer->start) % 8 && !buf_failed(writer->output))
        buf_append_byte(writer->output, 0);
}

static void begin_section(struct writer *writer, enum section id)
{
    align(writer);
    writer->sections[writer->section_count].id = id;
    writer->sections[writer->section_count].offset = writer->output->size - writer->start;
}

static void end_section(struct writer *writer)
{
    uint32_t index = writer->section_count++;
    writer->sections[index].length =
        writer->output->size - writer->start - writer->sections[index].offset;
}

static void put_section(struct writer *writer, enum section id, const void *data, size_t size)
{
    begin_section(writer, id);
    buf_append(writer->output, data, size);
    end_section(writer);
}

/* ---- strings ---- */

/* Appends text as UTF-8, which the browser requires; invalid bytes become U+FFFD, as in
 * buf_append_json. */
static void append_utf8(struct buf *output, struct span text)
{
    if (span_is_utf8(text)) {
        buf_append_span(output, text);
        return;
    }
    while (text.size) {
        const size_t size = span_utf8_size(text);
        const size_t used = size ? size : span_broken_utf8_size(text);
        if (size)
            buf_append(output, text.data, size);
        else
            buf_append_text(output, "\xef\xbf\xbd");
        text = span_of(text.data + used, text.size - used);
    }
}

/* Adds a string; text is the flame's own span and serves as a key. Many frames may share one
 * long text, which is hashed once. */
static uint32_t add_string(struct writer *writer, const struct span *text)
{
    if (text->size == 0)
        return 0;
    const struct span key = span_of(text, sizeof(*text));
    uint32_t known = map_bytes_find(&writer->spans, key);
    if (known != MAP_ABSENT)
        return known;
    uint32_t index = map_bytes_add(&writer->strings, *text, writer->string_count);
    if (index == writer->string_count) {
        append_utf8(&writer->string_bytes, *text);
        writer->string_ends[writer->string_count++] = (uint32_t)writer->string_bytes.size;
    }
    return map_bytes_add(&writer->spans, key, index);
}

static void put_strings(struct writer *writer)
{
    begin_section(writer, SECTION_STRING_OFFSETS);
    buf_append_u32(writer->output, 0);
    buf_append(writer->output, writer->string_ends, writer->string_count * sizeof(uint32_t));
    end_section(writer);
    put_section(writer, SECTION_STRING_BYTES, writer->string_bytes.data, writer->string_bytes.size);
}

/* ---- nodes ---- */

/* Converts the value of a node; all of them must be converted here, so that none misses the flag.
 */
static double to_f64(struct writer *writer, int64_t value)
{
    writer->is_inexact |= value > INT64_C(1) << 53 || value < -(INT64_C(1) << 53);
    return (double)value;
}

/* Most nodes have no value of their own. Writes only those that do, each with its distance from
 * the previous one. */
static void put_values(struct writer *writer, enum section gap_id, enum section id,
                       const int64_t *values, double scale)
{
    uint32_t count = writer->flame->node_count, used = 0, last = 0;
    uint32_t *gap = arena_new_raw(writer->scratch, uint32_t, count);
    double *value = arena_new_raw(writer->scratch, double, count);
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] == 0)
            continue;
        gap[used] = i - last;
        value[used++] = to_f64(writer, values[i]) * scale;
        last = i;
    }
    put_section(writer, gap_id, gap, used * sizeof(*gap));
    put_section(writer, id, value, used * sizeof(*value));
}

/* Writes numbers in 16 bits if all of them fit, which halves the data that is compressed, sent
 * and read. */
static void put_numbers(struct writer *writer, enum section id, const uint32_t *numbers,
                        uint32_t count, uint32_t largest)
{
    if (largest > UINT16_MAX) {
        put_section(writer, id, numbers, count * sizeof(*numbers));
        return;
    }
    begin_section(writer, id);
    uint8_t *bytes = buf_reserve(writer->output, count * sizeof(uint16_t));
    for (uint32_t i = 0; i < count && bytes; i++) {
        uint16_t number = (uint16_t)numbers[i];
        memcpy(bytes + i * sizeof(number), &number, sizeof(number));
    }
    if (bytes)
        buf_commit(writer->output, count * sizeof(uint16_t));
    end_section(writer);
}

static void put_depth(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    uint32_t *depth = arena_new_raw(writer->scratch, uint32_t, flame->node_count), largest = 0;
    depth[0] = 0;
    for (uint32_t i = 1; i < flame->node_count; i++) {
        depth[i] = depth[flame->node_parent[i]] + 1;
        if (depth[i] > largest)
            largest = depth[i];
    }
    put_numbers(writer, SECTION_NODE_DEPTH, depth, flame->node_count, largest);
}

static void put_nodes(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    put_numbers(writer, SECTION_NODE_FRAME, flame->node_frame, flame->node_count,
                flame->frame_count - 1);
    put_depth(writer);
    if (flame->unscaled_self)
        put_values(writer, SECTION_SELF_GAP, SECTION_SELF, flame->unscaled_self,
                   flame->view->scale);
    else
        put_values(writer, SECTION_SELF_GAP, SECTION_SELF, flame->node_self, 1);
    if (flame->base_self)
        put_values(writer, SECTION_BASE_SELF_GAP, SECTION_BASE_SELF, flame->base_self, 1);
}

static void put_cuts(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    begin_section(writer, SECTION_CUT);
    for (uint32_t i = 0; i < flame->cut_count; i++) {
        buf_append_u32(writer->output, flame->cut_node[i]);
        buf_append_u32(writer->output, flame->cut_hidden[i]);
    }
    end_section(writer);
}

/* ---- frames ---- */

static uint32_t line_of(const struct frame *frame)
{
    return frame->line > 0 && frame->line <= UINT32_MAX ? (uint32_t)frame->line : 0;
}

/* Marks the frames that nodes use. Other frames, such as those of cut subtrees, keep their index
 * but not their strings. */
static bool *find_used(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    bool *is_used = arena_new(writer->scratch, bool, flame->frame_count);
    for (uint32_t i = 0; i < flame->node_count; i++)
        is_used[flame->node_frame[i]] = true;
    return is_used;
}

static void put_frames(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    uint32_t count = flame->frame_count;
    uint32_t *name = arena_new(writer->scratch, uint32_t, count);
    uint32_t *file = arena_new(writer->scratch, uint32_t, count);
    uint32_t *line = arena_new(writer->scratch, uint32_t, count);
    uint32_t *mapping = arena_new(writer->scratch, uint32_t, count);
    uint8_t *flags = arena_new(writer->scratch, uint8_t, count);
    uint64_t *address = arena_new(writer->scratch, uint64_t, count);
    const bool *is_used = find_used(writer);
    for (uint32_t i = 0; i < count; i++) {
        const struct frame *frame = &flame->frames[i];
        if (!is_used[i])
            continue;
        name[i] = add_string(writer, &frame->name);
        file[i] = add_string(writer, &frame->file);
        mapping[i] = add_string(writer, &frame->mapping);
        line[i] = line_of(frame);
        flags[i] = frame->flags;
        address[i] = frame->address;
    }
    put_section(writer, SECTION_FRAME_NAME, name, count * sizeof(*name));
    put_section(writer, SECTION_FRAME_FILE, file, count * sizeof(*file));
    put_section(writer, SECTION_FRAME_LINE, line, count * sizeof(*line));
    put_section(writer, SECTION_FRAME_MAPPING, mapping, count * sizeof(*mapping));
    put_section(writer, SECTION_FRAME_FLAGS, flags, count * sizeof(*flags));
    if (flame->view->group == VIEW_BY_ADDRESS)
        put_section(writer, SECTION_FRAME_ADDRESS, address, count * sizeof(*address));
}

static void put_shared_origins(struct writer *writer)
{
    const struct view *view = writer->flame->view;
    uint32_t *origins = arena_new_raw(writer->scratch, uint32_t, view->shared_origin_count);
    for (uint32_t i = 0; i < view->shared_origin_count; i++)
        origins[i] = add_string(writer, &view->shared_origins[i]);
    put_section(writer, SECTION_SHARED_ORIGIN, origins,
                view->shared_origin_count * sizeof(*origins));
}

/* ---- metadata ---- */

static void put_json_text(struct buf *json, const char *name, struct span text)
{
    buf_printf(json, ",\"%s\":", name);
    buf_append_json(json, text);
}

static void put_json_types(struct buf *json, const struct profile *profile)
{
    buf_append_text(json, ",\"sample_types\":[");
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        buf_append_text(json, i ? ",{\"type\":" : "{\"type\":");
        buf_append_json(json, profile_string(profile, profile->value_types[i].type));
        buf_append_text(json, ",\"unit\":");
        buf_append_json(json, profile_string(profile, profile->value_types[i].unit));
        buf_append_byte(json, '}');
    }
    buf_append_byte(json, ']');
    put_json_text(json, "default_sample_type",
                  profile_string(profile, profile->default_sample_type));
}

static void put_json_filters(struct buf *json, const struct flame_binary_options *options)
{
    bool is_first = true;
    buf_append_text(json, ",\"filters\":[");
    for (size_t i = 0; i < options->rule_count; i++) {
        const struct filter_rule *rule = &options->rules[i];
        if (rule->pattern.size == 0)
            continue;
        buf_printf(json, "%s{\"action\":\"%s\",\"pattern\":", is_first ? "" : ",",
                   filter_action_name(rule->action));
        buf_append_json(json, rule->pattern);
        buf_append_byte(json, '}');
        is_first = false;
    }
    buf_append_byte(json, ']');
}

static void put_metadata(struct writer *writer, const struct flame_binary_options *options)
{
    const struct flame *flame = writer->flame;
    const struct view *view = flame->view;
    buf_auto json;
    buf_init(&json, METADATA_BYTES_MAX);
    buf_append_text(&json, "{\"sample_type\":");
    buf_append_json(&json, view_sample_type(view));
    put_json_text(&json, "unit", view_unit(view));
    buf_printf(&json, ",\"sample_type_index\":%u", view->value_type);
    put_json_types(&json, view->profile);
    put_json_text(&json, "group_by", view->group_by);
    put_json_text(&json, "title", options->title);
    put_json_text(&json, "description", options->description);
    buf_printf(&json, ",\"total\":%lld,\"kept\":%lld,\"base_total\":%lld,\"base_kept\":%lld",
               (long long)view->total[VIEW_SIDE_B], (long long)view->kept[VIEW_SIDE_B],
               (long long)view->total[VIEW_SIDE_A], (long long)view->kept[VIEW_SIDE_A]);
    buf_printf(&json, ",\"normalised\":%s", view->is_normalised ? "true" : "false");
    if (flame->cut_count)
        buf_printf(&json, ",\"cut\":{\"nodes\":%llu,\"value\":%lld}",
                   (unsigned long long)flame->cut_hidden_count, (long long)flame->cut_value);
    else
        buf_append_text(&json, ",\"cut\":null");
    put_json_text(&json, "drop_frames", profile_string(view->profile, view->profile->drop_frames));
    buf_printf(&json, ",\"drop_frames_failed\":%s", view->drop_frames_failed ? "true" : "false");
    put_json_filters(&json, options);
    if (flame->root_path)
        buf_printf(&json, ",\"root\":\"%016llx\"", (unsigned long long)flame->root_path);
    if (raw_path_may_be(view))
        buf_append_text(&json, ",\"named_later\":true");
    if (raw_path_has_sent_names(view))
        buf_append_text(&json, ",\"sent_names_replaced\":true");
    if (options->renamed.size) {
        buf_append_text(&json, ",\"renamed\":");
        buf_append_span(&json, options->renamed);
        if (options->renamed_is_cut)
            buf_append_text(&json, ",\"renamed_is_cut\":true");
    }
    if (options->above)
        buf_printf(&json, ",\"above\":\"%016llx\"", (unsigned long long)options->above);
    if (options->below)
        buf_printf(&json, ",\"below\":\"%016llx\"", (unsigned long long)options->below);
    if (options->binaries.size) {
        buf_append_text(&json, ",\"binaries\":");
        buf_append_span(&json, options->binaries);
    }
    if (options && options->symbolization.size) {
        buf_append_text(&json, ",\"symbolization\":");
        buf_append_span(&json, options->symbolization);
    }
    buf_append_byte(&json, '}');
    writer->output->has_failed |= buf_failed(&json);
    put_section(writer, SECTION_METADATA, json.data, json.size);
}

/* ---- header ---- */

/* Written last, over the zeros that were reserved for it. */
static void write_header(struct writer *writer)
{
    const struct flame *flame = writer->flame;
    buf_auto header;
    buf_init(&header, HEADER_BYTES + SECTIONS_MAX * SECTION_BYTES);
    buf_append_text(&header, "PFFLAME2");
    buf_append_u32(&header, (uint32_t)(flame->view->is_diff ? FLAG_DIFF : 0) |
                                (uint32_t)(flame->cut_count ? FLAG_CUT : 0) |
                                (uint32_t)(writer->is_inexact ? FLAG_INEXACT : 0));
    buf_append_u32(&header, flame->node_count);
    buf_append_u32(&header, flame->frame_count);
    buf_append_u32(&header, writer->string_count);
    buf_append_f64(&header, (double)flame->view->total[VIEW_SIDE_B]);
    buf_append_f64(&header, (double)flame->view->total[VIEW_SIDE_A]);
    buf_append_u32(&header, writer->section_count);
    while (header.size < HEADER_BYTES)
        buf_append_byte(&header, 0);
    for (uint32_t i = 0; i < writer->section_count; i++) {
        buf_append_u32(&header, writer->sections[i].id);
        buf_append_u32(&header, 0);
        buf_append_u64(&header, writer->sections[i].offset);
        buf_append_u64(&header, writer->sections[i].length);
    }
    assert(!buf_failed(&header));
    memcpy(writer->output->data + writer->start, header.data, header.size);
}

/* Reserves the typical size at once, since growing would touch fresh memory several times. */
static void reserve_most(struct writer *writer)
{
    enum { NODE_BYTES = 10 }; /* frame, depth, and a value for every second node */
    struct buf *output = writer->output;
    const size_t most = (size_t)writer->flame->node_count * NODE_BYTES;
    if (!buf_failed(output) && most <= output->max_size - output->size)
        (void)buf_reserve(output, most);
}

static void write_all(struct writer *writer, const struct flame_binary_options *options)
{
    static const uint8_t zeros[HEADER_BYTES + SECTIONS_MAX * SECTION_BYTES];
    reserve_most(writer);
    buf_append(writer->output, zeros, sizeof(zeros));
    put_nodes(writer);
    put_frames(writer);
    if (writer->flame->view->shared_origin_count)
        put_shared_origins(writer);
    put_strings(writer);
    put_metadata(writer, options);
    if (writer->flame->cut_count)
        put_cuts(writer);
    align(writer);
    writer->output->has_failed |= buf_failed(&writer->string_bytes);
    if (!buf_failed(writer->output))
        write_header(writer);
}

enum err_code flame_binary_write(const struct flame *flame,
                                 const struct flame_binary_options *options, struct buf *output,
                                 struct err *err)
{
    static const struct flame_binary_options nothing;
    arena_auto scratch = arena_create();
    struct writer writer = {
        .flame = flame, .scratch = scratch, .output = output, .start = output->size};
    size_t strings_max = (size_t)flame->frame_count * 3 + flame->view->shared_origin_count + 1;
    writer.string_ends = arena_new_raw(scratch, uint32_t, strings_max);
    writer.string_ends[0] = 0;
    writer.string_count = 1;
    buf_init(&writer.string_bytes, STRING_BYTES_MAX);
    map_bytes_init(&writer.strings, flame->frame_count);
    map_bytes_init(&writer.spans, flame->frame_count);
    write_all(&writer, options ? options : &nothing);
    map_bytes_fini(&writer.strings);
    map_bytes_fini(&writer.spans);
    buf_fini(&writer.string_bytes);
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "the flame graph is more than %zu bytes",
                       output->max_size);
    return ERR_NONE;
}
