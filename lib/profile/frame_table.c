#include "lib/profile/frame_table.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/filter.h"

struct frame_table {
    struct arena *arena;
    enum view_group group;
    struct frame *frames; /* on the heap while it grows */
    uint32_t frame_count;
    uint32_t frame_capacity;
    struct map_bytes by_key;   /* key to frame */
    struct map_bytes by_label; /* value to frame */
};

/* A line of a location, or a location without lines. */
struct place {
    const struct profile *profile;
    const struct profile_location *location;
    const struct profile_line *line;         /* or NULL */
    const struct profile_function *function; /* or NULL */
    struct span mapping;
    bool is_inlined;
};

enum { ALL_OCCURRENCES = FRAME_INLINED | FRAME_KERNEL | FRAME_INTERPRETED };

static void free_table(void *object)
{
    struct frame_table *table = object;
    map_bytes_fini(&table->by_key);
    map_bytes_fini(&table->by_label);
    mem_free(table->frames);
}

static uint32_t add_frame(struct frame_table *table, struct frame frame)
{
    if (table->frame_count == table->frame_capacity) {
        table->frame_capacity = table->frame_capacity ? table->frame_capacity * 2 : 256;
        table->frames = mem_resize(table->frames, table->frame_capacity, sizeof(*table->frames));
    }
    table->frames[table->frame_count] = frame;
    return table->frame_count++;
}

struct frame_table *frame_table_create(struct arena *arena, enum view_group group)
{
    struct frame_table *table = arena_new(arena, struct frame_table, 1);
    table->arena = arena;
    table->group = group;
    map_bytes_init(&table->by_key, 1024);
    map_bytes_init(&table->by_label, 16);
    arena_on_destroy(arena, free_table, table);
    add_frame(table, (struct frame){.name = SPAN_LITERAL("root")});
    return table;
}

const struct frame *frame_table_frames(const struct frame_table *table, uint32_t *ret_count)
{
    *ret_count = table->frame_count;
    return table->frames;
}

uint32_t frame_table_label(struct frame_table *table, struct span text)
{
    uint32_t frame = map_bytes_find(&table->by_label, text);
    if (frame != MAP_ABSENT)
        return frame;
    struct span kept = span_text(arena_strndup(table->arena, text.data, text.size));
    frame = add_frame(table, (struct frame){.name = kept, .flags = FRAME_LABEL});
    return map_bytes_add(&table->by_label, kept, frame);
}

/* ---- names ---- */

static struct span base_name(struct span path)
{
    size_t end = path.size;
    while (end > 1 && path.data[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path.data[start - 1] != '/')
        start--;
    return span_of(path.data + start, end - start);
}

/* "[libc.so.6]", or "<unknown>", as pprof prints what has no name. */
static struct span binary_name(struct frame_table *table, struct span mapping)
{
    if (mapping.size == 0)
        return SPAN_LITERAL("<unknown>");
    struct span base = base_name(mapping);
    return span_text(arena_printf(table->arena, "[%.*s]", SPAN_PRINT(base)));
}

static struct span place_name(struct frame_table *table, const struct place *place)
{
    if (place->function && place->function->name)
        return profile_string(place->profile, place->function->name);
    if (place->function && place->function->system_name)
        return profile_string(place->profile, place->function->system_name);
    return binary_name(table, place->mapping);
}

static struct span place_file(const struct place *place)
{
    return place->function ? profile_string(place->profile, place->function->filename)
                           : span_of(NULL, 0);
}

static bool is_kernel(const struct place *place)
{
    struct span mapping = place->mapping;
    return span_starts_with(mapping, "[kernel") || span_starts_with(mapping, "[guest.kernel") ||
           span_ends_with(mapping, "/vmlinux") || span_equal_text(mapping, "vmlinux") ||
           span_ends_with(mapping, ".ko");
}

static bool is_interpreted(struct span file)
{
    static const char *const endings[] = {".py", ".js", ".ts",  ".mjs", ".cjs",
                                          ".rb", ".pl", ".php", ".lua"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (span_ends_with(file, endings[i]))
            return true;
    }
    return false;
}

static struct frame describe(struct frame_table *table, const struct place *place)
{
    struct span file = place_file(place);
    struct frame frame = {
        .name = place_name(table, place), .file = file, .mapping = place->mapping};
    frame.line = place->function ? place->function->start_line : 0;
    frame.flags =
        (uint8_t)((place->is_inlined ? FRAME_INLINED : 0) | (is_kernel(place) ? FRAME_KERNEL : 0) |
                  (is_interpreted(file) ? FRAME_INTERPRETED : 0) |
                  (place->function ? 0 : FRAME_NOT_SYMBOLISED));
    return frame;
}

/* ---- grouping ---- */

static struct span join_key(struct frame_table *table, const struct frame *frame)
{
    const char *key =
        arena_printf(table->arena, "%lld %llx %zu %zu ", (long long)frame->line,
                     (unsigned long long)frame->address, frame->name.size, frame->file.size);
    struct span head = span_text(key);
    struct span tail = frame->address ? frame->mapping : span_of(NULL, 0);
    size_t size = head.size + frame->name.size + frame->file.size + tail.size;
    uint8_t *bytes = arena_alloc_raw(table->arena, size, 1), *at = bytes;
    const struct span parts[] = {head, frame->name, frame->file, tail};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].size)
            memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    return span_of(bytes, size);
}

