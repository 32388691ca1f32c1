#include "store/maintain/block_merge.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/block/aggregation.h"
#include "store/block/block_format.h"
#include "store/block/dictionary_union.h"
#include "store/maintain/totals.h"

#include <stdlib.h>

/* A granule of an input, with its series and hour in the output. */
struct source {
    uint32_t series;
    int32_t hour;
    uint32_t input;
    const struct block_granule *granule;
    struct deletion_set_windows deleted; /* a copy of the windows of the series */
    bool are_totals;                     /* only totals of its hour are kept */
    bool is_whole;                       /* all of its profiles are wanted */
    bool is_lost;                        /* the granule cannot be read */
};

/* A profile of the current granule. */
struct gathered_profile {
    struct block_profile profile;
    uint32_t number; /* in the order in which they were read */
};

/* Rows of one output granule as they are read, unsorted. */
struct gathered {
    struct arena *arena;
    struct gathered_profile *profiles;
    uint32_t profile_count;
    uint32_t row_count;
    uint32_t *stacks;
    uint32_t *ordinals; /* numbers of profiles, before these are sorted */
    int64_t *values;
    uint32_t *label_sets;
    uint32_t *timestamp_counts;
    uint64_t *timestamp_starts;
    int64_t *timestamps;
    uint64_t timestamp_count;
    bool has_label_sets;
    bool are_totals; /* the output has only totals */
};

struct merging {
    const struct block *const *blocks;
    const struct block_merge_options *options;
    struct dictionary_union united;
    struct block_writer *writer;
    struct block_cursor *cursor;
    struct source *sources;
    uint32_t source_count;
    struct dictionary_use *uses; /* per block */
    struct arena *arena;
    struct err *err;
};

/* ---- which granules meet ---- */

static int compare_sources(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->hour != y->hour)
        return x->hour < y->hour ? -1 : 1;
    return (x->input > y->input) - (x->input < y->input);
}

/* Windows are found once per series: granules are in order of series. */
static enum err_code find_deleted(struct merging *merging, uint32_t input, uint32_t series,
                                  struct deletion_set_windows *windows)
{
    const struct block_merge_options *options = merging->options;
    struct deletion_set_windows found = {0};
    if (!options->deleted)
        return ERR_NONE;
    enum err_code code =
        deletion_set_find(options->deleted, &options->deletions[input],
                          block_dictionary(merging->blocks[input]), series, &found, merging->err);
    if (code)
        return code;
    *windows = found;
    windows->windows = arena_new(merging->arena, struct deletion_set_window, found.count);
    for (uint32_t i = 0; i < found.count; i++)
        windows->windows[i] = found.windows[i];
    return ERR_NONE;
}

/* A reduced granule of deltas has one sum: no part of it can be kept. */
static bool is_one_sum(const struct merging *merging, uint32_t input,
                       const struct block_granule *granule)
{
    const struct dictionary *dictionary = block_dictionary(merging->blocks[input]);
    return granule->flags & BLOCK_ARE_TOTALS &&
           aggregation_of_type(dictionary, granule->series) == STORE_SUM;
}

static enum err_code list_of_input(struct merging *merging, uint32_t input)
{
    const struct block_merge_options *options = merging->options;
    struct deletion_set_windows windows = {0};
    const uint32_t before = merging->source_count;
    uint32_t count, whole_count = 0, series = UINT32_MAX;
    enum err_code code = ERR_NONE;
    const struct block_granule *granules = block_granules(merging->blocks[input], &count);
    for (uint32_t i = 0; i < count && !code; i++) {
        const struct block_granule *granule = &granules[i];
        if (granule->end_ns < options->begin_ns || granule->begin_ns > options->last_ns)
            continue;
        if (granule->series != series) {
            series = granule->series;
            windows = (struct deletion_set_windows){0};
            code = find_deleted(merging, input, series, &windows);
        }
        if (code || deletion_set_has_all(&windows, granule->begin_ns, granule->end_ns))
            continue;
        const bool are_totals = deletion_set_has_only_totals(&windows, granule);
        if (is_one_sum(merging, input, granule) &&
            deletion_set_has_any(&windows, granule->begin_ns, granule->end_ns))
            continue;
        const bool is_cut = granule->begin_ns < options->begin_ns ||
                            granule->end_ns > options->last_ns ||
                            deletion_set_has_any(&windows, granule->begin_ns, granule->end_ns);
        merging->sources[merging->source_count++] = (struct source){
            .series = series, /* of the input, until the union exists */
            .hour = granule->hour,
            .input = input,
            .granule = granule,
            .deleted = windows,
            .is_whole = !is_cut,
            .are_totals = are_totals,
        };
        whole_count += !is_cut && !(are_totals && granule->flags & BLOCK_HAS_LABEL_SETS);
    }
    const bool must_count =
        options->losses || (options->deleted && options->deletions[input].count);
    struct dictionary_use *use = &merging->uses[input];
    if (merging->source_count == before)
        use->what = DICTIONARY_NONE;
    else
        use->what = whole_count == count && !must_count ? DICTIONARY_ALL : DICTIONARY_SOME;
    return code;
}

