/*
 * Decoding in two passes. The first walks every message once to count and to find out where each
 * kind of top-level field lies; then all arrays get their exact size (and a hostile file is refused
 * before memory is taken for it); the second fills tables first, samples last, since ids can only
 * be resolved once the tables are known. Counting costs about a sixth of the whole: packed numbers
 * are counted eight bytes at a time. See tests/bench/bench_pprof.c.
 */
#include "lib/profile/pprof.h"

#include "lib/base/mem.h"
#include "lib/profile/pprof_wire.h"

#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Where the fields of one number lie: from the first one's start to the last one's end. */
struct range {
    const uint8_t *start;
    const uint8_t *end;
};

struct counts {
    uint64_t messages[PROFILE_FIELD_COUNT]; /* top-level fields; comments count their numbers */
    uint64_t string_bytes;
    uint64_t stack_entries;
    uint64_t values;
    uint64_t labels;
    uint64_t lines;
};

/*
 * Ids to indexes. Nearly every writer numbers from 1 in order; others are looked up in an open hash
 * table whose multiplier is random, so that a file cannot be made to collide.
 */
struct id_table {
    const char *name;
    const uint64_t *ids; /* by index */
    uint32_t count;
    bool is_in_order; /* ids[i] == i + 1 */
    uint32_t *slots;  /* indexes or PROFILE_NONE; NULL when in order */
    uint64_t multiplier;
    unsigned shift;
    uint64_t mask;
};

struct decoder {
    struct span raw;
    struct profile_limits limits;
    struct profile *profile;
    struct arena *arena;   /* the profile's */
    struct arena *scratch; /* until the end of decoding */
    struct counts counts;
    struct range ranges[PROFILE_FIELD_COUNT];
    int64_t scalars[PROFILE_FIELD_COUNT];
    uint64_t seed;
    const uint32_t *canonical; /* string index to canonical one; NULL: all are */
    uint32_t string_count;     /* of the file */
    struct id_table mapping_ids;
    struct id_table function_ids;
    struct id_table location_ids;
    struct err *err;

    uint32_t *stack; /* write positions of the samples */
    uint32_t *stack_end;
    int64_t *values;
    int64_t *values_end;
    struct profile_label *labels;
};

static enum err_code malformed(struct decoder *decoder, const char *what, uint64_t index)
{
    return err_set(decoder->err, ERR_INVALID,
                   "malformed pprof: %s %llu is cut short or not encoded as expected", what,
                   (unsigned long long)index);
}

static enum err_code wrong_type(struct decoder *decoder, const char *what, uint32_t field)
{
    return err_set(decoder->err, ERR_INVALID,
                   "malformed pprof: field %u of a %s has the wrong wire type", field, what);
}

const uint8_t *wire_read_long_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < WIRE_VARINT_BYTES_MAX && at + i < end; i++) {
        number |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80) {
            *ret_number = number;
            return at + i + 1;
        }
    }
    return NULL;
}

const uint8_t *wire_read_fixed(const uint8_t *at, const uint8_t *end, struct wire_field *field)
{
    size_t size = field->type == WIRE_FIXED64 ? 8 : 4;
    if ((field->type != WIRE_FIXED64 && field->type != WIRE_FIXED32) || (size_t)(end - at) < size)
        return NULL;
    field->number = 0;
    for (size_t i = 0; i < size; i++)
        field->number |= (uint64_t)at[i] << (8 * i);
    return at + size;
}

bool pprof_sniff(struct span bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    bool has_known = false;
    while (at && at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at || field.id == 0)
            return false;
        if (field.id >= PROFILE_FIELD_COUNT)
            continue;
        bool is_message = field.id <= PROFILE_STRING || field.id == PROFILE_PERIOD_TYPE;
        bool may_be_both = field.id == PROFILE_COMMENT;
        if (!may_be_both && (field.type == WIRE_BYTES) != is_message)
            return false;
        has_known = true;
    }
    return has_known;
}

/* ---- first pass: count ---- */

static bool count_sample(struct span bytes, struct counts *counts)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    while (at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return false;
        uint64_t count = field.type == WIRE_BYTES ? wire_count_varints(field.bytes) : 1;
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
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return false;
        counts->lines += field.id == LOCATION_LINE;
    }
    return true;
}

