#include "lib/profile/otlp/otlp_encode.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/otlp/otlp_wire.h"

enum { PIECE_MAX_BYTES = 1 << 30 };

/* The runtime of a frame, named as in OpenTelemetry's conventions (profile.frame.type): that of the
 * first row of frame_types with which the file name of the frame's mapping begins. Frames of
 * interpreters are in mappings such as [cpython]. */
enum frame_type {
    FRAME_TYPE_NATIVE,
    FRAME_TYPE_KERNEL,
    FRAME_TYPE_CPYTHON,
    FRAME_TYPE_RUBY,
    FRAME_TYPE_COUNT
};

static const struct {
    const char *name;
    const char *mapping; /* prefix of its file name */
} frame_types[FRAME_TYPE_COUNT] = {
    [FRAME_TYPE_NATIVE] = {"native", "/"},
    [FRAME_TYPE_KERNEL] = {"kernel", "[kernel"},
    [FRAME_TYPE_CPYTHON] = {"cpython", "[cpython]"},
    [FRAME_TYPE_RUBY] = {"ruby", "[ruby]"},
};

/* The nested messages of the dictionary. Each kind has a buffer of its own, so that an attribute or
 * a stack can be added while an entry of another table is being written. */
enum piece {
    PIECE_ENTRY, /* an entry of the table of mappings, functions or locations */
    PIECE_LINE,
    PIECE_ATTRIBUTE,
    PIECE_ATTRIBUTE_VALUE,
    PIECE_STACK,
    PIECE_STACK_LOCATIONS,
    PIECE_COUNT
};

/* The state of one request. OTLP's dictionary has two tables that struct profile lacks: attributes
 * and stacks. Entry 0 of every table means none. */
struct encoder {
    const struct profile *profile;
    struct arena *arena;
    struct span *strings; /* the profile's, as UTF-8 */
    struct buf dictionary;
    struct map_bytes attributes; /* key: struct profile_label as bytes */
    struct map_bytes stacks;     /* key: locations as bytes */
    uint32_t attribute_count;
    uint32_t stack_count;
    uint32_t build_id_key; /* string */
    uint32_t resource_key; /* the label's, or PROFILE_NONE */
    uint32_t frame_type_key;
    uint32_t frame_type_attributes[FRAME_TYPE_COUNT]; /* 0: not added yet */
    struct buf piece[PIECE_COUNT]; /* empty when no such message is being written */
};

/* ---- the wire ---- */

static void put_varint(struct buf *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(to, (uint8_t)(number | 0x80));
    buf_append_byte(to, (uint8_t)number);
}

static void put_number(struct buf *to, uint32_t field, uint64_t number)
{
    if (number == 0)
        return;
    put_varint(to, (uint64_t)field << 3 | PROTOBUF_VARINT);
    put_varint(to, number);
}

static void put_bytes(struct buf *to, uint32_t field, struct span bytes)
{
    put_varint(to, (uint64_t)field << 3 | PROTOBUF_BYTES);
    put_varint(to, bytes.size);
    buf_append_span(to, bytes);
}

static void put_fixed64(struct buf *to, uint32_t field, uint64_t number)
{
    put_varint(to, (uint64_t)field << 3 | PROTOBUF_FIXED64);
    buf_append_u64(to, number);
}

/* Writes the contents of piece as a field, and empties it. */
static void put_piece(struct buf *to, uint32_t field, struct buf *piece)
{
    put_bytes(to, field, buf_span(piece));
    if (buf_failed(piece))
        to->has_failed = true;
    buf_clear(piece);
}

/* ---- the dictionary ---- */

static void put_string_value(struct buf *to, uint32_t field, struct span text, struct buf *piece)
{
    put_bytes(piece, ANY_STRING, text);
    put_piece(to, field, piece);
}

