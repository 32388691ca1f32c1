#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/long_string.h"
#include "lib/profile/pprof/pprof_decoder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- ids ---- */

/* Makes the hash table for ids that are not in order. Errors: ERR_INVALID (an id occurs twice). */
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
        if (table->ids[i] == 0 && !table->may_have_zero)
            return err_set(decoder->err, ERR_INVALID,
                           "malformed pprof: %s %u has the id 0, which means none", table->name, i);
        table->is_in_order &= table->ids[i] == (uint64_t)i + 1;
    }
    return table->is_in_order ? ERR_NONE : id_table_hash(decoder, table);
}

/* ---- strings ---- */

/* Lists the file's strings, which are copied to the profile's arena. */
static void copy_strings(struct decoder *decoder, struct span *strings)
{
    uint8_t *bytes = arena_alloc_raw(decoder->arena, (size_t)decoder->counts.string_bytes, 1);
    struct range range = decoder->ranges[PROFILE_STRING];
    struct protobuf_field field;
    for (uint32_t i = 0; pprof_next_field(&range, PROFILE_STRING, &field); i++) {
        if (field.bytes.size > decoder->limits.string_bytes) {
            strings[i] = long_string_cut(decoder->arena, field.bytes, decoder->limits.string_bytes,
                                         &decoder->profile->cut_string_count);
            continue;
        }
        if (field.bytes.size)
            memcpy(bytes, field.bytes.data, field.bytes.size);
        strings[i] = span_of(bytes, field.bytes.size);
        bytes += field.bytes.size;
    }
}

/*
 * Gives equal strings one index. Writers intern their strings, so usually no index changes,
 * canonical stays NULL, and the cost is one hash and one probe per string.
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
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "value type", 0);
        if (field.id != VALUE_TYPE_TYPE && field.id != VALUE_TYPE_UNIT)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return pprof_wrong_type(decoder, "value type", field.id);
        code = pprof_set_string(decoder, "value type", (int64_t)field.number,
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
    struct protobuf_field field;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; !code && pprof_next_field(&range, PROFILE_SAMPLE_TYPE, &field); i++)
        code = fill_value_type(decoder, field.bytes, &types[i]);
    profile->value_types = types;
    range = decoder->ranges[PROFILE_PERIOD_TYPE];
    while (!code && pprof_next_field(&range, PROFILE_PERIOD_TYPE, &field)) {
        profile->period_type = (struct profile_value_type){0};
        code = fill_value_type(decoder, field.bytes, &profile->period_type);
    }
    return code;
}

static enum err_code set_mapping_field(struct decoder *decoder, const struct protobuf_field *field,
                                       struct profile_mapping *mapping, uint64_t *id)
{
    uint64_t number = field->number;
    if (field->id == 0 || field->id > MAPPING_HAS_INLINE_FRAMES)
        return ERR_NONE;
    if (field->type != PROTOBUF_VARINT)
        return pprof_wrong_type(decoder, "mapping", field->id);
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
        return pprof_set_string(decoder, "mapping", (int64_t)number, &mapping->filename);
    case MAPPING_BUILD_ID:
        return pprof_set_string(decoder, "mapping", (int64_t)number, &mapping->build_id);
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
    struct protobuf_field message;
    for (uint32_t i = 0; pprof_next_field(&range, PROFILE_MAPPING, &message); i++) {
        const uint8_t *at = message.bytes.data, *end = at + message.bytes.size;
        while (at < end) {
            struct protobuf_field field;
            at = protobuf_read_field(at, end, &field);
            if (!at)
                return pprof_malformed(decoder, "mapping", i);
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

static enum err_code set_function_field(struct decoder *decoder, const struct protobuf_field *field,
                                        struct profile_function *function, uint64_t *id)
{
    if (field->id == 0 || field->id > FUNCTION_START_LINE)
        return ERR_NONE;
    if (field->type != PROTOBUF_VARINT)
        return pprof_wrong_type(decoder, "function", field->id);
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
    return pprof_set_string(decoder, "function", (int64_t)field->number, string);
}

static enum err_code fill_functions(struct decoder *decoder)
{
    uint32_t count = (uint32_t)decoder->counts.messages[PROFILE_FUNCTION];
    struct profile_function *functions = arena_new(decoder->arena, struct profile_function, count);
    uint64_t *ids = arena_new(decoder->scratch, uint64_t, count);
    struct range range = decoder->ranges[PROFILE_FUNCTION];
    struct protobuf_field message;
    for (uint32_t i = 0; pprof_next_field(&range, PROFILE_FUNCTION, &message); i++) {
        const uint8_t *at = message.bytes.data, *end = at + message.bytes.size;
        while (at < end) {
            struct protobuf_field field;
            at = protobuf_read_field(at, end, &field);
            if (!at)
                return pprof_malformed(decoder, "function", i);
            enum err_code code = set_function_field(decoder, &field, &functions[i], &ids[i]);
            if (code)
                return code;
        }
    }
    decoder->profile->functions = functions;
    decoder->profile->function_count = count;
    decoder->function_ids =
        (struct id_table){.name = "function", .ids = ids, .count = count, .may_have_zero = true};
    return id_table_build(decoder, &decoder->function_ids);
}

static enum err_code fill_line(struct decoder *decoder, struct span bytes, uint32_t location,
                               struct profile_line *line)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    uint64_t function_id = 0;
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "a line of location", location);
        if (field.id == 0 || field.id > LINE_COLUMN)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return pprof_wrong_type(decoder, "line", field.id);
        if (field.id == LINE_FUNCTION)
            function_id = field.number;
        else if (field.id == LINE_LINE)
            line->line = (int64_t)field.number;
        else
            line->column = (int64_t)field.number;
    }
    line->function = id_table_find(&decoder->function_ids, function_id);
    if (line->function == PROFILE_NONE)
        return err_set(decoder->err, ERR_INVALID,
                       "malformed pprof: location %u has a line without a known function",
                       location);
    return ERR_NONE;
}

static enum err_code set_location_field(struct decoder *decoder, const struct protobuf_field *field,
                                        struct profile_location *location, uint64_t *id)
{
    if (field->id == 0 || field->id > LOCATION_IS_FOLDED || field->id == LOCATION_LINE)
        return ERR_NONE;
    if (field->type != PROTOBUF_VARINT)
        return pprof_wrong_type(decoder, "location", field->id);
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
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return pprof_malformed(decoder, "location", index);
        if (field.id == LOCATION_LINE && field.type != PROTOBUF_BYTES)
            return pprof_wrong_type(decoder, "location", field.id);
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
    struct protobuf_field message;
    for (uint32_t i = 0; pprof_next_field(&range, PROFILE_LOCATION, &message); i++) {
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
    decoder->location_ids =
        (struct id_table){.name = "location", .ids = ids, .count = count, .may_have_zero = true};
    return id_table_build(decoder, &decoder->location_ids);
}

enum err_code pprof_fill_tables(struct decoder *decoder)
{
    enum err_code (*const steps[])(struct decoder *) = {
        fill_strings, fill_value_types, fill_mappings, fill_functions, fill_locations};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        enum err_code code = steps[i](decoder);
        if (code)
            return code;
    }
    return ERR_NONE;
}
