#include "store/execute.h"

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "store/block_read.h"
#include "store/catalogue.h"
#include "store/differences.h"
#include "store/open_blocks.h"
#include "store/rule.h"
#include "store/selector.h"
#include "store/stack_union.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MEMORY_DEFAULT = 1 << 30, TYPES_MAX = 64, NAME_MAX_BYTES = 4096 };

/* One granule that the question touches. */
struct task {
    const struct block *block;
    const struct block_granule *granule;
    uint32_t series; /* of the question, whichever blocks it is in */
    uint32_t first;  /* ordinals first <= o < end */
    uint32_t end;
    bool is_broken; /* it was to be read and could not: the answer is without it */
};

struct merge {
    struct open_blocks *blocks;
    struct arena *arena;
    const struct store_query *query;
    struct selector *selector;
    struct flight_entry **entries; /* of open blocks in use */
    uint32_t entry_count;
    struct task *tasks;
    uint32_t task_count;
    uint32_t task_capacity;
    struct map_bytes types; /* whole names of those that match */
    const char *type_names[TYPES_MAX];
    const struct block *type_block; /* the first with a match, and the series there */
    uint32_t type_series;
    struct map_bytes series;  /* by type and labels */
    uint64_t *profile_counts; /* per series: profiles in the window */
    uint32_t series_capacity;
    struct store_statistics statistics;
    int64_t first_ns; /* of the profiles in the window */
    int64_t last_ns;
    int64_t duration_ns; /* sum */
    int64_t period;
    struct block_cursor *cursor;
    struct err *err;
};

/* What cannot be read harms nobody else: the answer is without it, and says so. */
static enum err_code pass_over(struct merge *merge, enum err_code code)
{
    if (code != ERR_CORRUPT)
        return code;
    if (merge->statistics.broken_count++ == 0)
        merge->statistics.broken_message = arena_strdup(merge->arena, merge->err->message);
    return ERR_NONE;
}

/* ---- which series ---- */

static void append_text(struct buf *text, const struct dictionary *dictionary, uint32_t string)
{
    buf_append_span(text, dictionary->tables->strings[string]);
    buf_append_byte(text, 0);
}

/* Type and labels as bytes that no other series has. */
static struct span series_key(struct merge *merge, const struct dictionary *dictionary,
                              uint32_t index)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    const struct batch_series *series = &dictionary->series[index];
    selector_append_type(dictionary, &series->type, &text);
    buf_append_byte(&text, 0);
    for (uint32_t i = 0; i < series->label_count; i++) {
        append_text(&text, dictionary, dictionary->series_labels[series->first_label + i].name);
        append_text(&text, dictionary, dictionary->series_labels[series->first_label + i].value);
    }
    return span_of(arena_strndup(merge->arena, text.data, text.size), text.size);
}

static uint32_t number_series(struct merge *merge, const struct dictionary *dictionary,
                              uint32_t index)
{
    const uint32_t number =
        map_bytes_add(&merge->series, series_key(merge, dictionary, index), merge->series.count);
    if (number == merge->series_capacity) {
        merge->series_capacity = merge->series_capacity ? merge->series_capacity * 2 : 64;
        merge->profile_counts =
            mem_resize(merge->profile_counts, merge->series_capacity, sizeof(uint64_t));
    }
    if (number + 1 == merge->series.count && number == merge->statistics.series_count) {
        merge->profile_counts[number] = 0;
        merge->statistics.series_count++;
    }
    return number;
}

/* All series of one answer are of one type. */
static void note_type(struct merge *merge, const struct block *block, uint32_t series)
{
    const struct dictionary *dictionary = block_dictionary(block);
    buf_auto text;
    buf_init(&text, NAME_MAX_BYTES);
    selector_append_type(dictionary, &dictionary->series[series].type, &text);
    if (map_bytes_find(&merge->types, buf_span(&text)) != MAP_ABSENT ||
        merge->types.count == TYPES_MAX)
        return;
    const char *name = arena_strndup(merge->arena, text.data, text.size);
    merge->type_names[merge->types.count] = name;
    map_bytes_add(&merge->types, span_of(name, text.size), merge->types.count);
    if (!merge->type_block) {
        merge->type_block = block;
        merge->type_series = series;
    }
}

