#include "lib/profile/batch/batch_from_profile.h"

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/batch/batch_sample_labels.h"
#include "lib/profile/unit.h"

/* Times of old agents are in microseconds, which reads as January 1970. */
#define TIME_MIN_NS (INT64_C(365) * 86400 * CLOCK_NS_PER_S)

enum { SIZE_BITS = 1024 };

/* The labels of the series of a group, checked and sorted. */
struct group {
    struct batch_text_label *labels;
    size_t label_count;
};

/* What a type's values are. */
enum use { LEFT_OUT, DELTA, SNAPSHOT };

struct making {
    const struct batch_source *source;
    const struct profile *profile;
    const struct batch_options *options;
    struct batch_limits limits;
    struct arena *scratch;
    struct batch *batch;
    struct batch_sample_labels sample_labels;
    struct span name;
    bool is_ready;
    struct group *groups;
    /* Texts that the batch needs beside the profile's own, as strings of its tables. */
    struct map_bytes texts;
    struct span *text_bytes;
    uint32_t *text_strings;
    uint32_t text_capacity;
    const char *notice; /* of the batch, in scratch */
    enum use *uses;     /* of each value type */
    int64_t *factors;   /* of each value type, from its unit to that of its series */
    char decimals_unit[UNIT_NAME_BYTES];
    uint32_t *counts;  /* of samples; by group, then value type */
    bool *is_in_group; /* per group: some sample is in it; of group 0 also where there are none */
    bool leaves_idle;  /* deltas without samples are left out */
};

/* ---- series ---- */

/* Takes those out that become name; the order of the others stays. */
static void take_out(struct group *group, struct span name)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->label_count; i++) {
        if (!batch_labels_becomes(group->labels[i].name, name))
            group->labels[kept++] = group->labels[i];
    }
    group->label_count = kept;
}

/* The source's labels and the group's; the latter win. */
static enum err_code make_group(struct making *making, uint32_t index, struct err *err)
{
    const struct batch_source *source = making->source;
    const struct batch_sample_labels *split = &making->sample_labels;
    struct group *group = &making->groups[index];
    group->labels = arena_new_raw(making->scratch, struct batch_text_label,
                                  source->label_count + split->name_count);
    for (size_t i = 0; i < source->label_count; i++)
        group->labels[group->label_count++] = source->labels[i];
    for (uint32_t i = 0; i < split->name_count; i++) {
        uint32_t value = split->group_values[(size_t)index * split->name_count + i];
        if (value == 0)
            continue;
        const struct batch_text_label label = {.name = making->options->series_labels[i],
                                               .value = profile_string(making->profile, value)};
        take_out(group, label.name);
        group->labels[group->label_count++] = label;
    }
    return batch_labels_check(making->scratch, group->labels, &group->label_count, &making->limits,
                              &making->notice, err);
}