static enum err_code list_sources(struct merging *merging, uint32_t block_count)
{
    size_t most = 0;
    for (uint32_t i = 0; i < block_count; i++) {
        uint32_t count;
        block_granules(merging->blocks[i], &count);
        most += count;
    }
    merging->sources = arena_new(merging->arena, struct source, most);
    merging->uses = arena_new(merging->arena, struct dictionary_use, block_count);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < block_count && !code; i++)
        code = list_of_input(merging, i);
    return code;
}

static void order_sources(struct merging *merging)
{
    for (uint32_t i = 0; i < merging->source_count; i++) {
        struct source *source = &merging->sources[i];
        source->series = merging->united.inputs[source->input].series[source->series];
    }
    qsort(merging->sources, merging->source_count, sizeof(struct source), compare_sources);
}

static bool is_wanted(const struct merging *merging, const struct source *source,
                      const struct block_profile *profile)
{
    return profile->time_ns >= merging->options->begin_ns &&
           profile->time_ns <= merging->options->last_ns &&
           !deletion_set_has_any(&source->deleted, profile->time_ns, profile->time_ns);
}

/* ---- the parts of the dictionaries that the output needs ---- */

/* The stacks of a whole granule are in its totals. */
static enum err_code note_totals(const struct merging *merging, const struct source *source,
                                 struct dictionary_use *use)
{
    struct block_totals totals;
    enum err_code code = block_read_totals(merging->blocks[source->input], source->granule,
                                           merging->cursor, &totals, merging->err);
    if (code)
        return code;
    use->series[source->series] = true;
    for (uint32_t i = 0; i < totals.count; i++)
        use->stacks[totals.stacks[i]] = true;
    return ERR_NONE;
}

static enum err_code note_rows(const struct merging *merging, const struct source *source,
                               struct dictionary_use *use)
{
    struct block_rows rows;
    enum err_code code = block_read_rows(merging->blocks[source->input], source->granule,
                                         merging->cursor, true, &rows, merging->err);
    if (code)
        return code;
    for (uint32_t i = 0; i < rows.profile_count; i++)
        use->series[source->series] |= is_wanted(merging, source, &rows.profiles[i]);
    for (uint32_t i = 0; i < rows.row_count; i++) {
        if (!is_wanted(merging, source, &rows.profiles[rows.ordinals[i]]))
            continue;
        use->stacks[rows.stacks[i]] = true;
        if (rows.label_sets && !source->are_totals)
            use->label_sets[rows.label_sets[i]] = true;
    }
    return ERR_NONE;
}

static enum err_code mark_used(const struct merging *merging, const struct source *source)
{
    struct dictionary_use *use = &merging->uses[source->input];
    if (use->what == DICTIONARY_ALL)
        return ERR_NONE;
    if (source->is_whole && !merging->options->losses &&
        (source->are_totals || !(source->granule->flags & BLOCK_HAS_LABEL_SETS)))
        return note_totals(merging, source, use);
    return note_rows(merging, source, use);
}

/* Finds which names, labels and stacks the output needs, so that it contains none of deleted
 * profiles or of other outputs. The rows of partly wanted inputs are read once more for this. */
