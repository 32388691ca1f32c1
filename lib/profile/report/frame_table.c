#include "lib/profile/report/frame_table.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/raw_name.h"
#include "lib/profile/report/filter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* The texts of a frame's first occurrence, as numbers. */
struct frame_origin {
    uint32_t file;
    uint32_t mapping;
};

/*
 * Maps lines of profiles to frames. Texts are numbered, so frames are compared by a few numbers:
 * each text of a profile is hashed once and each "[binary]" is written once, however long they are
 * and however many lines share them.
 */
struct frame_table {
    struct arena *arena;
    enum view_group group;
    struct frame *frames;           /* on the heap while it grows */
    struct frame_origin *origin_of; /* of each frame, on the heap likewise */
    uint32_t frame_count;
    uint32_t frame_capacity;
    struct map_bytes by_key;   /* from struct key to frame */
    struct map_bytes by_label; /* from value to frame */
    struct map_bytes by_text;  /* from text to its number */
    struct span *texts;        /* by number; on the heap while it grows */
    uint32_t *frame_of_text;   /* by number, if the name alone identifies a frame; 0: none yet */
    bool *is_shared;           /* by number: listed in shared_origins */
    uint32_t text_count;
    uint32_t text_capacity;
    struct span *shared_origins; /* on the heap while it grows */
    uint32_t shared_origin_count;
    uint32_t shared_origin_capacity;
};

/* For each string of one profile: the number of its text and of "[its last part]" (PROFILE_NONE:
 * not computed yet), and the flags that it implies as a frame's binary or source file. */
struct source {
    const struct profile *profile;
    uint32_t *text_of_string;
    uint32_t *binary_of_string;
    uint8_t *flags_of_string;
};

/* A line of a location, or a location without lines. */
struct occurrence {
    const struct profile_location *location;
    const struct profile_line *line;         /* or NULL */
    const struct profile_function *function; /* or NULL */
    uint32_t mapping;                        /* string: file name of the binary, or 0 */
    bool is_inlined;
};

/* The identity of a frame: numbers of texts, other members as in struct frame; 0 for members
 * that the grouping ignores. Compared as bytes. */
struct key {
    uint32_t name;
    uint32_t file;
    uint32_t mapping;
    uint32_t padding;
    int64_t line;
    uint64_t address;
};
static_assert(sizeof(struct key) == 32, "no byte that is not set");

enum { ALL_OCCURRENCES = FRAME_INLINED | FRAME_KERNEL | FRAME_INTERPRETED };
enum { FLAGS_ARE_KNOWN = 128 }; /* stored beside the flags of a frame */

/* Limit for the name after an address: one function may have millions of addresses. */
enum { ADDRESS_NAME_BYTES = 240 };

static void free_table(void *object)
{
    struct frame_table *table = object;
    map_bytes_fini(&table->by_key);
    map_bytes_fini(&table->by_label);
    map_bytes_fini(&table->by_text);
    mem_free(table->frames);
    mem_free(table->origin_of);
    mem_free(table->texts);
    mem_free(table->frame_of_text);
    mem_free(table->is_shared);
    mem_free(table->shared_origins);
}

enum { FIRST_CAPACITY = 256 };

