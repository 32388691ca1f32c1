#include "lib/profile/pprof/pprof.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/pprof/pprof_wire.h"

/*
 * A message is preceded by its length, so each level is written to a buffer of its own, which is
 * then appended to that of the level above. Messages nest at most twice: profile, location, line.
 */
struct encoder {
    const struct profile *profile;
    struct buf *output;
    struct buf message;
    struct buf part; /* of message */
};

static void put_varint(struct buf *buf, uint64_t number)
{
    uint8_t bytes[PROTOBUF_VARINT_BYTES_MAX];
    size_t size = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[size++] = (uint8_t)(number | 0x80);
    bytes[size++] = (uint8_t)number;
    buf_append(buf, bytes, size);
}

static void put_number(struct buf *buf, uint32_t id, uint64_t number)
{
    put_varint(buf, (uint64_t)id << 3 | PROTOBUF_VARINT);
    put_varint(buf, number);
}

/* Writes a number unless it is 0, the default of every field. */
static void put_optional(struct buf *buf, uint32_t id, uint64_t number)
{
    if (number)
        put_number(buf, id, number);
}

static void put_bytes(struct buf *buf, uint32_t id, struct span bytes)
{
    put_varint(buf, (uint64_t)id << 3 | PROTOBUF_BYTES);
    put_varint(buf, bytes.size);
    buf_append_span(buf, bytes);
}

/* Appends inner as a field of outer and empties inner. */
static void put_message(struct buf *outer, uint32_t id, struct buf *inner)
{
    put_bytes(outer, id, buf_span(inner));
    outer->has_failed |= inner->has_failed;
    buf_clear(inner);
}

static void put_value_type(struct encoder *encoder, uint32_t id, struct profile_value_type type)
{
    put_optional(&encoder->message, VALUE_TYPE_TYPE, type.type);
    put_optional(&encoder->message, VALUE_TYPE_UNIT, type.unit);
    put_message(encoder->output, id, &encoder->message);
}

static void put_label(struct encoder *encoder, const struct profile_label *label)
{
    struct buf *part = &encoder->part;
    put_optional(part, LABEL_KEY, label->key);
    if (label->is_numeric) {
        put_number(part, LABEL_NUM, (uint64_t)label->number);
        put_optional(part, LABEL_NUM_UNIT, label->unit);
    } else {
        put_number(part, LABEL_STR, label->text);
    }
    put_message(&encoder->message, SAMPLE_LABEL, part);
}

static void put_sample(struct encoder *encoder, uint32_t sample)
{
    const struct profile *profile = encoder->profile;
    for (uint64_t i = profile->stack_start[sample]; i < profile->stack_start[sample + 1]; i++)
        put_varint(&encoder->part, (uint64_t)profile->stack[i] + 1);
    if (encoder->part.size)
        put_message(&encoder->message, SAMPLE_LOCATION, &encoder->part);
    const int64_t *values = profile->values + (size_t)sample * profile->value_type_count;
    for (uint32_t i = 0; i < profile->value_type_count; i++)
        put_varint(&encoder->part, (uint64_t)values[i]);
    put_message(&encoder->message, SAMPLE_VALUE, &encoder->part);
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++)
        put_label(encoder, &profile->labels[i]);
    put_message(encoder->output, PROFILE_SAMPLE, &encoder->message);
}