static enum err_code find_uses(const struct merging *merging, uint32_t block_count)
{
    for (uint32_t i = 0; i < block_count; i++) {
        const struct dictionary *dictionary = block_dictionary(merging->blocks[i]);
        struct dictionary_use *use = &merging->uses[i];
        if (use->what != DICTIONARY_SOME)
            continue;
        use->stacks = arena_new(merging->arena, bool, dictionary->stacks.stack_count);
        use->label_sets = arena_new(merging->arena, bool, dictionary->label_set_count);
        use->series = arena_new(merging->arena, bool, dictionary->series_count);
    }
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < merging->source_count && !code; i++) {
        struct source *source = &merging->sources[i];
        struct block_losses *losses = merging->options->losses;
        code = mark_used(merging, source);
        if (!losses || !(code == ERR_CORRUPT || (code == ERR_IO && merging->err->is_unreadable)))
            continue;
        if (code == ERR_IO)
            losses->failure = *merging->err;
        source->is_lost = true;
        losses->profile_count += source->granule->profile_count;
        losses->row_count += source->granule->row_count;
        code = ERR_NONE;
    }
    return code;
}

/* Reading shows that a granule contains only deleted profiles. */
static void remove_empty_sources(struct merging *merging)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < merging->source_count; i++) {
        const struct source *source = &merging->sources[i];
        const struct dictionary_use *use = &merging->uses[source->input];
        if (!source->is_lost && (use->what == DICTIONARY_ALL || use->series[source->series]))
            merging->sources[kept++] = *source;
    }
    merging->source_count = kept;
}

/* ---- gathering ---- */

static void reserve(struct gathered *gathered, const struct source *sources, uint32_t count)
{
    uint64_t rows = 0, profiles = 0, timestamps = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += sources[i].granule->row_count;
        profiles += sources[i].granule->profile_count;
        timestamps += sources[i].granule->timestamp_count;
    }
    gathered->profiles = arena_new_raw(gathered->arena, struct gathered_profile, profiles);
    gathered->stacks = arena_new_raw(gathered->arena, uint32_t, rows);
    gathered->ordinals = arena_new_raw(gathered->arena, uint32_t, rows);
    gathered->values = arena_new_raw(gathered->arena, int64_t, rows);
    gathered->label_sets = arena_new_raw(gathered->arena, uint32_t, rows);
    if (timestamps) {
        gathered->timestamp_counts = arena_new_raw(gathered->arena, uint32_t, rows);
        gathered->timestamp_starts = arena_new_raw(gathered->arena, uint64_t, rows);
        gathered->timestamps = arena_new_raw(gathered->arena, int64_t, timestamps);
    }
}

static void gather_timestamps(struct gathered *gathered, const struct block_rows *rows,
                              uint32_t row, uint64_t at)
{
    if (!gathered->timestamps)
        return;
    const uint32_t count = rows->timestamp_counts ? rows->timestamp_counts[row] : 0;
    gathered->timestamp_counts[gathered->row_count] = count;
    gathered->timestamp_starts[gathered->row_count] = gathered->timestamp_count;
    if (count)
        memcpy(gathered->timestamps + gathered->timestamp_count, rows->timestamps + at,
               count * sizeof(*rows->timestamps));
    gathered->timestamp_count += count;
}

static void gather_rows(const struct merging *merging, const struct source *source,
                        const struct block_rows *rows, struct gathered *gathered)
{
    const struct dictionary_numbers *numbers = &merging->united.inputs[source->input];
    arena_auto scratch = arena_create();
    uint32_t *number_of_ordinal = arena_new(scratch, uint32_t, rows->profile_count);
    for (uint32_t i = 0; i < rows->profile_count; i++) {
        number_of_ordinal[i] = UINT32_MAX;
        if (!is_wanted(merging, source, &rows->profiles[i]))
            continue;
        number_of_ordinal[i] = gathered->profile_count;
        gathered->profiles[gathered->profile_count] = (struct gathered_profile){
            .profile = rows->profiles[i], .number = gathered->profile_count};
        gathered->profile_count++;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t number = number_of_ordinal[rows->ordinals[i]];
        if (number != UINT32_MAX) {
            const uint32_t row = gathered->row_count;
            gathered->stacks[row] = numbers->stacks[rows->stacks[i]];
            gathered->ordinals[row] = number;
            gathered->values[row] = rows->values[i];
            gathered->label_sets[row] = rows->label_sets && !source->are_totals
                                            ? numbers->label_sets[rows->label_sets[i]]
                                            : 0;
            gathered->has_label_sets |= gathered->label_sets[row] != 0;
            gather_timestamps(gathered, rows, i, at);
            gathered->row_count++;
        }
        at += rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
    }
}

