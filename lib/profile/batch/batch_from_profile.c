#include "lib/profile/batch/batch_from_profile.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/batch/batch_groups.h"
#include "lib/profile/batch/batch_sample_labels.h"
#include "lib/profile/batch/batch_strings.h"
#include "lib/profile/prune.h"
#include "lib/profile/unit.h"

/* A year. Old agents send microseconds, which as nanoseconds would be in January 1970. */
#define TIME_MIN_NS (INT64_C(365) * 86400 * CLOCK_NS_PER_S)

/* How the values of a type are stored. LEFT_OUT: not at all, because an earlier value type has the
 * same type and unit (is_repeated) or the values are changes of a gauge (is_change_of_gauge). */
enum use { LEFT_OUT, DELTA, SNAPSHOT };

struct batch_build {
    const struct batch_source *source;
    const struct profile *profile;
    const struct batch_options *options;
    struct batch_limits limits;
    struct arena *scratch;
    struct batch *batch;
    struct batch_sample_labels sample_labels;
    struct span name;
    bool is_ready;
    struct batch_groups groups;
    struct batch_strings strings;
    struct prune prune;     /* drop_frames of the profile */
    const char *notice;     /* of the batch, in scratch or static; NULL: none */
    enum use *uses;         /* per value type */
    enum batch_kind *kinds; /* per value type */
    int64_t *factors;       /* per value type, from its unit to that of its series */
    char decimals_unit[UNIT_NAME_BYTES];
    uint32_t *counts; /* number of samples; by group, then value type */
    /* per group: a sample is in it; also set for group 0 if there are no samples */
    bool *is_in_group;
    bool leaves_idle; /* deltas without samples are left out */
};

static bool has_use(const struct batch_build *batch_build, enum use use)
{
    for (uint32_t i = 0; i < batch_build->profile->value_type_count; i++) {
        if (batch_build->uses[i] == use)
            return true;
    }
    return false;
}

/* ---- strings ---- */

/* Sets *ret_part to the string's form in a type's name, and returns whether they differ. Only
 * different ones have to be added to the strings. */
static bool has_other_part(const struct batch_build *batch_build, uint32_t string,
                           struct span *ret_part)
{
    const struct span text = profile_string(batch_build->profile, string);
    *ret_part = batch_type_part(batch_build->scratch, text);
    return ret_part->data != text.data;
}

static void want_type(struct batch_build *batch_build, struct profile_value_type type)
{
    struct span part;
    if (has_other_part(batch_build, type.type, &part))
        batch_strings_want(&batch_build->strings, part);
    if (has_other_part(batch_build, type.unit, &part))
        batch_strings_want(&batch_build->strings, part);
}

/* The unit of the value type in its series. */
static struct span unit_of(const struct batch_build *batch_build, uint32_t value_type)
{
    const struct profile *profile = batch_build->profile;
    const struct span unit = profile_string(profile, profile->value_types[value_type].unit);
    return unit_decimals(unit) ? span_text(batch_build->decimals_unit) : unit;
}

static void want_texts(struct batch_build *batch_build)
{
    want_type(batch_build, batch_build->profile->period_type);
    for (uint32_t i = 0; i < batch_build->profile->value_type_count; i++)
        batch_strings_want(&batch_build->strings,
                           batch_type_name(batch_build->profile, batch_build->name, i));
    for (uint32_t i = 0; i < batch_build->profile->value_type_count; i++)
        want_type(batch_build, batch_build->profile->value_types[i]);
    for (uint32_t i = 0; i < batch_build->profile->value_type_count; i++) {
        if (batch_build->factors[i] > 1)
            batch_strings_want(&batch_build->strings, unit_of(batch_build, i));
    }
    for (uint32_t i = 0; i < batch_build->groups.count; i++) {
        const struct batch_group *group = &batch_build->groups.groups[i];
        for (size_t j = 0; j < group->label_count; j++) {
            batch_strings_want(&batch_build->strings, group->labels[j].name);
            batch_strings_want(&batch_build->strings, group->labels[j].value);
        }
    }
}