static enum err_code count_scalar(struct decoder *decoder, const struct wire_field *field)
{
    if (field->type != WIRE_VARINT)
        return wrong_type(decoder, "profile", field->id);
    if (field->id == PROFILE_TIME_NANOS && decoder->scalars[PROFILE_TIME_NANOS] != 0)
        return err_set(decoder->err, ERR_INVALID,
                       "several pprof profiles one behind the other; merge them instead");
    decoder->scalars[field->id] = (int64_t)field->number;
    return ERR_NONE;
}

static enum err_code count_field(struct decoder *decoder, const struct wire_field *field)
{
    struct counts *counts = &decoder->counts;
    bool is_bytes = field->type == WIRE_BYTES;
    uint64_t index = counts->messages[field->id];
    switch (field->id) {
    case PROFILE_COMMENT:
        if (!is_bytes && field->type != WIRE_VARINT)
            return wrong_type(decoder, "profile", field->id);
        counts->messages[PROFILE_COMMENT] += is_bytes ? wire_count_varints(field->bytes) : 1;
        return ERR_NONE;
    case PROFILE_SAMPLE:
        if (is_bytes && !count_sample(field->bytes, counts))
            return malformed(decoder, "sample", index);
        break;
    case PROFILE_LOCATION:
        if (is_bytes && !count_lines(field->bytes, counts))
            return malformed(decoder, "location", index);
        break;
    case PROFILE_STRING:
        counts->string_bytes += field->bytes.size;
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
        return wrong_type(decoder, "profile", field->id);
    counts->messages[field->id]++;
    return ERR_NONE;
}

static enum err_code count_all(struct decoder *decoder)
{
    const uint8_t *at = decoder->raw.data, *end = at + decoder->raw.size;
    while (at < end) {
        const uint8_t *start = at;
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "the field at byte", (uint64_t)(start - decoder->raw.data));
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

/* What the arrays will take; each count is at most the number of bytes, so nothing overflows. */
static uint64_t memory_needed(const struct counts *counts)
{
    const uint64_t *messages = counts->messages;
    return messages[PROFILE_STRING] * (sizeof(struct span) + 24) + counts->string_bytes +
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
    if (!code)
        code = check_count(decoder, "stack entries", counts->stack_entries, limits->stack_entries);
    if (!code)
        code =
            check_count(decoder, "bytes when decoded", memory_needed(counts), limits->memory_bytes);
    /* Indexes are 32 bits wide, and PROFILE_NONE is not one of them. */
    const uint64_t tables[] = {counts->messages[PROFILE_STRING], counts->lines, counts->labels,
                               counts->messages[PROFILE_LOCATION]};
    for (size_t i = 0; !code && i < sizeof(tables) / sizeof(tables[0]); i++)
        code = check_count(decoder, "entries in a table", tables[i], PROFILE_NONE - 1);
    if (code)
        return code;
    if (types == 0)
        return err_set(decoder->err, ERR_INVALID, "the pprof profile has no sample type");
    if (counts->messages[PROFILE_STRING] == 0)
        return err_set(decoder->err, ERR_INVALID, "the pprof profile has no string table");
    return ERR_NONE;
}

/* ---- second pass: walking and look-ups ---- */

/* Steps to the next field with that number; false at the end. The first pass has checked it. */
WIRE_INLINE bool next_field(struct range *range, uint32_t id, struct wire_field *field)
{
    while (range->start < range->end) {
        range->start = wire_read_field(range->start, range->end, field);
        if (field->id == id)
            return true;
    }
    return false;
}

static bool find_string(const struct decoder *decoder, int64_t index, uint32_t *ret_string)
{
    if ((uint64_t)index >= decoder->string_count)
        return false;
    *ret_string = decoder->canonical ? decoder->canonical[index] : (uint32_t)index;
    return true;
}

static enum err_code set_string(struct decoder *decoder, const char *what, int64_t index,
                                uint32_t *ret_string)
{
    if (find_string(decoder, index, ret_string))
        return ERR_NONE;
    return err_set(decoder->err, ERR_INVALID, "malformed pprof: a %s refers to string %lld of %u",
                   what, (long long)index, decoder->string_count);
}

static uint64_t id_slot(const struct id_table *table, uint64_t id)
{
    return (id * table->multiplier) >> table->shift;
}

static enum err_code id_table_hash(struct decoder *decoder, struct id_table *table)
{
    unsigned bits = 4;
    while ((UINT64_C(1) << bits) < (uint64_t)table->count * 2)
        bits++;
    table->mask = (UINT64_C(1) << bits) - 1;
    table->shift = 64 - bits;
    table->multiplier = decoder->seed | 1;
    table->slots = arena_new_raw(decoder->scratch, uint32_t, (size_t)table->mask + 1);
    memset(table->slots, 0xff, (size_t)(table->mask + 1) * sizeof(*table->slots));
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t at = id_slot(table, table->ids[i]);
        while (table->slots[at] != PROFILE_NONE) {
            if (table->ids[table->slots[at]] == table->ids[i])
                return err_set(decoder->err, ERR_INVALID,
                               "malformed pprof: two %ss have the id %llu", table->name,
                               (unsigned long long)table->ids[i]);
            at = (at + 1) & table->mask;
        }
        table->slots[at] = i;
    }
    return ERR_NONE;
}

static enum err_code id_table_build(struct decoder *decoder, struct id_table *table)
{
    table->is_in_order = true;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->ids[i] == 0)
            return err_set(decoder->err, ERR_INVALID,
                           "malformed pprof: %s %u has the id 0, which means none", table->name, i);
        table->is_in_order &= table->ids[i] == (uint64_t)i + 1;
    }
    return table->is_in_order ? ERR_NONE : id_table_hash(decoder, table);
}

