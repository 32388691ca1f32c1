#include "lib/profile/pyroscope/pyroscope_push.h"

#include "lib/base/arena.h"
#include "lib/base/base64.h"
#include "lib/base/err.h"
#include "lib/profile/formats/json_tree.h"
#include "lib/profile/protobuf.h"

#include <assert.h>

/* The number of labels beginning with "__" that a series may have in addition to its own. */
enum { RESERVED_LABELS_MAX = 32 };

struct reader {
    struct arena *arena;
    struct batch_limits limits;
    struct pyroscope_push_series *series;
    uint32_t series_count;
    struct pyroscope_push_profile *profiles;
    uint32_t profile_count;
    uint32_t profile_capacity;
};

/* A series being read. */
struct draft {
    struct pyroscope_push_series series;
    struct batch_text_label *labels; /* space for all of them and service_name */
    size_t label_capacity;
    bool has_service_name;
};

/* ---- both encodings ---- */

static enum err_code start_series(struct reader *reader, size_t label_count, struct draft *draft,
                                  struct err *err)
{
    size_t limit = (size_t)reader->limits.series_labels + RESERVED_LABELS_MAX;
    if (label_count > limit)
        return err_set(err, ERR_TOO_LARGE, "series %u has %zu labels; the limit is %u",
                       reader->series_count + 1, label_count, reader->limits.series_labels);
    *draft = (struct draft){.label_capacity = label_count + 1};
    draft->labels = arena_new(reader->arena, struct batch_text_label, draft->label_capacity);
    draft->series.labels = draft->labels;
    return ERR_NONE;
}

static void add_label(struct draft *draft, struct span name, struct span value)
{
    if (span_equal_text(name, "__name__"))
        draft->series.name = value;
    else if (span_equal_text(name, "__delta__"))
        draft->series.is_ready = span_equal_text(value, "false");
    else if (span_equal_text(name, "__session_id__"))
        draft->series.session = value;
    if (span_starts_with(name, "__"))
        return;
    if (batch_labels_is_service(name) && value.size)
        draft->has_service_name = true;
    draft->labels[draft->series.label_count++] =
        (struct batch_text_label){.name = name, .value = value};
}

static enum err_code add_profile(struct reader *reader, struct span bytes, struct span id,
                                 struct err *err)
{
    if (bytes.size == 0)
        return ERR_NONE;
    if (reader->profile_count == reader->limits.profiles)
        return err_set(err, ERR_TOO_LARGE, "more than %u profiles in one request",
                       reader->limits.profiles);
    arena_reserve(reader->arena, reader->profiles, reader->profile_capacity,
                  reader->profile_count + 1);
    reader->profiles[reader->profile_count++] =
        (struct pyroscope_push_profile){.series = reader->series_count, .bytes = bytes, .id = id};
    return ERR_NONE;
}

static void finish_series(struct reader *reader, struct draft *draft)
{
    if (!draft->has_service_name)
        draft->labels[draft->series.label_count++] = (struct batch_text_label){
            .name = SPAN_LITERAL("service_name"), .value = SPAN_LITERAL("unknown_service")};
    reader->series[reader->series_count++] = draft->series;
}

static enum err_code make_series(struct reader *reader, size_t count, struct err *err)
{
    if (count > reader->limits.series)
        return err_set(err, ERR_TOO_LARGE, "%zu series in one request; the limit is %u", count,
                       reader->limits.series);
    reader->series = arena_new(reader->arena, struct pyroscope_push_series, count);
    return ERR_NONE;
}

/* ---- protobuf ---- */

enum { SERIES = 1, SERIES_LABEL = 1, SERIES_SAMPLE = 2, PAIR_NAME = 1, PAIR_VALUE = 2 };
enum { SAMPLE_RAW = 1, SAMPLE_ID = 2 };

static enum err_code malformed(const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "the request is no PushRequest: %s is malformed", what);
}

/* Reads the next field that is a message, text or bytes, and returns the position after it. At the
 * end field->id is 0; NULL if the bytes are malformed. */
static const uint8_t *next_bytes(const uint8_t *at, const uint8_t *end,
                                 struct protobuf_field *field)
{
    while (at && at < end) {
        at = protobuf_read_field(at, end, field);
        if (at && field->type == PROTOBUF_BYTES)
            return at;
    }
    field->id = 0;
    return at;
}

static bool count_fields(struct span message, uint32_t id, size_t *ret_count)
{
    const uint8_t *end = message.data + message.size;
    struct protobuf_field field;
    *ret_count = 0;
    for (const uint8_t *at = message.data; at < end;) {
        at = next_bytes(at, end, &field);
        if (!at)
            return false;
        *ret_count += field.id == id;
    }
    return true;
}

/* Reads a message of two texts; the last occurrence of each is used. */
static bool read_pair(struct span message, struct span *ret_first, struct span *ret_second)
{
    static_assert(PAIR_NAME == 1 && PAIR_VALUE == 2 && SAMPLE_RAW == 1 && SAMPLE_ID == 2,
                  "labels and samples have the same two numbers");
    const uint8_t *end = message.data + message.size;
    struct protobuf_field field;
    *ret_first = *ret_second = span_of(NULL, 0);
    for (const uint8_t *at = message.data; at < end;) {
        at = next_bytes(at, end, &field);
        if (!at)
            return false;
        if (field.id == 1)
            *ret_first = field.bytes;
        else if (field.id == 2)
            *ret_second = field.bytes;
    }
    return true;
}