static enum err_code make_groups(struct making *making, struct err *err)
{
    uint32_t count = making->sample_labels.group_count;
    making->groups = arena_new(making->scratch, struct group, count);
    for (uint32_t i = 0; i < count; i++) {
        enum err_code code = make_group(making, i, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* ---- strings ---- */

static void want_text(struct making *making, struct span text)
{
    uint32_t next = making->texts.count;
    if (text.size == 0 || map_bytes_add(&making->texts, text, next) != next)
        return;
    if (next == making->text_capacity) {
        making->text_capacity = next ? next * 2 : 32;
        making->text_bytes =
            mem_resize(making->text_bytes, making->text_capacity, sizeof(struct span));
    }
    making->text_bytes[next] = text;
}

/* Few are another text than the profile has: the others are not looked for. */
static bool has_other_part(const struct making *making, uint32_t string, struct span *ret_part)
{
    const struct span text = profile_string(making->profile, string);
    *ret_part = batch_type_part(making->scratch, text);
    return ret_part->data != text.data;
}

static void want_type(struct making *making, struct profile_value_type type)
{
    struct span part;
    if (has_other_part(making, type.type, &part))
        want_text(making, part);
    if (has_other_part(making, type.unit, &part))
        want_text(making, part);
}

/* Of the value type in its series. */
static struct span unit_of(const struct making *making, uint32_t value_type)
{
    const struct profile *profile = making->profile;
    const struct span unit = profile_string(profile, profile->value_types[value_type].unit);
    return unit_decimals(unit) ? span_text(making->decimals_unit) : unit;
}

static void want_texts(struct making *making)
{
    want_type(making, making->profile->period_type);
    for (uint32_t i = 0; i < making->profile->value_type_count; i++)
        want_text(making, batch_type_name(making->profile, making->name, i));
    for (uint32_t i = 0; i < making->profile->value_type_count; i++)
        want_type(making, making->profile->value_types[i]);
    for (uint32_t i = 0; i < making->profile->value_type_count; i++) {
        if (making->factors[i] > 1)
            want_text(making, unit_of(making, i));
    }
    for (uint32_t i = 0; i < making->sample_labels.group_count; i++) {
        const struct group *group = &making->groups[i];
        for (size_t j = 0; j < group->label_count; j++) {
            want_text(making, group->labels[j].name);
            want_text(making, group->labels[j].value);
        }
    }
}

/* Which of them the profile has already. Only strings of a size that is wanted are hashed. */
static void find_texts(struct making *making)
{
    bool has_size[SIZE_BITS] = {false};
    for (uint32_t i = 0; i < making->texts.count; i++)
        has_size[making->text_bytes[i].size % SIZE_BITS] = true;
    for (uint32_t i = 1; i < making->profile->string_count; i++) {
        struct span string = making->profile->strings[i];
        if (!has_size[string.size % SIZE_BITS])
            continue;
        uint32_t text = map_bytes_find(&making->texts, string);
        if (text != MAP_ABSENT)
            making->text_strings[text] = i;
    }
}

static const struct span *make_strings(struct making *making, uint32_t *ret_count)
{
    struct arena *arena = making->profile->arena;
    uint32_t count = making->profile->string_count;
    struct span *strings = arena_new_raw(arena, struct span, (size_t)count + making->texts.count);
    memcpy(strings, making->profile->strings, count * sizeof(*strings));
    for (uint32_t i = 0; i < making->texts.count; i++) {
        if (making->text_strings[i])
            continue;
        struct span text = making->text_bytes[i];
        making->text_strings[i] = count;
        strings[count++] = span_of(arena_strndup(arena, text.data, text.size), text.size);
    }
    *ret_count = count;
    return strings;
}

static uint32_t string_of(const struct making *making, struct span text)
{
    uint32_t found = text.size ? map_bytes_find(&making->texts, text) : MAP_ABSENT;
    return found == MAP_ABSENT ? 0 : making->text_strings[found];
}

static void make_tables(struct making *making)
{
    want_texts(making);
    making->text_strings = arena_new(making->scratch, uint32_t, making->texts.count);
    find_texts(making);
    struct profile *tables = arena_new(making->profile->arena, struct profile, 1);
    *tables = *making->profile;
    tables->strings = make_strings(making, &tables->string_count);
    tables->sample_count = 0;
    tables->stack_start = NULL;
    tables->stack = NULL;
    tables->values = NULL;
    tables->label_start = NULL;
    tables->labels = NULL;
    making->batch->tables = tables;
}

/* ---- samples ---- */

static void make_stacks(struct making *making)
{
    const struct profile *profile = making->profile;
    struct batch *batch = making->batch;
    uint64_t *start = arena_new_raw(batch->arena, uint64_t, (size_t)profile->sample_count + 2);
    start[0] = start[1] = 0;
    if (profile->sample_count)
        memcpy(start + 1, profile->stack_start,
               ((size_t)profile->sample_count + 1) * sizeof(*start));
    batch->stack_count = profile->sample_count + 1;
    batch->stack_start = start;
    batch->stack = profile->stack;
}

/* Of snapshots all samples are of group 0: one that has no sample of some label is a snapshot of 0
 * there, which nobody could tell if the label made a series. */
static uint32_t group_of(const struct making *making, uint32_t sample, uint32_t value_type)
{
    const uint32_t *groups = making->sample_labels.group_of_sample;
    return groups && making->uses[value_type] == DELTA ? groups[sample] : 0;
}

static uint32_t set_of(const struct making *making, uint32_t sample, uint32_t value_type)
{
    const struct batch_sample_labels *labels = &making->sample_labels;
    const uint32_t *sets =
        making->uses[value_type] == DELTA ? labels->set_of_sample : labels->whole_set_of_sample;
    return sets ? sets[sample] : 0;
}

/* A profile in which all is 0 says so. */
static bool is_idle(const struct making *making, uint32_t group, uint32_t value_type)
{
    const uint32_t type_count = making->profile->value_type_count;
    if (making->counts[(size_t)group * type_count + value_type])
        return false;
    if (making->uses[value_type] == SNAPSHOT)
        return group == 0;
    return making->uses[value_type] == DELTA && making->is_in_group[group] && !making->leaves_idle;
}

static bool makes_series(const struct making *making, uint32_t group, uint32_t value_type)
{
    const uint32_t type_count = making->profile->value_type_count;
    return making->counts[(size_t)group * type_count + value_type] ||
           is_idle(making, group, value_type);
}

static bool is_repeated(const struct making *making, uint32_t value_type)
{
    const struct profile_value_type *types = making->profile->value_types;
    for (uint32_t i = 0; i < value_type; i++) {
        if (types[i].type == types[value_type].type &&
            span_equal(unit_of(making, i), unit_of(making, value_type)))
            return true;
    }
    return false;
}

static bool is_delta(const struct making *making, struct span name, uint32_t value_type)
{
    enum batch_kind kind = BATCH_KIND_BY_RULE;
    if (making->source->kinds)
        kind = making->source->kinds[value_type];
    if (kind == BATCH_KIND_BY_RULE)
        kind = batch_type_kind(making->profile, name, value_type, making->is_ready);
    return kind == BATCH_KIND_DELTA;
}

static void find_uses(struct making *making)
{
    const struct profile *profile = making->profile;
    making->uses = arena_new(making->scratch, enum use, profile->value_type_count);
    making->factors = arena_new(making->scratch, int64_t, profile->value_type_count);
    unit_print_decimals(UNIT_DECIMALS_MAX, making->decimals_unit);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        const struct span name = batch_type_name(profile, making->name, i);
        if (!is_repeated(making, i))
            making->uses[i] = is_delta(making, name, i) ? DELTA : SNAPSHOT;
        making->factors[i] =
            unit_factor(profile_string(profile, profile->value_types[i].unit), unit_of(making, i));
    }
}

static bool has_use(const struct making *making, enum use use)
{
    for (uint32_t i = 0; i < making->profile->value_type_count; i++) {
        if (making->uses[i] == use)
            return true;
    }
    return false;
}

/* Group 0 is there for lists that have none of the names, which need not be a sample's. */
static void find_groups(struct making *making)
{
    const uint32_t *groups = making->sample_labels.group_of_sample;
    const uint32_t group_count = making->sample_labels.group_count;
    making->is_in_group = arena_new(making->scratch, bool, group_count);
    for (uint32_t i = groups ? 1 : 0; i < group_count; i++)
        making->is_in_group[i] = true;
    for (uint32_t i = 0; groups && i < making->profile->sample_count; i++)
        making->is_in_group[0] |= groups[i] == 0;
}

static uint64_t count_series(const struct making *making)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < making->sample_labels.group_count; i++) {
        for (uint32_t j = 0; j < making->profile->value_type_count; j++)
            count += makes_series(making, i, j);
    }
    return count;
}

