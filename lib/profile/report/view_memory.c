/*
 * The bound counts the frames that each grouping can make at most, and multiplies them by what a
 * frame takes in the frame table (frame_table.c) and in the report that needs most beside it
 * (flame_binary.c: a copy of the frame and two maps of texts; top.c: three rows). The constants are
 * sizes of those structures with the free space of hash maps, rounded up; the test of this module
 * compares the bound with the memory that views really take.
 */
#include "lib/profile/report/view_memory.h"

#include "lib/profile/profile.h"
#include "lib/profile/raw_name.h"
#include "lib/profile/report/view.h"

enum {
    FRAME_BYTES = 384,   /* in the frame table and in a report */
    KEY_BYTES = 112,     /* the identity of a frame that its name does not identify */
    TEXT_BYTES = 96,     /* a distinct name, file or binary */
    LOCATION_BYTES = 48, /* lists of frames, results of filters, hashes of paths: per line, too */
    STRING_BYTES = 16,
    STACK_BYTES = 64,             /* without its entries */
    ADDRESS_NAME_BYTES = 240 + 24 /* the limit in frame_table.c, and the address before the name */
};

/* Counts of a profile's tables. */
struct contents {
    uint64_t nameless;       /* lines and locations that are named by their addresses */
    uint64_t nameless_bytes; /* the texts of these names, at most */
    uint64_t name_bytes;     /* the names of all lines, each cut as after an address */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t raw_name_bytes(const struct profile *profile,
                               const struct profile_location *location)
{
    if (location->mapping == PROFILE_NONE)
        return RAW_NAME_BYTES - RAW_NAME_PATH_BYTES;
    const uint32_t path = profile->mappings[location->mapping].filename;
    return RAW_NAME_BYTES - RAW_NAME_PATH_BYTES +
           least(profile_string(profile, path).size, RAW_NAME_PATH_BYTES);
}

static uint64_t name_bytes(const struct profile *profile, const struct profile_line *line)
{
    if (line->function == PROFILE_NONE)
        return 0;
    const struct profile_function *function = &profile->functions[line->function];
    return profile_string(profile, function->name ? function->name : function->system_name).size;
}

static struct contents count_contents(const struct profile *profile)
{
    struct contents contents = {0};
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        uint64_t nameless = location->line_count == 0;
        for (uint32_t j = 0; j < location->line_count; j++) {
            const uint64_t bytes = name_bytes(profile, &profile->lines[location->first_line + j]);
            contents.name_bytes += least(bytes, ADDRESS_NAME_BYTES);
            nameless += bytes == 0;
        }
        contents.nameless += nameless;
        contents.nameless_bytes += nameless ? nameless * raw_name_bytes(profile, location) : 0;
    }
    return contents;
}

static uint32_t label_count(const struct profile *profile)
{
    return profile->sample_count ? profile->label_start[profile->sample_count] : 0;
}

/* The maximum number of frames that the grouping makes. *ret_key_bytes: the size of the key of each
 * frame, for groupings in which its name does not identify it. */
static uint64_t count_frames(const struct profile *profile, enum view_group group,
                             const struct contents *contents, uint64_t *ret_key_bytes)
{
    const uint64_t functions = least(profile->function_count, profile->line_count);
    *ret_key_bytes = 0;
    switch (group) {
    case VIEW_BY_BINARY:
        *ret_key_bytes = KEY_BYTES;
        return profile->mapping_count;
    case VIEW_BY_LINE:
        *ret_key_bytes = KEY_BYTES;
        return (uint64_t)profile->line_count + contents->nameless;
    case VIEW_BY_ADDRESS:
        *ret_key_bytes = KEY_BYTES + ADDRESS_NAME_BYTES - 240;
        return (uint64_t)profile->line_count + contents->nameless;
    case VIEW_BY_FILE:
        return functions + profile->mapping_count;
    case VIEW_BY_LABEL:
        return functions + contents->nameless + label_count(profile);
    case VIEW_BY_FUNCTION:
        break;
    }
    return functions + contents->nameless;
}

/* The entries of all stacks with their inlined calls, each cut to max_depth as a view does. */
static uint64_t count_entries(const struct profile *profile, uint64_t max_depth)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        uint64_t depth = 0;
        for (uint64_t j = profile->stack_start[i]; j < profile->stack_start[i + 1]; j++) {
            const uint32_t lines = profile->locations[profile->stack[j]].line_count;
            depth += lines ? lines : 1;
        }
        entries += depth > max_depth ? max_depth + 1 : depth;
    }
    return entries;
}

uint64_t view_memory_depth(const struct profile *profile, uint64_t *ret_entries)
{
    uint64_t depth = VIEW_DEPTH_MAX;
    *ret_entries = count_entries(profile, depth);
    if (*ret_entries <= VIEW_ENTRIES_USUAL)
        return depth;
    depth = VIEW_USUAL_DEPTH;
    while ((*ret_entries = count_entries(profile, depth)) > VIEW_ENTRIES_MAX && depth > 1)
        depth /= 2;
    return depth;
}

uint64_t view_memory_stack_bytes(const struct profile *profile)
{
    uint64_t entries;
    view_memory_depth(profile, &entries);
    return least(entries, VIEW_ENTRIES_MAX) * sizeof(uint32_t) +
           (uint64_t)profile->sample_count * STACK_BYTES;
}

uint64_t view_memory_bytes(const struct profile *profile, struct span group_by)
{
    const enum view_group group = view_find_group(group_by);
    const struct contents contents = count_contents(profile);
    const uint64_t functions = least(profile->function_count, profile->line_count);
    const uint64_t lines = (uint64_t)profile->location_count + profile->line_count;
    const uint64_t texts = 2 * functions + contents.nameless + 2 * profile->mapping_count;
    uint64_t key_bytes;
    const uint64_t frames = count_frames(profile, group, &contents, &key_bytes) + 1;
    uint64_t bytes = frames * (FRAME_BYTES + key_bytes) + texts * TEXT_BYTES +
                     lines * LOCATION_BYTES + profile->string_count * (uint64_t)STRING_BYTES +
                     view_memory_stack_bytes(profile);
    if (group != VIEW_BY_BINARY && group != VIEW_BY_FILE)
        bytes += contents.nameless_bytes;
    if (group == VIEW_BY_ADDRESS)
        bytes += contents.name_bytes + contents.nameless_bytes;
    return bytes;
}
