/*
 * scan: finds what a query has to read: the blocks of its window, the matching series in them, and
 * the granules of each series with profiles in the window.
 *
 * Every query begins with a scan. If a series matches except for a required label that it lacks,
 * and samples of its block have that label, the scan takes all series that match except for such
 * labels; then the samples' labels decide (row_selectors), as they always do for != and !~ on a
 * label that a series lacks.
 *
 * A profile type or a series exists for a query only when one of its profiles begins in the window,
 * however blocks were compacted; with reach_ns also when a delta extends into it, and with ahead_ns
 * when it has a neighbour of the window.
 *
 * Damaged data is skipped and counted. Oversized blocks (store/block/oversized.h) together take at
 * most a quarter of the query's memory; those beyond it are left out, counted and described.
 * Strings of frames count when stacks are opened.
 *
 * Threads: a scan belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_SCAN_H
#define STORE_QUERY_SCAN_H

#include "store/block/block_read.h"
#include "store/types.h"

struct deletion_set_windows;
struct result_cache;
struct block_cache;
struct selector_set;
struct stack_filters;

/* The data sources of queries. */
struct scan_source {
    struct block_cache *blocks;
    struct pg_pool *database;
    const struct frame_resolver *resolver;
    struct result_cache *results;
    int64_t retention_s; /* of tenants without their own; 0: for ever */
    struct stack_filters *filters;
    void (*damaged)(void *context, const struct store_damage *damage); /* of store_options */
    void *damaged_context;
};

/* What a scan found. Its members are those of the files store/query/scan*.c. */
struct scan;

enum scan_kind {
    SCAN_TASKS, /* granules are read: blocks stay open, and count as the query's memory */
    SCAN_SERIES /* only types and series: no tasks */
};

/* One granule that the query reads, or the profiles between two deleted ranges of it. */
struct scan_task {
    const struct block *block; /* opened for its series, until scan_open_stacks */
    const struct block_granule *granule;
    uint32_t block_index; /* index of the block among those in use */
    uint32_t series;      /* index in scan_series */
    uint32_t first;       /* the profiles first <= ordinal < end of the granule */
    uint32_t end;
    bool has_totals_only; /* the hour is past its retention rule: labels of samples are not kept */
    bool are_totals;      /* has_totals_only, of deltas: only the sum of the hour is kept */
    bool is_neighbour; /* all of the granule is outside the window: it is read only if is_needed */
    bool is_needed;    /* set by neighbours_next: the profiles from first to end are needed */
    /* How many of the profiles are outside the window, if the window cuts the granule. */
    uint32_t outside_count;
    int64_t first_ns; /* starts of the first and last profile in the window */
    int64_t last_ns;  /* below first_ns: no profile is in the window */
    bool is_broken;   /* reading it failed: it is not in the result */
    /* The profiles from `first` on, where the window cuts the granule and the query has reach_ns:
     * they were read to find the range. NULL: not read. */
    const struct block_profile *profiles;
    /* For series totals: the tasks that they replace. NULL: the task is a granule. */
    struct scan_task *parts;
    uint32_t part_count;
};

/*
 * Scans, then calls `use`, usually once. The scan starts again from the beginning, and then calls
 * `use` again, when an object is gone that was swapped after the catalogue was read, or when the
 * memory of all queries was used up; so each call of `use` has to begin from nothing. An object
 * that is gone although the catalogue still names it is skipped as damaged, and so is one that
 * cannot be read while others can (store/catalogue/reachability.h). Errors: ERR_INVALID (a
 * selector), ERR_LIMIT (the query's limits), ERR_CANCELLED, what the query's memory and `use`
 * return.
 */
enum err_code scan_run(const struct scan_source *source, const struct store_query *query,
                       enum scan_kind kind, struct arena *arena,
                       enum err_code (*use)(struct scan *scan, void *context), void *context,
                       struct err *err) MUST_USE;

/* ---- what the scan found ---- */

const struct store_query *scan_query(const struct scan *scan);
/* The arena of the result: types, series and texts live in it. */
struct arena *scan_arena(const struct scan *scan);
/* Where the query reports its error. */
struct err *scan_err(const struct scan *scan);
/* NULL: no names are looked up. */
const struct frame_resolver *scan_resolver(const struct scan *scan);