/* The locations without the lines that drop_frames removes. */
static const struct profile_location *pruned_locations(const struct batch_build *batch_build)
{
    const struct profile *profile = batch_build->profile;
    struct profile_location *locations =
        arena_new_raw(profile->arena, struct profile_location, profile->location_count);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        locations[i] = profile->locations[i];
        const uint32_t removed = batch_build->prune.first_line[i] - locations[i].first_line;
        locations[i].first_line += removed;
        locations[i].line_count -= removed;
    }
    return locations;
}

static void make_tables(struct batch_build *batch_build)
{
    want_texts(batch_build);
    struct profile *tables = arena_new(batch_build->profile->arena, struct profile, 1);
    *tables = *batch_build->profile;
    tables->strings =
        batch_strings_finish(&batch_build->strings, batch_build->profile, &tables->string_count);
    if (batch_build->prune.marks)
        tables->locations = pruned_locations(batch_build);
    tables->sample_count = 0;
    tables->stack_start = NULL;
    tables->stack = NULL;
    tables->values = NULL;
    tables->label_start = NULL;
    tables->labels = NULL;
    batch_build->batch->tables = tables;
}

/* ---- samples ---- */

/* The stacks without the entries that drop_frames removes. */
static void make_pruned_stacks(struct batch_build *batch_build, uint64_t *start)
{
    const struct profile *profile = batch_build->profile;
    const uint64_t *old = profile->stack_start;
    uint32_t *stack = arena_new_raw(batch_build->batch->arena, uint32_t,
                                    (size_t)(old[profile->sample_count] - old[0]) + 1);
    uint64_t size = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const size_t depth = (size_t)(old[i + 1] - old[i]);
        const uint32_t *leaf_first = profile->stack + old[i];
        const size_t removed = prune_stack(&batch_build->prune, leaf_first, depth);
        memcpy(stack + size, leaf_first + removed, (depth - removed) * sizeof(*stack));
        start[i + 1] = size;
        size += depth - removed;
    }
    start[(size_t)profile->sample_count + 1] = size;
    batch_build->batch->stack = stack;
}

static void make_stacks(struct batch_build *batch_build)
{
    const struct profile *profile = batch_build->profile;
    struct batch *batch = batch_build->batch;
    uint64_t *start = arena_new_raw(batch->arena, uint64_t, (size_t)profile->sample_count + 2);
    start[0] = start[1] = 0;
    batch->stack_count = profile->sample_count + 1;
    batch->stack_start = start;
    batch->stack = profile->stack;
    if (batch_build->prune.marks && profile->sample_count)
        make_pruned_stacks(batch_build, start);
    else if (profile->sample_count)
        memcpy(start + 1, profile->stack_start,
               ((size_t)profile->sample_count + 1) * sizeof(*start));
}

/* The group of a sample. Snapshots have only group 0: a label value without samples is a
 * snapshot of 0, which could not be expressed if the label made a series. */
static uint32_t group_of(const struct batch_build *batch_build, uint32_t sample,
                         uint32_t value_type)
{
    const uint32_t *groups = batch_build->sample_labels.group_of_sample;
    return groups && batch_build->uses[value_type] == DELTA ? groups[sample] : 0;
}

static uint32_t set_of(const struct batch_build *batch_build, uint32_t sample, uint32_t value_type)
{
    const struct batch_sample_labels *labels = &batch_build->sample_labels;
    const uint32_t *sets = batch_build->uses[value_type] == DELTA ? labels->set_of_sample
                                                                  : labels->whole_set_of_sample;
    return sets ? sets[sample] : 0;
}

/* Whether all values of the type are 0 in the group, and the batch records that: as an idle time
 * or, for snapshots, which are in group 0 only, as 0. */
static bool is_idle(const struct batch_build *batch_build, uint32_t group, uint32_t value_type)
{
    const uint32_t type_count = batch_build->profile->value_type_count;
    if (batch_build->counts[(size_t)group * type_count + value_type])
        return false;
    if (batch_build->uses[value_type] == SNAPSHOT)
        return group == 0;
    return batch_build->uses[value_type] == DELTA && batch_build->is_in_group[group] &&
           !batch_build->leaves_idle;
}