static enum err_code check_types(const struct merge *merge)
{
    if (merge->types.count <= 1)
        return ERR_NONE;
    buf_auto list;
    buf_init(&list, ERR_MESSAGE_BYTES / 2);
    for (uint32_t i = 0; i < merge->types.count; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", merge->type_names[i]);
    return err_set(merge->err, ERR_INVALID,
                   "query: %" PRIu32 " profile types match, ask for one of them: %.*s",
                   merge->types.count, SPAN_PRINT(buf_span(&list)));
}

/* ---- which granules ---- */

static void add_task(struct merge *merge, const struct task *task)
{
    if (merge->task_count == merge->task_capacity) {
        merge->task_capacity = merge->task_capacity ? merge->task_capacity * 2 : 256;
        merge->tasks = mem_resize(merge->tasks, merge->task_capacity, sizeof(*merge->tasks));
    }
    merge->tasks[merge->task_count++] = *task;
    merge->profile_counts[task->series] += task->end - task->first;
    merge->statistics.profile_count += task->end - task->first;
}

/* The first ordinal whose profile begins at moment or later. */
static uint32_t find_ordinal(const struct block_profile *profiles, uint32_t count, int64_t moment)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (profiles[middle].time_ns < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void note_time(struct merge *merge, int64_t first_ns, int64_t last_ns)
{
    merge->first_ns = first_ns < merge->first_ns ? first_ns : merge->first_ns;
    merge->last_ns = last_ns > merge->last_ns ? last_ns : merge->last_ns;
}

static enum err_code look_at_granule(struct merge *merge, struct task *task)
{
    const struct store_query *query = merge->query;
    const struct block_granule *granule = task->granule;
    task->first = 0;
    task->end = granule->profile_count;
    if (granule->begin_ns >= query->start_ns && granule->end_ns < query->end_ns) {
        note_time(merge, granule->begin_ns, granule->end_ns);
        add_task(merge, task);
        return ERR_NONE;
    }
    const struct block_profile *profiles;
    enum err_code code =
        block_read_profiles(task->block, granule, merge->cursor, &profiles, merge->err);
    if (code)
        return pass_over(merge, code);
    task->first = find_ordinal(profiles, granule->profile_count, query->start_ns);
    task->end = find_ordinal(profiles, granule->profile_count, query->end_ns);
    if (task->first < task->end) {
        note_time(merge, profiles[task->first].time_ns, profiles[task->end - 1].time_ns);
        add_task(merge, task);
    }
    return ERR_NONE;
}

/* Granules are in order of series: what a series is to the question is found once. */
static enum err_code look_at_block(struct merge *merge, const struct block *block,
                                   bool *ret_is_used)
{
    const struct dictionary *dictionary = block_dictionary(block);
    struct task task = {.block = block};
    uint32_t count, looked_at = UINT32_MAX;
    bool matches = false;
    enum err_code code = ERR_NONE;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count && !code; i++) {
        const struct block_granule *granule = &granules[i];
        if (granule->end_ns < merge->query->start_ns || granule->begin_ns >= merge->query->end_ns)
            continue;
        if (granule->series != looked_at) {
            looked_at = granule->series;
            code = selector_matches(merge->selector, dictionary, looked_at, &matches, merge->err);
            if (!code && matches) {
                note_type(merge, block, looked_at);
                task.series = number_series(merge, dictionary, looked_at);
            }
        }
        if (code || !matches)
            continue;
        *ret_is_used = true;
        task.granule = granule;
        code = look_at_granule(merge, &task);
    }
    return code;
}

static enum err_code look_at_places(struct merge *merge, const struct catalogue_place *places,
                                    uint32_t count)
{
    merge->entries = arena_new(merge->arena, struct flight_entry *, count);
    for (uint32_t i = 0; i < count; i++) {
        struct flight_entry *entry;
        bool is_used = false;
        enum err_code code =
            open_blocks_ref(merge->blocks, merge->query->tenant_id, &places[i], &entry, merge->err);
        if (code == ERR_CORRUPT) {
            code = pass_over(merge, code);
            continue;
        }
        if (code)
            return code;
        code = look_at_block(merge, open_blocks_get(entry), &is_used);
        if (code || !is_used)
            flight_cache_unref(entry);
        else
            merge->entries[merge->entry_count++] = entry;
        if (code)
            return code;
        merge->statistics.block_count += is_used;
    }
    return ERR_NONE;
}

/* ---- the sums ---- */

static enum err_code check_limits(const struct merge *merge, const struct stack_union *stacks)
{
    const struct store_query *query = merge->query;
    const size_t most = query->max_memory ? query->max_memory : MEMORY_DEFAULT;
    if (stack_union_memory(stacks) > most)
        return err_set(merge->err, ERR_TOO_LARGE,
                       "this question needs more than %zu MiB of memory: ask for fewer series or "
                       "less time",
                       most >> 20);
    if (query->cpu_deadline_ns && clock_thread_cpu_ns() > query->cpu_deadline_ns)
        return err_set(merge->err, ERR_TOO_LARGE,
                       "this question takes too long: ask for fewer series or less time");
    return ERR_NONE;
}

static enum err_code check_magnitude(const struct merge *merge)
{
    uint64_t magnitude = 0;
    for (uint32_t i = 0; i < merge->task_count; i++) {
        magnitude += merge->tasks[i].granule->magnitude;
        if (magnitude >= INT64_MAX)
            return err_set(
                merge->err, ERR_TOO_LARGE,
                "the values add up to more than 2^63: ask for fewer series or less time");
    }
    return ERR_NONE;
}

/* A task was read, or could not be. */
static enum err_code note_read(struct merge *merge, struct task *task, uint64_t bytes,
                               enum err_code code)
{
    const uint32_t profile_count = task->end - task->first;
    struct store_statistics *statistics = &merge->statistics;
    if (!code) {
        statistics->granule_count++;
        statistics->row_count += task->granule->row_count;
        statistics->bytes_read += bytes;
    } else if (code == ERR_CORRUPT) {
        task->is_broken = true;
        merge->profile_counts[task->series] -= profile_count;
        statistics->profile_count -= profile_count;
    }
    return pass_over(merge, code);
}

static enum err_code add_granule(struct merge *merge, struct task *task, int64_t *sums)
{
    const struct block_granule *granule = task->granule;
    const bool is_whole = task->end - task->first == granule->profile_count;
    const uint32_t *bytes = granule->extent_bytes;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code =
        is_whole ? block_add_totals(task->block, granule, merge->cursor, sums, merge->err)
                 : block_add_range(task->block, granule, merge->cursor, task->first, task->end,
                                   sums, merge->err);
    return note_read(merge, task, bytes[BLOCK_TOTALS] + (is_whole ? 0 : bytes[BLOCK_ROWS]), code);
}

/* Tasks of one block and one column go to one array of sums first: the look-ups by hash are per
 * stack of the block, not per granule. */
static enum err_code add_tasks(struct merge *merge, struct stack_union *stacks,
                               const uint32_t *column_of_series)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < merge->task_count && !code;) {
        const struct block *block = merge->tasks[i].block;
        const uint32_t column = column_of_series ? column_of_series[merge->tasks[i].series] : 0;
        arena_auto scratch = arena_create();
        int64_t *sums = arena_new(scratch, int64_t, block_dictionary(block)->stacks.stack_count);
        for (; i < merge->task_count && !code && merge->tasks[i].block == block &&
               (!column_of_series || column_of_series[merge->tasks[i].series] == column);
             i++)
            code = add_granule(merge, &merge->tasks[i], sums);
        if (!code) {
            stack_union_add(stacks, block, sums, column);
            code = check_limits(merge, stacks);
        }
    }
    return code;
}

