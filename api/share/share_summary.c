#include "api/share/share_summary.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/profile/profile.h"
#include "lib/profile/prune.h"
#include "lib/profile/quantity.h"
#include "lib/profile/symbolize.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void append_value_type(struct buf *buf, const struct profile *profile,
                              const struct profile_value_type *value_type)
{
    buf_append_text(buf, "{\"type\":");
    buf_append_json(buf, profile_string(profile, value_type->type));
    buf_append_text(buf, ",\"unit\":");
    buf_append_json(buf, profile_string(profile, value_type->unit));
    buf_append_byte(buf, '}');
}

static void append_totals(struct buf *buf, const struct profile *profile, struct arena *arena)
{
    uint32_t type_count = profile->value_type_count;
    struct total {
        int64_t value;
        uint64_t magnitude;
        bool is_too_large;
    } *totals = arena_new(arena, struct total, type_count);
    const int64_t *values = profile->values;
    for (uint32_t sample = 0; sample < profile->sample_count; sample++, values += type_count) {
        for (uint32_t type = 0; type < type_count; type++) {
            if (profile_can_add(&totals[type].magnitude, values[type]))
                totals[type].value += values[type];
            else
                totals[type].is_too_large = true;
        }
    }
    buf_append_text(buf, ",\"totals\":[");
    for (uint32_t type = 0; type < type_count; type++) {
        buf_append_text(buf, type ? "," : "");
        if (totals[type].is_too_large)
            buf_append_text(buf, "null");
        else
            buf_printf(buf, "%" PRId64, totals[type].value);
    }
    buf_append_byte(buf, ']');
}

/* The string of the innermost function's name; 0 if the sample has none. */
static uint32_t leaf_name(const struct profile *profile, const struct prune *prune, uint32_t sample)
{
    const uint32_t *stack = profile->stack + profile->stack_start[sample];
    const size_t depth = (size_t)(profile->stack_start[sample + 1] - profile->stack_start[sample]);
    const size_t removed = prune_stack(prune, stack, depth);
    if (removed == depth)
        return 0;
    const uint32_t leaf = stack[removed];
    if (!profile->locations[leaf].line_count)
        return 0;
    const uint32_t function = profile->lines[prune->first_line[leaf]].function;
    return function == PROFILE_NONE ? 0 : profile->functions[function].name;
}

/* As in reports, without the frames that drop_frames removes. Left out if no function has a name,
 * or if the sums exceed 64 bits. */
static void append_top_function(struct buf *buf, const struct profile *profile, uint32_t type,
                                struct arena *arena)
{
    struct prune prune;
    prune_create(arena, profile, PRUNE_RECEIVE_CPU_MS, &prune);
    int64_t *self = arena_new(arena, int64_t, profile->string_count);
    const int64_t *value = profile->values + type;
    uint32_t top = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++, value += profile->value_type_count) {
        const uint32_t name = leaf_name(profile, &prune, i);
        if (name && __builtin_add_overflow(self[name], *value, &self[name]))
            return;
    }
    for (uint32_t i = 1; i < profile->string_count; i++) {
        if (self[i] > self[top])
            top = i;
    }
    const struct span name = profile_string(profile, top);
    if (!top || name.size > SHARE_SUMMARY_NAME_BYTES)
        return;
    buf_append_text(buf, ",\"top_function\":{\"name\":");
    buf_append_json(buf, name);
    buf_printf(buf, ",\"self\":%" PRId64 "}", self[top]);
}

/* The first member, so that share_summary_read_cost finds it without reading names. */
static void append_cost(struct buf *buf, const struct profile *profile, uint64_t decode_bytes)
{
    buf_printf(buf,
               "{\"cost\":{\"decode_bytes\":%" PRIu64
               ",\"decoded_bytes\":%zu,\"stack_frames\":%" PRIu64 ",\"samples\":%" PRIu32 "}",
               decode_bytes, arena_bytes(profile->arena), profile_count_frames(profile),
               profile->sample_count);
}

bool share_summary_read_cost(const char *summary, struct share_cost *ret_cost)
{
    struct share_cost cost;
    if (sscanf(summary,
               "{\"cost\":{\"decode_bytes\":%" SCNu64 ",\"decoded_bytes\":%" SCNu64
               ",\"stack_frames\":%" SCNu64 ",\"samples\":%" SCNu64,
               &cost.decode_bytes, &cost.decoded_bytes, &cost.stack_frames,
               &cost.sample_count) != 4)
        return false;
    *ret_cost = cost;
    return true;
}

