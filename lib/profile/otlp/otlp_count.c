/*
 * The first pass over the bytes: counts, positions, and the layout. It scans the request twice: the
 * first scan counts profiles and contexts, whose arrays the second one fills. Then it counts the
 * dictionary, chooses the layout and checks the limits.
 */
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp_decoder.h"

/* ---- profiles ---- */

static bool read_value_type(struct span bytes, struct otlp_value_type *type,
                            struct otlp_evidence *evidence)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    *type = (struct otlp_value_type){0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > VALUE_TYPE_TEMPORALITY)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return false;
        if (field.id == VALUE_TYPE_TYPE)
            type->type = field.number;
        else if (field.id == VALUE_TYPE_UNIT)
            type->unit = field.number;
        else
            evidence->is_1_8 = true;
        if (field.id != VALUE_TYPE_TEMPORALITY)
            continue;
        type->is_delta = field.number == TEMPORALITY_DELTA;
        type->is_cumulative = field.number == TEMPORALITY_CUMULATIVE;
    }
    return true;
}

static bool count_sample(struct span bytes, struct otlp_profile *profile,
                         struct otlp_evidence *evidence)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id >= SAMPLE_FIELD_COUNT)
            continue;
        bool is_bytes = field.type == PROTOBUF_BYTES;
        evidence->is_since_1_10 |= field.id == 4 && is_bytes;
        evidence->is_before_1_10 |= field.id == 3 && is_bytes;
        if (field.id == 5 && is_bytes && field.bytes.size % 8)
            return false;
        if (field.id == 5)
            profile->timestamp_count += is_bytes ? field.bytes.size / 8 : 1;
    }
    profile->sample_count++;
    return true;
}

/* Reads a field of a profile other than its samples; false when it has the wrong type. */
static bool read_profile_field(const struct protobuf_field *field, struct otlp_profile *profile,
                               struct otlp_evidence *evidence)
{
    bool is_bytes = field->type == PROTOBUF_BYTES, is_number = field->type == PROTOBUF_VARINT;
    switch (field->id) {
    case PROFILE_SAMPLE_TYPE:
        return is_bytes && read_value_type(field->bytes, &profile->sample_type, evidence);
    case PROFILE_PERIOD_TYPE:
        return is_bytes && read_value_type(field->bytes, &profile->period_type, evidence);
    case PROFILE_TIME:
        profile->time_ns = field->number;
        return field->type == PROTOBUF_FIXED64;
    case PROFILE_DURATION:
        profile->duration_ns = field->number;
        return is_number;
    case PROFILE_PERIOD:
        profile->period = (int64_t)field->number;
        return is_number;
    case PROFILE_1_8_ID:
        evidence->is_1_8 |= is_bytes;
        return is_bytes || is_number;
    case PROFILE_1_8_DROPPED:
        evidence->is_1_8 |= is_number;
        return is_bytes || is_number;
    case PROFILE_ATTRIBUTES:
    case PROFILE_1_8_ATTRIBUTES:
        evidence->is_1_8 |= field->id == PROFILE_1_8_ATTRIBUTES;
        profile->has_attributes = true;
        return is_bytes || is_number;
    default:
        return true;
    }
}

static bool read_profile(struct span bytes, struct otlp_profile *profile,
                         struct otlp_evidence *evidence)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        const uint8_t *start = at;
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        bool is_good =
            field.id == PROFILE_SAMPLES
                ? field.type == PROTOBUF_BYTES && count_sample(field.bytes, profile, evidence)
                : read_profile_field(&field, profile, evidence);
        if (!is_good)
            return false;
        if (field.id != PROFILE_SAMPLES)
            continue;
        if (!profile->samples.start)
            profile->samples.start = start;
        profile->samples.end = at;
    }
    return true;
}

/* The contents of a malformed profile are not counted. */
static void count_profile(struct otlp_decoder *decoder, struct span bytes)
{
    struct otlp_profile *profile = &decoder->profiles[decoder->profile_count];
    struct otlp_evidence evidence = decoder->evidence;
    profile->resource = (uint32_t)decoder->resource_count;
    profile->context = (uint32_t)decoder->context_count;
    profile->bytes = bytes;
    if (!read_profile(bytes, profile, &evidence)) {
        profile->is_malformed = true;
        return;
    }
    decoder->evidence = evidence;
    decoder->counts.samples += profile->sample_count;
    decoder->counts.timestamps += profile->timestamp_count;
}

/* ---- the request ---- */