/* PROFILE_NONE when there is no such id. */
static uint32_t id_table_find(const struct id_table *table, uint64_t id)
{
    if (table->is_in_order)
        return id - 1 < table->count ? (uint32_t)(id - 1) : PROFILE_NONE;
    uint64_t at = id_slot(table, id);
    while (table->slots[at] != PROFILE_NONE) {
        if (table->ids[table->slots[at]] == id)
            return table->slots[at];
        at = (at + 1) & table->mask;
    }
    return PROFILE_NONE;
}

/* ---- strings ---- */

static void copy_strings(struct decoder *decoder, struct span *strings)
{
    uint8_t *bytes = arena_alloc_raw(decoder->arena, (size_t)decoder->counts.string_bytes, 1);
    struct range range = decoder->ranges[PROFILE_STRING];
    struct wire_field field;
    for (uint32_t i = 0; next_field(&range, PROFILE_STRING, &field); i++) {
        if (field.bytes.size)
            memcpy(bytes, field.bytes.data, field.bytes.size);
        strings[i] = span_of(bytes, field.bytes.size);
        bytes += field.bytes.size;
    }
}

/*
 * Makes equal strings one index. Writers intern their strings, so that usually nothing moves and
 * the cost is one hash and one probe per string.
 */
static void canonicalise_strings(struct decoder *decoder, struct span *strings)
{
    uint32_t count = decoder->string_count, kept = 0;
    uint64_t capacity = 16;
    while (capacity < (uint64_t)count * 2)
        capacity *= 2;
    uint32_t *slots = arena_new_raw(decoder->scratch, uint32_t, (size_t)capacity);
    memset(slots, 0xff, (size_t)capacity * sizeof(*slots));
    uint32_t *hashes = arena_new_raw(decoder->scratch, uint32_t, count);
    uint32_t *canonical = NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = XXH3_64bits_withSeed(strings[i].data, strings[i].size, decoder->seed);
        uint64_t at = hash & (capacity - 1);
        uint32_t high = (uint32_t)(hash >> 32);
        while (slots[at] != PROFILE_NONE &&
               !(hashes[slots[at]] == high && span_equal(strings[slots[at]], strings[i])))
            at = (at + 1) & (capacity - 1);
        bool is_new = slots[at] == PROFILE_NONE;
        if (!is_new && !canonical) {
            canonical = arena_new_raw(decoder->scratch, uint32_t, count);
            for (uint32_t j = 0; j < i; j++)
                canonical[j] = j;
        }
        if (is_new) {
            slots[at] = kept;
            hashes[kept] = high;
            strings[kept++] = strings[i];
        }
        if (canonical)
            canonical[i] = slots[at];
    }
    decoder->canonical = canonical;
    decoder->profile->string_count = kept;
}

