/*
 * random_batch: random batches, and their contents as lines of text, to be compared with what a
 * store returns. The same state gives the same batch on every machine.
 */
#ifndef TESTS_UNIT_STORE_RANDOM_BATCH_H
#define TESTS_UNIT_STORE_RANDOM_BATCH_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/profile/batch/batch.h"
#include "store/block/block_write.h"
#include "store/block/dictionary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* xorshift64*: the same numbers on all platforms. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}
static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(random_next(state) >> 33) % limit;
}

struct random_shape {
    uint32_t sample_count;
    uint32_t stack_count;
    uint32_t location_count;
    uint32_t series_count;
    uint32_t profile_count;
    uint32_t label_set_count;
    int64_t begin_ns;
    int64_t span_ns; /* times of profiles are in the span_ns from begin_ns on */
    bool has_timestamps;
    bool has_negative_values;
    int64_t value_max; /* values are value_unit times a number from 1 to value_max, often 1 */
    int64_t value_unit;
};

static inline struct random_shape random_shape(uint64_t *state)
{
    static const int64_t units[] = {1, 1, 1000, 10000000};
    const int64_t unit = units[random_below(state, 4)];
    return (struct random_shape){
        .sample_count =
            random_below(state, 4) ? random_below(state, 400) : random_below(state, 9000),
        .stack_count = 1 + random_below(state, 300),
        .location_count = 1 + random_below(state, 200),
        .series_count = 1 + random_below(state, 6),
        .profile_count = 1 + random_below(state, random_below(state, 2) ? 12 : 60),
        .label_set_count = random_below(state, 2) ? 1 : 1 + random_below(state, 20),
        .begin_ns = INT64_C(1700000000000000000) + (int64_t)random_below(state, 1u << 30) * 1000,
        .span_ns = random_below(state, 2) ? INT64_C(60000000000) : INT64_C(9) * 3600000000000,
        .has_timestamps = random_below(state, 3) == 0,
        .has_negative_values = random_below(state, 4) == 0,
        .value_max =
            random_below(state, 2) ? 3 : (int64_t)1 << random_below(state, unit == 1 ? 45 : 24),
        .value_unit = unit,
    };
}

enum { RANDOM_STRINGS = 64 };

/* Strings: 0 "", 1.. "name<i>", some with invalid UTF-8 and common prefixes. */
static inline struct span *random_strings(struct arena *arena)
{
    struct span *strings = arena_new(arena, struct span, RANDOM_STRINGS);
    for (uint32_t i = 1; i < RANDOM_STRINGS; i++)
        strings[i] =
            span_text(arena_printf(arena, i % 3 ? "name%u" : "a::longer::name\xff<%u>", i));
    return strings;
}

static inline struct profile *random_tables(struct arena *arena, uint64_t *state,
                                            uint32_t location_count)
{
    struct profile *tables = arena_new(arena, struct profile, 1);
    tables->arena = arena;
    tables->strings = random_strings(arena);
    tables->string_count = RANDOM_STRINGS;
    const uint32_t functions = 30, mappings = 4;
    struct profile_function *function = arena_new(arena, struct profile_function, functions);
    for (uint32_t i = 0; i < functions; i++) {
        function[i].name = 1 + i;
        function[i].system_name = random_below(state, 2) ? 1 + i : random_below(state, 60);
        function[i].filename = random_below(state, 40);
        function[i].start_line = (int64_t)random_below(state, 1000) - 1;
    }
    struct profile_mapping *mapping = arena_new(arena, struct profile_mapping, mappings);
    for (uint32_t i = 0; i < mappings; i++) {
        /* Start and offset agree, so addresses do not change; another test covers the others. */
        mapping[i].start = mapping[i].offset = (uint64_t)i << 20;
        mapping[i].limit = ((uint64_t)i + 1) << 20;
        mapping[i].filename = 40 + i;
        mapping[i].build_id = i % 2 ? 50 + i : 0;
        mapping[i].has_functions = i & 1;
        mapping[i].has_inline_frames = i & 2;
    }
    struct profile_location *location = arena_new(arena, struct profile_location, location_count);
    struct profile_line *line = arena_new(arena, struct profile_line, location_count * (size_t)3);
    uint32_t lines = 0;
    for (uint32_t i = 0; i < location_count; i++) {
        location[i].mapping = random_below(state, 5) ? random_below(state, mappings) : PROFILE_NONE;
        location[i].address = random_next(state) >> (20 + random_below(state, 44));
        location[i].first_line = lines;
        location[i].line_count = random_below(state, 4);
        location[i].is_folded = random_below(state, 10) == 0;
        for (uint32_t j = 0; j < location[i].line_count; j++, lines++) {
            line[lines].function =
                random_below(state, 20) ? random_below(state, functions) : PROFILE_NONE;
            line[lines].line = (int64_t)random_below(state, 5000) - 10;
            line[lines].column = random_below(state, 3);
        }
    }
    tables->functions = function;
    tables->function_count = functions;
    tables->mappings = mapping;
    tables->mapping_count = mappings;
    tables->locations = location;
    tables->location_count = location_count;
    tables->lines = line;
    tables->line_count = lines;
    return tables;
}