/* Shapes frame for the grouping and returns the bytes that make it one with others. */
static struct span group_frame(struct frame_table *table, const struct place *place,
                               struct frame *frame)
{
    switch (table->group) {
    case VIEW_BY_FILE:
        if (frame->file.size)
            frame->name = frame->file;
        else
            frame->name = binary_name(table, place->mapping);
        frame->line = 0;
        return frame->name;
    case VIEW_BY_BINARY:
        frame->name = place->mapping.size ? base_name(place->mapping) : SPAN_LITERAL("<unknown>");
        frame->file = span_of(NULL, 0);
        frame->line = 0;
        return place->mapping;
    case VIEW_BY_LINE:
        frame->line = place->line ? place->line->line : 0;
        return join_key(table, frame);
    case VIEW_BY_ADDRESS: {
        frame->line = place->line ? place->line->line : 0;
        frame->address = place->location->address;
        struct span key = join_key(table, frame);
        if (frame->address)
            frame->name = span_text(arena_printf(table->arena, "0x%llx %.*s",
                                                 (unsigned long long)frame->address,
                                                 SPAN_PRINT(frame->name)));
        return key;
    }
    case VIEW_BY_FUNCTION:
    case VIEW_BY_LABEL:
        break;
    }
    return frame->name;
}

static uint32_t place_frame(struct frame_table *table, const struct place *place)
{
    struct frame frame = describe(table, place);
    struct span key = group_frame(table, place, &frame);
    uint32_t index = map_bytes_find(&table->by_key, key);
    if (index == MAP_ABSENT)
        return map_bytes_add(&table->by_key, key, add_frame(table, frame));
    /* Flags that describe all occurrences stay only if they hold for this one too. */
    table->frames[index].flags &= (uint8_t)(frame.flags | (0xff & ~ALL_OCCURRENCES));
    return index;
}

/* ---- lists ---- */

static struct place location_place(const struct profile *profile,
                                   const struct profile_location *location)
{
    struct place place = {.profile = profile, .location = location};
    if (location->mapping != PROFILE_NONE)
        place.mapping = profile_string(profile, profile->mappings[location->mapping].filename);
    return place;
}

static uint32_t add_location(struct frame_table *table, const struct profile *profile,
                             uint32_t index, uint32_t first_line,
                             const struct filter_result *filter, uint32_t *frames)
{
    const struct profile_location *location = &profile->locations[index];
    struct place place = location_place(profile, location);
    uint32_t end = location->first_line + location->line_count, count = 0;
    if (filter && (filter->verdicts[index] & FILTER_LOCATION_HIDDEN))
        return 0;
    if (location->line_count == 0 || table->group == VIEW_BY_BINARY) {
        frames[0] = place_frame(table, &place);
        return 1;
    }
    for (uint32_t i = end; i-- > first_line;) {
        if (filter && filter->line_is_hidden[i])
            continue;
        place.line = &profile->lines[i];
        place.function =
            place.line->function == PROFILE_NONE ? NULL : &profile->functions[place.line->function];
        place.is_inlined = i + 1 != end;
        frames[count++] = place_frame(table, &place);
    }
    return count;
}

void frame_table_add(struct frame_table *table, const struct profile *profile,
                     const uint32_t *first_line, const struct filter_result *filter,
                     struct frame_lists *ret_lists)
{
    size_t frames_max = (size_t)profile->line_count + profile->location_count;
    uint32_t *start = arena_new_raw(table->arena, uint32_t, (size_t)profile->location_count + 1);
    uint32_t *frames = arena_new_raw(table->arena, uint32_t, frames_max);
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        start[i] = count;
        count += add_location(table, profile, i, first_line[i], filter, frames + count);
    }
    start[profile->location_count] = count;
    *ret_lists = (struct frame_lists){.start = start, .frames = frames};
}
