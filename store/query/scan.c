#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/parallel.h"
#include "store/block/oversized.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/deletion_set.h"
#include "store/catalogue/retention.h"
#include "store/query/block_cache.h"

#include <stdlib.h>
#include <string.h>

/* TASKS_AHEAD: enough reads in flight for a disk that several queries share. */
enum { TASKS_AHEAD = 256 };

static void record_oversized(struct scan *scan, uint32_t index)
{
    struct scan_state *state = scan->state;
    struct store_statistics *statistics = &scan->statistics;
    const struct block *block = block_cache_get(state->entries[index]);
    const size_t string_bytes = block_dictionary(block)->string_bytes;
    if (string_bytes > state->largest_dropped) {
        state->largest_dropped = string_bytes;
        statistics->oversized_message = oversized_describe(scan->arena, block, string_bytes);
    }
    statistics->oversized_count++;
    statistics->block_count--;
}

/* Charges memory for an oversized block; false when such blocks have used up their share. */
static bool charge_oversized(struct scan *scan, size_t bytes)
{
    const size_t most = scan_max_memory(scan->query) / OVERSIZED_QUERY_PART;
    size_t *taken = &scan->state->oversized_bytes;
    if (*taken + bytes > most)
        return false;
    *taken += bytes;
    return true;
}

/* An oversized block that does not fit is not opened with its stacks. */
static bool skips_stacks(struct scan *scan, uint32_t index)
{
    const struct block *block = block_cache_get(scan->state->entries[index]);
    if (!oversized_in_query(block) || charge_oversized(scan, block_dictionary(block)->string_bytes))
        return false;
    scan->state->stacks_failed[index] = true;
    record_oversized(scan, index);
    return true;
}

/* Stores an outcome. A block that cannot be opened is reported once. */
static enum err_code accept_stacks(struct scan *scan, uint32_t index,
                                   const struct block_cache_outcome *outcome)
{
    struct scan_state *state = scan->state;
    const enum err_code code = outcome->code;
    if (code)
        *scan->err = outcome->err;
    if (code == ERR_CANCELLED)
        return scan_explain_wait(scan, code);
    if (code) {
        state->stacks_failed[index] = true;
        scan->statistics.block_count--;
        return scan_skip_broken(scan, state->places[index]->object_key,
                                code == ERR_NOT_FOUND && state->is_last_try ? ERR_CORRUPT : code);
    }
    state->stacks[index] = outcome->entry;
    state->block_bytes += block_memory(block_cache_get(outcome->entry));
    scan->statistics.bytes_read += block_opening_bytes(block_cache_get(outcome->entry));
    return scan_check_limits(scan, 0);
}

/* Opens the stacks of the blocks with these indexes, PARALLEL_MAX_THREADS at most. */
static enum err_code open_stacks(struct scan *scan, const uint32_t *indexes, size_t count,
                                 enum block_cache_part part)
{
    struct scan_state *state = scan->state;
    const struct catalogue_place *places[PARALLEL_MAX_THREADS] = {0};
    struct block_cache_outcome outcomes[PARALLEL_MAX_THREADS];
    for (size_t i = 0; i < count; i++)
        places[i] = state->places[indexes[i]];
    block_cache_ref_several(state->source->blocks, scan->query->tenant_id, places, count, part,
                            &scan->query->wait_limit, outcomes);
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < count; i++) {
        if (!code)
            code = accept_stacks(scan, indexes[i], &outcomes[i]);
        else if (!outcomes[i].code)
            flight_cache_unref(outcomes[i].entry);
    }
    return code;
}

/* Finds the next blocks, from task `at` on, that are not open with their stacks. */
static size_t find_unopened(struct scan *scan, uint32_t at, uint32_t *indexes, size_t most)
{
    const struct scan_state *state = scan->state;
    size_t count = 0;
    for (; at < scan->task_count && count < most; at++) {
        const uint32_t index = scan->tasks[at].block_index;
        if (scan->tasks[at].is_neighbour)
            continue;
        const bool is_known = count && indexes[count - 1] == index; /* tasks are ordered by block */
        if (!is_known && !state->stacks[index] && !state->stacks_failed[index] &&
            !skips_stacks(scan, index))
            indexes[count++] = index;
    }
    return count;
}