static void append_sample_types(struct buf *buf, const struct profile *profile,
                                uint32_t default_type)
{
    buf_append_text(buf, ",\"sample_types\":[");
    for (uint32_t type = 0; type < profile->value_type_count; type++) {
        if (type)
            buf_append_byte(buf, ',');
        append_value_type(buf, profile, &profile->value_types[type]);
    }
    buf_append_text(buf, "],\"default_sample_type\":");
    buf_append_json(buf, profile_string(profile, profile->value_types[default_type].type));
}

/* A list of shares shows the types of each. */
static enum err_code check_sample_types(const struct profile *profile, size_t bytes,
                                        struct err *err)
{
    if (profile->value_type_count > SHARE_SUMMARY_SAMPLE_TYPES)
        return err_set(err, ERR_TOO_LARGE,
                       "the profile has %" PRIu32 " sample types, limit %d: record fewer at once",
                       profile->value_type_count, SHARE_SUMMARY_SAMPLE_TYPES);
    if (bytes > SHARE_SUMMARY_SAMPLE_TYPES_BYTES)
        return err_set(err, ERR_TOO_LARGE,
                       "the names and units of the sample types exceed %d bytes together: shorten "
                       "them, or record fewer at once",
                       SHARE_SUMMARY_SAMPLE_TYPES_BYTES);
    return ERR_NONE;
}

static void append_comments(struct buf *buf, const struct profile *profile)
{
    size_t bytes = 0;
    buf_append_text(buf, ",\"comments\":[");
    for (uint32_t i = 0; i < profile->comment_count && i < SHARE_SUMMARY_COMMENTS; i++) {
        struct span comment = profile_string(profile, profile->comments[i]);
        bytes += comment.size;
        if (bytes > SHARE_SUMMARY_COMMENT_BYTES)
            break;
        if (i)
            buf_append_byte(buf, ',');
        buf_append_json(buf, comment);
    }
    buf_printf(buf, "],\"comment_count\":%" PRIu32, profile->comment_count);
}

static void append_build_ids(struct buf *buf, const struct profile *profile)
{
    struct map_u64 seen;
    uint32_t count = 0;
    map_u64_init(&seen, 0);
    buf_append_text(buf, ",\"build_ids\":[");
    for (uint32_t i = 0; i < profile->mapping_count; i++) {
        uint32_t build_id = profile->mappings[i].build_id;
        if (build_id == 0 || map_u64_find(&seen, build_id) != MAP_ABSENT)
            continue;
        map_u64_add(&seen, build_id, 1);
        struct span text = profile_string(profile, build_id);
        if (count < SHARE_SUMMARY_BUILD_IDS && text.size <= 256) {
            if (count)
                buf_append_byte(buf, ',');
            buf_append_json(buf, text);
        }
        count++;
    }
    map_u64_fini(&seen);
    buf_printf(buf, "],\"build_id_count\":%" PRIu32, count);
}

static void append_unnamed(struct buf *buf, const struct profile *profile, struct arena *arena)
{
    const struct symbolize_binary *binaries;
    const uint32_t found = symbolize_find_binaries(profile, arena, &binaries);
    uint32_t count = 0;
    buf_printf(buf, ",\"unnamed_count\":%" PRIu32 ",\"unnamed\":[", found);
    for (uint32_t i = 0; i < found && count < SHARE_SUMMARY_UNNAMED; i++) {
        if (binaries[i].build_id.size + binaries[i].file.size > SHARE_SUMMARY_UNNAMED_BYTES)
            continue;
        buf_append_text(buf, count++ ? ",{\"build_id\":" : "{\"build_id\":");
        buf_append_json(buf, binaries[i].build_id);
        buf_append_text(buf, ",\"file\":");
        buf_append_json(buf, binaries[i].file);
        buf_append_byte(buf, '}');
    }
    buf_append_byte(buf, ']');
}

/* In the order of their first samples. */
static void append_sample_labels(struct buf *buf, const struct profile *profile,
                                 struct arena *arena)
{
    uint8_t *is_listed = arena_new(arena, uint8_t, profile->string_count);
    uint32_t end = profile->sample_count ? profile->label_start[profile->sample_count] : 0;
    uint32_t count = 0;
    buf_append_text(buf, ",\"sample_labels\":[");
    for (uint32_t i = 0; i < end; i++) {
        uint32_t key = profile->labels[i].key;
        if (is_listed[key])
            continue;
        is_listed[key] = 1;
        struct span name = profile_string(profile, key);
        if (count < SHARE_SUMMARY_LABELS && name.size <= SHARE_SUMMARY_LABEL_BYTES) {
            buf_append_text(buf, count ? "," : "");
            buf_append_json(buf, name);
            count++;
        }
    }
    buf_append_byte(buf, ']');
}