/* ---- in order ---- */

static int compare_profiles(const void *a, const void *b)
{
    const struct gathered_profile *x = a, *y = b;
    if (x->profile.time_ns != y->profile.time_ns)
        return x->profile.time_ns < y->profile.time_ns ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sorts profiles by time; ordinals of rows become the new positions. */
static struct block_profile *order_profiles(struct gathered *gathered)
{
    const uint32_t count = gathered->profile_count;
    struct block_profile *profiles = arena_new_raw(gathered->arena, struct block_profile, count);
    uint32_t *ordinal_of_number = arena_new_raw(gathered->arena, uint32_t, count);
    qsort(gathered->profiles, count, sizeof(*gathered->profiles), compare_profiles);
    for (uint32_t i = 0; i < count; i++) {
        profiles[i] = gathered->profiles[i].profile;
        ordinal_of_number[gathered->profiles[i].number] = i;
    }
    for (uint32_t i = 0; i < gathered->row_count; i++)
        gathered->ordinals[i] = ordinal_of_number[gathered->ordinals[i]];
    return profiles;
}

struct keyed_row {
    uint64_t key; /* stack and ordinal */
    uint32_t row;
};

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Radix sort from the lowest byte, skipping bytes that all keys share. */
static struct keyed_row *sort_rows(struct arena *arena, struct keyed_row *rows, uint32_t count)
{
    struct keyed_row *other = arena_new_raw(arena, struct keyed_row, count);
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all |= rows[i].key;
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += DIGIT_BITS) {
        uint32_t next[DIGITS + 1] = {0};
        if (!(all >> shift & (DIGITS - 1)))
            continue;
        for (uint32_t i = 0; i < count; i++)
            next[(rows[i].key >> shift & (DIGITS - 1)) + 1]++;
        for (uint32_t i = 0; i < DIGITS; i++)
            next[i + 1] += next[i];
        for (uint32_t i = 0; i < count; i++)
            other[next[rows[i].key >> shift & (DIGITS - 1)]++] = rows[i];
        struct keyed_row *swapped = rows;
        rows = other;
        other = swapped;
    }
    return rows;
}

static const struct keyed_row *order_rows(struct gathered *gathered)
{
    struct keyed_row *rows = arena_new_raw(gathered->arena, struct keyed_row, gathered->row_count);
    for (uint32_t i = 0; i < gathered->row_count; i++)
        rows[i] = (struct keyed_row){
            .key = (uint64_t)gathered->stacks[i] << 32 | gathered->ordinals[i], .row = i};
    return sort_rows(gathered->arena, rows, gathered->row_count);
}

static void order_timestamps(const struct gathered *gathered, const struct keyed_row *order,
                             struct block_rows *rows)
{
    uint32_t *counts = arena_new_raw(gathered->arena, uint32_t, gathered->row_count);
    int64_t *timestamps = arena_new_raw(gathered->arena, int64_t, gathered->timestamp_count);
    uint64_t at = 0;
    for (uint32_t i = 0; i < gathered->row_count; i++) {
        const uint32_t row = order[i].row;
        counts[i] = gathered->timestamp_counts[row];
        memcpy(timestamps + at, gathered->timestamps + gathered->timestamp_starts[row],
               counts[i] * sizeof(*timestamps));
        at += counts[i];
    }
    rows->timestamp_counts = counts;
    rows->timestamps = timestamps;
}

