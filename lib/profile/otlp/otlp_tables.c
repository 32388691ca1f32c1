/*
 * Converts the dictionary's tables to those of struct profile, with the same indexes, except that
 * stacks may be shifted by one. Index 0 of mappings and functions means none. An entry that is
 * malformed, or refers to an entry that does not exist, is marked as wrong, and so is every entry
 * that refers to it. Only profiles that use a wrong entry are dropped.
 */
#include "lib/base/arena.h"
#include "lib/profile/otlp/otlp_decoder.h"
#include "lib/profile/otlp/otlp_indexes.h"

/* ---- mappings ---- */

/* *best is the role of the build id that is set, or a value after all roles. */
static bool set_build_id(struct otlp_decoder *decoder, struct span list,
                         struct profile_mapping *mapping, enum otlp_role *best)
{
    const uint8_t *at = list.data, *end = otlp_end(list);
    while (at < end) {
        uint64_t index;
        at = protobuf_read_varint(at, end, &index);
        if (!at || !otlp_is_right(decoder, TABLE_ATTRIBUTE, index))
            return false;
        const struct otlp_attribute *attribute = &decoder->attributes[index];
        bool is_build_id = attribute->role >= ROLE_BUILD_ID_GNU && attribute->kind == OTLP_TEXT &&
                           attribute->text != 0;
        if (!is_build_id || attribute->role >= *best)
            continue;
        *best = attribute->role;
        mapping->build_id = attribute->text;
    }
    return true;
}

static bool set_mapping_field(struct otlp_decoder *decoder, const struct protobuf_field *field,
                              struct profile_mapping *mapping)
{
    if (field->type != PROTOBUF_VARINT)
        return false;
    if (field->id == MAPPING_START)
        mapping->start = field->number;
    else if (field->id == MAPPING_LIMIT)
        mapping->limit = field->number;
    else if (field->id == MAPPING_OFFSET)
        mapping->offset = field->number;
    else
        return otlp_find_string(decoder, field->number, &mapping->filename);
    return true;
}

static bool fill_mapping(struct otlp_decoder *decoder, struct span bytes,
                         struct profile_mapping *mapping)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    enum otlp_role best = ROLE_BUILD_ID_HTLHASH + 1;
    struct span attributes = {0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > MAPPING_ATTRIBUTES)
            continue;
        bool is_good =
            field.id == MAPPING_ATTRIBUTES
                ? otlp_list_add(&attributes, &decoder->joined[0], &field, PROTOBUF_VARINT)
                : set_mapping_field(decoder, &field, mapping);
        if (!is_good)
            return false;
    }
    return set_build_id(decoder, attributes, mapping, &best);
}

static void fill_mappings(struct otlp_decoder *decoder)
{
    const uint32_t count = (uint32_t)decoder->counts.tables[TABLE_MAPPING];
    struct profile_mapping *mappings = arena_new(decoder->arena, struct profile_mapping, count);
    struct otlp_range range = decoder->ranges[TABLE_MAPPING];
    struct span bytes;
    for (uint32_t i = 0; otlp_next_entry(&range, TABLE_MAPPING, &bytes); i++)
        decoder->wrong[TABLE_MAPPING][i] = !fill_mapping(decoder, bytes, &mappings[i]);
    decoder->tables->mappings = mappings;
    decoder->tables->mapping_count = count;
}

/* ---- functions ---- */

static bool fill_function(struct otlp_decoder *decoder, struct span bytes,
                          struct profile_function *function)
{
    uint32_t *const strings[] = {NULL, &function->name, &function->system_name,
                                 &function->filename};
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > FUNCTION_START_LINE)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return false;
        if (field.id == FUNCTION_START_LINE)
            function->start_line = (int64_t)field.number;
        else if (!otlp_find_string(decoder, field.number, strings[field.id]))
            return false;
    }
    return true;
}

static void fill_functions(struct otlp_decoder *decoder)
{
    const uint32_t count = (uint32_t)decoder->counts.tables[TABLE_FUNCTION];
    struct profile_function *functions = arena_new(decoder->arena, struct profile_function, count);
    struct otlp_range range = decoder->ranges[TABLE_FUNCTION];
    struct span bytes;
    for (uint32_t i = 0; otlp_next_entry(&range, TABLE_FUNCTION, &bytes); i++)
        decoder->wrong[TABLE_FUNCTION][i] = !fill_function(decoder, bytes, &functions[i]);
    decoder->tables->functions = functions;
    decoder->tables->function_count = count;
}

