/* Writes a batch as one block. Rows are sorted by two counting sorts, since stacks and granules are
 * small numbers: about 30 ns per sample besides the dictionary. */
#include "store/block/block_write.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch.h"
#include "store/block/block_format.h"
#include "store/block/dictionary.h"

#include <stdlib.h>

#define HOUR_NS (3600 * INT64_C(1000000000))

struct granule {
    uint32_t first_profile; /* in order */
    uint32_t profile_count;
    uint32_t first_row;
    uint32_t row_count;
};

struct layout {
    const struct batch *batch;
    const struct dictionary_of_batch *dictionary;
    struct arena *scratch;
    uint32_t *profiles; /* the batch's, in order of series, hour and time */
    struct granule *granules;
    uint32_t granule_count;
    uint32_t *rows;     /* samples in order of granule, stack and ordinal */
    uint32_t *ordinals; /* per sample */
};

int32_t block_hour(int64_t time_ns)
{
    return (int32_t)(time_ns / HOUR_NS - (time_ns % HOUR_NS < 0));
}

/* ---- profiles ---- */

static int compare_profiles(const void *a, const void *b, void *context)
{
    const struct layout *layout = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct batch_profile *x = &layout->batch->profiles[i], *y = &layout->batch->profiles[j];
    const uint32_t series_of_x = layout->dictionary->series[x->series];
    const uint32_t series_of_y = layout->dictionary->series[y->series];
    if (series_of_x != series_of_y)
        return series_of_x < series_of_y ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (i > j) - (i < j);
}

static uint64_t weight_of(const struct batch *batch, const struct batch_profile *profile)
{
    const uint32_t first = profile->first_sample, end = first + profile->sample_count;
    const uint64_t timestamps =
        batch->timestamp_start ? batch->timestamp_start[end] - batch->timestamp_start[first] : 0;
    return block_weight(profile->sample_count, 1, timestamps);
}

/* weight: of the granule with this profile. */
static bool starts_granule(const struct layout *layout, uint32_t index, uint64_t weight)
{
    if (index == 0 || weight > BLOCK_GRANULE_WEIGHT)
        return true;
    const struct batch_profile *before = &layout->batch->profiles[layout->profiles[index - 1]];
    const struct batch_profile *profile = &layout->batch->profiles[layout->profiles[index]];
    const uint32_t *series = layout->dictionary->series;
    return series[before->series] != series[profile->series] ||
           block_hour(before->time_ns) != block_hour(profile->time_ns);
}

static void order_profiles(struct layout *layout)
{
    const uint32_t count = layout->batch->profile_count;
    layout->profiles = arena_new_raw(layout->scratch, uint32_t, count);
    layout->granules = arena_new(layout->scratch, struct granule, count);
    for (uint32_t i = 0; i < count; i++)
        layout->profiles[i] = i;
    qsort_r(layout->profiles, count, sizeof(*layout->profiles), compare_profiles, layout);
    uint64_t weight = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t added =
            weight_of(layout->batch, &layout->batch->profiles[layout->profiles[i]]);
        weight += added;
        if (starts_granule(layout, i, weight)) {
            layout->granules[layout->granule_count++].first_profile = i;
            weight = added;
        }
        layout->granules[layout->granule_count - 1].profile_count++;
    }
}

/* ---- rows ---- */

