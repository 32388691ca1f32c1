#include "lib/profile/symbolize.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/radix_sort.h"
#include "lib/profile/raw_name.h"

#include <string.h>

/* Addresses per query. The number bounds the temporary memory of a query, because an address may
 * have hundreds of frames. */
enum { QUERY_ADDRESSES = 2048 };

/* A location to be resolved. */
struct wanted {
    uint32_t mapping;
    uint32_t location;
};

/* The new tables. Arrays of the old profile are copied when the first entry is added. */
struct named_tables {
    const struct profile *profile;
    struct arena *arena;
    struct profile *named;
    struct map_bytes strings; /* the strings of named; filled when the first name is added */
    struct map_bytes functions;
    struct span *string;
    struct profile_function *function;
    struct profile_line *line;
    struct profile_location *location;
    struct profile_mapping *mapping;
    uint32_t string_capacity;
    uint32_t function_capacity;
    uint32_t line_capacity;
};

/* ---- selecting locations ---- */

static bool has_name(const struct profile *profile, const struct profile_location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        const uint32_t function = profile->lines[location->first_line + i].function;
        if (function != PROFILE_NONE &&
            (profile->functions[function].name || profile->functions[function].system_name))
            return true;
    }
    return false;
}

static bool has_line_or_file(const struct profile *profile, const struct profile_location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        if (line->line ||
            (line->function != PROFILE_NONE && profile->functions[line->function].filename))
            return true;
    }
    return false;
}

static bool is_wanted(const struct profile *profile, enum symbolize_scope scope,
                      const struct profile_location *location)
{
    if (location->mapping == PROFILE_NONE)
        return false;
    const struct profile_mapping *mapping = &profile->mappings[location->mapping];
    if (!mapping->build_id && !mapping->filename)
        return false;
    return !has_name(profile, location) ||
           (scope == SYMBOLIZE_WITHOUT_LINES && mapping->build_id && location->address &&
            !has_line_or_file(profile, location));
}

/* Lists the wanted locations in the order of mappings. */
static uint32_t find_wanted(const struct profile *profile, enum symbolize_scope scope,
                            struct arena *arena, struct wanted **ret_wanted)
{
    uint32_t *ends = arena_new(arena, uint32_t, profile->mapping_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        if (is_wanted(profile, scope, &profile->locations[i]))
            ends[profile->locations[i].mapping + 1]++;
    }
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        count = ends[i + 1] += ends[i];
    struct wanted *wanted = arena_new(arena, struct wanted, count);
    for (uint32_t i = 0; i < profile->location_count && count; i++) {
        const uint32_t mapping = profile->locations[i].mapping;
        if (is_wanted(profile, scope, &profile->locations[i]))
            wanted[ends[mapping]++] = (struct wanted){.mapping = mapping, .location = i};
    }
    *ret_wanted = wanted;
    return count;
}

/* ---- the new tables ---- */

static void *copy_array(struct arena *arena, const void *from, uint32_t count, uint32_t capacity,
                        size_t size)
{
    uint8_t *to = (uint8_t *)arena_new_raw(arena, uint8_t, capacity * size);
    if (count)
        memcpy(to, from, count * size);
    return to;
}

static void begin_tables(struct named_tables *named_tables)
{
    const struct profile *profile = named_tables->profile;
    named_tables->string_capacity = profile->string_count + 64;
    named_tables->function_capacity = profile->function_count + 64;
    named_tables->line_capacity = profile->line_count + 64;
    named_tables->string = copy_array(named_tables->arena, profile->strings, profile->string_count,
                                      named_tables->string_capacity, sizeof(*named_tables->string));
    named_tables->function =
        copy_array(named_tables->arena, profile->functions, profile->function_count,
                   named_tables->function_capacity, sizeof(*named_tables->function));
    named_tables->line = copy_array(named_tables->arena, profile->lines, profile->line_count,
                                    named_tables->line_capacity, sizeof(*named_tables->line));
    named_tables->location =
        copy_array(named_tables->arena, profile->locations, profile->location_count,
                   profile->location_count, sizeof(*named_tables->location));
    named_tables->mapping =
        copy_array(named_tables->arena, profile->mappings, profile->mapping_count,
                   profile->mapping_count, sizeof(*named_tables->mapping));
    map_bytes_init(&named_tables->strings, profile->string_count);
    for (uint32_t i = 0; i < profile->string_count; i++)
        map_bytes_add(&named_tables->strings, profile->strings[i], i);
}