const struct store_type *scan_types(const struct scan *scan, uint32_t *ret_count);
/* The type of all series, after scan_check_types; NULL if no series matches. */
const struct store_type *scan_type(const struct scan *scan);
/* The aggregation of that type; STORE_SUM if no series matches. */
enum store_aggregation scan_aggregation(const struct scan *scan);
const struct store_series *scan_series(const struct scan *scan, uint32_t *ret_count);
/* In order of block, series and hour, unless they were sorted. The array stays the same until the
 * scan ends; scan_open_all_stacks and scan_drop_all make it shorter. */
struct scan_task *scan_tasks(const struct scan *scan, uint32_t *ret_count);
/* The number of blocks in use: each block_index is smaller. */
uint32_t scan_block_count(const struct scan *scan);
/* The starts of the first and last profile in the window; false: there is none. */
bool scan_find_times(const struct scan *scan, int64_t *ret_first_ns, int64_t *ret_last_ns);

/* Selectors that the labels of samples have to match, because some series lack a label that the
 * selectors compare (row_labels). NULL: the labels of series decide. */
const struct selector_set *scan_row_selectors(const struct scan *scan);
/* SCAN_SERIES: samples may have labels that selectors require. */
bool scan_may_be_of_samples(const struct scan *scan);
/* True if a delta without a duration begins within reach_ns before the window, and the query has no
 * ahead_ns, with which it would be a task: only neighbours show whether it ends in the window. */
bool scan_has_open_ends_before(const struct scan *scan);

/* Sorts tasks by series; those of one series stay in order of blocks and hours. Series totals
 * (scan_task.parts) can be used only before. */
void scan_sort_by_series(struct scan *scan);
/* Sorts tasks by the end of their granules, newest first. */
void scan_sort_newest_first(struct scan *scan);
/* The first task of the next series, in tasks that were sorted by series. */
uint32_t scan_next_series(const struct scan *scan, uint32_t task);

/* Removes all series but those with are_kept, and the types without a series. The numbers of series
 * in tasks are no longer valid. */
void scan_keep_series(struct scan *scan, const bool *are_kept);
/* Removes all tasks and types. */
void scan_drop_all(struct scan *scan);

/* ---- statistics ---- */

/* Granules, rows and bytes that were read. */
struct scan_reads {
    uint32_t granule_count;
    uint64_t row_count;
    uint64_t bytes_read;
};

const struct store_statistics *scan_statistics(const struct scan *scan);
/* Where names that were not found are counted (frame_resolution, stack_filter). */
struct store_symbolization *scan_symbolization(struct scan *scan);
/* The reads so far; scan_set_reads replaces them when the query reads again. */
struct scan_reads scan_get_reads(const struct scan *scan);
void scan_set_reads(struct scan *scan, struct scan_reads reads);
void scan_count_rows(struct scan *scan, uint64_t row_count);
void scan_count_bytes(struct scan *scan, uint64_t bytes);
/* Reduces the count of series by one that turned out to have no value in the window. */
void scan_discount_series(struct scan *scan);
void scan_count_interleaved(struct scan *scan);
void scan_count_restarting(struct scan *scan);
/* label: a label that the query's filter compares and that nothing has, in the arena; NULL: there
 * is none. */
void scan_note_absent_filter_label(struct scan *scan, const char *label);

/* ---- checks and reads ---- */

/* ERR_INVALID, naming the types, when more than one profile type matches. Two groups of types are
 * removed first: those found only as neighbours, which begin after the window, and, if the whole
 * name of a type is in the query, those that it matches as a part of their names. */
enum err_code scan_check_types(struct scan *scan) MUST_USE;
/* Finds why a query has no matches: ERR_NOT_FOUND, with the types of the window in the message,
 * when the query names a type that the window does not have; ERR_NONE when labels did not match, or
 * the window is empty. */
enum err_code scan_explain_nothing(const struct scan_source *source,
                                   const struct store_query *query, struct arena *arena,
                                   struct err *err) MUST_USE;
/* ERR_TOO_LARGE when the magnitudes of all tasks add up to 2^63 or more. After ERR_NONE sums are
 * exact, with two exceptions, for which nothing is checked. The values of counters are not added:
 * those of a program that has run for weeks exceed 2^63 within an hour. A single profile is a small
 * part of its granule, so its sums are checked as they are added. */
enum err_code scan_check_magnitude(const struct scan *scan) MUST_USE;
/* Sets ERR_TOO_LARGE for a sum of 2^63 or more. */
enum err_code scan_refuse_sum(const struct scan *scan) MUST_USE;
/* Sets ERR_TOO_LARGE for increases that overflow (counter_increase.h). */
enum err_code scan_refuse_increases(const struct scan *scan);
/* Checks the query's limits; `bytes` is the memory of the result so far, to which that of the scan
 * is added. ERR_LIMIT: memory, bytes read, CPU time or wall-clock time. ERR_CANCELLED: no client
 * waits any more. ERR_BUSY: the memory of all queries is used up. Called between units of work. */