enum err_code share_summary_append(const struct profile *profile, uint64_t decode_bytes,
                                   struct buf *buf, struct err *err)
{
    uint32_t default_type;
    enum err_code code = profile_find_value_type(profile, SPAN_LITERAL(""), &default_type, err);
    if (code)
        return code;
    arena_auto arena = arena_create();
    append_cost(buf, profile, decode_bytes);
    const size_t before = buf->size;
    append_sample_types(buf, profile, default_type);
    code = check_sample_types(profile, buf->size - before, err);
    if (code)
        return code;
    buf_printf(buf, ",\"default_sample_type_index\":%" PRIu32, default_type);
    append_totals(buf, profile, arena);
    append_top_function(buf, profile, default_type, arena);
    buf_printf(buf,
               ",\"sample_count\":%" PRIu32 ",\"location_count\":%" PRIu32
               ",\"function_count\":%" PRIu32 ",\"time_ns\":%" PRId64 ",\"duration_ns\":%" PRId64
               ",\"period\":%" PRId64 ",\"period_type\":",
               profile->sample_count, profile->location_count, profile->function_count,
               profile->time_ns, profile->duration_ns, profile->period);
    append_value_type(buf, profile, &profile->period_type);
    append_comments(buf, profile);
    append_build_ids(buf, profile);
    append_unnamed(buf, profile, arena);
    append_sample_labels(buf, profile, arena);
    buf_append_byte(buf, '}');
    if (buf_failed(buf))
        return err_set(err, ERR_TOO_LARGE,
                       "the names of sample types, comments and build ids exceed %d bytes "
                       "together: leave comments out, or shorten them",
                       SHARE_SUMMARY_BYTES);
    return ERR_NONE;
}

void share_summary_append_list(const struct profile *profile, struct buf *buf)
{
    uint32_t default_type = 0;
    struct err ignored;
    (void)!profile_find_value_type(profile, SPAN_LITERAL(""), &default_type, &ignored);
    buf_printf(buf,
               "{\"sample_count\":%" PRIu32 ",\"time_ns\":%" PRId64 ",\"duration_ns\":%" PRId64,
               profile->sample_count, profile->time_ns, profile->duration_ns);
    append_sample_types(buf, profile, default_type);
    buf_append_byte(buf, '}');
}

static struct span copy_member(struct arena *arena, const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    size_t size = json_string_length(text);
    return size ? span_of(arena_strndup(arena, json_string_value(text), size), size)
                : (struct span){0};
}

/* As profile_find_value_type; SIZE_MAX if there is none. */
static size_t find_type(const json_t *types, struct span wanted)
{
    uint64_t index;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const json_t *name = json_object_get(json_array_get(types, i), "type");
        if (span_equal(span_of(json_string_value(name), json_string_length(name)), wanted))
            return i;
    }
    return span_parse_u64(wanted, &index) && index < json_array_size(types) ? index : SIZE_MAX;
}

/*
 * Parses the members before sample_count: cost, sample types, totals and the top function, which
 * are at most some 100 KiB. The lists of comments, build ids and binaries behind them may be ten
 * times as long, and pages that show a total do not read them. The text of the key cannot be part
 * of a string, where its quotes would have backslashes. A summary with another order of members is
 * parsed as a whole.
 */
static json_t *parse_head(const char *summary, struct arena *arena)
{
    const char *end = strstr(summary, ",\"sample_count\":");
    if (end) {
        const char *head = arena_printf(arena, "%.*s}", (int)(end - summary), summary);
        json_t *root = json_loads(head, JSON_ALLOW_NUL, NULL);
        if (json_object_get(root, "totals"))
            return root;
        json_decref(root);
    }
    return json_loads(summary, JSON_ALLOW_NUL, NULL);
}