/* Strings are canonical: returns the existing string if it is equal. */
static uint32_t add_string(struct named_tables *named_tables, struct span text)
{
    const uint32_t known = map_bytes_find(&named_tables->strings, text);
    if (known != MAP_ABSENT)
        return known;
    struct profile *named = named_tables->named;
    arena_reserve(named_tables->arena, named_tables->string, named_tables->string_capacity,
                  named->string_count + 1);
    const struct span kept =
        span_of(arena_strndup(named_tables->arena, text.data, text.size), text.size);
    named_tables->string[named->string_count] = kept;
    return map_bytes_add(&named_tables->strings, kept, named->string_count++);
}

static uint32_t add_function(struct named_tables *named_tables, const struct symbolize_frame *frame)
{
    struct profile *named = named_tables->named;
    const struct profile_function made = {
        .name = add_string(named_tables, frame->function),
        .system_name = add_string(named_tables,
                                  frame->system_name.size ? frame->system_name : frame->function),
        .filename = add_string(named_tables, frame->file),
        .start_line = frame->start_line,
    };
    const uint64_t numbers[] = {made.name, made.system_name, made.filename,
                                (uint64_t)made.start_line};
    const uint32_t known =
        map_bytes_find(&named_tables->functions, span_of(numbers, sizeof(numbers)));
    if (known != MAP_ABSENT)
        return known;
    const struct span key =
        span_of(arena_strndup(named_tables->arena, numbers, sizeof(numbers)), sizeof(numbers));
    arena_reserve(named_tables->arena, named_tables->function, named_tables->function_capacity,
                  named->function_count + 1);
    named_tables->function[named->function_count] = made;
    return map_bytes_add(&named_tables->functions, key, named->function_count++);
}

static void name_location(struct named_tables *named_tables, uint32_t location,
                          const struct symbolize_frames *frames)
{
    struct profile *named = named_tables->named;
    if (!named_tables->location)
        begin_tables(named_tables);
    named_tables->location[location].first_line = named->line_count;
    named_tables->location[location].line_count = frames->count;
    named_tables->location[location].is_named_later = true;
    struct profile_mapping *mapping =
        &named_tables->mapping[named_tables->location[location].mapping];
    mapping->has_functions = true;
    mapping->has_inline_frames |= frames->count > 1;
    for (uint32_t i = 0; i < frames->count; i++) {
        mapping->has_filenames |= frames->frames[i].file.size > 0;
        mapping->has_line_numbers |= frames->frames[i].line > 0;
        const uint32_t function = add_function(named_tables, &frames->frames[i]);
        arena_reserve(named_tables->arena, named_tables->line, named_tables->line_capacity,
                      named->line_count + 1);
        named_tables->line[named->line_count++] =
            (struct profile_line){.function = function, .line = frames->frames[i].line};
    }
}

static void finish_tables(struct named_tables *named_tables)
{
    if (!named_tables->location)
        return;
    named_tables->named->strings = named_tables->string;
    named_tables->named->functions = named_tables->function;
    named_tables->named->lines = named_tables->line;
    named_tables->named->locations = named_tables->location;
    if (!named_tables->named->sent_locations)
        named_tables->named->sent_locations = named_tables->profile->locations;
    named_tables->named->mappings = named_tables->mapping;
}

/* ---- querying the resolver ---- */

/* The profile's own names are replaced only by results with lines. */
static bool is_better(const struct profile *profile, const struct profile_location *location,
                      const struct symbolize_frames *frames)
{
    if (!has_name(profile, location))
        return frames->count > 0;
    for (uint32_t i = 0; i < frames->count; i++) {
        if (frames->frames[i].line)
            return true;
    }
    return false;
}

