#include "lib/base/err.h"
#include "lib/profile/pprof/pprof_decoder.h"

static bool count_sample(struct span bytes, struct counts *counts)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        uint64_t count = field.type == PROTOBUF_BYTES ? protobuf_count_varints(field.bytes) : 1;
        if (field.id == SAMPLE_LOCATION)
            counts->stack_entries += count;
        else if (field.id == SAMPLE_VALUE)
            counts->values += count;
        else if (field.id == SAMPLE_LABEL)
            counts->labels++;
    }
    return true;
}

static bool count_lines(struct span bytes, struct counts *counts)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        counts->lines += field.id == LOCATION_LINE;
    }
    return true;
}

static enum err_code count_scalar(struct decoder *decoder, const struct protobuf_field *field)
{
    if (field->type != PROTOBUF_VARINT)
        return pprof_wrong_type(decoder, "profile", field->id);
    if (field->id == PROFILE_TIME_NANOS && decoder->scalars[PROFILE_TIME_NANOS] != 0)
        return err_set(decoder->err, ERR_INVALID,
                       "several pprof profiles one behind the other; merge them instead");
    decoder->scalars[field->id] = (int64_t)field->number;
    return ERR_NONE;
}

static enum err_code count_field(struct decoder *decoder, const struct protobuf_field *field)
{
    struct counts *counts = &decoder->counts;
    bool is_bytes = field->type == PROTOBUF_BYTES;
    uint64_t index = counts->messages[field->id];
    switch (field->id) {
    case PROFILE_COMMENT:
        if (!is_bytes && field->type != PROTOBUF_VARINT)
            return pprof_wrong_type(decoder, "profile", field->id);
        counts->messages[PROFILE_COMMENT] += is_bytes ? protobuf_count_varints(field->bytes) : 1;
        return ERR_NONE;
    case PROFILE_SAMPLE:
        if (is_bytes && !count_sample(field->bytes, counts))
            return pprof_malformed(decoder, "sample", index);
        break;
    case PROFILE_LOCATION:
        if (is_bytes && !count_lines(field->bytes, counts))
            return pprof_malformed(decoder, "location", index);
        break;
    case PROFILE_STRING:
        /* Longer strings are truncated; their copies, of at most the limit, are counted apart. */
        if (field->bytes.size <= decoder->limits.string_bytes)
            counts->string_bytes += field->bytes.size;
        else
            counts->cut_string_bytes += decoder->limits.string_bytes;
        break;
    case PROFILE_SAMPLE_TYPE:
    case PROFILE_MAPPING:
    case PROFILE_FUNCTION:
    case PROFILE_PERIOD_TYPE:
        break;
    default:
        return count_scalar(decoder, field);
    }
    if (!is_bytes)
        return pprof_wrong_type(decoder, "profile", field->id);
    counts->messages[field->id]++;
    return ERR_NONE;
}

static enum err_code count_all(struct decoder *decoder)
{
    const uint8_t *at = decoder->raw.data, *end = at + decoder->raw.size;
    while (at < end) {
        const uint8_t *start = at;
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "the field at byte",
                                   (uint64_t)(start - decoder->raw.data));
        if (field.id == 0 || field.id >= PROFILE_FIELD_COUNT)
            continue;
        struct range *range = &decoder->ranges[field.id];
        if (!range->start)
            range->start = start;
        range->end = at;
        enum err_code code = count_field(decoder, &field);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static enum err_code check_count(struct decoder *decoder, const char *what, uint64_t count,
                                 uint64_t limit)
{
    if (count <= limit)
        return ERR_NONE;
    return err_set(decoder->err, ERR_TOO_LARGE, "the profile has %llu %s, the limit is %llu",
                   (unsigned long long)count, what, (unsigned long long)limit);
}

/*
 * The size of all arrays. Each count is at most the number of bytes, so the sum cannot overflow.
 * The numbers are, per string: its hash, its canonical index, up to four slots of 4 bytes; per
 * mapping: its id; per function and location: its id, up to four slots; per sample: stack_start and
 * label_start.
 */
static uint64_t memory_needed(const struct counts *counts)
{
    const uint64_t *messages = counts->messages;
    return messages[PROFILE_STRING] * (sizeof(struct span) + 24) + counts->string_bytes +
           counts->cut_string_bytes +
           messages[PROFILE_MAPPING] * (sizeof(struct profile_mapping) + 8) +
           messages[PROFILE_FUNCTION] * (sizeof(struct profile_function) + 24) +
           messages[PROFILE_LOCATION] * (sizeof(struct profile_location) + 24) +
           messages[PROFILE_SAMPLE] * 12 + messages[PROFILE_COMMENT] * 4 +
           messages[PROFILE_SAMPLE_TYPE] * sizeof(struct profile_value_type) +
           counts->lines * sizeof(struct profile_line) + counts->stack_entries * 4 +
           counts->values * 8 + counts->labels * sizeof(struct profile_label);
}

static enum err_code check_counts(struct decoder *decoder)
{
    const struct counts *counts = &decoder->counts;
    const struct profile_limits *limits = &decoder->limits;
    uint64_t types = counts->messages[PROFILE_SAMPLE_TYPE];
    enum err_code code =
        check_count(decoder, "samples", counts->messages[PROFILE_SAMPLE], limits->sample_count);
    if (code)
        return code;
    code = check_count(decoder, "stack entries", counts->stack_entries, limits->stack_entries);
    if (code)
        return code;
    code = check_count(decoder, "bytes when decoded", memory_needed(counts), limits->memory_bytes);
    if (code)
        return code;
    /* Indexes are 32 bits wide, and PROFILE_NONE is reserved. */
    const uint64_t tables[] = {counts->messages[PROFILE_STRING], counts->lines, counts->labels,
                               counts->messages[PROFILE_LOCATION]};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        code = check_count(decoder, "entries in a table", tables[i], PROFILE_NONE - 1);
        if (code)
            return code;
    }
    if (types == 0)
        return err_set(decoder->err, ERR_INVALID, "the pprof profile has no sample type");
    if (counts->messages[PROFILE_STRING] == 0)
        return err_set(decoder->err, ERR_INVALID, "the pprof profile has no string table");
    return ERR_NONE;
}

enum err_code pprof_count(struct decoder *decoder)
{
    enum err_code code = count_all(decoder);
    return code ? code : check_counts(decoder);
}