static enum err_code fill_strings(struct decoder *decoder)
{
    decoder->string_count = (uint32_t)decoder->counts.messages[PROFILE_STRING];
    struct span *strings = arena_new_raw(decoder->arena, struct span, decoder->string_count);
    copy_strings(decoder, strings);
    if (strings[0].size != 0)
        return err_set(decoder->err, ERR_INVALID, "malformed pprof: string 0 is not empty");
    canonicalise_strings(decoder, strings);
    decoder->profile->strings = strings;
    return ERR_NONE;
}

/* ---- tables ---- */

static enum err_code fill_value_type(struct decoder *decoder, struct span bytes,
                                     struct profile_value_type *type)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    enum err_code code = ERR_NONE;
    while (!code && at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "value type", 0);
        if (field.id != VALUE_TYPE_TYPE && field.id != VALUE_TYPE_UNIT)
            continue;
        if (field.type != WIRE_VARINT)
            return wrong_type(decoder, "value type", field.id);
        code = set_string(decoder, "value type", (int64_t)field.number,
                          field.id == VALUE_TYPE_TYPE ? &type->type : &type->unit);
    }
    return code;
}

static enum err_code fill_value_types(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    profile->value_type_count = (uint32_t)decoder->counts.messages[PROFILE_SAMPLE_TYPE];
    struct profile_value_type *types =
        arena_new(decoder->arena, struct profile_value_type, profile->value_type_count);
    struct range range = decoder->ranges[PROFILE_SAMPLE_TYPE];
    struct wire_field field;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; !code && next_field(&range, PROFILE_SAMPLE_TYPE, &field); i++)
        code = fill_value_type(decoder, field.bytes, &types[i]);
    profile->value_types = types;
    range = decoder->ranges[PROFILE_PERIOD_TYPE];
    while (!code && next_field(&range, PROFILE_PERIOD_TYPE, &field)) {
        profile->period_type = (struct profile_value_type){0};
        code = fill_value_type(decoder, field.bytes, &profile->period_type);
    }
    return code;
}

static enum err_code set_mapping_field(struct decoder *decoder, const struct wire_field *field,
                                       struct profile_mapping *mapping, uint64_t *id)
{
    uint64_t number = field->number;
    if (field->id == 0 || field->id > MAPPING_HAS_INLINE_FRAMES)
        return ERR_NONE;
    if (field->type != WIRE_VARINT)
        return wrong_type(decoder, "mapping", field->id);
    switch (field->id) {
    case MAPPING_ID:
        *id = number;
        break;
    case MAPPING_START:
        mapping->start = number;
        break;
    case MAPPING_LIMIT:
        mapping->limit = number;
        break;
    case MAPPING_OFFSET:
        mapping->offset = number;
        break;
    case MAPPING_FILENAME:
        return set_string(decoder, "mapping", (int64_t)number, &mapping->filename);
    case MAPPING_BUILD_ID:
        return set_string(decoder, "mapping", (int64_t)number, &mapping->build_id);
    case MAPPING_HAS_FUNCTIONS:
        mapping->has_functions = number != 0;
        break;
    case MAPPING_HAS_FILENAMES:
        mapping->has_filenames = number != 0;
        break;
    case MAPPING_HAS_LINE_NUMBERS:
        mapping->has_line_numbers = number != 0;
        break;
    default:
        mapping->has_inline_frames = number != 0;
    }
    return ERR_NONE;
}

static enum err_code fill_mappings(struct decoder *decoder)
{
    uint32_t count = (uint32_t)decoder->counts.messages[PROFILE_MAPPING];
    struct profile_mapping *mappings = arena_new(decoder->arena, struct profile_mapping, count);
    uint64_t *ids = arena_new(decoder->scratch, uint64_t, count);
    struct range range = decoder->ranges[PROFILE_MAPPING];
    struct wire_field message;
    for (uint32_t i = 0; next_field(&range, PROFILE_MAPPING, &message); i++) {
        const uint8_t *at = message.bytes.data, *end = at + message.bytes.size;
        while (at < end) {
            struct wire_field field;
            at = wire_read_field(at, end, &field);
            if (!at)
                return malformed(decoder, "mapping", i);
            enum err_code code = set_mapping_field(decoder, &field, &mappings[i], &ids[i]);
            if (code)
                return code;
        }
    }
    decoder->profile->mappings = mappings;
    decoder->profile->mapping_count = count;
    decoder->mapping_ids = (struct id_table){.name = "mapping", .ids = ids, .count = count};
    return id_table_build(decoder, &decoder->mapping_ids);
}

