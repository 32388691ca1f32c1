#include "lib/profile/symbolize.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/radix_sort.h"
#include "lib/profile/raw_name.h"

#include <string.h>

/* One location to be asked. */
struct wanted {
    uint32_t mapping;
    uint32_t location;
};

/* The new tables; arrays of the old ones are copied once something is added. */
struct naming {
    const struct profile *profile;
    struct arena *arena;
    struct profile *named;
    struct map_bytes strings; /* of named; filled with the first name */
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

/* ---- which ---- */

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

static bool has_place(const struct profile *profile, const struct profile_location *location)
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
    return !has_name(profile, location) || (scope == SYMBOLIZE_WITHOUT_LINES && mapping->build_id &&
                                            location->address && !has_place(profile, location));
}

/* In the order of mappings. */
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

static void *copy(struct arena *arena, const void *from, uint32_t count, uint32_t capacity,
                  size_t size)
{
    uint8_t *to = (uint8_t *)arena_new(arena, uint8_t, capacity * size);
    if (count)
        memcpy(to, from, count * size);
    return to;
}

static void begin(struct naming *naming)
{
    const struct profile *profile = naming->profile;
    naming->string_capacity = profile->string_count + 64;
    naming->function_capacity = profile->function_count + 64;
    naming->line_capacity = profile->line_count + 64;
    naming->string = copy(naming->arena, profile->strings, profile->string_count,
                          naming->string_capacity, sizeof(*naming->string));
    naming->function = copy(naming->arena, profile->functions, profile->function_count,
                            naming->function_capacity, sizeof(*naming->function));
    naming->line = copy(naming->arena, profile->lines, profile->line_count, naming->line_capacity,
                        sizeof(*naming->line));
    naming->location = copy(naming->arena, profile->locations, profile->location_count,
                            profile->location_count, sizeof(*naming->location));
    naming->mapping = copy(naming->arena, profile->mappings, profile->mapping_count,
                           profile->mapping_count, sizeof(*naming->mapping));
    map_bytes_init(&naming->strings, profile->string_count);
    for (uint32_t i = 0; i < profile->string_count; i++)
        map_bytes_add(&naming->strings, profile->strings[i], i);
}

static void *room(struct naming *naming, void *array, uint32_t count, uint32_t *capacity,
                  size_t size)
{
    if (count < *capacity)
        return array;
    *capacity *= 2;
    return copy(naming->arena, array, count, *capacity, size);
}

/* Strings are canonical: an equal one is the same. */
static uint32_t add_string(struct naming *naming, struct span text)
{
    const uint32_t known = map_bytes_find(&naming->strings, text);
    if (known != MAP_ABSENT)
        return known;
    struct profile *named = naming->named;
    naming->string = room(naming, naming->string, named->string_count, &naming->string_capacity,
                          sizeof(*naming->string));
    const struct span kept = span_of(arena_strndup(naming->arena, text.data, text.size), text.size);
    naming->string[named->string_count] = kept;
    return map_bytes_add(&naming->strings, kept, named->string_count++);
}

static uint32_t add_function(struct naming *naming, const struct symbolize_frame *frame)
{
    struct profile *named = naming->named;
    const struct profile_function made = {
        .name = add_string(naming, frame->function),
        .system_name =
            add_string(naming, frame->system_name.size ? frame->system_name : frame->function),
        .filename = add_string(naming, frame->file),
        .start_line = frame->start_line,
    };
    const uint64_t numbers[] = {made.name, made.system_name, made.filename,
                                (uint64_t)made.start_line};
    const uint32_t known = map_bytes_find(&naming->functions, span_of(numbers, sizeof(numbers)));
    if (known != MAP_ABSENT)
        return known;
    const struct span key =
        span_of(arena_strndup(naming->arena, numbers, sizeof(numbers)), sizeof(numbers));
    naming->function = room(naming, naming->function, named->function_count,
                            &naming->function_capacity, sizeof(*naming->function));
    naming->function[named->function_count] = made;
    return map_bytes_add(&naming->functions, key, named->function_count++);
}