static bool makes_series(const struct batch_build *batch_build, uint32_t group, uint32_t value_type)
{
    const uint32_t type_count = batch_build->profile->value_type_count;
    return batch_build->counts[(size_t)group * type_count + value_type] ||
           is_idle(batch_build, group, value_type);
}

static bool is_repeated(const struct batch_build *batch_build, uint32_t value_type)
{
    const struct profile_value_type *types = batch_build->profile->value_types;
    for (uint32_t i = 0; i < value_type; i++) {
        if (types[i].type == types[value_type].type &&
            span_equal(unit_of(batch_build, i), unit_of(batch_build, value_type)))
            return true;
    }
    return false;
}

static enum batch_kind find_kind(const struct batch_build *batch_build, uint32_t value_type)
{
    const struct span name = batch_type_name(batch_build->profile, batch_build->name, value_type);
    const enum batch_kind *declared = batch_build->source->kinds;
    return batch_type_kind(batch_build->profile, name, value_type,
                           declared ? declared[value_type] : BATCH_KIND_BY_RULE,
                           batch_build->is_ready);
}

/* Whether the values are the change of memory in use during a Go profile with a duration. They must
 * not be stored, because the series of the amount in use has the same name. Profiles of
 * requests that state a time (/ingest) do not count as such. */
static bool is_change_of_gauge(struct batch_build *batch_build, uint32_t value_type)
{
    const struct profile *profile = batch_build->profile;
    const struct span type = profile_string(profile, profile->value_types[value_type].type);
    if (batch_build->source->time_ns || !batch_type_is_go_delta(profile) ||
        !batch_type_is_gauge(batch_build->name, type))
        return false;
    if (!batch_build->notice)
        batch_build->notice = "gauges are left out: a profile of /debug/pprof with ?seconds=N has "
                              "their change; fetch them without it";
    return true;
}

static void find_uses(struct batch_build *batch_build)
{
    const struct profile *profile = batch_build->profile;
    batch_build->uses = arena_new(batch_build->scratch, enum use, profile->value_type_count);
    batch_build->kinds =
        arena_new(batch_build->scratch, enum batch_kind, profile->value_type_count);
    batch_build->factors = arena_new(batch_build->scratch, int64_t, profile->value_type_count);
    unit_print_decimals(UNIT_DECIMALS_MAX, batch_build->decimals_unit);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        batch_build->kinds[i] = find_kind(batch_build, i);
        if (!is_repeated(batch_build, i) && !is_change_of_gauge(batch_build, i))
            batch_build->uses[i] = batch_build->kinds[i] == BATCH_KIND_DELTA ? DELTA : SNAPSHOT;
        batch_build->factors[i] = unit_factor(profile_string(profile, profile->value_types[i].unit),
                                              unit_of(batch_build, i));
    }
}

/* Sets is_in_group. Group 0, of samples without any of the names, is the only one that may have no
 * samples. */
static void find_groups(struct batch_build *batch_build)
{
    const uint32_t *groups = batch_build->sample_labels.group_of_sample;
    const uint32_t group_count = batch_build->sample_labels.group_count;
    batch_build->is_in_group = arena_new(batch_build->scratch, bool, group_count);
    for (uint32_t i = groups ? 1 : 0; i < group_count; i++)
        batch_build->is_in_group[i] = true;
    for (uint32_t i = 0; groups && i < batch_build->profile->sample_count; i++)
        batch_build->is_in_group[0] |= groups[i] == 0;
}

static uint64_t count_series(const struct batch_build *batch_build)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < batch_build->sample_labels.group_count; i++) {
        for (uint32_t j = 0; j < batch_build->profile->value_type_count; j++)
            count += makes_series(batch_build, i, j);
    }
    return count;
}