static enum err_code set_function_field(struct decoder *decoder, const struct wire_field *field,
                                        struct profile_function *function, uint64_t *id)
{
    if (field->id == 0 || field->id > FUNCTION_START_LINE)
        return ERR_NONE;
    if (field->type != WIRE_VARINT)
        return wrong_type(decoder, "function", field->id);
    uint32_t *string = &function->name;
    switch (field->id) {
    case FUNCTION_ID:
        *id = field->number;
        return ERR_NONE;
    case FUNCTION_START_LINE:
        function->start_line = (int64_t)field->number;
        return ERR_NONE;
    case FUNCTION_SYSTEM_NAME:
        string = &function->system_name;
        break;
    case FUNCTION_FILENAME:
        string = &function->filename;
        break;
    default:
        break;
    }
    return set_string(decoder, "function", (int64_t)field->number, string);
}

static enum err_code fill_functions(struct decoder *decoder)
{
    uint32_t count = (uint32_t)decoder->counts.messages[PROFILE_FUNCTION];
    struct profile_function *functions = arena_new(decoder->arena, struct profile_function, count);
    uint64_t *ids = arena_new(decoder->scratch, uint64_t, count);
    struct range range = decoder->ranges[PROFILE_FUNCTION];
    struct wire_field message;
    for (uint32_t i = 0; next_field(&range, PROFILE_FUNCTION, &message); i++) {
        const uint8_t *at = message.bytes.data, *end = at + message.bytes.size;
        while (at < end) {
            struct wire_field field;
            at = wire_read_field(at, end, &field);
            if (!at)
                return malformed(decoder, "function", i);
            enum err_code code = set_function_field(decoder, &field, &functions[i], &ids[i]);
            if (code)
                return code;
        }
    }
    decoder->profile->functions = functions;
    decoder->profile->function_count = count;
    decoder->function_ids = (struct id_table){.name = "function", .ids = ids, .count = count};
    return id_table_build(decoder, &decoder->function_ids);
}

static enum err_code fill_line(struct decoder *decoder, struct span bytes, uint32_t location,
                               struct profile_line *line)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    line->function = PROFILE_NONE;
    while (at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "a line of location", location);
        if (field.id == 0 || field.id > LINE_COLUMN)
            continue;
        if (field.type != WIRE_VARINT)
            return wrong_type(decoder, "line", field.id);
        if (field.id == LINE_FUNCTION)
            line->function = id_table_find(&decoder->function_ids, field.number);
        else if (field.id == LINE_LINE)
            line->line = (int64_t)field.number;
        else
            line->column = (int64_t)field.number;
    }
    if (line->function == PROFILE_NONE)
        return err_set(decoder->err, ERR_INVALID,
                       "malformed pprof: location %u has a line without a known function",
                       location);
    return ERR_NONE;
}

static enum err_code set_location_field(struct decoder *decoder, const struct wire_field *field,
                                        struct profile_location *location, uint64_t *id)
{
    if (field->id == 0 || field->id > LOCATION_IS_FOLDED || field->id == LOCATION_LINE)
        return ERR_NONE;
    if (field->type != WIRE_VARINT)
        return wrong_type(decoder, "location", field->id);
    if (field->id == LOCATION_ID)
        *id = field->number;
    else if (field->id == LOCATION_MAPPING)
        location->mapping = id_table_find(&decoder->mapping_ids, field->number);
    else if (field->id == LOCATION_ADDRESS)
        location->address = field->number;
    else
        location->is_folded = field->number != 0;
    return ERR_NONE;
}