static void name_location(struct naming *naming, uint32_t location,
                          const struct symbolize_frames *frames)
{
    struct profile *named = naming->named;
    if (!naming->location)
        begin(naming);
    naming->location[location].first_line = named->line_count;
    naming->location[location].line_count = frames->count;
    naming->location[location].is_named_later = true;
    struct profile_mapping *mapping = &naming->mapping[naming->location[location].mapping];
    mapping->has_functions = true;
    mapping->has_inline_frames |= frames->count > 1;
    for (uint32_t i = 0; i < frames->count; i++) {
        mapping->has_filenames |= frames->frames[i].file.size > 0;
        mapping->has_line_numbers |= frames->frames[i].line > 0;
        const uint32_t function = add_function(naming, &frames->frames[i]);
        naming->line = room(naming, naming->line, named->line_count, &naming->line_capacity,
                            sizeof(*naming->line));
        naming->line[named->line_count++] =
            (struct profile_line){.function = function, .line = frames->frames[i].line};
    }
}

static void finish(struct naming *naming)
{
    if (!naming->location)
        return;
    naming->named->strings = naming->string;
    naming->named->functions = naming->function;
    naming->named->lines = naming->line;
    naming->named->locations = naming->location;
    if (!naming->named->sent_locations)
        naming->named->sent_locations = naming->profile->locations;
    naming->named->mappings = naming->mapping;
}

/* ---- asking ---- */

/* Names of the profile's own make place for lines alone. */
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

/* wanted[0 .. count) are of one mapping. */
static enum err_code ask(struct naming *naming, const struct symbolize_resolver *resolver,
                         const struct wanted *wanted, uint32_t count,
                         struct symbolize_counts *counts, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct profile *profile = naming->profile;
    const struct profile_mapping *mapping = &profile->mappings[wanted->mapping];
    uint64_t *given = arena_new(scratch, uint64_t, count);
    uint64_t *addresses = arena_new(scratch, uint64_t, count);
    uint32_t *order = arena_new(scratch, uint32_t, count);
    uint32_t *places = arena_new(scratch, uint32_t, count); /* in addresses */
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++)
        given[i] = raw_name_offset(mapping, profile->locations[wanted[i].location].address);
    radix_sort_order(given, count, order);
    for (uint32_t i = 0; i < count; i++) {
        if (!i || given[order[i]] != addresses[distinct - 1])
            addresses[distinct++] = given[order[i]];
        places[order[i]] = distinct - 1;
    }
    struct symbolize_frames *frames = arena_new(scratch, struct symbolize_frames, distinct);
    const struct symbolize_question question = {.build_id = profile->strings[mapping->build_id],
                                                .file = profile->strings[mapping->filename],
                                                .mapping = mapping,
                                                .addresses = addresses,
                                                .address_count = distinct};
    enum err_code code = ERR_NONE;
    if (resolver)
        code = resolver->resolve(resolver->context, &question, scratch, frames, err);
    counts->address_count += distinct;
    for (uint32_t i = 0; !code && i < distinct; i++)
        counts->unknown_count += !frames[i].count;
    for (uint32_t i = 0; !code && i < count; i++) {
        if (is_better(profile, &profile->locations[wanted[i].location], &frames[places[i]]))
            name_location(naming, wanted[i].location, &frames[places[i]]);
    }
    return code;
}

/* Of wanted, which are in the order of mappings. */
static enum err_code prepare(const struct symbolize_resolver *resolver,
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
    struct naming naming = {.profile = profile, .arena = arena, .named = &named};
    struct wanted *wanted;
    enum err_code code = ERR_NONE;
    const uint32_t count = find_wanted(profile, scope, scratch, &wanted);
    if (resolver && resolver->prepare)
        code = prepare(resolver, profile, wanted, count, err);
    for (uint32_t i = 0, end; i < count && !code; i = end) {
        for (end = i + 1; end < count && wanted[end].mapping == wanted[i].mapping;)
            end++;
        code = ask(&naming, resolver, wanted + i, end - i, counts, err);
    }
    finish(&naming);
    map_bytes_fini(&naming.strings);
    map_bytes_fini(&naming.functions);
    if (!code)
        *ret_named = named;
    return code;
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
