#include "lib/profile/merge.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/unit.h"

#include <stdlib.h>

/* Sizes of mappings are compared in whole pages, because some writers round them and others do not.
 */
enum { MAPPING_ROUNDING = 4096 };

/* A mapping of the result, and the address at which it starts there. */
struct mapped_range {
    uint32_t mapping;
    uint64_t start;
};

struct merge {
    struct profile_builder *builder;
    struct arena *arena;
    const struct profile *const *profiles;
    size_t profile_count;
    struct span *units; /* per value type: the finest unit of all profiles */
    struct span period_unit;
    struct map_bytes targets_by_key;
    struct mapped_range *targets;
    uint32_t target_count;
    uint32_t target_capacity;
};

/*
 * A profile that is being added. Each array maps its indexes to those of the result; PROFILE_NONE:
 * the entry was not used by a sample yet. Entries are mapped when a sample first uses them, so
 * unused ones are left out, and the cost per sample is one lookup per stack entry.
 */
struct source {
    const struct profile *profile;
    size_t number;          /* number of the profile, from 1, for messages */
    const int64_t *factors; /* per value type: converts its unit to that of the result */
    uint32_t *strings;
    uint32_t *functions;
    uint32_t *locations;
    uint32_t *targets;
};

static uint32_t *new_indexes(struct arena *arena, uint32_t count)
{
    uint32_t *indexes = arena_new_raw(arena, uint32_t, count);
    memset(indexes, 0xff, count * sizeof(*indexes));
    return indexes;
}

static uint32_t map_string(struct merge *merge, struct source *source, uint32_t string)
{
    uint32_t *index = &source->strings[string];
    if (*index == PROFILE_NONE)
        *index = profile_builder_string(merge->builder, profile_string(source->profile, string));
    return *index;
}

static uint32_t map_function(struct merge *merge, struct source *source, uint32_t function)
{
    if (function == PROFILE_NONE || source->functions[function] != PROFILE_NONE)
        return function == PROFILE_NONE ? PROFILE_NONE : source->functions[function];
    struct profile_function mapped = source->profile->functions[function];
    mapped.name = map_string(merge, source, mapped.name);
    mapped.system_name = map_string(merge, source, mapped.system_name);
    mapped.filename = map_string(merge, source, mapped.filename);
    return source->functions[function] = profile_builder_function(merge->builder, &mapped);
}

/* ---- mappings ---- */

/* The identity of a mapping, compared as bytes. */
struct mapping_key {
    uint64_t size; /* rounded */
    uint64_t offset;
    uint64_t name; /* string of the result: the build id, or else the file */
};

static struct mapping_key mapping_key(struct merge *merge, struct source *source,
                                      const struct profile_mapping *mapping)
{
    uint64_t size = mapping->limit - mapping->start + MAPPING_ROUNDING - 1;
    return (struct mapping_key){
        .size = size - size % MAPPING_ROUNDING,
        .offset = mapping->offset,
        .name =
            map_string(merge, source, mapping->build_id ? mapping->build_id : mapping->filename)};
}

static uint32_t add_target(struct merge *merge, struct source *source,
                           const struct profile_mapping *mapping)
{
    struct profile_mapping mapped = *mapping;
    mapped.filename = map_string(merge, source, mapping->filename);
    mapped.build_id = map_string(merge, source, mapping->build_id);
    vec_reserve(merge->targets, merge->target_capacity, merge->target_count + 1);
    merge->targets[merge->target_count] = (struct mapped_range){
        .mapping = profile_builder_mapping(merge->builder, &mapped), .start = mapping->start};
    return merge->target_count++;
}

static uint32_t map_mapping(struct merge *merge, struct source *source, uint32_t mapping)
{
    if (source->targets[mapping] != PROFILE_NONE)
        return source->targets[mapping];
    const struct profile_mapping *from = &source->profile->mappings[mapping];
    const struct mapping_key key = mapping_key(merge, source, from);
    uint32_t target = map_bytes_find(&merge->targets_by_key, span_of(&key, sizeof(key)));
    if (target == MAP_ABSENT) {
        struct mapping_key *kept = arena_new_raw(merge->arena, struct mapping_key, 1);
        *kept = key;
        target = map_bytes_add(&merge->targets_by_key, span_of(kept, sizeof(*kept)),
                               add_target(merge, source, from));
    }
    return source->targets[mapping] = target;
}

/* ---- locations and samples ---- */