static enum err_code fill_location(struct decoder *decoder, struct span bytes, uint32_t index,
                                   struct profile_location *location, struct profile_line *lines,
                                   uint64_t *id)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    location->mapping = PROFILE_NONE;
    while (at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "location", index);
        if (field.id == LOCATION_LINE && field.type != WIRE_BYTES)
            return wrong_type(decoder, "location", field.id);
        enum err_code code =
            field.id == LOCATION_LINE
                ? fill_line(decoder, field.bytes, index, &lines[location->line_count++])
                : set_location_field(decoder, &field, location, id);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static enum err_code fill_locations(struct decoder *decoder)
{
    uint32_t count = (uint32_t)decoder->counts.messages[PROFILE_LOCATION], line_count = 0;
    struct profile_location *locations = arena_new(decoder->arena, struct profile_location, count);
    struct profile_line *lines =
        arena_new(decoder->arena, struct profile_line, (size_t)decoder->counts.lines);
    uint64_t *ids = arena_new(decoder->scratch, uint64_t, count);
    struct range range = decoder->ranges[PROFILE_LOCATION];
    struct wire_field message;
    for (uint32_t i = 0; next_field(&range, PROFILE_LOCATION, &message); i++) {
        locations[i].first_line = line_count;
        enum err_code code =
            fill_location(decoder, message.bytes, i, &locations[i], lines + line_count, &ids[i]);
        if (code)
            return code;
        line_count += locations[i].line_count;
    }
    struct profile *profile = decoder->profile;
    profile->locations = locations;
    profile->location_count = count;
    profile->lines = lines;
    profile->line_count = line_count;
    decoder->location_ids = (struct id_table){.name = "location", .ids = ids, .count = count};
    return id_table_build(decoder, &decoder->location_ids);
}

/* ---- samples ---- */

static enum err_code fill_label(struct decoder *decoder, struct span bytes, uint64_t sample)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct profile_label *label = decoder->labels++;
    *label = (struct profile_label){0};
    enum err_code code = ERR_NONE;
    while (!code && at < end) {
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "a label of sample", sample);
        if (field.id == 0 || field.id > LABEL_NUM_UNIT)
            continue;
        if (field.type != WIRE_VARINT)
            return wrong_type(decoder, "label", field.id);
        int64_t number = (int64_t)field.number;
        if (field.id == LABEL_KEY)
            code = set_string(decoder, "label", number, &label->key);
        else if (field.id == LABEL_STR)
            code = set_string(decoder, "label", number, &label->text);
        else if (field.id == LABEL_NUM)
            label->number = number;
        else
            code = set_string(decoder, "label", number, &label->unit);
    }
    /* Which kind of label it is follows the official reader: text wins. */
    label->is_numeric = label->text == 0;
    if (!label->is_numeric) {
        label->number = 0;
        label->unit = 0;
    }
    return code;
}

/* Ids that are no plain sequence, or the last few bytes of the file. */
static bool read_other_ids(struct decoder *decoder, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint64_t id;
        at = wire_read_varint(at, end, &id);
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
 * The innermost loop of decoding: packed location ids, mostly of two bytes. Byte by byte is faster
 * here than cutting numbers out of 64-bit words without branches (measured: a tenth of the whole
 * decoding), since lengths are predictable. An id that is out of range is noticed once, behind the
 * loop. Every number ends in a byte of its own and so was counted: this never writes past the
 * array.
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
        } else if (!(at = wire_read_long_varint(at, end, &id))) {
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
        at = wire_read_varint(at, end, &number);
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
                   "malformed pprof: sample %llu refers to a location that is not there",
                   (unsigned long long)sample);
}