/* ---- locations ---- */

/* Index 0 means none; every other index must exist. */
PROTOBUF_INLINE bool find_entry(const struct otlp_decoder *decoder, enum otlp_table table,
                                uint64_t index, uint32_t *ret_entry)
{
    const bool is_right = index == 0 || otlp_is_right(decoder, table, index);
    *ret_entry = index && is_right ? (uint32_t)index : PROFILE_NONE;
    return is_right;
}

PROTOBUF_INLINE bool fill_line(struct otlp_decoder *decoder, struct span bytes,
                               struct profile_line *line)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    *line = (struct profile_line){.function = PROFILE_NONE};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > LINE_COLUMN)
            continue;
        if (field.type != PROTOBUF_VARINT)
            return false;
        if (field.id == LINE_LINE)
            line->line = (int64_t)field.number;
        else if (field.id == LINE_COLUMN)
            line->column = (int64_t)field.number;
        else if (!find_entry(decoder, TABLE_FUNCTION, field.number, &line->function))
            return false;
    }
    return true;
}

PROTOBUF_INLINE bool fill_location(struct otlp_decoder *decoder, struct span bytes,
                                   struct profile_location *location, struct profile_line *lines)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    bool is_good = true;
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == LOCATION_LINES) {
            /* Counted before it is validated, as in the first pass. */
            struct profile_line *line = &lines[location->line_count++];
            is_good &= field.type == PROTOBUF_BYTES && fill_line(decoder, field.bytes, line);
            if (field.type != PROTOBUF_BYTES)
                *line = (struct profile_line){.function = PROFILE_NONE};
        } else if (field.id == LOCATION_ADDRESS) {
            is_good &= field.type == PROTOBUF_VARINT;
            location->address = field.number;
        } else if (field.id == LOCATION_MAPPING) {
            is_good &= field.type == PROTOBUF_VARINT &&
                       find_entry(decoder, TABLE_MAPPING, field.number, &location->mapping);
        }
    }
    return is_good;
}

static void fill_locations(struct otlp_decoder *decoder)
{
    const uint32_t count = (uint32_t)decoder->counts.tables[TABLE_LOCATION];
    struct profile_location *locations =
        arena_new_raw(decoder->arena, struct profile_location, count);
    struct profile_line *lines =
        arena_new_raw(decoder->arena, struct profile_line, (size_t)decoder->counts.lines);
    struct otlp_range range = decoder->ranges[TABLE_LOCATION];
    struct span bytes;
    uint32_t line_count = 0;
    for (uint32_t i = 0; otlp_next_entry(&range, TABLE_LOCATION, &bytes); i++) {
        locations[i] = (struct profile_location){.mapping = PROFILE_NONE, .first_line = line_count};
        const bool is_right = fill_location(decoder, bytes, &locations[i], lines + line_count);
        line_count += locations[i].line_count;
        decoder->wrong[TABLE_LOCATION][i] = !is_right;
        if (!is_right)
            locations[i].mapping = PROFILE_NONE;
    }
    decoder->tables->locations = locations;
    decoder->tables->location_count = count;
    decoder->tables->lines = lines;
    decoder->tables->line_count = line_count;
}

/* ---- links ---- */

static bool set_id(const struct protobuf_field *field, uint8_t *id, size_t size)
{
    if (field->type != PROTOBUF_BYTES || (field->bytes.size != size && field->bytes.size != 0))
        return false;
    if (field->bytes.size)
        memcpy(id, field->bytes.data, size);
    return true;
}

static bool fill_link(struct span bytes, struct batch_link *link)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == LINK_TRACE_ID && !set_id(&field, link->trace_id, sizeof(link->trace_id)))
            return false;
        if (field.id == LINK_SPAN_ID && !set_id(&field, link->span_id, sizeof(link->span_id)))
            return false;
    }
    return true;
}

static void fill_links(struct otlp_decoder *decoder)
{
    const size_t count = (size_t)decoder->counts.tables[TABLE_LINK];
    decoder->links = arena_new(decoder->scratch, struct batch_link, count);
    struct otlp_range range = decoder->ranges[TABLE_LINK];
    struct span bytes;
    for (size_t i = 0; otlp_next_entry(&range, TABLE_LINK, &bytes); i++)
        decoder->wrong[TABLE_LINK][i] = !fill_link(bytes, &decoder->links[i]);
}