static uint32_t map_location(struct merge *merge, struct source *source, uint32_t index)
{
    if (source->locations[index] != PROFILE_NONE)
        return source->locations[index];
    const struct profile *profile = source->profile;
    struct profile_location mapped = profile->locations[index];
    if (mapped.mapping != PROFILE_NONE) {
        /* Not in one expression: map_mapping may move the array. */
        const uint32_t index_of_target = map_mapping(merge, source, mapped.mapping);
        const struct mapped_range *target = &merge->targets[index_of_target];
        mapped.address += target->start - profile->mappings[mapped.mapping].start;
        mapped.mapping = target->mapping;
    }
    struct profile_line few[16];
    bool is_many = mapped.line_count > sizeof(few) / sizeof(few[0]);
    struct profile_line *lines = is_many ? mem_new(struct profile_line, mapped.line_count) : few;
    for (uint32_t i = 0; i < mapped.line_count; i++) {
        lines[i] = profile->lines[mapped.first_line + i];
        lines[i].function = map_function(merge, source, lines[i].function);
    }
    uint32_t location = profile_builder_location(merge->builder, &mapped, lines, mapped.line_count);
    if (is_many)
        mem_free(lines);
    return source->locations[index] = location;
}

static bool is_zero(const int64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (values[i])
            return false;
    }
    return true;
}

/* A label and its position, because qsort is not stable. */
struct ranked_label {
    struct profile_label label;
    uint32_t rank;
};

static int compare_labels(const void *a, const void *b)
{
    const struct ranked_label *x = a, *y = b;
    if (x->label.key != y->label.key)
        return x->label.key > y->label.key ? 1 : -1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void sort_many_labels(struct profile_label *labels, uint32_t count)
{
    struct ranked_label *ranked = mem_new(struct ranked_label, count);
    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked_label){.label = labels[i], .rank = i};
    qsort(ranked, count, sizeof(*ranked), compare_labels);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = ranked[i].label;
    mem_free(ranked);
}

enum { FEW_LABELS = 24 };

/* Sorts labels by key, because samples whose labels differ only in their order are equal. Values of
 * one key keep their order. */
static void sort_labels(struct profile_label *labels, uint32_t count)
{
    if (count > FEW_LABELS) {
        sort_many_labels(labels, count);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct profile_label label = labels[i];
        uint32_t at = i;
        for (; at > 0 && labels[at - 1].key > label.key; at--)
            labels[at] = labels[at - 1];
        labels[at] = label;
    }
}

static uint32_t map_labels(struct merge *merge, struct source *source, uint32_t sample,
                           struct profile_label *labels)
{
    const struct profile *profile = source->profile;
    uint32_t count = 0;
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        labels[count] = profile->labels[i];
        labels[count].key = map_string(merge, source, labels[count].key);
        labels[count].text = map_string(merge, source, labels[count].text);
        labels[count].unit = map_string(merge, source, labels[count].unit);
        count++;
    }
    sort_labels(labels, count);
    return count;
}

/* The sizes of the largest sample of a profile, at least 1. */
static void find_largest_sample(const struct profile *profile, size_t *ret_depth,
                                size_t *ret_labels)
{
    *ret_depth = *ret_labels = 1;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        size_t depth = (size_t)(profile->stack_start[i + 1] - profile->stack_start[i]);
        size_t labels = profile->label_start[i + 1] - profile->label_start[i];
        *ret_depth = depth > *ret_depth ? depth : *ret_depth;
        *ret_labels = labels > *ret_labels ? labels : *ret_labels;
    }
}

/* ret_values has space for one value of each type. */
static enum err_code convert_values(const struct merge *merge, const struct source *source,
                                    uint32_t sample, int64_t *ret_values, struct err *err)
{
    const struct profile *profile = source->profile;
    const int64_t *values = profile->values + (size_t)sample * profile->value_type_count;
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        if (__builtin_mul_overflow(values[i], source->factors[i], &ret_values[i]))
            return err_set(err, ERR_INVALID,
                           "a value of sample type %u of profile %zu, in '%.*s', is too large for "
                           "'%.*s', the unit of another profile: they cannot be merged",
                           i, source->number,
                           SPAN_PRINT(profile_string(profile, profile->value_types[i].unit)),
                           SPAN_PRINT(merge->units[i]));
    }
    return ERR_NONE;
}