static enum err_code read_series(struct reader *reader, struct span message, struct err *err)
{
    size_t label_count;
    struct draft draft;
    if (!count_fields(message, SERIES_LABEL, &label_count))
        return malformed("a series", err);
    enum err_code code = start_series(reader, label_count, &draft, err);
    const uint8_t *at = message.data, *end = message.data + message.size;
    struct span first, second;
    struct protobuf_field field;
    while (!code && at < end) {
        at = next_bytes(at, end, &field);
        if (field.id != SERIES_LABEL && field.id != SERIES_SAMPLE)
            continue;
        if (!read_pair(field.bytes, &first, &second))
            return malformed(field.id == SERIES_LABEL ? "a label" : "a sample", err);
        if (field.id == SERIES_LABEL)
            add_label(&draft, first, second);
        else
            code = add_profile(reader, first, second, err);
    }
    if (code)
        return code;
    finish_series(reader, &draft);
    return ERR_NONE;
}

static enum err_code read_protobuf(struct reader *reader, struct span body, struct err *err)
{
    size_t series_count;
    if (body.size == 0)
        return ERR_NONE;
    if (!count_fields(body, SERIES, &series_count))
        return malformed("it", err);
    enum err_code code = make_series(reader, series_count, err);
    const uint8_t *at = body.data, *end = body.data + body.size;
    struct protobuf_field field;
    while (!code && at < end) {
        at = next_bytes(at, end, &field);
        if (field.id == SERIES)
            code = read_series(reader, field.bytes, err);
    }
    return code;
}

/* ---- JSON ---- */

static bool decode_base64(struct arena *arena, struct span text, struct span *ret_bytes)
{
    size_t size;
    uint8_t *bytes = arena_alloc_raw(arena, base64_max_bytes(text.size), 1);
    if (!base64_decode(text, bytes, &size))
        return false;
    *ret_bytes = span_of(bytes, size);
    return true;
}

/* Finds a list; an absent or null member is an empty list. False for any other value. */
static bool find_list(const json_t *object, const char *name, const json_t **ret_list)
{
    *ret_list = json_object_get(object, name);
    if (!*ret_list || json_is_null(*ret_list))
        *ret_list = NULL;
    return json_is_object(object) && (!*ret_list || json_is_array(*ret_list));
}

/* Copies a text to the arena, which outlives the tree. */
static struct span keep_text(struct reader *reader, const json_t *object, const char *name)
{
    struct span text = json_tree_text(object, name);
    return span_of(arena_strndup(reader->arena, text.data, text.size), text.size);
}

static enum err_code read_json_sample(struct reader *reader, const json_t *sample, struct err *err)
{
    struct span text = json_tree_text(sample, "rawProfile"), bytes;
    if (text.size == 0)
        text = json_tree_text(sample, "raw_profile");
    if (!json_is_object(sample) || !decode_base64(reader->arena, text, &bytes))
        return err_set(err, ERR_INVALID,
                       "series %u: a sample is not an object with \"rawProfile\" in base64",
                       reader->series_count + 1);
    return add_profile(reader, bytes, keep_text(reader, sample, "ID"), err);
}

static enum err_code read_json_series(struct reader *reader, const json_t *object, struct err *err)
{
    const json_t *labels, *samples;
    struct draft draft;
    if (!find_list(object, "labels", &labels) || !find_list(object, "samples", &samples))
        return err_set(err, ERR_INVALID,
                       "series %u is not an object with lists of labels and samples",
                       reader->series_count + 1);
    enum err_code code = start_series(reader, json_array_size(labels), &draft, err);
    for (size_t i = 0; !code && i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i);
        if (!json_is_object(label))
            return err_set(err, ERR_INVALID, "series %u: a label is not an object",
                           reader->series_count + 1);
        add_label(&draft, keep_text(reader, label, "name"), keep_text(reader, label, "value"));
    }
    for (size_t i = 0; !code && i < json_array_size(samples); i++)
        code = read_json_sample(reader, json_array_get(samples, i), err);
    if (code)
        return code;
    finish_series(reader, &draft);
    return ERR_NONE;
}

static enum err_code read_json(struct reader *reader, struct span body,
                               const struct profile_limits *limits, struct err *err)
{
    json_t *root;
    const json_t *list;
    enum err_code code = json_tree_load(body, limits, "PushRequest", &root, err);
    if (code)
        return code;
    if (!find_list(root, "series", &list))
        code = err_set(err, ERR_INVALID, "the request is not an object with a list \"series\"");
    if (!code)
        code = make_series(reader, json_array_size(list), err);
    for (size_t i = 0; !code && i < json_array_size(list); i++)
        code = read_json_series(reader, json_array_get(list, i), err);
    json_tree_free(root, body);
    return code;
}

enum err_code pyroscope_push_parse(struct arena *arena, struct span body,
                                   enum connect_encoding encoding,
                                   const struct batch_limits *limits,
                                   const struct profile_limits *profile_limits,
                                   const struct pyroscope_push **ret_push, struct err *err)
{
    struct reader reader = {.arena = arena, .limits = batch_limits_resolve(limits)};
    enum err_code code = encoding == CONNECT_JSON ? read_json(&reader, body, profile_limits, err)
                                                  : read_protobuf(&reader, body, err);
    if (code)
        return code;
    struct pyroscope_push *push = arena_new(arena, struct pyroscope_push, 1);
    *push = (struct pyroscope_push){.series = reader.series,
                                    .series_count = reader.series_count,
                                    .profiles = reader.profiles,
                                    .profile_count = reader.profile_count};
    *ret_push = push;
    return ERR_NONE;
}
