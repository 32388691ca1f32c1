#include "store/query/tree_rounding.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/frame_table.h"
#include "lib/profile/report/stack_sort.h"
#include "lib/profile/report/view_memory.h"

#include <stdlib.h>
#include <string.h>

int64_t tree_rounding_round(int64_t scaled, int scale_bits)
{
    const int64_t unit = INT64_C(1) << scale_bits, half = unit / 2 + (unit >> 20);
    return (scaled + (scaled < 0 ? -half : half)) / unit;
}

size_t tree_rounding_memory(const struct profile *profile)
{
    const uint32_t count = profile->sample_count;
    const size_t copies = (size_t)profile->stack_start[count] * sizeof(*profile->stack) +
                          profile->label_start[count] * sizeof(*profile->labels) +
                          count * (sizeof(*profile->values) + sizeof(*profile->stack_start));
    return (size_t)view_memory_bytes(profile, SPAN_LITERAL("function")) + copies;
}

static bool is_whole(int64_t scaled, int scale_bits)
{
    const int64_t unit = INT64_C(1) << scale_bits, nearly = unit >> 20;
    return ((scaled + nearly) & (unit - 1)) <= 2 * nearly;
}

/* Whether all values are whole already, as in a window with one snapshot or of whole intervals.
 * They need not be exact: weights were multiplied as floating-point numbers, which adds small
 * errors. */
static bool are_whole(const struct profile *profile, const int64_t *starts, int scale_bits)
{
    bool are = true;
    for (uint32_t i = 0; i < profile->sample_count && are; i++)
        are = is_whole(profile->values[i], scale_bits) &&
              (!starts || is_whole(starts[i], scale_bits));
    return are;
}

/* ---- the order of frames ---- */

static int compare_frames(const void *a, const void *b, void *context)
{
    const struct frame *frames = context;
    return span_compare(frames[*(const uint32_t *)a].name, frames[*(const uint32_t *)b].name);
}

/* The rank of each frame in the order of names. */
static uint32_t *rank_frames(struct arena *arena, const struct frame_table *table)
{
    uint32_t count;
    const struct frame *frames = frame_table_frames(table, &count);
    uint32_t *order = arena_new_raw(arena, uint32_t, count);
    uint32_t *ranks = arena_new_raw(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare_frames, (void *)(uintptr_t)frames);
    for (uint32_t i = 0; i < count; i++)
        ranks[order[i]] = i;
    return ranks;
}

/* ---- the order of labels ---- */

struct label_order {
    const struct profile *profile;
    const uint32_t *samples; /* per set of labels: a sample that has it */
};

static int compare_labels(const struct profile *profile, const struct profile_label *x,
                          const struct profile_label *y)
{
    int order = span_compare(profile_string(profile, x->key), profile_string(profile, y->key));
    if (!order)
        order = span_compare(profile_string(profile, x->text), profile_string(profile, y->text));
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int compare_sets(const void *a, const void *b, void *context)
{
    const struct label_order *label_order = context;
    const struct profile *profile = label_order->profile;
    const uint32_t x = label_order->samples[*(const uint32_t *)a];
    const uint32_t y = label_order->samples[*(const uint32_t *)b];
    uint32_t i = profile->label_start[x], j = profile->label_start[y];
    const uint32_t i_end = profile->label_start[x + 1], j_end = profile->label_start[y + 1];
    int order = 0;
    for (; i < i_end && j < j_end && !order; i++, j++)
        order = compare_labels(profile, &profile->labels[i], &profile->labels[j]);
    return order ? order : (i < i_end) - (j < j_end);
}

/* Per sample: the rank of its labels in the order of their texts. */
static uint32_t *rank_labels(struct arena *arena, const struct profile *profile)
{
    uint32_t *sets = arena_new_raw(arena, uint32_t, profile->sample_count);
    uint32_t *samples = arena_new_raw(arena, uint32_t, profile->sample_count);
    struct map_bytes numbers;
    uint32_t count = 0;
    map_bytes_init(&numbers, 16);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const uint32_t first = profile->label_start[i];
        const size_t bytes = (profile->label_start[i + 1] - first) * sizeof(struct profile_label);
        sets[i] = map_bytes_add(&numbers, span_of(profile->labels + first, bytes), count);
        if (sets[i] == count)
            samples[count++] = i;
    }
    map_bytes_fini(&numbers);
    const struct label_order label_order = {.profile = profile, .samples = samples};
    uint32_t *order = arena_new_raw(arena, uint32_t, count);
    uint32_t *ranks = arena_new_raw(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare_sets, (void *)(uintptr_t)&label_order);
    for (uint32_t i = 0; i < count; i++)
        ranks[order[i]] = i;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        sets[i] = ranks[sets[i]];
    return sets;
}

/* ---- the order of samples ---- */

static const uint32_t *first_lines(struct arena *arena, const struct profile *profile)
{
    uint32_t *first = arena_new_raw(arena, uint32_t, profile->location_count);
    for (uint32_t i = 0; i < profile->location_count; i++)
        first[i] = profile->locations[i].first_line;
    return first;
}