/* ---- means ---- */

/* Series with equally many snapshots share a column: their sums are divided together. */
static uint32_t find_columns(struct merge *merge, uint32_t *column_of_series,
                             uint64_t *divisor_of_column)
{
    struct map_u64 columns = {0};
    for (uint32_t i = 0; i < merge->series.count; i++) {
        const uint32_t column = map_u64_add(&columns, merge->profile_counts[i], columns.count);
        column_of_series[i] = column;
        divisor_of_column[column] = merge->profile_counts[i];
    }
    const uint32_t count = columns.count;
    map_u64_fini(&columns);
    return count;
}

/*
 * The sum of sums[i] / divisors[i], rounded once, halves away from 0: exact while the fractions'
 * common denominator fits, which it does for any numbers of snapshots that occur together.
 */
static int64_t round_mean(const int64_t *sums, const uint64_t *divisors, uint32_t count)
{
    __int128 whole = 0, numerator = 0, denominator = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (!sums[i])
            continue;
        const __int128 divisor = (__int128)divisors[i];
        whole += sums[i] / divisor;
        /* a/b + c/d; both below 1, and reduced so that the next step fits. */
        __int128 a = numerator * divisor + sums[i] % divisor * denominator;
        __int128 b = denominator * divisor;
        __int128 x = a < 0 ? -a : a, y = b;
        while (y) {
            const __int128 rest = x % y;
            x = y;
            y = rest;
        }
        numerator = a / x;
        denominator = b / x;
        whole += numerator / denominator;
        numerator %= denominator;
        if (denominator > (__int128)1 << 62) { /* too fine to be kept exactly */
            numerator >>= 32;
            denominator >>= 32;
        }
    }
    /* Both parts may have different signs. */
    __int128 doubled = 2 * (whole * denominator + numerator);
    doubled += doubled < 0 ? -denominator : denominator;
    return (int64_t)(doubled / (2 * denominator));
}