static enum err_code check_values(const struct making *making, uint32_t value_type, struct err *err)
{
    const struct profile *profile = making->profile;
    const int64_t factor = making->factors[value_type];
    int64_t value;
    for (uint32_t i = 0; factor > 1 && i < profile->sample_count; i++) {
        size_t at = (size_t)i * profile->value_type_count + value_type;
        if (__builtin_mul_overflow(profile->values[at], factor, &value))
            return err_set(err, ERR_INVALID,
                           "decimals and a value above 9223372036854 in one profile: a series "
                           "cannot keep both; write its values as whole numbers");
    }
    return ERR_NONE;
}

/* How many samples each group has of each type; 0 for types that do not count. */
static enum err_code count_samples(struct making *making, struct err *err)
{
    const struct profile *profile = making->profile;
    const uint32_t type_count = profile->value_type_count;
    const size_t place_count = (size_t)making->sample_labels.group_count * type_count;
    uint32_t *counts = arena_new(making->scratch, uint32_t, place_count);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const int64_t *values = profile->values + (size_t)i * type_count;
        for (uint32_t j = 0; j < type_count; j++)
            counts[(size_t)group_of(making, i, j) * type_count + j] +=
                values[j] != 0 && making->uses[j] != LEFT_OUT;
    }
    making->counts = counts;
    find_groups(making);
    uint64_t sample_count = 0, series_count = count_series(making);
    for (size_t i = 0; i < place_count; i++)
        sample_count += counts[i];
    if (series_count > making->limits.series) {
        making->leaves_idle = true;
        series_count = count_series(making);
    }
    if (series_count > making->limits.series)
        return err_set(err, ERR_TOO_LARGE, "%llu series in one profile; the limit is %u",
                       (unsigned long long)series_count, making->limits.series);
    if (sample_count > UINT32_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than 2^32 values in one profile");
    making->batch->sample_count = (uint32_t)sample_count;
    making->batch->series_count = making->batch->profile_count = (uint32_t)series_count;
    return ERR_NONE;
}

