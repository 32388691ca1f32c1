#include "lib/profile/batch/batch_subset.h"

#include "lib/base/arena.h"

#include <string.h>

struct subset {
    const struct batch *from;
    struct batch *to;
    struct batch_profile *profiles;
    struct batch_sample *samples;
    uint64_t *timestamp_start; /* NULL: none */
    int64_t *timestamps;
    struct batch_series *series;
    uint32_t *numbers; /* new numbers of the series of from; UINT32_MAX: none yet */
};

static uint32_t number_series(struct subset *subset, uint32_t series)
{
    if (subset->numbers[series] == UINT32_MAX) {
        subset->series[subset->to->series_count] = subset->from->series[series];
        subset->numbers[series] = subset->to->series_count++;
    }
    return subset->numbers[series];
}

static void copy_sample(struct subset *subset, uint32_t sample)
{
    const struct batch *from = subset->from;
    const uint32_t index = subset->to->sample_count++;
    subset->samples[index] = from->samples[sample];
    if (!subset->timestamp_start)
        return;
    const uint64_t first = from->timestamp_start[sample];
    const uint64_t count = from->timestamp_start[sample + 1] - first;
    const uint64_t start = subset->timestamp_start[index];
    if (count)
        memcpy(subset->timestamps + start, from->timestamps + first,
               count * sizeof(*subset->timestamps));
    subset->timestamp_start[index + 1] = start + count;
}

static void copy_profile(struct subset *subset, const struct batch_profile *profile)
{
    struct batch_profile *copy = &subset->profiles[subset->to->profile_count++];
    *copy = *profile;
    copy->series = number_series(subset, profile->series);
    copy->first_sample = subset->to->sample_count;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        copy_sample(subset, profile->first_sample + i);
}

struct batch *batch_subset(struct batch *batch, const bool *keeps)
{
    struct arena *arena = batch->arena;
    struct batch *to = arena_new(arena, struct batch, 1);
    struct subset subset = {
        .from = batch,
        .to = to,
        .profiles = arena_new_raw(arena, struct batch_profile, batch->profile_count),
        .samples = arena_new_raw(arena, struct batch_sample, batch->sample_count),
        .series = arena_new_raw(arena, struct batch_series, batch->series_count),
        .numbers = arena_new_raw(arena, uint32_t, batch->series_count),
    };
    memset(subset.numbers, 0xff, batch->series_count * sizeof(*subset.numbers));
    if (batch->timestamp_start) {
        subset.timestamp_start = arena_new(arena, uint64_t, batch->sample_count + (size_t)1);
        subset.timestamps =
            arena_new_raw(arena, int64_t, batch->timestamp_start[batch->sample_count]);
    }
    *to = *batch;
    to->profile_count = to->sample_count = to->series_count = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        if (keeps[i])
            copy_profile(&subset, &batch->profiles[i]);
    }
    to->profiles = subset.profiles;
    to->samples = subset.samples;
    to->series = subset.series;
    to->timestamp_start = subset.timestamp_start;
    to->timestamps = subset.timestamps;
    return to;
}