/* A stable counting sort of items by key[item], which is below key_count. */
static uint32_t *sort_by(struct arena *scratch, const uint32_t *items, uint32_t count,
                         const uint32_t *key, uint32_t key_count)
{
    uint32_t *next = arena_new(scratch, uint32_t, key_count + (size_t)1);
    uint32_t *sorted = arena_new_raw(scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        next[key[items[i]] + 1]++;
    for (uint32_t i = 0; i < key_count; i++)
        next[i + 1] += next[i];
    for (uint32_t i = 0; i < count; i++)
        sorted[next[key[items[i]]]++] = items[i];
    return sorted;
}

static void order_rows(struct layout *layout)
{
    const struct batch *batch = layout->batch;
    const uint32_t count = batch->sample_count;
    uint32_t *items = arena_new_raw(layout->scratch, uint32_t, count);
    uint32_t *stacks = arena_new_raw(layout->scratch, uint32_t, count);
    uint32_t *granules = arena_new_raw(layout->scratch, uint32_t, count);
    layout->ordinals = arena_new_raw(layout->scratch, uint32_t, count);
    uint32_t used = 0;
    for (uint32_t i = 0; i < layout->granule_count; i++) {
        struct granule *granule = &layout->granules[i];
        granule->first_row = used;
        for (uint32_t ordinal = 0; ordinal < granule->profile_count; ordinal++) {
            const struct batch_profile *profile =
                &batch->profiles[layout->profiles[granule->first_profile + ordinal]];
            for (uint32_t j = 0; j < profile->sample_count; j++) {
                const uint32_t sample = profile->first_sample + j;
                items[used++] = sample;
                layout->ordinals[sample] = ordinal;
                granules[sample] = i;
                stacks[sample] = layout->dictionary->stacks[batch->samples[sample].stack];
            }
        }
        granule->row_count = used - granule->first_row;
    }
    const uint32_t stack_count = layout->dictionary->dictionary.stacks.stack_count;
    items = sort_by(layout->scratch, items, used, stacks, stack_count);
    layout->rows = sort_by(layout->scratch, items, used, granules, layout->granule_count);
}

/* ---- one granule ---- */

static void fill_timestamps(const struct layout *layout, const struct granule *granule,
                            struct arena *arena, struct block_rows *rows)
{
    const struct batch *batch = layout->batch;
    uint32_t *counts = arena_new_raw(arena, uint32_t, granule->row_count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < granule->row_count; i++) {
        const uint32_t sample = layout->rows[granule->first_row + i];
        counts[i] = (uint32_t)(batch->timestamp_start[sample + 1] - batch->timestamp_start[sample]);
        total += counts[i];
    }
    int64_t *timestamps = arena_new_raw(arena, int64_t, total);
    uint64_t used = 0;
    for (uint32_t i = 0; i < granule->row_count; i++) {
        const uint32_t sample = layout->rows[granule->first_row + i];
        memcpy(timestamps + used, batch->timestamps + batch->timestamp_start[sample],
               counts[i] * sizeof(*timestamps));
        used += counts[i];
    }
    rows->timestamp_counts = counts;
    rows->timestamps = timestamps;
}

static struct block_profile *list_profiles(const struct layout *layout,
                                           const struct granule *granule, struct arena *arena)
{
    struct block_profile *profiles = arena_new(arena, struct block_profile, granule->profile_count);
    for (uint32_t i = 0; i < granule->profile_count; i++) {
        const struct batch_profile *profile =
            &layout->batch->profiles[layout->profiles[granule->first_profile + i]];
        profiles[i].time_ns = profile->time_ns;
        profiles[i].duration_ns = profile->duration_ns;
        profiles[i].period = profile->period;
    }
    return profiles;
}

static enum err_code append_granule(const struct layout *layout, const struct granule *granule,
                                    struct block_writer *writer, struct err *err)
{
    arena_auto arena = arena_create();
    const struct batch *batch = layout->batch;
    const struct batch_profile *first = &batch->profiles[layout->profiles[granule->first_profile]];
    const uint32_t count = granule->row_count;
    uint32_t *stacks = arena_new_raw(arena, uint32_t, count);
    uint32_t *ordinals = arena_new_raw(arena, uint32_t, count);
    uint32_t *label_sets = arena_new_raw(arena, uint32_t, count);
    int64_t *values = arena_new_raw(arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t sample = layout->rows[granule->first_row + i];
        stacks[i] = layout->dictionary->stacks[batch->samples[sample].stack];
        ordinals[i] = layout->ordinals[sample];
        label_sets[i] = batch->samples[sample].label_set;
        values[i] = batch->samples[sample].value;
    }
    struct block_rows rows = {
        .series = layout->dictionary->series[first->series],
        .hour = block_hour(first->time_ns),
        .profile_count = granule->profile_count,
        .row_count = count,
        .profiles = list_profiles(layout, granule, arena),
        .stacks = stacks,
        .ordinals = ordinals,
        .values = values,
        .label_sets = batch->label_set_count > 1 ? label_sets : NULL,
    };
    if (batch->timestamp_start)
        fill_timestamps(layout, granule, arena, &rows);
    return block_writer_append(writer, &rows, err);
}

/*
 * Estimates the block's size: a larger estimate wastes memory, a smaller one costs copies while the
 * block grows.
 */
static size_t estimate_bytes(const struct dictionary *dictionary, uint32_t sample_count)
{
    enum { OF_FRAME = 2, OF_LOCATION = 16, OF_SAMPLE = 12, OF_BLOCK = 8192 };
    const struct profile *tables = dictionary->tables;
    size_t bytes = OF_BLOCK + (size_t)dictionary->stacks.node_count * OF_FRAME +
                   (size_t)tables->location_count * OF_LOCATION + (size_t)sample_count * OF_SAMPLE;
    for (uint32_t i = 0; i < tables->string_count; i++)
        bytes += tables->strings[i].size / 2; /* the other half is shared with the string before */
    return bytes;
}

/*
 * A granule's sums are exact only below 2^63; larger batches are refused before anything is stored.
 */
static enum err_code check_sums(const struct batch *batch, struct err *err)
{
    uint64_t magnitude = 0;
    for (uint32_t i = 0; i < batch->sample_count; i++) {
        if (!profile_can_add(&magnitude, batch->samples[i].value))
            return err_set(
                err, ERR_TOO_LARGE,
                "the values of a batch add up to more than 2^63: send them in units that "
                "are less fine, or in several batches");
    }
    return ERR_NONE;
}

enum err_code block_write_batch(const struct batch *batch, int64_t tenant_id, int level,
                                struct buf *output, struct block_summary *ret_summary,
                                struct err *err)
{
    enum err_code code = check_sums(batch, err);
    if (code)
        return code;
    arena_auto arena = arena_create();
    struct dictionary_of_batch dictionary;
    code = dictionary_of_batch(arena, batch, &dictionary, err);
    if (code)
        return code;
    struct layout layout = {.batch = batch, .dictionary = &dictionary, .scratch = arena};
    order_profiles(&layout);
    order_rows(&layout);
    struct block_writer *writer = block_writer_create_in(
        tenant_id, level, output, estimate_bytes(&dictionary.dictionary, batch->sample_count));
    for (uint32_t i = 0; i < layout.granule_count && !code; i++)
        code = append_granule(&layout, &layout.granules[i], writer, err);
    if (!code)
        code = block_writer_finish(writer, &dictionary.dictionary, ret_summary, err);
    if (!code)
        block_writer_take(writer, output);
    block_writer_destroy(writer);
    return code;
}