/* Writes the ranks of a stack's frames, root first, until there are max_depth; returns how many. */
static uint64_t write_frames(const struct profile *profile, uint32_t sample,
                             const struct frame_lists *lists, const uint32_t *ranks,
                             uint64_t max_depth, uint32_t *entries)
{
    uint64_t count = 0;
    for (uint64_t j = profile->stack_start[sample + 1]; j-- > profile->stack_start[sample];) {
        const uint32_t location = profile->stack[j];
        for (uint32_t k = lists->start[location]; k < lists->start[location + 1]; k++) {
            if (count == max_depth)
                return count;
            entries[count++] = ranks[lists->frames[k]];
        }
    }
    return count;
}

/* Stacks are cut as in a view: a profile of a few KB can have 65,536 frames per stack of 50,000
 * inlined calls each. Samples that differ only below the cut are rounded in any order. */
static enum err_code order_samples(struct arena *arena, const struct profile *profile,
                                   int64_t cpu_deadline_ns, uint32_t **ret_order, struct err *err)
{
    struct frame_table *table = frame_table_create(arena, VIEW_BY_FUNCTION);
    struct frame_lists lists;
    frame_table_add(table, profile, first_lines(arena, profile), NULL, &lists);
    const uint32_t *ranks = rank_frames(arena, table);
    const uint32_t *label_ranks = rank_labels(arena, profile);
    const uint32_t count = profile->sample_count;
    uint64_t *start = arena_new_raw(arena, uint64_t, count + (size_t)1);
    uint64_t entry_count, at = 0;
    const uint64_t max_depth = view_memory_depth(profile, &entry_count);
    uint32_t *entries = arena_new_raw(arena, uint32_t, (size_t)entry_count + count);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = at;
        entries[at++] = label_ranks[i];
        at += write_frames(profile, i, &lists, ranks, max_depth, entries + at);
    }
    start[count] = at;
    const struct view view = {.stack_count = count,
                              .stack_start = start,
                              .entries = entries,
                              .cpu_deadline_ns = cpu_deadline_ns};
    return stack_sort(arena, &view, ret_order, err);
}

/* ---- values ---- */

static void round_each(const struct profile *profile, const int64_t *starts, int scale_bits,
                       int64_t *values)
{
    for (uint32_t i = 0; i < profile->sample_count; i++)
        values[i] = tree_rounding_round(profile->values[i], scale_bits) -
                    (starts ? tree_rounding_round(starts[i], scale_bits) : 0);
}

static void round_in_order(const struct profile *profile, const int64_t *starts,
                           const uint32_t *order, int scale_bits, int64_t *values)
{
    int64_t sum = 0, start_sum = 0, rounded = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const uint32_t sample = order[i];
        sum += profile->values[sample];
        start_sum += starts ? starts[sample] : 0;
        const int64_t next =
            tree_rounding_round(sum, scale_bits) - tree_rounding_round(start_sum, scale_bits);
        values[sample] = next - rounded;
        rounded = next;
    }
}

/* Copies the samples that have a value. */
static void drop_zeros(struct profile *profile, const int64_t *values)
{
    struct arena *arena = profile->arena;
    uint32_t count = 0, label_count = 0;
    uint64_t entry_count = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        if (!values[i])
            continue;
        count++;
        entry_count += profile->stack_start[i + 1] - profile->stack_start[i];
        label_count += profile->label_start[i + 1] - profile->label_start[i];
    }
    uint64_t *stack_start = arena_new(arena, uint64_t, count + (size_t)1);
    uint32_t *stack = arena_new_raw(arena, uint32_t, (size_t)entry_count);
    int64_t *kept = arena_new_raw(arena, int64_t, count);
    uint32_t *label_start = arena_new(arena, uint32_t, count + (size_t)1);
    struct profile_label *labels = arena_new_raw(arena, struct profile_label, label_count);
    count = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        if (!values[i])
            continue;
        const uint64_t depth = profile->stack_start[i + 1] - profile->stack_start[i];
        const uint32_t own = profile->label_start[i + 1] - profile->label_start[i];
        if (depth)
            memcpy(stack + stack_start[count], profile->stack + profile->stack_start[i],
                   (size_t)depth * sizeof(*stack));
        if (own)
            memcpy(labels + label_start[count], profile->labels + profile->label_start[i],
                   own * sizeof(*labels));
        kept[count++] = values[i];
        stack_start[count] = stack_start[count - 1] + depth;
        label_start[count] = label_start[count - 1] + own;
    }
    profile->sample_count = count;
    profile->stack_start = stack_start;
    profile->stack = stack;
    profile->values = kept;
    profile->label_start = label_start;
    profile->labels = labels;
}

enum err_code tree_rounding_apply(struct profile *profile, const int64_t *starts, int scale_bits,
                                  int64_t cpu_deadline_ns, struct err *err)
{
    arena_auto scratch = arena_create();
    if (!profile->sample_count)
        return ERR_NONE;
    int64_t *values = arena_new_raw(profile->arena, int64_t, profile->sample_count);
    uint32_t zero_count = 0;
    if (are_whole(profile, starts, scale_bits)) {
        round_each(profile, starts, scale_bits, values);
    } else {
        uint32_t *order;
        enum err_code code = order_samples(scratch, profile, cpu_deadline_ns, &order, err);
        if (code)
            return code;
        round_in_order(profile, starts, order, scale_bits, values);
    }
    for (uint32_t i = 0; i < profile->sample_count; i++)
        zero_count += !values[i];
    if (zero_count)
        drop_zeros(profile, values);
    else
        profile->values = values;
    return ERR_NONE;
}