/* Turns counts into the places where samples go. Places of types left out are never used. */
static void fill_samples(struct making *making)
{
    const struct profile *profile = making->profile;
    const uint32_t type_count = profile->value_type_count;
    struct batch_sample *samples =
        arena_new_raw(making->batch->arena, struct batch_sample, making->batch->sample_count);
    uint32_t *places = making->counts, next = 0;
    for (size_t i = 0; i < (size_t)making->sample_labels.group_count * type_count; i++) {
        uint32_t count = places[i];
        places[i] = next;
        next += count;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const int64_t *values = profile->values + (size_t)i * type_count;
        for (uint32_t j = 0; j < type_count; j++) {
            if (values[j] == 0 || making->uses[j] == LEFT_OUT)
                continue;
            uint32_t *place = &places[(size_t)group_of(making, i, j) * type_count + j];
            samples[(*place)++] = (struct batch_sample){.value = values[j] * making->factors[j],
                                                        .stack = i + 1,
                                                        .label_set = set_of(making, i, j)};
        }
    }
    making->batch->samples = samples;
}

/* ---- rows ---- */

static struct profile_value_type clean_type(const struct making *making,
                                            struct profile_value_type type)
{
    struct span part;
    if (has_other_part(making, type.type, &part))
        type.type = string_of(making, part);
    if (has_other_part(making, type.unit, &part))
        type.unit = string_of(making, part);
    return type;
}

static void set_type(const struct making *making, uint32_t value_type, struct batch_type *type)
{
    struct span name = batch_type_name(making->profile, making->name, value_type);
    type->name = string_of(making, name);
    type->sample_type = clean_type(making, making->profile->value_types[value_type]);
    if (making->factors[value_type] > 1)
        type->sample_type.unit = string_of(making, unit_of(making, value_type));
    type->period_type = clean_type(making, making->profile->period_type);
    type->is_delta = making->uses[value_type] == DELTA;
}

int64_t batch_own_time_ns(const struct profile *profile)
{
    return profile->time_ns < TIME_MIN_NS ? 0 : profile->time_ns;
}

static int64_t time_of(const struct making *making)
{
    const int64_t time_ns = batch_own_time_ns(making->profile);
    return time_ns ? time_ns : making->source->time_ns;
}

static void set_profile(const struct making *making, struct batch_profile *row)
{
    const struct profile *profile = making->profile;
    row->time_ns = time_of(making);
    row->duration_ns =
        profile->duration_ns > 0 ? profile->duration_ns : making->source->duration_ns;
    row->period = profile->period;
}

/* Labels of all groups; series of one group share theirs. */
static uint32_t *make_labels(struct making *making)
{
    uint32_t group_count = making->sample_labels.group_count;
    uint32_t *starts = arena_new(making->scratch, uint32_t, group_count);
    size_t label_count = 0;
    for (uint32_t i = 0; i < group_count; i++) {
        starts[i] = (uint32_t)label_count;
        label_count += making->groups[i].label_count;
    }
    struct batch_label *labels =
        arena_new_raw(making->batch->arena, struct batch_label, label_count);
    for (uint32_t i = 0; i < group_count; i++) {
        const struct group *group = &making->groups[i];
        for (size_t j = 0; j < group->label_count; j++)
            labels[starts[i] + j] =
                (struct batch_label){.name = string_of(making, group->labels[j].name),
                                     .value = string_of(making, group->labels[j].value)};
    }
    making->batch->series_labels = labels;
    making->batch->series_label_count = (uint32_t)label_count;
    return starts;
}