static void put_mapping(struct encoder *encoder, uint32_t index)
{
    const struct profile_mapping *mapping = &encoder->profile->mappings[index];
    struct buf *message = &encoder->message;
    put_number(message, MAPPING_ID, (uint64_t)index + 1);
    put_optional(message, MAPPING_START, mapping->start);
    put_optional(message, MAPPING_LIMIT, mapping->limit);
    put_optional(message, MAPPING_OFFSET, mapping->offset);
    put_optional(message, MAPPING_FILENAME, mapping->filename);
    put_optional(message, MAPPING_BUILD_ID, mapping->build_id);
    put_optional(message, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    put_optional(message, MAPPING_HAS_FILENAMES, mapping->has_filenames);
    put_optional(message, MAPPING_HAS_LINE_NUMBERS, mapping->has_line_numbers);
    put_optional(message, MAPPING_HAS_INLINE_FRAMES, mapping->has_inline_frames);
    put_message(encoder->output, PROFILE_MAPPING, message);
}

static void put_line(struct encoder *encoder, const struct profile_line *line)
{
    if (line->function != PROFILE_NONE)
        put_number(&encoder->part, LINE_FUNCTION, (uint64_t)line->function + 1);
    put_optional(&encoder->part, LINE_LINE, (uint64_t)line->line);
    put_optional(&encoder->part, LINE_COLUMN, (uint64_t)line->column);
    put_message(&encoder->message, LOCATION_LINE, &encoder->part);
}

static void put_location(struct encoder *encoder, uint32_t index)
{
    const struct profile_location *location = &encoder->profile->locations[index];
    struct buf *message = &encoder->message;
    put_number(message, LOCATION_ID, (uint64_t)index + 1);
    if (location->mapping != PROFILE_NONE)
        put_number(message, LOCATION_MAPPING, (uint64_t)location->mapping + 1);
    put_optional(message, LOCATION_ADDRESS, location->address);
    for (uint32_t i = 0; i < location->line_count; i++)
        put_line(encoder, &encoder->profile->lines[location->first_line + i]);
    put_optional(message, LOCATION_IS_FOLDED, location->is_folded);
    put_message(encoder->output, PROFILE_LOCATION, message);
}

static void put_function(struct encoder *encoder, uint32_t index)
{
    const struct profile_function *function = &encoder->profile->functions[index];
    struct buf *message = &encoder->message;
    put_number(message, FUNCTION_ID, (uint64_t)index + 1);
    put_optional(message, FUNCTION_NAME, function->name);
    put_optional(message, FUNCTION_SYSTEM_NAME, function->system_name);
    put_optional(message, FUNCTION_FILENAME, function->filename);
    put_optional(message, FUNCTION_START_LINE, (uint64_t)function->start_line);
    put_message(encoder->output, PROFILE_FUNCTION, message);
}

static void put_fields(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buf *output = encoder->output;
    put_optional(output, PROFILE_DROP_FRAMES, profile->drop_frames);
    put_optional(output, PROFILE_KEEP_FRAMES, profile->keep_frames);
    put_optional(output, PROFILE_TIME_NANOS, (uint64_t)profile->time_ns);
    put_optional(output, PROFILE_DURATION_NANOS, (uint64_t)profile->duration_ns);
    if (profile->period_type.type || profile->period_type.unit)
        put_value_type(encoder, PROFILE_PERIOD_TYPE, profile->period_type);
    put_optional(output, PROFILE_PERIOD, (uint64_t)profile->period);
    for (uint32_t i = 0; i < profile->comment_count; i++)
        put_varint(&encoder->message, profile->comments[i]);
    if (profile->comment_count)
        put_message(output, PROFILE_COMMENT, &encoder->message);
    put_optional(output, PROFILE_DEFAULT_SAMPLE_TYPE, profile->default_sample_type);
    put_optional(output, PROFILE_DOC_URL, profile->doc_url);
}

enum err_code pprof_encode(const struct profile *profile, struct buf *output, struct err *err)
{
    struct encoder encoder = {.profile = profile, .output = output};
    buf_init(&encoder.message, output->max_size);
    buf_init(&encoder.part, output->max_size);
    for (uint32_t i = 0; i < profile->value_type_count; i++)
        put_value_type(&encoder, PROFILE_SAMPLE_TYPE, profile->value_types[i]);
    for (uint32_t i = 0; i < profile->sample_count && !buf_failed(output); i++)
        put_sample(&encoder, i);
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        put_mapping(&encoder, i);
    for (uint32_t i = 0; i < profile->location_count && !buf_failed(output); i++)
        put_location(&encoder, i);
    for (uint32_t i = 0; i < profile->function_count && !buf_failed(output); i++)
        put_function(&encoder, i);
    for (uint32_t i = 0; i < profile->string_count; i++)
        put_bytes(output, PROFILE_STRING, profile->strings[i]);
    put_fields(&encoder);
    buf_fini(&encoder.message);
    buf_fini(&encoder.part);
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "the encoded profile is more than %zu bytes",
                       output->max_size);
    return ERR_NONE;
}