/* ---- stacks ---- */

static bool is_any_wrong(const struct otlp_decoder *decoder, const uint32_t *entry,
                         const uint32_t *end)
{
    bool is_wrong = false;
    for (; entry < end; entry++)
        is_wrong |= decoder->wrong[TABLE_LOCATION][*entry];
    return is_wrong;
}

/* Writes a stack's locations from entry on. Returns the position after the last one, or NULL if the
 * stack is malformed, too deep, or refers to a location that does not exist. */
static uint32_t *fill_stack(const struct otlp_decoder *decoder, const struct otlp_indexes *indexes,
                            struct span bytes, uint32_t *entry)
{
    const uint64_t limit = decoder->tables->location_count;
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    const uint32_t *first = entry;
    while (at < end && entry) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return NULL;
        if (field.id != STACK_LOCATIONS)
            continue;
        if (field.type == PROTOBUF_BYTES)
            entry = indexes ? otlp_indexes_read(indexes, field.bytes, entry, limit)
                            : otlp_indexes_read_portable(field.bytes, entry, limit);
        else if (field.type != PROTOBUF_VARINT || field.number >= limit)
            return NULL;
        else
            *entry++ = (uint32_t)field.number;
    }
    if (!entry || (uint64_t)(entry - first) > decoder->limits.stack_depth)
        return NULL;
    return entry;
}

/* Whether the first entry is the empty stack, as the specification requires. Older senders have an
 * ordinary stack there. Then all stacks move by one, because a batch needs an empty stack 0. */
static bool is_first_empty(const struct otlp_decoder *decoder)
{
    struct otlp_range range = decoder->ranges[TABLE_STACK];
    struct span bytes;
    return otlp_next_entry(&range, TABLE_STACK, &bytes) && bytes.size == 0;
}

/* NULL: the portable implementation is faster here. */
static const struct otlp_indexes *make_indexes(const struct otlp_decoder *decoder)
{
    if (decoder->counts.stack_entries < OTLP_INDEXES_WORTH_IT || !otlp_indexes_can())
        return NULL;
    struct otlp_indexes *indexes = arena_new_raw(decoder->scratch, struct otlp_indexes, 1);
    otlp_indexes_init(indexes);
    return indexes;
}

static void fill_stacks(struct otlp_decoder *decoder)
{
    const uint32_t count = (uint32_t)decoder->counts.tables[TABLE_STACK];
    uint64_t *starts = arena_new_raw(decoder->arena, uint64_t, count + (size_t)2);
    uint32_t *entries = arena_new_raw(decoder->arena, uint32_t,
                                      (size_t)decoder->counts.stack_entries + OTLP_INDEXES_SLACK);
    const struct otlp_indexes *indexes = make_indexes(decoder);
    const bool has_wrong =
        memchr(decoder->wrong[TABLE_LOCATION], 1, decoder->tables->location_count) != NULL;
    const uint32_t shift = is_first_empty(decoder) ? 0 : 1;
    struct otlp_range range = decoder->ranges[TABLE_STACK];
    uint32_t *entry = entries;
    struct span bytes;
    starts[0] = starts[1] = 0;
    for (uint32_t i = 0; otlp_next_entry(&range, TABLE_STACK, &bytes); i++) {
        uint32_t *stack_end = fill_stack(decoder, indexes, bytes, entry);
        const bool is_wrong = !stack_end || (has_wrong && is_any_wrong(decoder, entry, stack_end));
        decoder->wrong[TABLE_STACK][i] = is_wrong;
        if (!is_wrong)
            entry = stack_end;
        starts[i + shift + 1] = (uint64_t)(entry - entries);
    }
    decoder->stack_shift = shift;
    decoder->batch->stack_count = count + shift;
    decoder->batch->stack_start = starts;
    decoder->batch->stack = entries;
}

void otlp_fill_tables(struct otlp_decoder *decoder)
{
    for (enum otlp_table table = TABLE_MAPPING; table < TABLE_COUNT; table++)
        if (table != TABLE_STRING && table != TABLE_ATTRIBUTE)
            decoder->wrong[table] =
                arena_new(decoder->scratch, uint8_t, (size_t)decoder->counts.tables[table]);
    fill_mappings(decoder);
    fill_functions(decoder);
    fill_locations(decoder);
    fill_links(decoder);
    fill_stacks(decoder);
}