/* Checks that the values fit int64 in the unit of the series. */
static enum err_code check_values(const struct batch_build *batch_build, uint32_t value_type,
                                  struct err *err)
{
    const struct profile *profile = batch_build->profile;
    const int64_t factor = batch_build->factors[value_type];
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

/* Counts the samples per group and type; 0 for types that are not stored. */
static enum err_code count_samples(struct batch_build *batch_build, struct err *err)
{
    const struct profile *profile = batch_build->profile;
    const uint32_t type_count = profile->value_type_count;
    const size_t cell_count = (size_t)batch_build->sample_labels.group_count * type_count;
    uint32_t *counts = arena_new(batch_build->scratch, uint32_t, cell_count);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const int64_t *values = profile->values + (size_t)i * type_count;
        for (uint32_t j = 0; j < type_count; j++)
            counts[(size_t)group_of(batch_build, i, j) * type_count + j] +=
                values[j] != 0 && batch_build->uses[j] != LEFT_OUT;
    }
    batch_build->counts = counts;
    find_groups(batch_build);
    uint64_t sample_count = 0, series_count = count_series(batch_build);
    for (size_t i = 0; i < cell_count; i++)
        sample_count += counts[i];
    if (series_count > batch_build->limits.series) {
        batch_build->leaves_idle = true;
        series_count = count_series(batch_build);
    }
    if (series_count > batch_build->limits.series)
        return err_set(err, ERR_TOO_LARGE, "%llu series in one profile; the limit is %u",
                       (unsigned long long)series_count, batch_build->limits.series);
    if (sample_count > UINT32_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than 2^32 values in one profile");
    batch_build->batch->sample_count = (uint32_t)sample_count;
    batch_build->batch->series_count = batch_build->batch->profile_count = (uint32_t)series_count;
    return ERR_NONE;
}

/* Turns counts into positions and copies the samples. Positions of types that are not stored are
 * unused. */
static void fill_samples(struct batch_build *batch_build)
{
    const struct profile *profile = batch_build->profile;
    const uint32_t type_count = profile->value_type_count;
    struct batch_sample *samples = arena_new_raw(batch_build->batch->arena, struct batch_sample,
                                                 batch_build->batch->sample_count);
    uint32_t *positions = batch_build->counts, next = 0;
    for (size_t i = 0; i < (size_t)batch_build->sample_labels.group_count * type_count; i++) {
        uint32_t count = positions[i];
        positions[i] = next;
        next += count;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const int64_t *values = profile->values + (size_t)i * type_count;
        for (uint32_t j = 0; j < type_count; j++) {
            if (values[j] == 0 || batch_build->uses[j] == LEFT_OUT)
                continue;
            uint32_t *position = &positions[(size_t)group_of(batch_build, i, j) * type_count + j];
            samples[(*position)++] =
                (struct batch_sample){.value = values[j] * batch_build->factors[j],
                                      .stack = i + 1,
                                      .label_set = set_of(batch_build, i, j)};
        }
    }
    batch_build->batch->samples = samples;
}

/* ---- rows ---- */

static struct profile_value_type clean_type(const struct batch_build *batch_build,
                                            struct profile_value_type type)
{
    struct span part;
    if (has_other_part(batch_build, type.type, &part))
        type.type = batch_strings_number(&batch_build->strings, part);
    if (has_other_part(batch_build, type.unit, &part))
        type.unit = batch_strings_number(&batch_build->strings, part);
    return type;
}

static void set_type(const struct batch_build *batch_build, uint32_t value_type,
                     struct batch_type *type)
{
    struct span name = batch_type_name(batch_build->profile, batch_build->name, value_type);
    type->name = batch_strings_number(&batch_build->strings, name);
    type->sample_type = clean_type(batch_build, batch_build->profile->value_types[value_type]);
    if (batch_build->factors[value_type] > 1)
        type->sample_type.unit =
            batch_strings_number(&batch_build->strings, unit_of(batch_build, value_type));
    type->period_type = clean_type(batch_build, batch_build->profile->period_type);
    type->kind = batch_build->kinds[value_type];
}

int64_t batch_own_time_ns(const struct profile *profile)
{
    return profile->time_ns < TIME_MIN_NS ? 0 : profile->time_ns;
}

static int64_t time_of(const struct batch_build *batch_build)
{
    const int64_t time_ns = batch_own_time_ns(batch_build->profile);
    return time_ns ? time_ns : batch_build->source->time_ns;
}

static int64_t duration_of(const struct batch_build *batch_build)
{
    const int64_t duration_ns = batch_build->profile->duration_ns;
    return duration_ns > 0 ? duration_ns : batch_build->source->duration_ns;
}

/* Whether the profile's time is the end of its duration: it is in the second half of the window
 * that the request states or, if the request states no time, Go measured the profile. */
static bool has_time_of_end(const struct batch_build *batch_build)
{
    const struct batch_source *source = batch_build->source;
    const int64_t time_ns = batch_own_time_ns(batch_build->profile);
    int64_t middle_ns;
    if (time_ns && source->time_ns && source->duration_ns > 0)
        return !__builtin_add_overflow(source->time_ns, source->duration_ns / 2, &middle_ns) &&
               time_ns > middle_ns;
    return time_ns && !source->time_ns && batch_type_is_go_delta(batch_build->profile);
}

/* A delta has the time at which its window begins, a snapshot that at which it was made. */
static void set_profile(const struct batch_build *batch_build, enum use use,
                        struct batch_profile *row)
{
    row->time_ns = time_of(batch_build);
    row->duration_ns = duration_of(batch_build);
    if (use == DELTA && row->duration_ns > 0 && row->duration_ns < row->time_ns &&
        has_time_of_end(batch_build))
        row->time_ns -= row->duration_ns;
    row->period = batch_build->profile->period;
}

/* Copies the labels of all groups; series of one group share them. */
static uint32_t *make_labels(struct batch_build *batch_build)
{
    uint32_t group_count = batch_build->groups.count;
    uint32_t *starts = arena_new(batch_build->scratch, uint32_t, group_count);
    size_t label_count = 0;
    for (uint32_t i = 0; i < group_count; i++) {
        starts[i] = (uint32_t)label_count;
        label_count += batch_build->groups.groups[i].label_count;
    }
    struct batch_label *labels =
        arena_new_raw(batch_build->batch->arena, struct batch_label, label_count);
    for (uint32_t i = 0; i < group_count; i++) {
        const struct batch_group *group = &batch_build->groups.groups[i];
        for (size_t j = 0; j < group->label_count; j++)
            labels[starts[i] + j] = (struct batch_label){
                .name = batch_strings_number(&batch_build->strings, group->labels[j].name),
                .value = batch_strings_number(&batch_build->strings, group->labels[j].value)};
    }
    batch_build->batch->series_labels = labels;
    batch_build->batch->series_label_count = (uint32_t)label_count;
    return starts;
}

static void make_rows(struct batch_build *batch_build)
{
    struct batch *batch = batch_build->batch;
    const uint32_t type_count = batch_build->profile->value_type_count;
    const uint32_t *label_starts = make_labels(batch_build);
    struct batch_series *series = arena_new(batch->arena, struct batch_series, batch->series_count);
    struct batch_profile *profiles =
        arena_new(batch->arena, struct batch_profile, batch->profile_count);
    uint32_t row = 0, first_sample = 0;
    for (uint32_t i = 0; i < batch_build->sample_labels.group_count; i++) {
        for (uint32_t j = 0; j < type_count; j++) {
            uint32_t count = batch_build->counts[(size_t)i * type_count + j];
            if (!makes_series(batch_build, i, j))
                continue;
            const uint32_t group =
                batch_build->uses[j] == SNAPSHOT ? batch_build->groups.snapshot_group : i;
            series[row].first_label = label_starts[group];
            series[row].label_count = (uint32_t)batch_build->groups.groups[group].label_count;
            set_type(batch_build, j, &series[row].type);
            set_profile(batch_build, batch_build->uses[j], &profiles[row]);
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

static enum err_code make_groups(struct batch_build *batch_build, struct err *err)
{
    struct batch_groups *groups = &batch_build->groups;
    *groups = (struct batch_groups){.scratch = batch_build->scratch,
                                    .source = batch_build->source,
                                    .options = batch_build->options,
                                    .limits = batch_build->limits,
                                    .split = &batch_build->sample_labels,
                                    .notice = batch_build->notice};
    const enum err_code code = batch_groups_make(groups, has_use(batch_build, SNAPSHOT), err);
    batch_build->notice = groups->notice;
    return code;
}

static enum err_code make_batch(struct batch_build *batch_build, struct err *err)
{
    const struct batch_options *options = batch_build->options;
    const struct profile *profile = batch_build->profile;
    if (profile->value_type_count > batch_build->limits.types)
        return err_set(err, ERR_TOO_LARGE, "%u types of values in one profile; the limit is %u",
                       profile->value_type_count, batch_build->limits.types);
    find_uses(batch_build);
    if (profile->value_type_count && !has_use(batch_build, DELTA) &&
        !has_use(batch_build, SNAPSHOT))
        return err_set(err, ERR_INVALID, "nothing can be stored: %s", batch_build->notice);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        enum err_code code = check_values(batch_build, i, err);
        if (code)
            return code;
    }
    const uint32_t name_count = has_use(batch_build, DELTA) ? options->series_label_count : 0;
    enum err_code code = batch_sample_labels_collect(
        profile, options->series_labels, name_count, has_use(batch_build, SNAPSHOT),
        batch_build->limits.series, &batch_build->sample_labels, err);
    if (code)
        return code;
    code = make_groups(batch_build, err);
    if (code)
        return code;
    code = count_samples(batch_build, err);
    if (code)
        return code;
    if (profile->drop_frames)
        prune_create(batch_build->scratch, profile, PRUNE_RECEIVE_CPU_MS, &batch_build->prune);
    if (batch_build->prune.has_failed && !batch_build->notice)
        batch_build->notice = "drop_frames or keep_frames is no usable regular expression, so no "
                              "frames were removed";
    if (batch_build->notice)
        batch_build->batch->notice = arena_strdup(batch_build->batch->arena, batch_build->notice);
    make_tables(batch_build);
    make_stacks(batch_build);
    make_rows(batch_build);
    fill_samples(batch_build);
    batch_build->batch->label_sets = batch_build->sample_labels.sets;
    batch_build->batch->label_set_count = batch_build->sample_labels.set_count;
    batch_build->batch->sample_labels = batch_build->sample_labels.labels;
    batch_build->batch->sample_label_count = batch_build->sample_labels.label_count;
    return ERR_NONE;
}

/* The name is a part of "name:type:unit:…" in all series names. */
static enum err_code check_name(const struct batch_build *batch_build, struct err *err)
{
    struct span name = batch_build->source->name;
    bool is_wrong = !span_is_utf8(name) || (name.size && memchr(name.data, ':', name.size));
    if (!is_wrong && name.size <= batch_build->limits.name_bytes)
        return ERR_NONE;
    return err_set(err, is_wrong ? ERR_INVALID : ERR_TOO_LARGE,
                   "'%.*s' is no name of a profile: UTF-8 without ':', at most %u bytes",
                   name.size > 100 ? 100 : (int)name.size, (const char *)name.data,
                   batch_build->limits.name_bytes);
}

static enum err_code check_time(const struct batch_build *batch_build, struct err *err)
{
    const int64_t time_ns = time_of(batch_build);
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
    struct batch_build batch_build = {.source = source,
                                      .profile = source->profile,
                                      .options = options ? options : &no_options,
                                      .scratch = scratch,
                                      .name = source->name,
                                      .is_ready = source->is_ready};
    batch_build.limits = batch_limits_resolve(batch_build.options->limits);
    if (batch_type_take_delta_prefix(&batch_build.name))
        batch_build.is_ready = true;
    if (batch_build.name.size == 0)
        batch_build.name = batch_type_derive_name(batch_build.profile, NULL);
    batch_build.name = batch_type_part(scratch, batch_build.name);
    batch_build.batch = arena_new(batch_build.profile->arena, struct batch, 1);
    batch_build.batch->arena = batch_build.profile->arena;
    enum err_code code = check_name(&batch_build, err);
    if (!code)
        code = check_time(&batch_build, err);
    if (!code)
        code = make_batch(&batch_build, err);
    batch_strings_fini(&batch_build.strings);
    if (code)
        return code;
    *ret_batch = batch_build.batch;
    return ERR_NONE;
}