static void make_rows(struct making *making)
{
    struct batch *batch = making->batch;
    const uint32_t type_count = making->profile->value_type_count;
    const uint32_t *label_starts = make_labels(making);
    struct batch_series *series = arena_new(batch->arena, struct batch_series, batch->series_count);
    struct batch_profile *profiles =
        arena_new(batch->arena, struct batch_profile, batch->profile_count);
    uint32_t row = 0, first_sample = 0;
    for (uint32_t i = 0; i < making->sample_labels.group_count; i++) {
        for (uint32_t j = 0; j < type_count; j++) {
            uint32_t count = making->counts[(size_t)i * type_count + j];
            if (!makes_series(making, i, j))
                continue;
            series[row].first_label = label_starts[i];
            series[row].label_count = (uint32_t)making->groups[i].label_count;
            set_type(making, j, &series[row].type);
            set_profile(making, &profiles[row]);
            profiles[row].series = row;
            profiles[row].first_sample = first_sample;
            profiles[row].sample_count = count;
            first_sample += count;
            row++;
        }
    }
    batch->series = series;
    batch->profiles = profiles;
}

static enum err_code make(struct making *making, struct err *err)
{
    const struct batch_options *options = making->options;
    const struct profile *profile = making->profile;
    if (profile->value_type_count > making->limits.types)
        return err_set(err, ERR_TOO_LARGE, "%u types of values in one profile; the limit is %u",
                       profile->value_type_count, making->limits.types);
    find_uses(making);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        enum err_code code = check_values(making, i, err);
        if (code)
            return code;
    }
    const uint32_t name_count = has_use(making, DELTA) ? options->series_label_count : 0;
    enum err_code code = batch_sample_labels_collect(
        profile, options->series_labels, name_count, has_use(making, SNAPSHOT),
        making->limits.series, &making->sample_labels, err);
    if (!code)
        code = make_groups(making, err);
    if (!code)
        code = count_samples(making, err);
    if (code)
        return code;
    if (making->notice)
        making->batch->notice = arena_strdup(making->batch->arena, making->notice);
    make_tables(making);
    make_stacks(making);
    make_rows(making);
    fill_samples(making);
    making->batch->label_sets = making->sample_labels.sets;
    making->batch->label_set_count = making->sample_labels.set_count;
    making->batch->sample_labels = making->sample_labels.labels;
    making->batch->sample_label_count = making->sample_labels.label_count;
    return ERR_NONE;
}

/* It is a part of "name:type:unit:…" wherever series are named. */
static enum err_code check_name(const struct making *making, struct err *err)
{
    struct span name = making->source->name;
    bool is_wrong = !span_is_utf8(name) || (name.size && memchr(name.data, ':', name.size));
    if (!is_wrong && name.size <= making->limits.name_bytes)
        return ERR_NONE;
    return err_set(err, is_wrong ? ERR_INVALID : ERR_TOO_LARGE,
                   "'%.*s' is no name of a profile: UTF-8 without ':', at most %u bytes",
                   name.size > 100 ? 100 : (int)name.size, (const char *)name.data,
                   making->limits.name_bytes);
}

static enum err_code check_time(const struct making *making, struct err *err)
{
    const int64_t time_ns = time_of(making);
    if (time_ns >= BATCH_TIME_BEGIN_NS && time_ns < BATCH_TIME_END_NS)
        return ERR_NONE;
    return err_set(err, ERR_INVALID, "the profile's time is before 1677-09-22 or after 2262-04-10");
}

enum err_code batch_from_profile(const struct batch_source *source,
                                 const struct batch_options *options, struct batch **ret_batch,
                                 struct err *err)
{
    static const struct batch_options no_options = {0};
    arena_auto scratch = arena_create();
    struct making making = {.source = source,
                            .profile = source->profile,
                            .options = options ? options : &no_options,
                            .scratch = scratch,
                            .name = source->name,
                            .is_ready = source->is_ready};
    making.limits = batch_limits_resolve(making.options->limits);
    if (batch_type_take_delta_prefix(&making.name))
        making.is_ready = true;
    if (making.name.size == 0)
        making.name = batch_type_derive_name(making.profile, NULL);
    making.name = batch_type_part(scratch, making.name);
    making.batch = arena_new(making.profile->arena, struct batch, 1);
    making.batch->arena = making.profile->arena;
    enum err_code code = check_name(&making, err);
    if (!code)
        code = check_time(&making, err);
    if (!code)
        code = make(&making, err);
    map_bytes_fini(&making.texts);
    mem_free(making.text_bytes);
    if (!code)
        *ret_batch = making.batch;
    return code;
}