enum err_code scan_open_stacks(struct scan *scan, struct scan_task *task)
{
    struct scan_state *state = scan->state;
    const uint32_t index = task->block_index;
    enum err_code code = ERR_NONE;
    if (!state->stacks[index] && !state->stacks_failed[index] && !skips_stacks(scan, index))
        code = open_stacks(scan, &index, 1, BLOCK_CACHE_STACKS);
    if (code)
        return code;
    if (state->stacks[index]) {
        uint32_t count;
        const ptrdiff_t number = task->granule - block_granules(task->block, &count);
        task->block = block_cache_get(state->stacks[index]);
        task->granule = block_granules(task->block, &count) + number;
        return ERR_NONE;
    }
    task->is_broken = true;
    scan->statistics.profile_count -= scan_profile_count(task);
    scan->statistics.totals_count -= task->has_totals_only;
    return ERR_NONE;
}

/* Opens the task's block and the next ones, as many as there are threads: their memory is known
 * only when they are open, and may be too much. */
static enum err_code open_stacks_from(struct scan *scan, uint32_t at, enum block_cache_part part)
{
    const uint32_t index = scan->tasks[at].block_index;
    uint32_t indexes[PARALLEL_MAX_THREADS];
    if (scan->state->stacks[index] || scan->state->stacks_failed[index])
        return ERR_NONE;
    const size_t count = find_unopened(scan, at, indexes, parallel_size());
    return count ? open_stacks(scan, indexes, count, part) : ERR_NONE;
}

enum err_code scan_open_all_stacks(struct scan *scan, bool wants_hashes)
{
    uint32_t kept = 0;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < scan->task_count && !code; i++) {
        struct scan_task *task = &scan->tasks[i];
        if (task->is_neighbour) { /* few of them are needed */
            scan->tasks[kept++] = *task;
            continue;
        }
        if (i == 0 || task[-1].is_neighbour || task->block_index != task[-1].block_index)
            code =
                open_stacks_from(scan, i, wants_hashes ? BLOCK_CACHE_HASHES : BLOCK_CACHE_STACKS);
        if (!code)
            code = scan_open_stacks(scan, task);
        if (!task->is_broken)
            scan->tasks[kept++] = *task;
    }
    scan->task_count = kept;
    return code;
}

/* ---- blocks that are left out ---- */

static void drop_block(struct scan *scan, uint32_t index)
{
    struct scan_state *state = scan->state;
    state->block_bytes -= block_memory(block_cache_get(state->entries[index]));
    state->are_dropped[index] = true;
    record_oversized(scan, index);
    flight_cache_unref(state->entries[index]);
    state->entries[index] = NULL;
}

static void remove_dropped_tasks(struct scan *scan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scan->task_count && scan->statistics.oversized_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        if (!scan->state->are_dropped[task->block_index]) {
            scan->tasks[kept++] = *task;
            continue;
        }
        scan->statistics.profile_count -= scan_profile_count(task);
        scan->statistics.totals_count -= task->has_totals_only;
    }
    if (scan->statistics.oversized_count)
        scan->task_count = kept;
}

static enum err_code scan_place(struct scan *scan, const struct catalogue_place *place,
                                const struct block_cache_outcome *outcome)
{
    struct scan_state *state = scan->state;
    const uint32_t index = scan->block_count;
    struct flight_entry *entry = outcome->entry;
    enum err_code code = outcome->code;
    if (code)
        *scan->err = outcome->err;
    if (code == ERR_CANCELLED)
        return scan_explain_wait(scan, code);
    if (code)
        return scan_skip_broken(scan, place->object_key,
                                code == ERR_NOT_FOUND && state->is_last_try ? ERR_CORRUPT : code);
    state->places[index] = place;
    scan->statistics.bytes_read += block_opening_bytes(block_cache_get(entry));
    const uint64_t profiles_before = scan->statistics.profile_count;
    const uint32_t tasks_before = scan->task_count;
    code = scan_plan_block(scan, block_cache_get(entry), &place->deletions);
    const bool is_used =
        scan->statistics.profile_count > profiles_before || scan->task_count > tasks_before;
    scan->statistics.block_count += is_used;
    if (!is_used || state->kind != SCAN_TASKS) {
        flight_cache_unref(entry);
        return code;
    }
    state->entries[scan->block_count++] = entry;
    state->block_bytes += block_memory(block_cache_get(entry));
    if (oversized_in_query(block_cache_get(entry)) &&
        !charge_oversized(scan, block_memory(block_cache_get(entry))))
        drop_block(scan, index);
    return code ? code : scan_check_limits(scan, 0);
}

