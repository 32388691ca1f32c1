/* The limits of a query: memory, bytes read, CPU time, wall-clock time, and exact sums. */
#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/parallel.h"
#include "store/block/oversized.h"
#include "store/query/block_cache.h"

enum { MEMORY_DEFAULT = 1 << 30 };

size_t scan_max_memory(const struct store_query *query)
{
    return query->max_memory ? query->max_memory : MEMORY_DEFAULT;
}

static enum err_code fail_limit(const struct scan *scan, const char *what, const char *limit)
{
    return err_set(scan->err, ERR_LIMIT, "this query %s: select fewer series or less time%s%s%s",
                   what, limit ? " (" : "", limit ? limit : "", limit ? ")" : "");
}

/* Names the series of the largest block if that takes a good part of the memory. */
static enum err_code fail_memory(const struct scan *scan, size_t max_bytes)
{
    enum { PART_WORTH_NAMING = 8 };
    const struct scan_state *state = scan->state;
    const struct block *largest = NULL;
    for (uint32_t i = 0; i < scan->block_count; i++) {
        struct flight_entry *entry = state->stacks[i] ? state->stacks[i] : state->entries[i];
        const struct block *block = entry ? block_cache_get(entry) : NULL;
        if (block && (!largest || block_memory(block) > block_memory(largest)))
            largest = block;
    }
    const char *what = "needs more memory than it may";
    if (largest && block_memory(largest) > max_bytes / PART_WORTH_NAMING)
        what = arena_printf(scan->arena, "%s, of which one block takes %s", what,
                            oversized_describe(scan->arena, largest, block_memory(largest)));
    return fail_limit(scan, what, scan->query->texts.memory);
}

enum err_code scan_check_cpu(const struct scan *scan)
{
    const struct store_query *query = scan->query;
    if (query->cpu_deadline_ns && parallel_cpu_ns() > query->cpu_deadline_ns)
        return fail_limit(scan, "takes more CPU time than it may", query->texts.cpu);
    return ERR_NONE;
}

enum err_code scan_refuse_sum(const struct scan *scan)
{
    return err_set(scan->err, ERR_TOO_LARGE, "the values add up to more than 2^63%s",
                   scan->query->profile ? "" : ": select fewer series or a shorter time");
}

enum err_code scan_check_magnitude(const struct scan *scan)
{
    uint64_t magnitude = 0;
    if (scan->query->profile ||
        (scan->type_count && scan->types[0].aggregation == STORE_COUNTER_DELTA))
        return ERR_NONE;
    for (uint32_t i = 0; i < scan->task_count; i++) {
        magnitude += scan->tasks[i].granule->magnitude;
        if (magnitude >= INT64_MAX)
            return scan_refuse_sum(scan);
    }
    return ERR_NONE;
}

enum err_code scan_refuse_increases(const struct scan *scan)
{
    return err_set(scan->err, ERR_TOO_LARGE,
                   "the increases add up to more than 2^62: select fewer series or a shorter time");
}

/* Requests more of the shared memory, unless it was granted before. */
static enum err_code request_memory(const struct scan *scan, size_t bytes)
{
    const struct store_memory *memory = scan->query->memory;
    struct scan_state *state = scan->state;
    if (!memory || bytes <= state->granted_bytes)
        return ERR_NONE;
    state->granted_bytes = memory->grow(memory->context, bytes);
    if (bytes <= state->granted_bytes)
        return ERR_NONE;
    state->needed_bytes = bytes;
    return err_set(scan->err, ERR_BUSY, "other queries use the memory: try again");
}

enum err_code scan_check_limits(const struct scan *scan, size_t bytes)
{
    struct scan_state *state = scan->state;
    state->checked_bytes = bytes;
    return scan_check_total(scan, bytes + state->block_bytes + state->outer_bytes +
                                      state->cursor_bytes + arena_bytes(scan->arena) +
                                      state->series_capacity * sizeof(*scan->series) +
                                      state->task_capacity * sizeof(*scan->tasks));
}

static enum err_code check_granule(const struct scan *scan, const struct block_granule *granule,
                                   bool wants_rows)
{
    struct scan_state *state = scan->state;
    const size_t bytes = block_granule_memory(granule, wants_rows);
    if (bytes <= state->cursor_bytes)
        return ERR_NONE;
    state->cursor_bytes = bytes;
    return scan_check_limits(scan, state->checked_bytes);
}

enum err_code scan_read_rows(const struct scan *scan, const struct scan_task *task,
                             bool wants_details, struct block_rows *ret_rows)
{
    enum err_code code = check_granule(scan, task->granule, true);
    return code ? code
                : block_read_rows(task->block, task->granule, scan->cursor, wants_details, ret_rows,
                                  scan->err);
}

enum err_code scan_read_profiles(const struct scan *scan, const struct block *block,
                                 const struct block_granule *granule,
                                 const struct block_profile **ret_profiles)
{
    enum err_code code = check_granule(scan, granule, false);
    return code ? code : block_read_profiles(block, granule, scan->cursor, ret_profiles, scan->err);
}

enum err_code scan_read_totals(const struct scan *scan, const struct scan_task *task,
                               struct block_totals *ret_totals)
{
    return block_read_totals(task->block, task->granule, scan->cursor, ret_totals, scan->err);
}

enum err_code scan_check_total(const struct scan *scan, size_t bytes)
{
    const struct store_query *query = scan->query;
    if (wait_limit_is_cancelled(&query->wait_limit))
        return err_set(scan->err, ERR_CANCELLED,
                       "the client no longer waits: send the query again");
    if (bytes > scan_max_memory(query))
        return fail_memory(scan, scan_max_memory(query));
    if (query->max_read_bytes && scan->statistics.bytes_read > query->max_read_bytes)
        return fail_limit(scan, "reads more than it may", query->texts.read);
    enum err_code code = scan_check_cpu(scan);
    if (code)
        return code;
    if (wait_limit_is_late(&query->wait_limit))
        return fail_limit(scan, "takes longer than its time limit", query->texts.time);
    return request_memory(scan, bytes);
}

enum err_code scan_explain_wait(const struct scan *scan, enum err_code code)
{
    const enum err_code why = code == ERR_CANCELLED ? scan_check_limits(scan, 0) : ERR_NONE;
    return why ? why : code;
}
