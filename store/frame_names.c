#include "store/frame_names.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* One location to be asked. */
struct wanted {
    uint32_t mapping;
    uint32_t location;
    uint64_t address; /* as the resolver takes it */
};

/* The new tables; arrays of the old ones are copied once something is added. */
struct naming {
    const struct profile *tables;
    struct arena *arena;
    struct profile *named;
    struct map_bytes strings; /* of named; filled with the first name */
    struct map_bytes functions;
    struct span *string;
    struct profile_function *function;
    struct profile_line *line;
    struct profile_location *location;
    uint32_t string_capacity;
    uint32_t function_capacity;
    uint32_t line_capacity;
};

/* ---- which ---- */

static bool has_name(const struct profile *tables, const struct profile_location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        const uint32_t function = tables->lines[location->first_line + i].function;
        if (function != PROFILE_NONE &&
            (tables->functions[function].name || tables->functions[function].system_name))
            return true;
    }
    return false;
}

static bool is_wanted(const struct profile *tables, const struct profile_location *location)
{
    if (location->mapping == PROFILE_NONE)
        return false;
    const struct profile_mapping *mapping = &tables->mappings[location->mapping];
    return (mapping->build_id || mapping->filename) && !has_name(tables, location);
}

static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->mapping != y->mapping)
        return x->mapping < y->mapping ? -1 : 1;
    return (x->address > y->address) - (x->address < y->address);
}

static uint32_t find_wanted(const struct profile *tables, struct arena *arena,
                            struct wanted **ret_wanted)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tables->location_count; i++)
        count += is_wanted(tables, &tables->locations[i]);
    struct wanted *wanted = arena_new(arena, struct wanted, count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < tables->location_count && at < count; i++) {
        const struct profile_location *location = &tables->locations[i];
        if (!is_wanted(tables, location))
            continue;
        const struct profile_mapping *mapping = &tables->mappings[location->mapping];
        wanted[at++] =
            (struct wanted){.mapping = location->mapping,
                            .location = i,
                            .address = location->address - mapping->start + mapping->offset};
    }
    if (count)
        qsort(wanted, count, sizeof(*wanted), compare_wanted);
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
    const struct profile *tables = naming->tables;
    naming->string_capacity = tables->string_count + 64;
    naming->function_capacity = tables->function_count + 64;
    naming->line_capacity = tables->line_count + 64;
    naming->string = copy(naming->arena, tables->strings, tables->string_count,
                          naming->string_capacity, sizeof(*naming->string));
    naming->function = copy(naming->arena, tables->functions, tables->function_count,
                            naming->function_capacity, sizeof(*naming->function));
    naming->line = copy(naming->arena, tables->lines, tables->line_count, naming->line_capacity,
                        sizeof(*naming->line));
    naming->location = copy(naming->arena, tables->locations, tables->location_count,
                            tables->location_count, sizeof(*naming->location));
    map_bytes_init(&naming->strings, tables->string_count);
    for (uint32_t i = 0; i < tables->string_count; i++)
        map_bytes_add(&naming->strings, tables->strings[i], i);
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

static uint32_t add_function(struct naming *naming, const struct store_frame *frame)
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
                          const struct store_frames *frames)
{
    struct profile *named = naming->named;
    if (!naming->location)
        begin(naming);
    naming->location[location].first_line = named->line_count;
    naming->location[location].line_count = frames->count;
    for (uint32_t i = 0; i < frames->count; i++) {
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
}

/* ---- asking ---- */

/* wanted[0 .. count) are of one binary. */
static enum err_code ask(struct naming *naming, const struct frame_resolver *resolver,
                         int64_t tenant_id, const struct wanted *wanted, uint32_t count,
                         struct store_names *names, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct profile *tables = naming->tables;
    const struct profile_mapping *mapping = &tables->mappings[wanted->mapping];
    uint64_t *addresses = arena_new(scratch, uint64_t, count);
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!i || wanted[i].address != wanted[i - 1].address)
            addresses[distinct++] = wanted[i].address;
    }
    struct store_frames *frames = arena_new(scratch, struct store_frames, distinct);
    const struct frame_question question = {.tenant_id = tenant_id,
                                            .build_id = tables->strings[mapping->build_id],
                                            .file = tables->strings[mapping->filename],
                                            .addresses = addresses,
                                            .address_count = distinct};
    enum err_code code = ERR_NONE;
    if (resolver)
        code = resolver->resolve(resolver->context, &question, scratch, frames, err);
    names->address_count += distinct;
    for (uint32_t i = 0, at = 0; !code && i < count; i++) {
        const bool is_next = i && wanted[i].address != wanted[i - 1].address;
        at += is_next;
        names->unknown_count += (!i || is_next) && !frames[at].count;
        if (frames[at].count)
            name_location(naming, wanted[i].location, &frames[at]);
    }
    return code;
}

enum err_code frame_names_resolve(const struct frame_resolver *resolver, int64_t tenant_id,
                                  const struct profile *tables, struct arena *arena,
                                  struct profile *ret_named, struct store_names *names,
                                  struct err *err)
{
    arena_auto scratch = arena_create();
    struct profile named = *tables;
    struct naming naming = {.tables = tables, .arena = arena, .named = &named};
    struct wanted *wanted;
    enum err_code code = ERR_NONE;
    const uint32_t count = find_wanted(tables, scratch, &wanted);
    for (uint32_t i = 0, end; i < count && !code; i = end) {
        for (end = i + 1; end < count && wanted[end].mapping == wanted[i].mapping;)
            end++;
        code = ask(&naming, resolver, tenant_id, wanted + i, end - i, names, err);
    }
    finish(&naming);
    map_bytes_fini(&naming.strings);
    map_bytes_fini(&naming.functions);
    if (!code)
        *ret_named = named;
    return code;
}