static enum err_code add_samples(struct merge *merge, struct source *source, struct arena *scratch,
                                 struct err *err)
{
    const struct profile *profile = source->profile;
    size_t depth_max, labels_max;
    find_largest_sample(profile, &depth_max, &labels_max);
    uint32_t *stack = arena_new_raw(scratch, uint32_t, depth_max);
    struct profile_label *labels = arena_new_raw(scratch, struct profile_label, labels_max);
    int64_t *values = arena_new_raw(scratch, int64_t, profile->value_type_count);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        enum err_code code = convert_values(merge, source, i, values, err);
        if (code)
            return code;
        if (is_zero(values, profile->value_type_count))
            continue;
        size_t depth = 0;
        for (uint64_t j = profile->stack_start[i]; j < profile->stack_start[i + 1]; j++)
            stack[depth++] = map_location(merge, source, profile->stack[j]);
        uint32_t label_count = map_labels(merge, source, i, labels);
        profile_builder_add_sample(merge->builder, stack, depth, values, labels, label_count);
        if (profile_builder_failed(merge->builder))
            break;
    }
    return ERR_NONE;
}

static const int64_t *find_factors(const struct merge *merge, const struct profile *profile,
                                   struct arena *scratch)
{
    int64_t *factors = arena_new_raw(scratch, int64_t, profile->value_type_count);
    for (uint32_t i = 0; i < profile->value_type_count; i++)
        factors[i] =
            unit_factor(profile_string(profile, profile->value_types[i].unit), merge->units[i]);
    return factors;
}

static enum err_code add_source(struct merge *merge, size_t index, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct profile *profile = merge->profiles[index];
    struct source source = {.profile = profile,
                            .number = index + 1,
                            .factors = find_factors(merge, profile, scratch),
                            .strings = new_indexes(scratch, profile->string_count),
                            .functions = new_indexes(scratch, profile->function_count),
                            .locations = new_indexes(scratch, profile->location_count),
                            .targets = new_indexes(scratch, profile->mapping_count)};
    /* pprof's tools take the first mapping for the main binary, so it stays the first. */
    if (merge->target_count == 0 && profile->mapping_count)
        map_mapping(merge, &source, 0);
    return add_samples(merge, &source, scratch, err);
}

/* ---- single fields ---- */

static uint32_t copy_string(struct merge *merge, const struct profile *profile, uint32_t string)
{
    return profile_builder_string(merge->builder, profile_string(profile, string));
}

/* Adds comments that no earlier profile had. Each string is compared once, because a few bytes can
 * refer to one long comment very often. */
static void add_comments(struct merge *merge, const struct profile *profile,
                         struct map_bytes *known)
{
    arena_auto scratch = arena_create();
    bool *is_seen = arena_new(scratch, bool, profile->comment_count ? profile->string_count : 0);
    for (uint32_t i = 0; i < profile->comment_count; i++) {
        if (is_seen[profile->comments[i]])
            continue;
        is_seen[profile->comments[i]] = true;
        struct span comment = profile_string(profile, profile->comments[i]);
        uint32_t count = known->count;
        map_bytes_add(known, comment, 0);
        if (known->count != count)
            profile_builder_add_comment(merge->builder, comment);
    }
}

/* The period in the unit of the result, clamped to INT64_MAX. */
static int64_t period_of(const struct merge *merge, const struct profile *profile)
{
    const struct span unit = profile_string(profile, profile->period_type.unit);
    int64_t period;
    if (__builtin_mul_overflow(profile->period, unit_factor(unit, merge->period_unit), &period))
        return INT64_MAX;
    return period;
}

static void add_fields(struct merge *merge, const struct profile *profile)
{
    struct profile *fields = profile_builder_fields(merge->builder);
    const int64_t period = period_of(merge, profile);
    if (profile->time_ns && (fields->time_ns == 0 || profile->time_ns < fields->time_ns))
        fields->time_ns = profile->time_ns;
    if (__builtin_add_overflow(fields->duration_ns, profile->duration_ns, &fields->duration_ns))
        fields->duration_ns = INT64_MAX;
    if (fields->period == 0 || fields->period < period)
        fields->period = period;
    if (fields->default_sample_type == 0)
        fields->default_sample_type = copy_string(merge, profile, profile->default_sample_type);
    if (fields->doc_url == 0)
        fields->doc_url = copy_string(merge, profile, profile->doc_url);
}