static enum err_code fill_sample_field(struct decoder *decoder, const struct wire_field *field,
                                       uint64_t sample)
{
    if (field->id == SAMPLE_LABEL) {
        if (field->type != WIRE_BYTES)
            return wrong_type(decoder, "sample", field->id);
        return fill_label(decoder, field->bytes, sample);
    }
    if (field->id != SAMPLE_LOCATION && field->id != SAMPLE_VALUE)
        return ERR_NONE;
    if (field->type != WIRE_BYTES && field->type != WIRE_VARINT)
        return wrong_type(decoder, "sample", field->id);
    if (field->type == WIRE_BYTES) {
        if (field->id == SAMPLE_LOCATION)
            return read_packed_ids(decoder, field->bytes) ? ERR_NONE
                                                          : unknown_location(decoder, sample);
        return read_packed_values(decoder, field->bytes) ? ERR_NONE
                                                         : malformed(decoder, "sample", sample);
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
        struct wire_field field;
        at = wire_read_field(at, end, &field);
        if (!at)
            return malformed(decoder, "sample", sample);
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

static enum err_code fill_samples(struct decoder *decoder)
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
    struct wire_field message;
    stack_start[0] = 0;
    label_start[0] = 0;
    for (uint32_t i = 0; next_field(&range, PROFILE_SAMPLE, &message); i++) {
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

/* ---- the rest ---- */

static enum err_code fill_comments(struct decoder *decoder)
{
    uint32_t *comments =
        arena_new(decoder->arena, uint32_t, (size_t)decoder->counts.messages[PROFILE_COMMENT]);
    struct profile *profile = decoder->profile;
    struct range range = decoder->ranges[PROFILE_COMMENT];
    struct wire_field field;
    profile->comments = comments;
    while (next_field(&range, PROFILE_COMMENT, &field)) {
        struct span bytes = field.bytes;
        const uint8_t *at = bytes.data, *end = bytes.size ? at + bytes.size : at;
        bool is_single = field.type != WIRE_BYTES;
        while (is_single || at < end) {
            uint64_t number = field.number;
            if (!is_single)
                at = wire_read_varint(at, end, &number);
            if (!is_single && !at)
                return malformed(decoder, "comment", profile->comment_count);
            is_single = false;
            enum err_code code = set_string(decoder, "comment", (int64_t)number,
                                            &comments[profile->comment_count++]);
            if (code)
                return code;
        }
    }
    return ERR_NONE;
}

static enum err_code fill_scalars(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    const int64_t *scalars = decoder->scalars;
    profile->time_ns = scalars[PROFILE_TIME_NANOS];
    profile->duration_ns = scalars[PROFILE_DURATION_NANOS];
    profile->period = scalars[PROFILE_PERIOD];
    enum err_code code =
        set_string(decoder, "profile", scalars[PROFILE_DROP_FRAMES], &profile->drop_frames);
    if (!code)
        code = set_string(decoder, "profile", scalars[PROFILE_KEEP_FRAMES], &profile->keep_frames);
    if (!code)
        code = set_string(decoder, "profile", scalars[PROFILE_DEFAULT_SAMPLE_TYPE],
                          &profile->default_sample_type);
    if (!code)
        code = set_string(decoder, "profile", scalars[PROFILE_DOC_URL], &profile->doc_url);
    return code;
}

static enum err_code decode_all(struct decoder *decoder)
{
    enum err_code (*const steps[])(struct decoder *) = {
        count_all,      check_counts,   fill_strings, fill_value_types, fill_mappings,
        fill_functions, fill_locations, fill_samples, fill_comments,    fill_scalars};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        enum err_code code = steps[i](decoder);
        if (code)
            return code;
    }
    return ERR_NONE;
}

enum err_code pprof_decode(struct span raw, const struct profile_limits *limits,
                           struct profile **ret_profile, struct err *err)
{
    arena_auto scratch = arena_create();
    struct decoder decoder = {
        .raw = raw, .limits = profile_limits_resolve(limits), .scratch = scratch, .err = err};
    if (raw.size == 0)
        return err_set(err, ERR_INVALID, "the pprof profile is empty");
    if (raw.size > decoder.limits.raw_bytes)
        return err_set(err, ERR_TOO_LARGE, "the profile is %zu bytes when expanded, limit %zu",
                       raw.size, decoder.limits.raw_bytes);
    if (getrandom(&decoder.seed, sizeof(decoder.seed), 0) != (ssize_t)sizeof(decoder.seed))
        return err_set_errno(err, ERR_INTERNAL, "random bytes for hashing");
    struct arena *arena = arena_create();
    decoder.arena = arena;
    decoder.profile = arena_new(arena, struct profile, 1);
    decoder.profile->arena = arena;
    enum err_code code = decode_all(&decoder);
    if (code)
        arena_destroy(arena);
    else
        *ret_profile = decoder.profile;
    return code;
}