static enum err_code malformed(struct otlp_decoder *decoder, const char *what, uint64_t index)
{
    return err_set(decoder->err, ERR_INVALID,
                   "not an OTLP ExportProfilesServiceRequest: %s %llu is cut short or not encoded "
                   "as expected",
                   what, (unsigned long long)index);
}

/* Both scans call this function. In the first one, decoder->profiles is NULL, and profiles are only
 * counted. */
static enum err_code scan_scope(struct otlp_decoder *decoder, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    struct span scope = {0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        bool is_known =
            at && (field.id == SCOPE_PROFILES_SCOPE || field.id == SCOPE_PROFILES_PROFILES);
        if (!at || (is_known && field.type != PROTOBUF_BYTES))
            return malformed(decoder, "a field of scope", decoder->context_count);
        if (field.id == SCOPE_PROFILES_SCOPE)
            scope = field.bytes;
        if (field.id != SCOPE_PROFILES_PROFILES)
            continue;
        if (decoder->profiles)
            count_profile(decoder, field.bytes);
        decoder->profile_count++;
    }
    if (decoder->contexts)
        decoder->contexts[decoder->context_count].scope = scope;
    decoder->context_count++;
    return ERR_NONE;
}

static enum err_code scan_resource(struct otlp_decoder *decoder, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    const uint64_t first_context = decoder->context_count;
    struct span resource = {0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        bool is_known = at && (field.id == RESOURCE_PROFILES_RESOURCE ||
                               field.id == RESOURCE_PROFILES_SCOPE_PROFILES);
        if (!at || (is_known && field.type != PROTOBUF_BYTES))
            return malformed(decoder, "resource", decoder->resource_count);
        if (field.id == RESOURCE_PROFILES_RESOURCE)
            resource = field.bytes;
        if (field.id != RESOURCE_PROFILES_SCOPE_PROFILES)
            continue;
        enum err_code code = scan_scope(decoder, field.bytes);
        if (code)
            return code;
    }
    for (uint64_t i = first_context; decoder->contexts && i < decoder->context_count; i++)
        decoder->contexts[i].resource = resource;
    decoder->resource_count++;
    return ERR_NONE;
}

static enum err_code scan_request(struct otlp_decoder *decoder, struct span *ret_dictionary)
{
    const uint8_t *at = decoder->raw.data, *end = otlp_end(decoder->raw);
    *ret_dictionary = (struct span){0};
    bool has_dictionary = false;
    while (at < end) {
        const uint8_t *start = at;
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        bool is_known =
            at && (field.id == REQUEST_RESOURCE_PROFILES || field.id == REQUEST_DICTIONARY);
        if (!at || field.id == 0 || (is_known && field.type != PROTOBUF_BYTES))
            return malformed(decoder, "the field at byte", (uint64_t)(start - decoder->raw.data));
        if (field.id == REQUEST_DICTIONARY && has_dictionary)
            return err_set(decoder->err, ERR_INVALID,
                           "the OTLP request has several dictionaries: send requests one by one");
        enum err_code code = ERR_NONE;
        if (field.id == REQUEST_RESOURCE_PROFILES)
            code = scan_resource(decoder, field.bytes);
        if (code)
            return code;
        if (field.id != REQUEST_DICTIONARY)
            continue;
        has_dictionary = true;
        *ret_dictionary = field.bytes;
    }
    return ERR_NONE;
}

/* ---- the dictionary ---- */

/* The number of elements of a repeated field: messages, or numbers, packed or not. Stops at the
 * first malformed byte. Only STACK_LOCATIONS may be packed; other fields must have another id. */
static uint64_t count_elements(struct span bytes, uint32_t id)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    uint64_t count = 0;
    while (at && at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at || field.id != id)
            continue;
        bool is_packed = id == STACK_LOCATIONS && field.type == PROTOBUF_BYTES;
        count += is_packed ? protobuf_count_varints(field.bytes) : 1;
    }
    return count;
}

static enum err_code count_dictionary(struct otlp_decoder *decoder, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    struct otlp_counts *counts = &decoder->counts;
    while (at < end) {
        const uint8_t *start = at;
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        bool is_known = at && field.id < TABLE_COUNT;
        if (!at || field.id == 0 || (is_known && field.type != PROTOBUF_BYTES))
            return malformed(decoder, "the dictionary at byte", (uint64_t)(start - bytes.data));
        if (!is_known)
            continue;
        if (!decoder->ranges[field.id].start)
            decoder->ranges[field.id].start = start;
        decoder->ranges[field.id].end = at;
        counts->tables[field.id]++;
        if (field.id == TABLE_LOCATION)
            counts->lines += count_elements(field.bytes, LOCATION_LINES);
        else if (field.id == TABLE_STACK)
            counts->stack_entries += count_elements(field.bytes, STACK_LOCATIONS);
    }
    return ERR_NONE;
}