static enum err_code read_total(const json_t *root, struct span wanted, struct arena *arena,
                                struct share_total *ret_total, struct err *err)
{
    const json_t *index = json_object_get(root, "default_sample_type_index");
    const json_t *types = json_object_get(root, "sample_types");
    size_t at = wanted.size ? find_type(types, wanted) : (size_t)json_integer_value(index);
    if (at == SIZE_MAX && json_is_array(types))
        return err_set(err, ERR_INVALID, "the profile has no such sample type");
    const json_t *type = json_array_get(types, at);
    const json_t *total = json_array_get(json_object_get(root, "totals"), at);
    bool is_known = json_is_integer(total);
    bool is_whole =
        json_is_integer(index) && json_is_object(type) && (is_known || json_is_null(total));
    if (is_whole)
        *ret_total = (struct share_total){.is_known = is_known,
                                          .value = json_integer_value(total),
                                          .type = copy_member(arena, type, "type"),
                                          .unit = copy_member(arena, type, "unit")};
    return is_whole ? ERR_NONE : err_set(err, ERR_CORRUPT, "the summary of a share has no totals");
}

enum err_code share_summary_read_total(const char *summary, struct span wanted, struct arena *arena,
                                       struct share_total *ret_total, struct err *err)
{
    json_t *root = parse_head(summary, arena);
    const enum err_code code = read_total(root, wanted, arena, ret_total, err);
    json_decref(root);
    return code;
}

static const char *describe(const json_t *root, struct arena *arena)
{
    struct share_total total;
    struct err ignored;
    char value[QUANTITY_TEXT_BYTES], percent[QUANTITY_TEXT_BYTES];
    if (read_total(root, (struct span){0}, arena, &total, &ignored) || !total.is_known)
        return "";
    quantity_format((double)total.value, total.unit, value);
    const bool is_type_redundant = span_equal(total.type, total.unit);
    const char *text =
        arena_printf(arena, "%s%s%.*s in total.", value, is_type_redundant ? "" : " ",
                     is_type_redundant ? 0 : (int)total.type.size,
                     is_type_redundant ? "" : (const char *)total.type.data);
    const json_t *top = json_object_get(root, "top_function");
    const char *name = json_string_value(json_object_get(top, "name"));
    const double self = (double)json_integer_value(json_object_get(top, "self"));
    if (name && total.value > 0 && self > 0)
        text = arena_printf(arena, "%s Top function: %s, %s.", text, name,
                            quantity_format_percent(100 * self / (double)total.value, percent));
    return text;
}

const char *share_summary_describe(const char *summary, struct arena *arena)
{
    json_t *root = parse_head(summary, arena);
    const char *text = describe(root, arena);
    json_decref(root);
    return text;
}

bool share_summary_has_build_ids(const char *summary)
{
    return !strstr(summary, "\"build_ids\":[]");
}

static uint32_t count_unlisted(const json_t *root, size_t listed)
{
    const json_int_t count = json_integer_value(json_object_get(root, "unnamed_count"));
    return count > (json_int_t)listed && count <= UINT32_MAX ? (uint32_t)count - (uint32_t)listed
                                                             : 0;
}

void share_summary_read_unnamed(const char *summary, struct arena *arena,
                                const struct symbolize_binary **ret_binaries, uint32_t *ret_count,
                                uint32_t *ret_unlisted)
{
    *ret_count = *ret_unlisted = 0;
    *ret_binaries = NULL;
    if (strstr(summary,
               "\"unnamed_count\":0,")) /* the most common case, without parsing the rest */
        return;
    json_t *root = json_loads(summary, JSON_ALLOW_NUL, NULL);
    const json_t *list = json_object_get(root, "unnamed");
    const size_t count = json_array_size(list);
    struct symbolize_binary *binaries = arena_new(arena, struct symbolize_binary, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        binaries[i] = (struct symbolize_binary){.build_id = copy_member(arena, item, "build_id"),
                                                .file = copy_member(arena, item, "file")};
    }
    *ret_binaries = binaries;
    *ret_count = (uint32_t)count;
    *ret_unlisted = count_unlisted(root, count);
    json_decref(root);
}

struct span share_summary_default_sample_type(struct span summary)
{
    static const char key[] = "\"default_sample_type\":";
    const uint8_t *found = memmem(summary.data, summary.size, key, sizeof(key) - 1);
    if (!found)
        return SPAN_LITERAL("\"\"");
    const uint8_t *start = found + sizeof(key) - 1;
    const uint8_t *end = summary.data + summary.size;
    const uint8_t *at = start + 1;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    return at < end ? span_of(start, (size_t)(at + 1 - start)) : SPAN_LITERAL("\"\"");
}