static void put_strings(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->strings = arena_new(encoder->arena, struct span, profile->string_count);
    for (uint32_t i = 0; i < profile->string_count; i++) {
        if (span_equal_text(profile->strings[i], OTLP_RESOURCE_LABEL))
            encoder->resource_key = i;
        encoder->strings[i] = span_make_utf8(profile->strings[i], encoder->arena);
        put_bytes(&encoder->dictionary, TABLE_STRING, encoder->strings[i]);
    }
    encoder->build_id_key = profile->string_count;
    put_bytes(&encoder->dictionary, TABLE_STRING, SPAN_LITERAL("process.executable.build_id.gnu"));
    encoder->frame_type_key = profile->string_count + 1;
    put_bytes(&encoder->dictionary, TABLE_STRING, SPAN_LITERAL("profile.frame.type"));
}

static uint32_t write_attribute(struct encoder *encoder, struct profile_label label)
{
    struct buf *attribute = &encoder->piece[PIECE_ATTRIBUTE],
               *value = &encoder->piece[PIECE_ATTRIBUTE_VALUE];
    put_number(attribute, ATTRIBUTE_KEY, label.key);
    if (label.is_numeric) {
        put_varint(value, (uint64_t)ANY_INT << 3 | PROTOBUF_VARINT);
        put_varint(value, (uint64_t)label.number);
        put_piece(attribute, ATTRIBUTE_VALUE, value);
    } else {
        put_string_value(attribute, ATTRIBUTE_VALUE, encoder->strings[label.text], value);
    }
    put_number(attribute, ATTRIBUTE_UNIT, label.unit);
    put_piece(&encoder->dictionary, TABLE_ATTRIBUTE, attribute);
    return ++encoder->attribute_count;
}

/* Adds the attribute unless the dictionary has it. Returns its index. */
static uint32_t add_attribute(struct encoder *encoder, const struct profile_label *label)
{
    struct profile_label *key = arena_new(encoder->arena, struct profile_label, 1);
    key->key = label->key;
    key->text = label->text;
    key->number = label->number;
    key->unit = label->unit;
    key->is_numeric = label->is_numeric;
    const struct span bytes = span_of(key, sizeof(*key));
    const uint32_t known = map_bytes_find(&encoder->attributes, bytes);
    if (known != MAP_ABSENT)
        return known;
    return map_bytes_add(&encoder->attributes, bytes, write_attribute(encoder, *key));
}

static void put_mappings(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buf *piece = &encoder->piece[PIECE_ENTRY];
    put_piece(&encoder->dictionary, TABLE_MAPPING, piece);
    for (uint32_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        put_number(piece, MAPPING_START, mapping->start);
        put_number(piece, MAPPING_LIMIT, mapping->limit);
        put_number(piece, MAPPING_OFFSET, mapping->offset);
        put_number(piece, MAPPING_FILENAME, mapping->filename);
        if (mapping->build_id) {
            const struct profile_label label = {.key = encoder->build_id_key,
                                                .text = mapping->build_id};
            put_number(piece, MAPPING_ATTRIBUTES, add_attribute(encoder, &label));
        }
        put_piece(&encoder->dictionary, TABLE_MAPPING, piece);
    }
}

static void put_functions(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buf *piece = &encoder->piece[PIECE_ENTRY];
    put_piece(&encoder->dictionary, TABLE_FUNCTION, piece);
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        put_number(piece, FUNCTION_NAME, function->name);
        put_number(piece, FUNCTION_SYSTEM_NAME, function->system_name);
        put_number(piece, FUNCTION_FILENAME, function->filename);
        put_number(piece, FUNCTION_START_LINE, (uint64_t)function->start_line);
        put_piece(&encoder->dictionary, TABLE_FUNCTION, piece);
    }
}

/* The index in a table of the dictionary, whose entry 0 means none. */
static uint32_t table_index(uint32_t index)
{
    return index == PROFILE_NONE ? 0 : index + 1;
}