/* The wanted locations of one mapping, which may share addresses. */
struct sorted {
    const struct wanted *wanted;
    const uint64_t *given; /* by index of wanted: its address, as in struct symbolize_query */
    const uint32_t *order; /* indexes into wanted, ascending by address */
    uint32_t count;
};

/* Finds the distinct addresses from order[begin] on, QUERY_ADDRESSES at most. Returns the position
 * in order after the last location that has one of them. */
static uint32_t next_addresses(const struct sorted *sorted, uint32_t begin, uint64_t *addresses,
                               uint32_t *ret_count)
{
    uint32_t count = 0, end = begin;
    for (; end < sorted->count; end++) {
        const uint64_t address = sorted->given[sorted->order[end]];
        if (count && addresses[count - 1] == address)
            continue;
        if (count == QUERY_ADDRESSES)
            break;
        addresses[count++] = address;
    }
    *ret_count = count;
    return end;
}

static void name_locations(struct named_tables *named_tables, const struct sorted *sorted,
                           uint32_t begin, uint32_t end, const uint64_t *addresses,
                           const struct symbolize_frames *frames)
{
    const struct profile *profile = named_tables->profile;
    uint32_t at = 0;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t number = sorted->order[i];
        const uint32_t location = sorted->wanted[number].location;
        at += sorted->given[number] != addresses[at];
        if (is_better(profile, &profile->locations[location], &frames[at]))
            name_location(named_tables, location, &frames[at]);
    }
}

/* Makes one query for locations from sorted->order[begin] on. Sets *ret_end to the position in
 * order at which the next query begins. */
static enum err_code query_addresses(struct named_tables *named_tables,
                                     const struct symbolize_resolver *resolver,
                                     const struct sorted *sorted, uint32_t begin, uint32_t *ret_end,
                                     struct symbolize_counts *counts, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct profile *profile = named_tables->profile;
    const struct profile_mapping *mapping = &profile->mappings[sorted->wanted->mapping];
    uint64_t *addresses = arena_new_raw(scratch, uint64_t, QUERY_ADDRESSES);
    uint32_t count;
    *ret_end = next_addresses(sorted, begin, addresses, &count);
    struct symbolize_frames *frames = arena_new(scratch, struct symbolize_frames, count);
    const struct symbolize_query query = {.build_id = profile->strings[mapping->build_id],
                                          .file = profile->strings[mapping->filename],
                                          .mapping = mapping,
                                          .addresses = addresses,
                                          .address_count = count};
    enum err_code code = ERR_NONE;
    if (resolver)
        code = resolver->resolve(resolver->context, &query, scratch, frames, err);
    if (code)
        return code;
    counts->address_count += count;
    for (uint32_t i = 0; i < count; i++)
        counts->unknown_count += !frames[i].count;
    name_locations(named_tables, sorted, begin, *ret_end, addresses, frames);
    return resolver && resolver->check_memory
               ? resolver->check_memory(resolver->context,
                                        arena_bytes(named_tables->arena) + arena_bytes(scratch),
                                        err)
               : ERR_NONE;
}

/* Queries wanted[0 .. count), which belong to one mapping. */
static enum err_code query_mapping(struct named_tables *named_tables,
                                   const struct symbolize_resolver *resolver,
                                   const struct wanted *wanted, uint32_t count,
                                   struct symbolize_counts *counts, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct profile *profile = named_tables->profile;
    const struct profile_mapping *mapping = &profile->mappings[wanted->mapping];
    uint64_t *given = arena_new_raw(scratch, uint64_t, count);
    uint32_t *order = arena_new_raw(scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        given[i] = raw_name_offset(mapping, profile->locations[wanted[i].location].address);
    radix_sort_order(given, count, order);
    const struct sorted sorted = {.wanted = wanted, .given = given, .order = order, .count = count};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code;)
        code = query_addresses(named_tables, resolver, &sorted, i, &i, counts, err);
    return code;
}