/* Divided by the snapshots that there were, also by those of granules that could not be read. */
static enum err_code add_means_once(struct merge *merge, struct stack_union **ret_stacks)
{
    uint32_t *column_of_series = arena_new(merge->arena, uint32_t, merge->series.count);
    uint64_t *divisors = arena_new(merge->arena, uint64_t, merge->series.count + (size_t)1);
    const uint32_t columns = find_columns(merge, column_of_series, divisors);
    struct stack_union *stacks = stack_union_create(columns ? columns : 1);
    enum err_code code = add_tasks(merge, stacks, column_of_series);
    for (uint32_t i = 0; !code && i < stack_union_count(stacks); i++) {
        int64_t *sums = stack_union_sums(stacks, i);
        sums[0] = round_mean(sums, divisors, columns);
    }
    *ret_stacks = stacks;
    return code;
}

/* Again without what could not be read. */
static enum err_code add_means(struct merge *merge, struct stack_union **ret_stacks)
{
    struct store_statistics *statistics = &merge->statistics;
    enum err_code code;
    uint32_t broken_count;
    *ret_stacks = NULL;
    do {
        stack_union_destroy(*ret_stacks);
        statistics->granule_count = 0;
        statistics->row_count = statistics->bytes_read = 0;
        broken_count = statistics->broken_count;
        code = add_means_once(merge, ret_stacks);
    } while (!code && statistics->broken_count != broken_count);
    return code;
}

/* ---- differences ---- */

static int compare_tasks(const void *a, const void *b)
{
    const struct task *x = a, *y = b;
    return (x->series > y->series) - (x->series < y->series);
}

static enum err_code add_snapshots(struct merge *merge, struct task *task,
                                   struct stack_union *stacks, struct differences *differences)
{
    const uint32_t count = block_dictionary(task->block)->stacks.stack_count;
    struct block_rows rows;
    enum err_code code =
        block_read_rows(task->block, task->granule, merge->cursor, false, &rows, merge->err);
    const bool is_read = !code;
    code = note_read(merge, task, task->granule->extent_bytes[BLOCK_ROWS], code);
    if (!is_read)
        return code;
    arena_auto scratch = arena_create();
    bool *wanted = arena_new(scratch, bool, count);
    uint32_t *numbers = arena_new(scratch, uint32_t, count);
    for (uint32_t i = 0; i < rows.row_count; i++)
        wanted[rows.stacks[i]] = true;
    stack_union_number(stacks, task->block, wanted, numbers);
    differences_add(differences, &rows, task->first, task->end, numbers);
    return check_limits(merge, stacks);
}