static enum err_code write_gathered(struct merging *merging, const struct source *source,
                                    struct gathered *gathered)
{
    const uint32_t count = gathered->row_count;
    struct block_profile *profiles = order_profiles(gathered);
    const struct keyed_row *order = order_rows(gathered);
    uint32_t *stacks = arena_new_raw(gathered->arena, uint32_t, count);
    uint32_t *ordinals = arena_new_raw(gathered->arena, uint32_t, count);
    uint32_t *label_sets = arena_new_raw(gathered->arena, uint32_t, count);
    int64_t *values = arena_new_raw(gathered->arena, int64_t, count);
    uint64_t magnitude = 0;
    bool is_exact = true;
    for (uint32_t i = 0; i < count; i++) {
        stacks[i] = (uint32_t)(order[i].key >> 32);
        ordinals[i] = (uint32_t)order[i].key;
        label_sets[i] = gathered->label_sets[order[i].row];
        values[i] = gathered->values[order[i].row];
        is_exact = is_exact && profile_can_add(&magnitude, values[i]);
    }
    if (!is_exact)
        return err_set(merging->err, ERR_TOO_LARGE,
                       "the values of one series and hour add up to more than 2^63");
    struct block_rows rows = {
        .series = source->series,
        .hour = source->hour,
        .profile_count = gathered->profile_count,
        .row_count = count,
        .profiles = profiles,
        .stacks = stacks,
        .ordinals = ordinals,
        .values = values,
        .label_sets = gathered->has_label_sets ? label_sets : NULL,
    };
    if (gathered->are_totals)
        totals_reduce(gathered->arena,
                      aggregation_of_type(&merging->united.dictionary, source->series), &rows);
    else if (gathered->timestamps)
        order_timestamps(gathered, order, &rows);
    return block_writer_append(merging->writer, &rows, merging->err);
}

/* Merges sources of one series and hour into a granule. */
static enum err_code merge_granule(struct merging *merging, const struct source *sources,
                                   uint32_t count)
{
    arena_auto arena = arena_create();
    struct gathered gathered = {.arena = arena};
    reserve(&gathered, sources, count);
    for (uint32_t i = 0; i < count; i++) {
        struct block_rows rows;
        enum err_code code = block_read_rows(merging->blocks[sources[i].input], sources[i].granule,
                                             merging->cursor, true, &rows, merging->err);
        if (code)
            return code;
        gathered.are_totals |= sources[i].are_totals;
        gather_rows(merging, &sources[i], &rows, &gathered);
    }
    return gathered.profile_count ? write_gathered(merging, sources, &gathered) : ERR_NONE;
}

/* The end of the sources, from first on, that become one granule. */
static uint32_t find_granule(const struct merging *merging, uint32_t first)
{
    const struct source *sources = merging->sources;
    uint64_t weight = 0;
    uint32_t end = first;
    for (; end < merging->source_count && sources[end].series == sources[first].series &&
           sources[end].hour == sources[first].hour;
         end++) {
        const struct block_granule *granule = sources[end].granule;
        weight +=
            block_weight(granule->row_count, granule->profile_count, granule->timestamp_count);
        if (end > first && weight > BLOCK_GRANULE_WEIGHT)
            break;
    }
    return end;
}

static enum err_code merge_series(struct merging *merging, struct block_summary *ret_summary)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < merging->source_count && !code;) {
        const struct source *first = &merging->sources[i];
        const uint32_t end = find_granule(merging, i);
        code = merge_granule(merging, first, end - i);
        i = end;
    }
    if (code)
        return code;
    return block_writer_finish(merging->writer, &merging->united.dictionary, ret_summary,
                               merging->err);
}

static enum err_code unite_and_merge(struct merging *merging, uint32_t block_count,
                                     struct block_summary *ret_summary)
{
    enum err_code code = find_uses(merging, block_count);
    if (code)
        return code;
    remove_empty_sources(merging);
    if (!merging->source_count) {
        *ret_summary = (struct block_summary){0};
        return ERR_NONE;
    }
    code = dictionary_union_create(merging->arena, merging->blocks, block_count, merging->uses,
                                   &merging->united, merging->err);
    if (code)
        return code;
    order_sources(merging);
    return merge_series(merging, ret_summary);
}

enum err_code block_merge(const struct block *const *blocks, uint32_t block_count,
                          const struct block_merge_options *options,
                          struct block_summary *ret_summary, struct err *err)
{
    arena_auto arena = arena_create();
    struct merging merging = {.blocks = blocks, .options = options, .arena = arena, .err = err};
    enum err_code code = list_sources(&merging, block_count);
    if (code)
        return code;
    merging.writer = block_writer_create(options->tenant_id, options->level, options->sink);
    merging.cursor = block_cursor_create();
    code = unite_and_merge(&merging, block_count, ret_summary);
    block_cursor_destroy(merging.cursor);
    block_writer_destroy(merging.writer);
    return code;
}