static uint32_t add_frame(struct frame_table *table, struct frame frame)
{
    if (table->frame_count == table->frame_capacity) {
        table->frame_capacity = (uint32_t)vec_grow_capacity(table->frame_capacity, FIRST_CAPACITY,
                                                            sizeof(*table->frames), UINT32_MAX);
        table->frames = mem_resize(table->frames, table->frame_capacity, sizeof(*table->frames));
        table->origin_of =
            mem_resize(table->origin_of, table->frame_capacity, sizeof(*table->origin_of));
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
    map_bytes_init(&table->by_text, 1024);
    arena_on_destroy(arena, free_table, table);
    add_frame(table, (struct frame){.name = SPAN_LITERAL("root")});
    return table;
}

const struct frame *frame_table_frames(const struct frame_table *table, uint32_t *ret_count)
{
    *ret_count = table->frame_count;
    return table->frames;
}

const struct span *frame_table_shared_origins(const struct frame_table *table, uint32_t *ret_count)
{
    *ret_count = table->shared_origin_count;
    return table->shared_origins;
}

uint32_t frame_table_label(struct frame_table *table, struct span text)
{
    uint32_t frame = map_bytes_find(&table->by_label, text);
    if (frame != MAP_ABSENT)
        return frame;
    struct span kept = span_of(arena_strndup(table->arena, text.data, text.size), text.size);
    frame = add_frame(table, (struct frame){.name = kept, .flags = FRAME_LABEL});
    return map_bytes_add(&table->by_label, kept, frame);
}

/* ---- names ---- */

static uint32_t text_number(struct frame_table *table, struct span text)
{
    uint32_t number = map_bytes_add(&table->by_text, text, table->text_count);
    if (number != table->text_count)
        return number;
    if (number == table->text_capacity) {
        table->text_capacity = (uint32_t)vec_grow_capacity(table->text_capacity, FIRST_CAPACITY,
                                                           sizeof(*table->texts), UINT32_MAX);
        table->texts = mem_resize(table->texts, table->text_capacity, sizeof(*table->texts));
        table->frame_of_text =
            mem_resize(table->frame_of_text, table->text_capacity, sizeof(uint32_t));
        table->is_shared = mem_resize(table->is_shared, table->text_capacity, sizeof(bool));
    }
    table->frame_of_text[number] = 0;
    table->is_shared[number] = false;
    table->texts[table->text_count++] = text;
    return number;
}

static uint32_t string_number(struct frame_table *table, const struct source *source,
                              uint32_t string)
{
    uint32_t *number = &source->text_of_string[string];
    if (*number == PROFILE_NONE)
        *number = text_number(table, profile_string(source->profile, string));
    return *number;
}

/* "[libc.so.6]" or "<unknown>", as pprof prints it. */
static uint32_t binary_number(struct frame_table *table, const struct source *source,
                              uint32_t mapping)
{
    uint32_t *number = &source->binary_of_string[mapping];
    if (*number != PROFILE_NONE)
        return *number;
    struct span base = raw_name_base(profile_string(source->profile, mapping));
    struct span name = SPAN_LITERAL("<unknown>");
    if (base.size)
        name = span_text(arena_printf(table->arena, "[%.*s]", SPAN_PRINT(base)));
    return *number = text_number(table, name);
}

/* "libc.so.6+0x2a10", or as binary_number if there is no address. */
static uint32_t raw_number(struct frame_table *table, const struct source *source,
                           const struct occurrence *occurrence)
{
    char text[RAW_NAME_BYTES];
    const struct span name = raw_name_write(source->profile, occurrence->location, text);
    if (name.size == 0)
        return binary_number(table, source, occurrence->mapping);
    const uint32_t known = map_bytes_find(&table->by_text, name);
    if (known != MAP_ABSENT)
        return known;
    return text_number(table,
                       span_of(arena_strndup(table->arena, name.data, name.size), name.size));
}

static uint32_t name_number(struct frame_table *table, const struct source *source,
                            const struct occurrence *occurrence)
{
    const struct profile_function *function = occurrence->function;
    if (function && (function->name || function->system_name))
        return string_number(table, source,
                             function->name ? function->name : function->system_name);
    return raw_number(table, source, occurrence);
}

static bool is_kernel(struct span mapping)
{
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

/* Whether the mapping is the one that agents assign to functions of scripts, whatever their
 * files are called. */
static bool is_interpreter(struct span mapping)
{
    return span_equal_text(mapping, "[cpython]") || span_equal_text(mapping, "[ruby]");
}

/* The flags that a string implies: FRAME_KERNEL as a binary, FRAME_INTERPRETED as a binary or
 * file. Computed once per string. */
static uint8_t flags_of(const struct source *source, uint32_t string)
{
    uint8_t *flags = &source->flags_of_string[string];
    const struct span text = profile_string(source->profile, string);
    if (!(*flags & FLAGS_ARE_KNOWN))
        *flags = (uint8_t)(FLAGS_ARE_KNOWN | (is_kernel(text) ? FRAME_KERNEL : 0) |
                           (is_interpreted(text) || is_interpreter(text) ? FRAME_INTERPRETED : 0));
    return *flags;
}

/* ---- grouping ---- */

static struct frame make_frame(const struct source *source, const struct occurrence *occurrence)
{
    struct frame frame = {.mapping = profile_string(source->profile, occurrence->mapping)};
    uint8_t flags = occurrence->is_inlined ? FRAME_INLINED : 0;
    flags |= flags_of(source, occurrence->mapping) & FRAME_KERNEL;
    if (is_interpreter(frame.mapping))
        flags |= FRAME_INTERPRETED;
    if (occurrence->function) {
        frame.file = profile_string(source->profile, occurrence->function->filename);
        frame.line = occurrence->function->start_line;
        flags |= flags_of(source, occurrence->function->filename) & FRAME_INTERPRETED;
    } else {
        flags |= FRAME_NOT_SYMBOLISED;
    }
    frame.flags = flags;
    return frame;
}

/* Adapts frame to the grouping, including its name, and returns its identity. */
static struct key group_frame(struct frame_table *table, const struct source *source,
                              const struct occurrence *occurrence, struct frame *frame)
{
    struct key key = {0};
    switch (table->group) {
    case VIEW_BY_FILE:
        key.name = frame->file.size ? string_number(table, source, occurrence->function->filename)
                                    : binary_number(table, source, occurrence->mapping);
        frame->line = 0;
        break;
    case VIEW_BY_BINARY:
        key.mapping = string_number(table, source, occurrence->mapping);
        frame->name = table->texts[binary_number(table, source, occurrence->mapping)];
        if (frame->name.data[0] == '[') /* without the brackets */
            frame->name = span_of(frame->name.data + 1, frame->name.size - 2);
        frame->file = span_of(NULL, 0);
        frame->line = 0;
        frame->flags &= (uint8_t)~FRAME_NOT_SYMBOLISED; /* a binary's name is not a symbol */
        return key;
    case VIEW_BY_ADDRESS:
        frame->address = occurrence->location->address;
        key.address = frame->address;
        key.mapping = frame->address ? string_number(table, source, occurrence->mapping) : 0;
        __attribute__((fallthrough));
    case VIEW_BY_LINE:
        frame->line = occurrence->line ? occurrence->line->line : 0;
        key.line = frame->line;
        key.file =
            string_number(table, source, occurrence->function ? occurrence->function->filename : 0);
        key.name = name_number(table, source, occurrence);
        break;
    case VIEW_BY_FUNCTION:
    case VIEW_BY_LABEL:
        key.name = name_number(table, source, occurrence);
        break;
    }
    frame->name = table->texts[key.name];
    return key;
}

/* "0x4f2a10 main.run"; only the address if nothing else is known. */
static struct span address_name(struct frame_table *table, const struct frame *frame)
{
    char address[2 + 16 + 1];
    struct span name = frame->name;
    snprintf(address, sizeof(address), "0x%" PRIx64, frame->address);
    if (span_equal_text(name, address))
        return name;
    if (name.size > ADDRESS_NAME_BYTES) {
        name.size = ADDRESS_NAME_BYTES;
        while (name.size && (name.data[name.size] & 0xc0) == 0x80)
            name.size--;
    }
    return span_text(arena_printf(table->arena, "%s %.*s%s", address, SPAN_PRINT(name),
                                  name.size < frame->name.size ? "\xe2\x80\xa6" : ""));
}

static bool is_identified_by_name(const struct frame_table *table)
{
    return table->group == VIEW_BY_FUNCTION || table->group == VIEW_BY_LABEL;
}

static uint32_t find_frame(const struct frame_table *table, const struct key *key)
{
    if (!is_identified_by_name(table))
        return map_bytes_find(&table->by_key, span_of(key, sizeof(*key)));
    const uint32_t frame = table->frame_of_text[key->name]; /* the root has no text */
    return frame ? frame : MAP_ABSENT;
}

static void keep_frame(struct frame_table *table, const struct key *key, uint32_t frame)
{
    if (is_identified_by_name(table)) {
        table->frame_of_text[key->name] = frame;
        return;
    }
    struct key *kept = arena_new_raw(table->arena, struct key, 1);
    *kept = *key;
    map_bytes_add(&table->by_key, span_of(kept, sizeof(*kept)), frame);
}

static void add_shared_origin(struct frame_table *table, uint32_t text)
{
    if (table->texts[text].size == 0 || table->is_shared[text])
        return;
    table->is_shared[text] = true;
    const uint32_t count = table->shared_origin_count++;
    vec_reserve(table->shared_origins, table->shared_origin_capacity, count + 1);
    table->shared_origins[count] = table->texts[text];
}

static void compare_texts(struct frame_table *table, uint32_t first, uint32_t other)
{
    if (first == other)
        return;
    add_shared_origin(table, first);
    add_shared_origin(table, other);
}

static struct frame_origin find_origin(struct frame_table *table, const struct source *source,
                                       const struct occurrence *occurrence)
{
    const uint32_t file = occurrence->function ? occurrence->function->filename : 0;
    return (struct frame_origin){.file = string_number(table, source, file),
                                 .mapping = string_number(table, source, occurrence->mapping)};
}

static uint32_t frame_of_occurrence(struct frame_table *table, const struct source *source,
                                    const struct occurrence *occurrence)
{
    struct frame frame = make_frame(source, occurrence);
    const struct key key = group_frame(table, source, occurrence, &frame);
    const struct frame_origin at = find_origin(table, source, occurrence);
    uint32_t index = find_frame(table, &key);
    if (index == MAP_ABSENT) {
        if (frame.address)
            frame.name = address_name(table, &frame);
        index = add_frame(table, frame);
        table->origin_of[index] = at;
        keep_frame(table, &key, index);
        return index;
    }
    /* Flags that describe all occurrences stay only if they apply to this one too. */
    table->frames[index].flags &= (uint8_t)(frame.flags | (0xff & ~ALL_OCCURRENCES));
    compare_texts(table, table->origin_of[index].file, at.file);
    compare_texts(table, table->origin_of[index].mapping, at.mapping);
    return index;
}

/* ---- lists ---- */

static struct occurrence location_occurrence(const struct profile *profile,
                                             const struct profile_location *location)
{
    struct occurrence occurrence = {.location = location};
    if (location->mapping != PROFILE_NONE)
        occurrence.mapping = profile->mappings[location->mapping].filename;
    return occurrence;
}

static uint32_t add_location(struct frame_table *table, const struct source *source, uint32_t index,
                             uint32_t first_line, const struct filter_result *filter,
                             uint32_t *frames)
{
    const struct profile *profile = source->profile;
    const struct profile_location *location = &profile->locations[index];
    struct occurrence occurrence = location_occurrence(profile, location);
    uint32_t end = location->first_line + location->line_count, count = 0;
    if (filter && (filter->verdicts[index] & FILTER_LOCATION_HIDDEN))
        return 0;
    if (location->line_count == 0 || table->group == VIEW_BY_BINARY) {
        frames[0] = frame_of_occurrence(table, source, &occurrence);
        return 1;
    }
    for (uint32_t i = end; i-- > first_line;) {
        if (filter && filter->line_is_hidden[i])
            continue;
        occurrence.line = &profile->lines[i];
        occurrence.function = occurrence.line->function == PROFILE_NONE
                                  ? NULL
                                  : &profile->functions[occurrence.line->function];
        occurrence.is_inlined = i + 1 != end;
        frames[count++] = frame_of_occurrence(table, source, &occurrence);
    }
    return count;
}

static uint32_t *unknown_numbers(struct arena *scratch, const struct profile *profile)
{
    uint32_t *numbers = arena_new_raw(scratch, uint32_t, profile->string_count);
    memset(numbers, 0xff, profile->string_count * sizeof(*numbers));
    return numbers;
}

void frame_table_add(struct frame_table *table, const struct profile *profile,
                     const uint32_t *first_line, const struct filter_result *filter,
                     struct frame_lists *ret_lists)
{
    arena_auto scratch = arena_create();
    const struct source source = {.profile = profile,
                                  .text_of_string = unknown_numbers(scratch, profile),
                                  .binary_of_string = unknown_numbers(scratch, profile),
                                  .flags_of_string =
                                      arena_new(scratch, uint8_t, profile->string_count)};
    size_t frames_max = (size_t)profile->line_count + profile->location_count;
    uint32_t *start = arena_new_raw(table->arena, uint32_t, (size_t)profile->location_count + 1);
    uint32_t *frames = arena_new_raw(table->arena, uint32_t, frames_max);
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        start[i] = count;
        count += add_location(table, &source, i, first_line[i], filter, frames + count);
    }
    start[profile->location_count] = count;
    *ret_lists = (struct frame_lists){.start = start, .frames = frames};
}