static void add_header(struct merge *merge)
{
    const struct profile *first = merge->profiles[0];
    struct profile *fields = profile_builder_fields(merge->builder);
    for (uint32_t i = 0; i < first->value_type_count; i++)
        profile_builder_add_value_type(
            merge->builder, profile_string(first, first->value_types[i].type), merge->units[i]);
    fields->period_type.type = copy_string(merge, first, first->period_type.type);
    fields->period_type.unit = profile_builder_string(merge->builder, merge->period_unit);
    fields->drop_frames = copy_string(merge, first, first->drop_frames);
    fields->keep_frames = copy_string(merge, first, first->keep_frames);
    struct map_bytes known;
    map_bytes_init(&known, 16);
    for (size_t i = 0; i < merge->profile_count; i++) {
        add_fields(merge, merge->profiles[i]);
        add_comments(merge, merge->profiles[i], &known);
    }
    map_bytes_fini(&known);
}

/* ---- types and units ---- */

static bool is_like_type(const struct profile *a, struct profile_value_type type_a,
                         const struct profile *b, struct profile_value_type type_b)
{
    return span_equal(profile_string(a, type_a.type), profile_string(b, type_b.type)) &&
           unit_is_like(profile_string(a, type_a.unit), profile_string(b, type_b.unit));
}

static enum err_code check_types(const struct profile *first, const struct profile *other,
                                 size_t number, struct err *err)
{
    if (first->value_type_count != other->value_type_count)
        return err_set(err, ERR_INVALID,
                       "profile %zu has %u sample types, the first one has %u: they cannot be "
                       "merged",
                       number, other->value_type_count, first->value_type_count);
    for (uint32_t i = 0; i < first->value_type_count; i++) {
        struct profile_value_type a = first->value_types[i], b = other->value_types[i];
        if (!is_like_type(first, a, other, b))
            return err_set(err, ERR_INVALID,
                           "sample type %u of profile %zu is '%.*s' in '%.*s', of the first one "
                           "'%.*s' in '%.*s': they cannot be merged",
                           i, number, SPAN_PRINT(profile_string(other, b.type)),
                           SPAN_PRINT(profile_string(other, b.unit)),
                           SPAN_PRINT(profile_string(first, a.type)),
                           SPAN_PRINT(profile_string(first, a.unit)));
    }
    if (!is_like_type(first, first->period_type, other, other->period_type))
        return err_set(err, ERR_INVALID,
                       "profile %zu has another period type than the first one: they cannot be "
                       "merged",
                       number);
    return ERR_NONE;
}

static void keep_finer(struct span *unit, const struct profile *profile, uint32_t string)
{
    const struct span other = profile_string(profile, string);
    if (unit_factor(*unit, other) > 1)
        *unit = other;
}

static void find_units(struct merge *merge)
{
    const struct profile *first = merge->profiles[0];
    merge->units = arena_new_raw(merge->arena, struct span, first->value_type_count);
    merge->period_unit = profile_string(first, first->period_type.unit);
    for (uint32_t i = 0; i < first->value_type_count; i++)
        merge->units[i] = profile_string(first, first->value_types[i].unit);
    for (size_t i = 1; i < merge->profile_count; i++) {
        const struct profile *profile = merge->profiles[i];
        for (uint32_t j = 0; j < profile->value_type_count; j++)
            keep_finer(&merge->units[j], profile, profile->value_types[j].unit);
        keep_finer(&merge->period_unit, profile, profile->period_type.unit);
    }
}

static enum err_code add_all(struct merge *merge, struct err *err)
{
    find_units(merge);
    add_header(merge);
    for (size_t i = 0; i < merge->profile_count && !profile_builder_failed(merge->builder); i++) {
        enum err_code code = add_source(merge, i, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

enum err_code merge_profiles(const struct profile *const *profiles, size_t profile_count,
                             const struct profile_limits *limits, struct profile **ret_profile,
                             struct err *err)
{
    if (profile_count == 0)
        return err_set(err, ERR_INVALID, "there is no profile to merge");
    for (size_t i = 1; i < profile_count; i++) {
        enum err_code code = check_types(profiles[0], profiles[i], i + 1, err);
        if (code)
            return code;
    }
    arena_auto arena = arena_create();
    profile_builder_auto builder = profile_builder_create(limits);
    struct merge merge = {
        .builder = builder, .arena = arena, .profiles = profiles, .profile_count = profile_count};
    map_bytes_init(&merge.targets_by_key, 64);
    enum err_code code = add_all(&merge, err);
    map_bytes_fini(&merge.targets_by_key);
    mem_free(merge.targets);
    return code ? code : profile_builder_take(builder, ret_profile, err);
}