/* ---- limits ---- */

static enum err_code check_count(struct otlp_decoder *decoder, const char *what, uint64_t count,
                                 uint64_t limit)
{
    if (count <= limit)
        return ERR_NONE;
    return err_set(decoder->err, ERR_TOO_LARGE, "the OTLP request has %llu %s, the limit is %llu",
                   (unsigned long long)count, what, (unsigned long long)limit);
}

/*
 * The size of the arrays whose length is known: of everything but labels and strings that are added
 * (otlp_charge). Each count is at most the number of bytes, so the sum cannot overflow. The numbers
 * are, per string: its hash, its canonical index, up to four slots of 4 bytes; per other entry of
 * the dictionary: its byte in `wrong`; per stack: its start, too; per profile: the growing array of
 * batch_profile with its old copies and the final copy; per sample: its variant and the start of
 * its timestamps.
 */
static uint64_t memory_needed(const struct otlp_decoder *decoder)
{
    const struct otlp_counts *counts = &decoder->counts;
    const uint64_t *tables = counts->tables;
    const struct otlp_range *strings = &decoder->ranges[TABLE_STRING];
    return (uint64_t)(strings->end - strings->start) +
           tables[TABLE_STRING] * (sizeof(struct span) + 4 + 4 + 16) +
           tables[TABLE_MAPPING] * (sizeof(struct profile_mapping) + 1) +
           tables[TABLE_FUNCTION] * (sizeof(struct profile_function) + 1) +
           tables[TABLE_LOCATION] * (sizeof(struct profile_location) + 1) +
           tables[TABLE_LINK] * (sizeof(struct batch_link) + 1) +
           tables[TABLE_ATTRIBUTE] * (sizeof(struct otlp_attribute) + 1) + tables[TABLE_STACK] * 9 +
           counts->stack_entries * 4 + counts->lines * sizeof(struct profile_line) +
           decoder->profile_count *
               (sizeof(struct otlp_profile) + 4 * sizeof(struct batch_profile)) +
           decoder->context_count * sizeof(struct otlp_context) +
           counts->samples * (sizeof(struct batch_sample) + 12 + sizeof(struct otlp_label_entry) +
                              sizeof(struct batch_label_set)) +
           counts->timestamps * 8;
}

static enum err_code check_counts(struct otlp_decoder *decoder)
{
    const struct otlp_counts *counts = &decoder->counts;
    const struct profile_limits *limits = &decoder->limits;
    const struct {
        const char *name;
        uint64_t count;
        uint64_t limit;
    } checks[] = {
        {"samples", counts->samples, limits->sample_count},
        {"stack entries", counts->stack_entries, limits->stack_entries},
        {"bytes when decoded", memory_needed(decoder), limits->memory_bytes},
        {"lines of locations", counts->lines, PROFILE_NONE - 1},
        {"resources, scopes and profiles", decoder->context_count + decoder->profile_count,
         PROFILE_NONE - 1},
    };
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        enum err_code code = check_count(decoder, checks[i].name, checks[i].count, checks[i].limit);
        if (code)
            return code;
    }
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        enum err_code code =
            check_count(decoder, "entries in a table", counts->tables[i], INT32_MAX);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* ---- the layout ---- */

/*
 * Used if the wire types of samples prove nothing: a list of numbers may be sent packed or number
 * by number, so a single number is either an item of a list or an index. Both layouts are tried. A
 * layout is wrong if, read in it, an index refers to no entry of the dictionary's table, a sample
 * has two links, or a sample has attributes or a link but neither values nor timestamps. 1.8 is
 * read as 1.9: their samples have the same fields.
 */
struct layout_check {
    const uint64_t *tables; /* entries of the dictionary, by enum otlp_table */
    bool is_1_9_wrong;
    bool is_1_10_wrong;
    bool has_field_4;
    bool is_field_2_unpacked;
};

/* Index 0 means none, whether or not the table has an entry 0. */
static bool is_index(const struct layout_check *check, enum otlp_table table, uint64_t index)
{
    return index == 0 || index < check->tables[table];
}

static bool are_indexes(const struct layout_check *check, enum otlp_table table,
                        const struct protobuf_field *field)
{
    if (field->type == PROTOBUF_VARINT)
        return is_index(check, table, field->number);
    const uint8_t *at = field->bytes.data, *end = otlp_end(field->bytes);
    while (at < end) {
        uint64_t index;
        at = protobuf_read_varint(at, end, &index);
        if (!at || !is_index(check, table, index))
            return false;
    }
    return true;
}