/* Scans up to PARALLEL_MAX_THREADS blocks, which are opened in parallel. */
static enum err_code scan_batch(struct scan *scan, const struct catalogue_place *places,
                                size_t count)
{
    struct scan_state *state = scan->state;
    const struct catalogue_place *wanted[PARALLEL_MAX_THREADS] = {0};
    struct block_cache_outcome outcomes[PARALLEL_MAX_THREADS];
    enum err_code code = scan_check_limits(scan, 0);
    if (code)
        return code;
    for (size_t i = 0; i < count; i++)
        wanted[i] = &places[i];
    block_cache_ref_several(state->source->blocks, scan->query->tenant_id, wanted, count,
                            BLOCK_CACHE_SERIES, &scan->query->wait_limit, outcomes);
    for (size_t i = 0; i < count; i++) {
        if (!code)
            code = scan_place(scan, wanted[i], &outcomes[i]);
        else if (!outcomes[i].code)
            flight_cache_unref(outcomes[i].entry);
    }
    return code;
}

static enum err_code scan_places(struct scan *scan)
{
    const struct store_query *query = scan->query;
    struct catalogue_found found;
    struct retention *retention = NULL;
    const struct scan_source *source = scan->state->source;
    const struct catalogue_window window = {.start_ns = scan_reach_back(query),
                                            .end_ns = scan_reach_ahead(query),
                                            .far_ns = scan_far_back(query),
                                            .reach_ns =
                                                query->reach_ns ? query->start_ns : INT64_MAX};
    enum err_code code = catalogue_find(source->database, scan->arena, query->tenant_id,
                                        source->retention_s, &window, &found, scan->err);
    if (!code)
        code = retention_create(scan->arena, &found.rules, &retention, scan->err);
    if (!code)
        code = deletion_set_create(scan->arena, found.deletions, found.deletion_count, retention,
                                   &scan->state->deleted, scan->err);
    if (code)
        return code;
    scan->state->entries = arena_new(scan->arena, struct flight_entry *, found.count);
    scan->state->stacks = arena_new(scan->arena, struct flight_entry *, found.count);
    scan->state->stacks_failed = arena_new(scan->arena, bool, found.count);
    scan->state->are_dropped = arena_new(scan->arena, bool, found.count);
    scan->state->places = arena_new(scan->arena, const struct catalogue_place *, found.count);
    const uint32_t at_once = (uint32_t)parallel_size();
    for (uint32_t i = 0; i < found.count && !code; i += at_once) {
        const uint32_t left = found.count - i;
        code = scan_batch(scan, &found.places[i], left < at_once ? left : at_once);
    }
    remove_dropped_tasks(scan);
    return code;
}

/*
 * Finds the tasks. A series that lacks a required label may have samples with it. Which series
 * match has to be decided for the whole window, or the values of gauges and counters would depend
 * on how blocks were merged: so the scan runs a second time and takes the series that match except
 * for such labels. Series that match by their own labels are unaffected.
 *
 * Example: {service="api", thread="gc"} with series that have no label `thread`, and a block whose
 * samples have one. The first run matches nothing and sets needs_sample_labels. The second run
 * takes all series with service="api", and row_labels compares `thread` of each sample.
 */
static enum err_code find_tasks(struct scan *scan)
{
    struct scan_state *state = scan->state;
    scan->statistics.bytes_read = state->bytes_read;
    enum err_code code = scan_places(scan);
    state->needs_rerun = !code && state->needs_sample_labels && state->kind == SCAN_TASKS;
    state->bytes_read = scan->statistics.bytes_read;
    if (state->has_open_labels)
        scan->row_selectors = &state->set;
    return code;
}

/* ---- reading ahead ---- */

/* Announces the reads of the next TASKS_AHEAD of these tasks; tasks NULL: of the scan's tasks. */
static void read_ahead(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                       uint32_t at)
{
    uint32_t *next = &scan->state->ahead;
    *next = *next > at ? *next : at;
    for (; *next < task_count && *next < at + TASKS_AHEAD; ++*next) {
        const struct scan_task *task = tasks ? tasks[*next] : &scan->tasks[*next];
        const bool is_whole = scan_is_whole(task);
        block_read_ahead(task->block, task->granule, is_whole ? BLOCK_TOTALS : BLOCK_PROFILES,
                         is_whole ? BLOCK_TOTALS : BLOCK_ROWS);
    }
}

void scan_read_ahead(struct scan *scan, uint32_t at)
{
    read_ahead(scan, NULL, scan->task_count, at);
}

void scan_read_ahead_of(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                        uint32_t at)
{
    read_ahead(scan, tasks, task_count, at);
}

/* ---- running a scan ---- */