/* Series by series. */
static enum err_code add_differences(struct merge *merge, struct stack_union *stacks)
{
    enum err_code code = ERR_NONE;
    if (merge->task_count)
        qsort(merge->tasks, merge->task_count, sizeof(*merge->tasks), compare_tasks);
    for (uint32_t i = 0; i < merge->task_count && !code;) {
        const uint32_t series = merge->tasks[i].series;
        struct differences differences = {0};
        for (; i < merge->task_count && !code && merge->tasks[i].series == series; i++)
            code = add_snapshots(merge, &merge->tasks[i], stacks, &differences);
        if (!code)
            differences_sum(&differences, stack_union_sums(stacks, 0));
        differences_fini(&differences);
    }
    return code;
}

/* ---- the answer ---- */

static const char *text_of(struct merge *merge, uint32_t string)
{
    const struct span text = block_dictionary(merge->type_block)->tables->strings[string];
    return arena_strndup(merge->arena, text.data, text.size);
}

static enum err_code make_profile(struct merge *merge, struct stack_union *stacks,
                                  struct store_answer *answer)
{
    struct stack_union_type type = {
        .sample_type = "samples", .sample_unit = "count", .period_type = "", .period_unit = ""};
    if (merge->type_block) {
        const struct batch_type *found =
            &block_dictionary(merge->type_block)->series[merge->type_series].type;
        type = (struct stack_union_type){
            .sample_type = text_of(merge, found->sample_type.type),
            .sample_unit = text_of(merge, found->sample_type.unit),
            .period_type = text_of(merge, found->period_type.type),
            .period_unit = text_of(merge, found->period_type.unit),
            .time_ns = merge->first_ns,
            .duration_ns = merge->last_ns - merge->first_ns,
        };
    }
    answer->type = merge->types.count ? merge->type_names[0] : "";
    answer->statistics = merge->statistics;
    return stack_union_profile(stacks, &type, &answer->profile, merge->err);
}

static enum err_code answer_question(struct merge *merge, struct store_answer *answer)
{
    enum err_code code = check_types(merge);
    if (!code)
        code = check_magnitude(merge);
    if (code)
        return code;
    struct stack_union *stacks = NULL;
    answer->rule = STORE_SUM;
    if (merge->type_block)
        answer->rule = rule_of_type(block_dictionary(merge->type_block), merge->type_series);
    if (answer->rule == STORE_MEAN) {
        code = add_means(merge, &stacks);
    } else {
        stacks = stack_union_create(1);
        code = answer->rule == STORE_SUM ? add_tasks(merge, stacks, NULL)
                                         : add_differences(merge, stacks);
    }
    if (!code)
        code = make_profile(merge, stacks, answer);
    stack_union_destroy(stacks);
    return code;
}

static enum err_code merge_once(struct merge *merge, struct pg_pool *database,
                                struct store_answer *answer)
{
    const struct store_query *query = merge->query;
    const struct catalogue_place *places;
    uint32_t count;
    enum err_code code = catalogue_find(database, merge->arena, query->tenant_id, query->start_ns,
                                        query->end_ns, &places, &count, merge->err);
    if (!code)
        code = look_at_places(merge, places, count);
    if (!code)
        code = answer_question(merge, answer);
    for (uint32_t i = 0; i < merge->entry_count; i++)
        flight_cache_unref(merge->entries[i]);
    map_bytes_fini(&merge->types);
    map_bytes_fini(&merge->series);
    mem_free(merge->profile_counts);
    mem_free(merge->tasks);
    return code;
}

enum err_code execute_merge(struct open_blocks *blocks, struct pg_pool *database,
                            struct arena *arena, const struct store_query *query,
                            struct store_answer *ret_answer, struct err *err)
{
    enum { TRIES = 3 };
    enum err_code code = ERR_NONE;
    /* An object that is gone was swapped after the catalogue was read: another look helps. */
    for (int i = 0; i < TRIES; i++) {
        struct merge merge = {.blocks = blocks,
                              .arena = arena,
                              .query = query,
                              .first_ns = INT64_MAX,
                              .last_ns = INT64_MIN,
                              .err = err};
        code = selector_parse(arena, query->selector, &merge.selector, err);
        if (code)
            return code;
        merge.cursor = block_cursor_create();
        code = merge_once(&merge, database, ret_answer);
        block_cursor_destroy(merge.cursor);
        if (code != ERR_NOT_FOUND)
            return code;
    }
    return code;
}