/* The attribute for the runtime of a mapping's frames; 0: unknown. */
static uint32_t frame_type_attribute(struct encoder *encoder, uint32_t mapping)
{
    const struct profile *profile = encoder->profile;
    struct buf *attribute = &encoder->piece[PIECE_ATTRIBUTE],
               *value = &encoder->piece[PIECE_ATTRIBUTE_VALUE];
    uint32_t type = 0;
    if (mapping == PROFILE_NONE)
        return 0;
    const struct span file = profile_string(profile, profile->mappings[mapping].filename);
    while (type < FRAME_TYPE_COUNT && !span_starts_with(file, frame_types[type].mapping))
        type++;
    if (type == FRAME_TYPE_COUNT)
        return 0;
    if (!encoder->frame_type_attributes[type]) {
        put_number(attribute, ATTRIBUTE_KEY, encoder->frame_type_key);
        put_string_value(attribute, ATTRIBUTE_VALUE, span_text(frame_types[type].name), value);
        put_piece(&encoder->dictionary, TABLE_ATTRIBUTE, attribute);
        encoder->frame_type_attributes[type] = ++encoder->attribute_count;
    }
    return encoder->frame_type_attributes[type];
}

static void put_locations(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buf *piece = &encoder->piece[PIECE_ENTRY], *line_piece = &encoder->piece[PIECE_LINE];
    put_piece(&encoder->dictionary, TABLE_LOCATION, piece);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        put_number(piece, LOCATION_MAPPING, table_index(location->mapping));
        put_number(piece, LOCATION_ADDRESS, location->address);
        for (uint32_t j = 0; j < location->line_count; j++) {
            const struct profile_line *line = &profile->lines[location->first_line + j];
            put_number(line_piece, LINE_FUNCTION, table_index(line->function));
            put_number(line_piece, LINE_LINE, (uint64_t)line->line);
            put_number(line_piece, LINE_COLUMN, (uint64_t)line->column);
            put_piece(piece, LOCATION_LINES, line_piece);
        }
        put_number(piece, LOCATION_ATTRIBUTES, frame_type_attribute(encoder, location->mapping));
        put_piece(&encoder->dictionary, TABLE_LOCATION, piece);
    }
}

static void put_dictionary(struct encoder *encoder)
{
    struct buf *piece = &encoder->piece[PIECE_ENTRY];
    put_strings(encoder);
    put_piece(&encoder->dictionary, TABLE_LINK, piece);
    put_piece(&encoder->dictionary, TABLE_ATTRIBUTE, piece);
    put_piece(&encoder->dictionary, TABLE_STACK, piece);
    put_mappings(encoder);
    put_functions(encoder);
    put_locations(encoder);
}

/* Adds the stack of a sample unless the dictionary has it. Returns its index. */
static uint32_t add_stack(struct encoder *encoder, uint32_t sample)
{
    const struct profile *profile = encoder->profile;
    const uint64_t start = profile->stack_start[sample], end = profile->stack_start[sample + 1];
    const struct span key =
        span_of(profile->stack + start, (end - start) * sizeof(*profile->stack));
    if (key.size == 0)
        return 0;
    const uint32_t known = map_bytes_find(&encoder->stacks, key);
    if (known != MAP_ABSENT)
        return known;
    struct buf *stack = &encoder->piece[PIECE_STACK],
               *locations = &encoder->piece[PIECE_STACK_LOCATIONS];
    for (uint64_t i = start; i < end; i++)
        put_varint(locations, profile->stack[i] + 1);
    put_piece(stack, STACK_LOCATIONS, locations);
    put_piece(&encoder->dictionary, TABLE_STACK, stack);
    return map_bytes_add(&encoder->stacks, key, ++encoder->stack_count);
}

/* ---- samples ---- */

static void put_attributes(struct encoder *encoder, uint32_t sample, struct buf *indexes)
{
    const struct profile *profile = encoder->profile;
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        if (profile->labels[i].key != encoder->resource_key)
            put_varint(indexes, add_attribute(encoder, &profile->labels[i]));
    }
}

static int64_t value_of(const struct profile *profile, uint32_t sample, uint32_t type)
{
    return profile->values[(size_t)sample * profile->value_type_count + type];
}