enum err_code scan_check_limits(const struct scan *scan, size_t bytes) MUST_USE;
/* The same; `bytes` is all memory that the query holds. */
enum err_code scan_check_total(const struct scan *scan, size_t bytes) MUST_USE;
/* As block_read_rows and block_read_profiles, with the scan's cursor, whose memory counts. Errors:
 * also what scan_check_limits returns. */
enum err_code scan_read_rows(const struct scan *scan, const struct scan_task *task,
                             bool wants_details, struct block_rows *ret_rows) MUST_USE;
enum err_code scan_read_profiles(const struct scan *scan, const struct block *block,
                                 const struct block_granule *granule,
                                 const struct block_profile **ret_profiles) MUST_USE;
/* As block_read_totals, with the scan's cursor. */
enum err_code scan_read_totals(const struct scan *scan, const struct scan_task *task,
                               struct block_totals *ret_totals) MUST_USE;
/* For the code of a wait that ended: replaces ERR_CANCELLED by the limit that ended the wait, if it
 * was not the client (scan_check_limits), and sets the scan's err. Returns any other code
 * unchanged. */
enum err_code scan_explain_wait(const struct scan *scan, enum err_code code) MUST_USE;

/* Opens the task's block with its stacks, which stay open as long as the scan. Before this call
 * only the block's profiles can be read. If it fails because of damage, the task is marked broken.
 * Errors: what scan_run does. */
enum err_code scan_open_stacks(struct scan *scan, struct scan_task *task) MUST_USE;
/* The same for all tasks, several blocks at once. Broken tasks are removed. wants_hashes: also
 * computes the hashes of stacks, in parallel, for a stack_union. */
enum err_code scan_open_all_stacks(struct scan *scan, bool wants_hashes) MUST_USE;

/* Announces reads: task `at` is read now, the following ones soon: their totals, or profiles and
 * rows where the window cuts the granule. */
void scan_read_ahead(struct scan *scan, uint32_t at);
/* The same for a list of tasks that is read in place of the scan's. */
void scan_read_ahead_of(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                        uint32_t at);

/* Records that a task was read, or that it failed (code). Damage is counted, and returns ERR_NONE
 * with task->is_broken. */
enum err_code scan_note_read(struct scan *scan, struct scan_task *task, uint64_t row_count,
                             uint64_t bytes, enum err_code code) MUST_USE;

/* The first and the last nanosecond of the granule's hour. */
void scan_find_hour(const struct block_granule *granule, int64_t *ret_first_ns,
                    int64_t *ret_last_ns);

/* Records that an hour with totals only is left out because the window or a step cuts it. */
void scan_note_cut(struct scan *scan, const struct scan_task *task);

/* Counts tasks with totals only whose series lacks a label that the query names: one of these
 * names, of its filter, that a selector requires, or any. Samples may have had it. Called before
 * the tasks are read. */
void scan_count_unlabelled(struct scan *scan, const struct span *names, size_t name_count);

/* The number of the task's profiles that are in the window or extend into it. */
static inline uint32_t scan_profile_count(const struct scan_task *task)
{
    return task->is_neighbour ? 0 : task->end - task->first - task->outside_count;
}

/*
 * Returns the ordinal of the first neighbour before a time, among ascending profiles: neighbours
 * are the profiles of the CADENCE_NEIGHBOURS nearest times, of deltas only those without a
 * duration, and none that begins in a deleted window (NULL: none is deleted). end is the ordinal of
 * the first profile at that time or later; it is returned if there is no neighbour.
 */
uint32_t scan_find_before(const struct block_profile *profiles, uint32_t end,
                          enum store_aggregation aggregation,
                          const struct deletion_set_windows *deleted);
/* Returns the ordinal after the last neighbour of profiles[first] and later ones; `first` if there
 * is none. */
uint32_t scan_find_after(const struct block_profile *profiles, uint32_t first, uint32_t count,
                         enum store_aggregation aggregation,
                         const struct deletion_set_windows *deleted);

/*
 * True when the window contains all profiles of the task's granule, so that its totals can be used.
 */
static inline bool scan_is_whole(const struct scan_task *task)
{
    return task->end - task->first == task->granule->profile_count;
}

#endif