static inline void random_stacks(struct batch *batch, uint64_t *state, uint32_t count)
{
    uint64_t *starts = arena_new(batch->arena, uint64_t, count + (size_t)1);
    uint32_t *stack = arena_new(batch->arena, uint32_t, count * (size_t)40);
    for (uint32_t i = 1; i < count; i++) {
        uint64_t at = starts[i];
        /* Leaf first: the first three frames are any locations, their callers one of four, so that
         * stacks share callers. */
        const uint32_t depth = random_below(state, 40);
        for (uint32_t j = 0; j < depth; j++)
            stack[at++] = random_below(state, 1 + batch->tables->location_count * (j < 3 ? 1 : 0) +
                                                  (j < 3 ? 0 : 3)) %
                          batch->tables->location_count;
        starts[i + 1] = at;
    }
    batch->stack_count = count;
    batch->stack_start = starts;
    batch->stack = stack;
}

static inline void random_label_sets(struct batch *batch, uint64_t *state, uint32_t count)
{
    struct batch_label_set *sets = arena_new(batch->arena, struct batch_label_set, count);
    struct profile_label *labels = arena_new(batch->arena, struct profile_label, count * (size_t)3);
    uint32_t used = 0;
    for (uint32_t i = 1; i < count; i++) {
        sets[i].first_label = used;
        sets[i].label_count = random_below(state, 4);
        for (uint32_t j = 0; j < sets[i].label_count; j++, used++) {
            labels[used].key = 1 + random_below(state, 5);
            labels[used].is_numeric = random_below(state, 2);
            if (labels[used].is_numeric) {
                labels[used].number = (int64_t)random_next(state) >> random_below(state, 63);
                labels[used].unit = random_below(state, 3);
            } else {
                labels[used].text = random_below(state, 9);
            }
        }
        if (random_below(state, 2)) {
            for (size_t j = 0; j < sizeof(sets[i].link); j++)
                ((uint8_t *)&sets[i].link)[j] = (uint8_t)random_next(state);
        }
    }
    batch->label_sets = sets;
    batch->label_set_count = count;
    batch->sample_labels = labels;
    batch->sample_label_count = used;
}

static inline void random_series(struct batch *batch, uint64_t *state, uint32_t count)
{
    struct batch_series *series = arena_new(batch->arena, struct batch_series, count);
    struct batch_label *labels = arena_new(batch->arena, struct batch_label, count * (size_t)4);
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        series[i].type = (struct batch_type){
            .name = 1 + random_below(state, 2),
            .sample_type = {.type = 4 + random_below(state, 2), .unit = 6},
            .period_type = {.type = random_below(state, 2), .unit = 0},
            .kind = random_below(state, BATCH_KINDS),
        };
        series[i].first_label = used;
        series[i].label_count = random_below(state, 4);
        for (uint32_t j = 0; j < series[i].label_count; j++, used++) {
            labels[used].name = 10 + 10 * j + random_below(state, 2); /* sorted: name10 name20 … */
            labels[used].value = 1 + random_below(state, 3);
        }
    }
    batch->series = series;
    batch->series_count = count;
    batch->series_labels = labels;
    batch->series_label_count = used;
}

static inline int64_t random_value(uint64_t *state, const struct random_shape *shape)
{
    int64_t value = 1 + (int64_t)(random_next(state) >> 1) % shape->value_max;
    if (random_below(state, 4))
        value = 1;
    value *= shape->value_unit;
    return shape->has_negative_values && random_below(state, 3) == 0 ? -value : value;
}

static inline void random_profiles(struct batch *batch, uint64_t *state,
                                   const struct random_shape *shape)
{
    struct batch_profile *profiles =
        arena_new(batch->arena, struct batch_profile, shape->profile_count);
    struct batch_sample *samples =
        arena_new(batch->arena, struct batch_sample, shape->sample_count);
    uint64_t *starts = arena_new(batch->arena, uint64_t, shape->sample_count + (size_t)1);
    int64_t *timestamps = arena_new(batch->arena, int64_t, shape->sample_count * (size_t)3);
    uint32_t used = 0;
    for (uint32_t i = 0; i < shape->profile_count; i++) {
        profiles[i].series = random_below(state, batch->series_count);
        profiles[i].time_ns = shape->begin_ns + (int64_t)(random_next(state) >> 1) % shape->span_ns;
        profiles[i].duration_ns = random_below(state, 3) ? 10000000000 : random_below(state, 99);
        profiles[i].period = random_below(state, 3);
        profiles[i].first_sample = used;
        uint32_t left = shape->sample_count - used;
        profiles[i].sample_count = i + 1 == shape->profile_count ? left : left / 2;
        for (uint32_t j = 0; j < profiles[i].sample_count; j++, used++) {
            samples[used].value = random_value(state, shape);
            samples[used].stack = random_below(state, batch->stack_count);
            samples[used].label_set = random_below(state, batch->label_set_count);
            uint64_t at = starts[used];
            for (uint32_t k = random_below(state, 4); shape->has_timestamps && k > 0; k--) {
                timestamps[at] = (at > starts[used] ? timestamps[at - 1] : profiles[i].time_ns) +
                                 (int64_t)random_below(state, 1000000);
                at++;
            }
            starts[used + 1] = at;
        }
    }
    batch->profiles = profiles;
    batch->profile_count = shape->profile_count;
    batch->samples = samples;
    batch->sample_count = shape->sample_count;
    if (shape->has_timestamps) {
        batch->timestamp_start = starts;
        batch->timestamps = timestamps;
    }
}