static void put_sample(struct encoder *encoder, uint32_t sample, uint32_t type, struct buf *to)
{
    struct buf piece, indexes;
    buf_init(&piece, PIECE_MAX_BYTES);
    buf_init(&indexes, PIECE_MAX_BYTES);
    put_number(&piece, SAMPLE_FIELD_STACK, add_stack(encoder, sample));
    put_attributes(encoder, sample, &indexes);
    if (indexes.size)
        put_piece(&piece, SAMPLE_FIELD_ATTRIBUTES, &indexes);
    put_varint(&indexes, (uint64_t)value_of(encoder->profile, sample, type));
    put_piece(&piece, SAMPLE_FIELD_VALUES, &indexes);
    put_piece(to, PROFILE_SAMPLES, &piece);
    buf_fini(&piece);
    buf_fini(&indexes);
}

static void put_value_type(struct buf *to, uint32_t field, struct profile_value_type type)
{
    buf_auto piece;
    buf_init(&piece, PIECE_MAX_BYTES);
    put_number(&piece, VALUE_TYPE_TYPE, type.type);
    put_number(&piece, VALUE_TYPE_UNIT, type.unit);
    put_piece(to, field, &piece);
}

static bool has_value(const struct profile *profile, const uint32_t *samples, uint32_t count,
                      uint32_t type)
{
    for (uint32_t i = 0; i < count; i++) {
        if (value_of(profile, samples[i], type))
            return true;
    }
    return false;
}

static void put_rest(const struct profile *profile, uint32_t type, int64_t time_ns,
                     int64_t duration_ns, struct buf *to)
{
    put_fixed64(to, PROFILE_TIME, (uint64_t)time_ns);
    put_number(to, PROFILE_DURATION, (uint64_t)duration_ns);
    if (type > 0)
        return; /* only the profile of the first value type has the period */
    put_value_type(to, PROFILE_PERIOD_TYPE, profile->period_type);
    put_number(to, PROFILE_PERIOD, (uint64_t)profile->period);
}

static void put_profile(struct encoder *encoder, const uint32_t *samples, uint32_t count,
                        uint32_t type, struct buf *to)
{
    const struct profile *profile = encoder->profile;
    put_value_type(to, PROFILE_SAMPLE_TYPE, profile->value_types[type]);
    for (uint32_t i = 0; i < count; i++) {
        if (value_of(profile, samples[i], type))
            put_sample(encoder, samples[i], type, to);
    }
    put_rest(profile, type, profile->time_ns, profile->duration_ns, to);
}

static void put_idle(const struct profile *profile, const struct otlp_resource *resource,
                     uint32_t type, struct buf *to)
{
    put_value_type(to, PROFILE_SAMPLE_TYPE, profile->value_types[type]);
    put_rest(profile, type, resource->idle_time_ns, resource->idle_duration_ns, to);
}

static void put_resource(const struct otlp_resource *resource, struct buf *to)
{
    struct buf piece[2];
    buf_init(&piece[0], PIECE_MAX_BYTES);
    buf_init(&piece[1], PIECE_MAX_BYTES);
    for (size_t i = 0; i < resource->attribute_count; i++) {
        put_bytes(&piece[0], KEY_VALUE_KEY, resource->attributes[i].name);
        put_string_value(&piece[0], KEY_VALUE_VALUE, resource->attributes[i].value, &piece[1]);
        put_piece(to, RESOURCE_ATTRIBUTES, &piece[0]);
    }
    buf_fini(&piece[0]);
    buf_fini(&piece[1]);
}