/* The number of locations in the first SYMBOLIZE_MAX_MAPPINGS mappings. */
static uint32_t limit_mappings(const struct wanted *wanted, uint32_t count)
{
    uint32_t mappings = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i && wanted[i].mapping == wanted[i - 1].mapping)
            continue;
        if (++mappings > SYMBOLIZE_MAX_MAPPINGS)
            return i;
    }
    return count;
}

/* wanted is in the order of mappings. */
static enum err_code prepare_resolver(const struct symbolize_resolver *resolver,
                                      const struct profile *profile, const struct wanted *wanted,
                                      uint32_t count, struct err *err)
{
    arena_auto scratch = arena_create();
    struct symbolize_binary *binaries =
        arena_new(scratch, struct symbolize_binary, profile->mapping_count);
    uint32_t binary_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[wanted[i].mapping];
        if (!i || wanted[i].mapping != wanted[i - 1].mapping)
            binaries[binary_count++] =
                (struct symbolize_binary){.build_id = profile->strings[mapping->build_id],
                                          .file = profile->strings[mapping->filename]};
        binaries[binary_count - 1].address_count++;
    }
    return binary_count > 1 ? resolver->prepare(resolver->context, binaries, binary_count, err)
                            : ERR_NONE;
}

enum err_code symbolize_profile(const struct symbolize_resolver *resolver,
                                enum symbolize_scope scope, const struct profile *profile,
                                struct arena *arena, struct profile *ret_named,
                                struct symbolize_counts *counts, struct err *err)
{
    arena_auto scratch = arena_create();
    struct profile named = *profile;
    struct named_tables named_tables = {.profile = profile, .arena = arena, .named = &named};
    struct wanted *wanted;
    enum err_code code = ERR_NONE;
    const uint32_t all_count = find_wanted(profile, scope, scratch, &wanted);
    const uint32_t count = limit_mappings(wanted, all_count);
    counts->address_count += all_count - count;
    counts->unknown_count += all_count - count;
    if (resolver && resolver->prepare)
        code = prepare_resolver(resolver, profile, wanted, count, err);
    for (uint32_t i = 0, end; i < count && !code; i = end) {
        for (end = i + 1; end < count && wanted[end].mapping == wanted[i].mapping;)
            end++;
        code = query_mapping(&named_tables, resolver, wanted + i, end - i, counts, err);
    }
    finish_tables(&named_tables);
    map_bytes_fini(&named_tables.strings);
    map_bytes_fini(&named_tables.functions);
    if (code)
        return code;
    *ret_named = named;
    return ERR_NONE;
}

/* ---- binaries ---- */

bool symbolize_wants(const struct profile *profile, enum symbolize_scope scope)
{
    for (uint32_t i = 0; i < profile->location_count; i++) {
        if (is_wanted(profile, scope, &profile->locations[i]))
            return true;
    }
    return false;
}

uint32_t symbolize_find_binaries(const struct profile *profile, struct arena *arena,
                                 const struct symbolize_binary **ret_binaries)
{
    uint32_t *addresses = arena_new(arena, uint32_t, profile->mapping_count);
    struct symbolize_binary *binaries =
        arena_new(arena, struct symbolize_binary, profile->mapping_count);
    struct map_u64 known = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        if (is_wanted(profile, SYMBOLIZE_UNNAMED, &profile->locations[i]))
            addresses[profile->locations[i].mapping]++;
    }
    for (uint32_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        if (!addresses[i])
            continue;
        const uint64_t key =
            mapping->build_id ? mapping->build_id : (uint64_t)1 << 32 | mapping->filename;
        const uint32_t number = map_u64_add(&known, key, count);
        if (number == count)
            binaries[count++] =
                (struct symbolize_binary){.build_id = profile->strings[mapping->build_id],
                                          .file = profile->strings[mapping->filename]};
        binaries[number].address_count += addresses[i];
    }
    map_u64_fini(&known);
    *ret_binaries = binaries;
    return count;
}
