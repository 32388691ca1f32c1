#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/pprof/pprof_decoder.h"

static enum err_code fill_label(struct decoder *decoder, struct span bytes, uint64_t sample)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct profile_label *label = decoder->labels++;
    *label = (struct profile_label){0};
    enum err_code code = ERR_NONE;
    while (!code && at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "a label of sample", sample);
        if (field.id == 0 || field.id > LABEL_NUM_UNIT)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return pprof_wrong_type(decoder, "label", field.id);
        int64_t number = (int64_t)field.number;
        if (field.id == LABEL_KEY)
            code = pprof_set_string(decoder, "label", number, &label->key);
        else if (field.id == LABEL_STR)
            code = pprof_set_string(decoder, "label", number, &label->text);
        else if (field.id == LABEL_NUM)
            label->number = number;
        else
            code = pprof_set_string(decoder, "label", number, &label->unit);
    }
    /* The kind of the label is determined as in the official reader: a text takes precedence. */
    label->is_numeric = label->text == 0;
    if (!label->is_numeric) {
        label->number = 0;
        label->unit = 0;
    }
    return code;
}

/* Reads packed ids one by one, for files whose ids are not in order and for the last bytes of a
 * list that read_packed_ids leaves. */
static bool read_other_ids(struct decoder *decoder, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint64_t id;
        at = protobuf_read_varint(at, end, &id);
        if (!at)
            return false;
        uint32_t index = id_table_find(&decoder->location_ids, id);
        *decoder->stack++ = index;
        if (index == PROFILE_NONE)
            return false;
    }
    return true;
}

/*
 * The innermost loop of decoding: packed location ids, most of which have two bytes. Reading byte
 * by byte is faster here than extracting numbers from 64-bit words without branches, because the
 * lengths are predictable (measured: a tenth of the whole decoding). Three bytes per step need no
 * check of the end. Ids out of range are reported once, after the loop. The first pass counted the
 * last byte of every number, so the array is large enough.
 */
static bool read_packed_ids(struct decoder *decoder, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    uint64_t count = decoder->location_ids.count;
    uint32_t *stack = decoder->stack;
    bool is_wrong = false;
    if (!decoder->location_ids.is_in_order)
        return read_other_ids(decoder, at, end);
    while (end - at >= 3) {
        uint64_t id = at[0];
        if (id < 0x80) {
            at++;
        } else if (at[1] < 0x80) {
            id = (id & 0x7f) | (uint64_t)at[1] << 7;
            at += 2;
        } else if (at[2] < 0x80) {
            id = (id & 0x7f) | (uint64_t)(at[1] & 0x7f) << 7 | (uint64_t)at[2] << 14;
            at += 3;
        } else if (!(at = protobuf_read_long_varint(at, end, &id))) {
            return false;
        }
        is_wrong |= id - 1 >= count;
        *stack++ = (uint32_t)(id - 1);
    }
    decoder->stack = stack;
    return !is_wrong && read_other_ids(decoder, at, end);
}

static bool read_packed_values(struct decoder *decoder, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    int64_t *values = decoder->values;
    while (at < end) {
        uint64_t number;
        at = protobuf_read_varint(at, end, &number);
        if (!at)
            return false;
        *values++ = (int64_t)number;
    }
    decoder->values = values;
    return true;
}

static enum err_code unknown_location(struct decoder *decoder, uint64_t sample)
{
    return err_set(decoder->err, ERR_INVALID,
                   "malformed pprof: sample %llu refers to a location that does not exist",
                   (unsigned long long)sample);
}

static enum err_code fill_sample_field(struct decoder *decoder, const struct protobuf_field *field,
                                       uint64_t sample)
{
    if (field->id == SAMPLE_LABEL) {
        if (field->type != PROTOBUF_BYTES)
            return pprof_wrong_type(decoder, "sample", field->id);
        return fill_label(decoder, field->bytes, sample);
    }
    if (field->id != SAMPLE_LOCATION && field->id != SAMPLE_VALUE)
        return ERR_NONE;
    if (field->type != PROTOBUF_BYTES && field->type != PROTOBUF_VARINT)
        return pprof_wrong_type(decoder, "sample", field->id);
    if (field->type == PROTOBUF_BYTES) {
        if (field->id == SAMPLE_LOCATION)
            return read_packed_ids(decoder, field->bytes) ? ERR_NONE
                                                          : unknown_location(decoder, sample);
        return read_packed_values(decoder, field->bytes)
                   ? ERR_NONE
                   : pprof_malformed(decoder, "sample", sample);
    }
    if (field->id == SAMPLE_VALUE) {
        *decoder->values++ = (int64_t)field->number;
        return ERR_NONE;
    }
    uint32_t index = id_table_find(&decoder->location_ids, field->number);
    *decoder->stack++ = index;
    return index == PROFILE_NONE ? unknown_location(decoder, sample) : ERR_NONE;
}

static enum err_code fill_sample(struct decoder *decoder, struct span bytes, uint64_t sample)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    const int64_t *first_value = decoder->values;
    const uint32_t *first_entry = decoder->stack;
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "sample", sample);
        enum err_code code = fill_sample_field(decoder, &field, sample);
        if (code)
            return code;
    }
    uint64_t value_count = (uint64_t)(decoder->values - first_value);
    uint64_t depth = (uint64_t)(decoder->stack - first_entry);
    if (value_count != decoder->profile->value_type_count)
        return err_set(
            decoder->err, ERR_INVALID,
            "malformed pprof: sample %llu has %llu values, but there are %u sample types",
            (unsigned long long)sample, (unsigned long long)value_count,
            decoder->profile->value_type_count);
    if (depth > decoder->limits.stack_depth)
        return err_set(decoder->err, ERR_TOO_LARGE, "a stack is %llu frames deep, the limit is %u",
                       (unsigned long long)depth, decoder->limits.stack_depth);
    return ERR_NONE;
}

enum err_code pprof_fill_samples(struct decoder *decoder)
{
    const struct counts *counts = &decoder->counts;
    uint32_t count = (uint32_t)counts->messages[PROFILE_SAMPLE];
    uint32_t *stack = arena_new_raw(decoder->arena, uint32_t, (size_t)counts->stack_entries);
    int64_t *values = arena_new_raw(decoder->arena, int64_t, (size_t)counts->values);
    struct profile_label *labels =
        arena_new_raw(decoder->arena, struct profile_label, (size_t)counts->labels);
    uint64_t *stack_start = arena_new_raw(decoder->arena, uint64_t, (size_t)count + 1);
    uint32_t *label_start = arena_new_raw(decoder->arena, uint32_t, (size_t)count + 1);
    decoder->stack = stack;
    decoder->values = values;
    decoder->labels = labels;
    struct range range = decoder->ranges[PROFILE_SAMPLE];
    struct protobuf_field message;
    stack_start[0] = 0;
    label_start[0] = 0;
    for (uint32_t i = 0; pprof_next_field(&range, PROFILE_SAMPLE, &message); i++) {
        enum err_code code = fill_sample(decoder, message.bytes, i);
        if (code)
            return code;
        stack_start[i + 1] = (uint64_t)(decoder->stack - stack);
        label_start[i + 1] = (uint32_t)(decoder->labels - labels);
    }
    struct profile *profile = decoder->profile;
    profile->sample_count = count;
    profile->stack_start = stack_start;
    profile->stack = stack;
    profile->values = values;
    profile->label_start = label_start;
    profile->labels = labels;
    return ERR_NONE;
}