static enum err_code check_matching(void *context, struct err *err)
{
    const struct scan *scan = context;
    const enum err_code code = scan_check_limits(scan, scan->state->checked_bytes);
    if (code && err != scan->err)
        *err = *scan->err;
    return code;
}

static enum err_code parse_selectors(struct scan *scan)
{
    const struct store_query *query = scan->query;
    struct scan_state *state = scan->state;
    enum err_code code = ERR_NONE;
    struct selector **selectors = arena_new(scan->arena, struct selector *, query->selector_count);
    state->set = (struct selector_set){.selectors = selectors, .count = query->selector_count};
    for (size_t i = 0; i < query->selector_count && !code; i++) {
        const char *name = query->selectors_name
                               ? arena_printf(scan->arena, "%s %zu", query->selectors_name, i + 1)
                               : "query";
        code =
            selector_parse_named(scan->arena, name, query->selectors[i], &selectors[i], scan->err);
        if (!code)
            selector_set_check(selectors[i], check_matching, scan);
    }
    return code;
}

static void scan_fini(struct scan *scan)
{
    for (uint32_t i = scan->block_count; i > 0; i--) { /* the cache keeps those returned last */
        flight_cache_unref(scan->state->stacks[i - 1]);
        flight_cache_unref(scan->state->entries[i - 1]);
    }
    map_bytes_fini(&scan->state->type_numbers);
    map_bytes_fini(&scan->state->series_numbers);
    buf_fini(&scan->state->text);
    mem_free(scan->types);
    mem_free(scan->series);
    mem_free(scan->tasks);
    block_cursor_destroy(scan->cursor);
}

static enum err_code scan_once(struct scan_state *state, const struct store_query *query,
                               struct arena *arena,
                               enum err_code (*use)(struct scan *scan, void *context),
                               void *context, struct err *err)
{
    const struct frame_resolver *resolver =
        query->resolver ? query->resolver : state->source->resolver;
    struct scan scan = {.query = query,
                        .arena = arena,
                        .first_ns = INT64_MAX,
                        .last_ns = INT64_MIN,
                        .cursor = block_cursor_create(),
                        .resolver = resolver,
                        .err = err,
                        .state = state};
    if (resolver && resolver->generation)
        scan.statistics.names.generation =
            resolver->generation(resolver->context, query->tenant_id);
    buf_init(&state->text, SCAN_TEXT_MAX_BYTES);
    enum err_code code = parse_selectors(&scan);
    if (!code)
        code = find_tasks(&scan);
    if (!code && !state->needs_rerun)
        code = use(&scan, context);
    scan_fini(&scan);
    return code;
}

/*
 * A scan runs again in three cases. An object is missing that the catalogue named (ERR_NOT_FOUND):
 * a compaction swapped it after the catalogue was read; after TRIES runs the object counts as lost.
 * Series were found to need labels of samples (needs_rerun): the bytes of the first run count too.
 * The memory of all queries was used up (ERR_BUSY with needed_bytes): the query has freed
 * everything and waits for its share. The last two do not count as tries.
 *
 * Each run has an arena of its own, so that a run leaves nothing behind when the next one begins,
 * and a query that waits holds nothing. That of the last run becomes a part of the caller's.
 */
enum err_code scan_run(const struct scan_source *source, const struct store_query *query,
                       enum scan_kind kind, struct arena *arena,
                       enum err_code (*use)(struct scan *scan, void *context), void *context,
                       struct err *err)
{
    enum { TRIES = 3 };
    enum err_code code = ERR_NOT_FOUND;
    struct scan_state state = {.needs_rerun = false};
    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND;) {
        struct arena *run = arena_create();
        state = (struct scan_state){.source = source,
                                    .kind = kind,
                                    .matches_known_labels =
                                        state.matches_known_labels || state.needs_rerun,
                                    .bytes_read = state.needs_rerun ? state.bytes_read : 0,
                                    .outer_bytes = arena_bytes(arena),
                                    .is_last_try = i == TRIES - 1};
        code = scan_once(&state, query, run, use, context, err);
        const bool is_done = !code && !state.needs_rerun;
        if (is_done)
            arena_adopt(arena, run);
        else
            arena_destroy(run);
        if (is_done)
            return ERR_NONE;
        if (!code)
            code = ERR_NOT_FOUND; /* run again */
        else if (code == ERR_BUSY && state.needed_bytes) {
            code = query->memory->wait(query->memory->context, state.needed_bytes,
                                       scan_max_memory(query), err);
            code = code ? code : ERR_NOT_FOUND; /* again */
        } else {
            i++;
        }
    }
    return code;
}