/* The batch is in its own arena, which batch_destroy frees. */
static inline struct batch *random_batch(uint64_t *state, const struct random_shape *shape)
{
    struct arena *arena = arena_create();
    struct batch *batch = arena_new(arena, struct batch, 1);
    batch->arena = arena;
    batch->tables = random_tables(arena, state, shape->location_count);
    random_stacks(batch, state, shape->stack_count);
    random_label_sets(batch, state, shape->label_set_count);
    random_series(batch, state, shape->series_count);
    random_profiles(batch, state, shape);
    return batch;
}

/* ---- as text ---- */

struct lines {
    char **lines;
    size_t count;
    size_t capacity;
};

/* Adds a copy of text as a line and clears text. */
static inline void lines_add(struct lines *lines, struct buf *text)
{
    if (lines->count == lines->capacity) {
        lines->capacity = lines->capacity ? lines->capacity * 2 : 64;
        lines->lines = mem_resize(lines->lines, lines->capacity, sizeof(*lines->lines));
    }
    buf_append_byte(text, 0);
    lines->lines[lines->count++] = mem_strdup((const char *)text->data);
    buf_clear(text);
}

static inline int lines_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void lines_sort(struct lines *lines)
{
    if (lines->count)
        qsort(lines->lines, lines->count, sizeof(*lines->lines), lines_compare);
}

static inline void lines_fini(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        mem_free(lines->lines[i]);
    mem_free(lines->lines);
    *lines = (struct lines){0};
}

static inline void text_string(struct buf *text, const struct profile *tables, uint32_t string)
{
    buf_append_span(text, tables->strings[string]);
    buf_append_byte(text, '|');
}

static inline void text_location(struct buf *text, const struct profile *tables, uint32_t index)
{
    const struct profile_location *location = &tables->locations[index];
    buf_printf(text, " @%" PRIx64 "%s", location->address, location->is_folded ? "f" : "");
    if (location->mapping != PROFILE_NONE) {
        const struct profile_mapping *mapping = &tables->mappings[location->mapping];
        buf_printf(text, "[%" PRIx64 "-%" PRIx64 "+%" PRIx64 " %d%d%d%d ", mapping->start,
                   mapping->limit, mapping->offset, mapping->has_functions, mapping->has_filenames,
                   mapping->has_line_numbers, mapping->has_inline_frames);
        text_string(text, tables, mapping->filename);
        text_string(text, tables, mapping->build_id);
        buf_append_byte(text, ']');
    }
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &tables->lines[location->first_line + i];
        if (line->function != PROFILE_NONE) {
            const struct profile_function *function = &tables->functions[line->function];
            text_string(text, tables, function->name);
            text_string(text, tables, function->system_name);
            text_string(text, tables, function->filename);
            buf_printf(text, "%" PRId64, function->start_line);
        }
        buf_printf(text, ":%" PRId64 ":%" PRId64 ",", line->line, line->column);
    }
}

static inline void text_series(struct buf *text, const struct profile *tables,
                               const struct batch_series *series, const struct batch_label *labels)
{
    text_string(text, tables, series->type.name);
    text_string(text, tables, series->type.sample_type.type);
    text_string(text, tables, series->type.sample_type.unit);
    text_string(text, tables, series->type.period_type.type);
    text_string(text, tables, series->type.period_type.unit);
    buf_printf(text, "%d{", (int)series->type.kind);
    for (uint32_t i = 0; i < series->label_count; i++) {
        text_string(text, tables, labels[series->first_label + i].name);
        text_string(text, tables, labels[series->first_label + i].value);
    }
    buf_append_byte(text, '}');
}

static inline void text_label_set(struct buf *text, const struct profile *tables,
                                  const struct batch_label_set *set,
                                  const struct profile_label *labels)
{
    for (uint32_t i = 0; i < set->label_count; i++) {
        const struct profile_label *label = &labels[set->first_label + i];
        text_string(text, tables, label->key);
        text_string(text, tables, label->text);
        text_string(text, tables, label->unit);
        buf_printf(text, "%d %" PRId64 ",", label->is_numeric, label->number);
    }
    for (size_t i = 0; i < sizeof(set->link); i++)
        buf_printf(text, "%02x", ((const uint8_t *)&set->link)[i]);
}

#endif