/* 1.9 has values, attributes and link in the fields 2, 3 and 4; 1.10 has attributes, link and
 * values there. */
static void check_sample(struct layout_check *check, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    unsigned counts[SAMPLE_FIELD_COUNT] = {0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return;
        if (field.id >= SAMPLE_FIELD_COUNT)
            continue;
        counts[field.id]++;
        if (field.id == 2) {
            check->is_field_2_unpacked |= field.type == PROTOBUF_VARINT;
            check->is_1_10_wrong |= !are_indexes(check, TABLE_ATTRIBUTE, &field);
        } else if (field.id == 3) {
            check->is_1_9_wrong |= !are_indexes(check, TABLE_ATTRIBUTE, &field);
            check->is_1_10_wrong |= counts[3] > 1 || !are_indexes(check, TABLE_LINK, &field);
        } else if (field.id == 4) {
            check->has_field_4 = true;
            check->is_1_9_wrong |= counts[4] > 1 || !are_indexes(check, TABLE_LINK, &field);
        }
    }
    check->is_1_9_wrong |= counts[4] && !counts[2] && !counts[5];
    check->is_1_10_wrong |= counts[2] && !counts[4] && !counts[5];
}

/* If both layouts are possible: a packed field 2 together with a single number in field 4 is more
 * likely values and a link (1.9) than attributes and one unpacked value (1.10). */
static bool is_probably_before_1_10(const struct otlp_decoder *decoder)
{
    struct layout_check check = {.tables = decoder->counts.tables};
    for (uint64_t i = 0; i < decoder->profile_count; i++) {
        struct otlp_range range = decoder->profiles[i].samples;
        struct span bytes;
        while (!decoder->profiles[i].is_malformed &&
               otlp_next_entry(&range, PROFILE_SAMPLES, &bytes))
            check_sample(&check, bytes);
    }
    if (check.is_1_9_wrong != check.is_1_10_wrong)
        return check.is_1_10_wrong;
    return check.has_field_4 && !check.is_field_2_unpacked;
}

/* Chooses the layout as described in otlp.h. The dictionary has been counted. */
static void choose_layout(struct otlp_decoder *decoder)
{
    static const uint8_t fields_of_1_9[SAMPLE_FIELD_COUNT] = {SAMPLE_NONE,   SAMPLE_STACK,
                                                              SAMPLE_VALUES, SAMPLE_ATTRIBUTES,
                                                              SAMPLE_LINK,   SAMPLE_TIMESTAMPS};
    static const uint8_t fields_of_1_10[SAMPLE_FIELD_COUNT] = {
        SAMPLE_NONE, SAMPLE_STACK,  SAMPLE_ATTRIBUTES,
        SAMPLE_LINK, SAMPLE_VALUES, SAMPLE_TIMESTAMPS};
    const struct otlp_evidence *evidence = &decoder->evidence;
    bool is_before_1_10 = false;
    if (!decoder->is_1_11 && !evidence->is_since_1_10)
        is_before_1_10 =
            evidence->is_before_1_10 || evidence->is_1_8 || is_probably_before_1_10(decoder);
    memcpy(decoder->sample_fields, is_before_1_10 ? fields_of_1_9 : fields_of_1_10,
           SAMPLE_FIELD_COUNT);
    decoder->profile_attributes =
        is_before_1_10 && evidence->is_1_8 ? PROFILE_1_8_ATTRIBUTES : PROFILE_ATTRIBUTES;
}

enum err_code otlp_count(struct otlp_decoder *decoder)
{
    struct span dictionary;
    enum err_code code = scan_request(decoder, &dictionary);
    if (code)
        return code;
    /* Only profiles and contexts are counted yet: refuse too many before their arrays are
     * allocated. */
    code = check_count(decoder, "bytes when decoded", memory_needed(decoder),
                       decoder->limits.memory_bytes);
    if (code)
        return code;
    decoder->contexts =
        arena_new(decoder->scratch, struct otlp_context, (size_t)decoder->context_count);
    decoder->profiles =
        arena_new(decoder->scratch, struct otlp_profile, (size_t)decoder->profile_count);
    decoder->resource_count = decoder->context_count = decoder->profile_count = 0;
    code = scan_request(decoder, &dictionary);
    if (code)
        return code;
    code = count_dictionary(decoder, dictionary);
    if (code)
        return code;
    choose_layout(decoder);
    return check_counts(decoder);
}
