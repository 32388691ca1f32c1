#include "lib/profile/profile.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/long_string.h"

#include <assert.h>
#include <stdio.h>

void profile_destroy(struct profile *profile)
{
    if (profile)
        arena_destroy(profile->arena);
}

uint64_t profile_count_frames(const struct profile *profile)
{
    uint64_t frames = 0;
    const uint64_t end = profile->sample_count ? profile->stack_start[profile->sample_count] : 0;
    for (uint64_t i = 0; i < end; i++) {
        const uint32_t lines = profile->locations[profile->stack[i]].line_count;
        frames += lines ? lines : 1;
    }
    return frames;
}

/* Returns the index of text, which is appended to strings if it is new: equal strings have one
 * index. strings has space for it. */
static uint32_t intern(struct profile *profile, struct span *strings, struct span text)
{
    for (uint32_t i = 0; i < profile->string_count; i++)
        if (span_equal(strings[i], text))
            return i;
    strings[profile->string_count] =
        span_of(arena_strndup(profile->arena, text.data, text.size), text.size);
    return profile->string_count++;
}

struct profile profile_samples(const struct profile *profile, uint32_t first, uint32_t count)
{
    struct profile view = *profile;
    assert(first <= profile->sample_count && count <= profile->sample_count - first);
    view.sample_count = count;
    view.stack_start += first;
    view.values += (size_t)first * profile->value_type_count;
    view.label_start += first;
    return view;
}

void profile_add_comments(struct profile *profile, const struct span *comments, uint32_t count)
{
    struct span *strings =
        arena_new(profile->arena, struct span, (size_t)profile->string_count + count);
    uint32_t *all = arena_new(profile->arena, uint32_t, (size_t)profile->comment_count + count);
    memcpy(strings, profile->strings, profile->string_count * sizeof(*strings));
    if (profile->comment_count)
        memcpy(all, profile->comments, profile->comment_count * sizeof(*all));
    for (uint32_t i = 0; i < count; i++)
        all[profile->comment_count++] = intern(profile, strings, comments[i]);
    profile->strings = strings;
    profile->comments = all;
}

void profile_put_mapping_first(struct profile *profile, uint32_t mapping)
{
    struct profile_mapping *mappings =
        arena_new(profile->arena, struct profile_mapping, profile->mapping_count);
    struct profile_location *locations =
        arena_new(profile->arena, struct profile_location, profile->location_count);
    memcpy(mappings, profile->mappings, profile->mapping_count * sizeof(*mappings));
    mappings[0] = profile->mappings[mapping];
    mappings[mapping] = profile->mappings[0];
    for (uint32_t i = 0; i < profile->location_count; i++) {
        locations[i] = profile->locations[i];
        if (locations[i].mapping == 0)
            locations[i].mapping = mapping;
        else if (locations[i].mapping == mapping)
            locations[i].mapping = 0;
    }
    profile->mappings = mappings;
    profile->locations = locations;
}

struct profile_limits profile_limits_resolve(const struct profile_limits *limits)
{
    struct profile_limits resolved = limits ? *limits : (struct profile_limits){0};
    if (resolved.raw_bytes == 0)
        resolved.raw_bytes = (size_t)256 << 20;
    if (resolved.json_bytes == 0)
        resolved.json_bytes = (size_t)64 << 20;
    if (resolved.sample_count == 0)
        resolved.sample_count = UINT32_C(8) << 20;
    if (resolved.stack_depth == 0)
        resolved.stack_depth = UINT32_C(64) << 10;
    if (resolved.stack_entries == 0)
        resolved.stack_entries = UINT64_C(256) << 20;
    if (resolved.memory_bytes == 0)
        resolved.memory_bytes = UINT64_C(1) << 30;
    if (resolved.string_bytes == 0)
        resolved.string_bytes = LONG_STRING_DEFAULT_BYTES;
    if (resolved.string_bytes < LONG_STRING_MIN_BYTES)
        resolved.string_bytes = LONG_STRING_MIN_BYTES;
    return resolved;
}

void profile_append_type_name(const struct profile *profile, uint32_t index, struct buf *text)
{
    struct span type = profile_string(profile, profile->value_types[index].type);
    struct span unit = profile_string(profile, profile->value_types[index].unit);
    if (type.size)
        buf_append_span(text, type);
    else if (unit.size)
        buf_printf(text, "type %u (%.*s)", index, SPAN_PRINT(unit));
    else
        buf_printf(text, "type %u", index);
}

static enum err_code unknown_value_type(const struct profile *profile, struct span text,
                                        struct err *err)
{
    buf_auto known;
    buf_init(&known, ERR_MESSAGE_BYTES / 2);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        struct span type = profile_string(profile, profile->value_types[i].type);
        buf_printf(&known, type.size ? "%s%u '%.*s'" : "%s%u without a name%.*s", i ? ", " : "", i,
                   SPAN_PRINT(type));
    }
    return err_set(err, ERR_INVALID, "no sample type '%.*s' in this profile; it has %.*s",
                   (int)(text.size > 100 ? 100 : text.size), (const char *)text.data,
                   SPAN_PRINT(buf_span(&known)));
}

static bool find_by_name(const struct profile *profile, struct span name, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        if (span_equal(profile_string(profile, profile->value_types[i].type), name)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

enum err_code profile_find_value_type(const struct profile *profile, struct span text,
                                      uint32_t *ret_index, struct err *err)
{
    uint64_t index;
    if (text.size == 0) {
        struct span wanted = profile_string(profile, profile->default_sample_type);
        if (wanted.size == 0 || !find_by_name(profile, wanted, ret_index))
            *ret_index = profile->value_type_count - 1;
        return ERR_NONE;
    }
    if (find_by_name(profile, text, ret_index))
        return ERR_NONE;
    if (span_parse_u64(text, &index) && index < profile->value_type_count) {
        *ret_index = (uint32_t)index;
        return ERR_NONE;
    }
    return unknown_value_type(profile, text, err);
}