static void put_resource_profiles(struct encoder *encoder, const struct otlp_resource *resource,
                                  const uint32_t *samples, uint32_t count, struct buf *output)
{
    struct buf whole, inner, piece;
    buf_init(&whole, PIECE_MAX_BYTES);
    buf_init(&inner, PIECE_MAX_BYTES);
    buf_init(&piece, PIECE_MAX_BYTES);
    put_resource(resource, &inner);
    put_piece(&whole, RESOURCE_PROFILES_RESOURCE, &inner);
    put_bytes(&piece, SCOPE_NAME, SPAN_LITERAL("perfolio-agent"));
    put_piece(&inner, SCOPE_PROFILES_SCOPE, &piece);
    for (uint32_t type = 0; type < encoder->profile->value_type_count; type++) {
        if (resource->idle_duration_ns > 0) {
            put_idle(encoder->profile, resource, type, &piece);
            put_piece(&inner, SCOPE_PROFILES_PROFILES, &piece);
        }
        const bool is_idle = resource->idle_types >> type & 1;
        if (!is_idle && !has_value(encoder->profile, samples, count, type))
            continue;
        put_profile(encoder, samples, count, type, &piece);
        put_piece(&inner, SCOPE_PROFILES_PROFILES, &piece);
    }
    put_piece(&whole, RESOURCE_PROFILES_SCOPE_PROFILES, &inner);
    put_piece(output, REQUEST_RESOURCE_PROFILES, &whole);
    buf_fini(&whole);
    buf_fini(&inner);
    buf_fini(&piece);
}

/* The resource of a sample; PROFILE_NONE: it has none. */
static int64_t resource_of(const struct encoder *encoder, uint32_t sample)
{
    const struct profile *profile = encoder->profile;
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        if (profile->labels[i].key == encoder->resource_key && profile->labels[i].is_numeric)
            return profile->labels[i].number;
    }
    return PROFILE_NONE;
}

/* Sorts samples by resource: order[starts[r] .. starts[r + 1]) are those of resource r. */
static enum err_code sort_samples(struct encoder *encoder, uint32_t resource_count,
                                  uint32_t *starts, uint32_t *order, struct err *err)
{
    const uint32_t count = encoder->profile->sample_count;
    uint32_t *next = arena_new(encoder->arena, uint32_t, resource_count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t resource = resource_of(encoder, i);
        if (resource == PROFILE_NONE)
            continue;
        if (resource < 0 || resource >= resource_count)
            return err_set(err, ERR_INVALID, "a sample names a resource that is not given");
        starts[resource + 1]++;
    }
    for (uint32_t i = 0; i < resource_count; i++) {
        starts[i + 1] += starts[i];
        next[i] = starts[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t resource = resource_of(encoder, i);
        if (resource != PROFILE_NONE)
            order[next[resource]++] = i;
    }
    return ERR_NONE;
}

static enum err_code encode_request(struct encoder *encoder, const struct otlp_resource *resources,
                                    uint32_t resource_count, struct buf *output, struct err *err)
{
    uint32_t *starts = arena_new(encoder->arena, uint32_t, (size_t)resource_count + 1);
    uint32_t *order =
        arena_new(encoder->arena, uint32_t, (size_t)encoder->profile->sample_count + 1);
    put_dictionary(encoder);
    enum err_code code = sort_samples(encoder, resource_count, starts, order, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < resource_count; i++) {
        if (starts[i + 1] > starts[i] || resources[i].idle_types ||
            resources[i].idle_duration_ns > 0)
            put_resource_profiles(encoder, &resources[i], order + starts[i],
                                  starts[i + 1] - starts[i], output);
    }
    put_piece(output, REQUEST_DICTIONARY, &encoder->dictionary);
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "a batch of profiles is larger than %zu bytes",
                       output->max_size);
    return ERR_NONE;
}

enum err_code otlp_encode(const struct profile *profile, const struct otlp_resource *resources,
                          uint32_t resource_count, struct buf *output, struct err *err)
{
    arena_auto arena = arena_create();
    struct encoder encoder = {.profile = profile, .arena = arena, .resource_key = PROFILE_NONE};
    buf_init(&encoder.dictionary, PIECE_MAX_BYTES);
    for (size_t i = 0; i < sizeof(encoder.piece) / sizeof(*encoder.piece); i++)
        buf_init(&encoder.piece[i], PIECE_MAX_BYTES);
    const enum err_code code = encode_request(&encoder, resources, resource_count, output, err);
    for (size_t i = 0; i < sizeof(encoder.piece) / sizeof(*encoder.piece); i++)
        buf_fini(&encoder.piece[i]);
    buf_fini(&encoder.dictionary);
    map_bytes_fini(&encoder.attributes);
    map_bytes_fini(&encoder.stacks);
    return code;
}
