/*
 * walk: from a question to what is to be read for it: the blocks of its window, the series that it
 * finds there, and of each the granules with profiles in the window.
 *
 * Every question begins with it. Where a series matches but for a required label which it lacks,
 * and samples of its block have that label, it takes all series that match but for such labels; the
 * samples' labels decide then (row_selectors), as they do of != and !~ on a label that a series
 * lacks. A profile type or a series is there only when a profile of it
 * begins in the window, however blocks were compacted: or, for a query with reach_ns, a delta that
 * ends in it or later, and with ahead_ns a neighbour of the window. What is broken is passed over
 * and counted. Blocks whose strings are out of proportion to their rows (store/block/oversized.h)
 * take a quarter of the query's memory together; those beyond it are left out, counted and
 * described. Strings of frames count when stacks are opened. Threads: a walk belongs to one.
 * Private to the room.
 */
#ifndef STORE_QUERY_SCAN_H
#define STORE_QUERY_SCAN_H

#include "store/block/block_read.h"
#include "store/store.h"

struct result_cache;
struct block_cache;
struct stack_filters;

/* Where questions are answered from. */
struct scan_source {
    struct block_cache *blocks;
    struct pg_pool *database;
    const struct frame_resolver *resolver;
    struct result_cache *results;
    int64_t retention_s; /* of tenants without one of their own; 0: for ever */
    struct stack_filters *filters;
    void (*damaged)(void *context, const struct store_damage *damage); /* of store_options */
    void *damaged_context;
};

enum scan_kind {
    SCAN_TASKS, /* granules are to be read: blocks stay open, and count as the question's memory */
    SCAN_SERIES /* only what types and series there are: no tasks */
};

/* One granule that the question touches, or profiles between deleted ones of it. */
struct scan_task {
    const struct block *block;
    const struct block_granule *granule;
    uint32_t block_index; /* of block among those in use */
    uint32_t series;
    uint32_t first; /* ordinals first <= o < end */
    uint32_t end;
    bool are_totals;        /* of single profiles and their labels nothing is to be told */
    bool is_neighbour;      /* all of it lies outside the window: read what is needed, or nothing */
    bool is_needed;         /* of a neighbour: it is read, for first <= ordinal < end */
    uint32_t outside_count; /* of a granule that the window cuts: profiles outside, as neighbours */
    bool is_broken;         /* it was to be read and could not: the answer is without it */
    /* Where the window cuts the granule and the query has reach_ns: its profiles from first on,
     * which were read to find them. NULL: not kept. */
    const struct block_profile *profiles;
    /* Of series totals: the tasks that they take the place of. NULL: it is a task itself. */
    struct scan_task *parts;
    uint32_t part_count;
};

struct scan {
    const struct store_query *query;
    struct arena *arena; /* of the answer; types and series live in it */
    struct store_type *types;
    struct store_series *series;
    struct scan_task *tasks; /* by block, series, hour; answers may put them in another order */
    uint32_t type_count;
    uint32_t series_count;
    uint32_t task_count;
    uint32_t block_count; /* in use */
    int64_t first_ns;     /* begins of the first and last profiles in the window */
    int64_t last_ns;
    struct store_statistics statistics;
    /* Whose labels some series lack, so that samples decide: of row_labels. NULL: series do. */
    const struct selector_set *row_selectors;
    /* SCAN_SERIES: samples may have labels that selectors require. */
    bool may_be_of_samples;
    struct block_cursor *cursor; /* for answers, too */
    const struct frame_resolver *resolver;
    struct err *err;
    struct scan_state *state;
};

/*
 * Walks, then calls answer, once: or again from the beginning when an object is gone that was
 * swapped after the catalogue was read, or when there was no room in the memory of all questions.
 * One that the catalogue still names and that is gone is passed over as what is broken is, and so
 * is one that cannot be read while others can (store/catalogue/reachability.h). Handles:
 * ERR_INVALID (a selector), ERR_LIMIT (the query's limits), ERR_CANCELLED, what the query's memory
 * and answer give.
 */
enum err_code scan_run(const struct scan_source *source, const struct store_query *query,
                       enum scan_kind kind, struct arena *arena,
                       enum err_code (*answer)(struct scan *scan, void *context), void *context,
                       struct err *err) MUST_USE;

/* More than one profile type: ERR_INVALID, naming them. Before that, types are dropped that begin
 * after the window and were found as its neighbours. */
enum err_code scan_check_types(struct scan *scan) MUST_USE;
/*
 * For a question that found nothing: ERR_NOT_FOUND, naming the types that the window has, when it
 * names a type that is none of them; not when it is one and labels do not match, nor when there are
 * none at all.
 */
enum err_code scan_explain_nothing(const struct scan_source *source,
                                   const struct store_query *query, struct arena *arena,
                                   struct err *err) MUST_USE;
/* Magnitudes of all tasks together must be below 2^63, else ERR_TOO_LARGE: then sums are exact. */
enum err_code scan_check_magnitude(const struct scan *scan) MUST_USE;
/* ERR_LIMIT when the walk and bytes of the answer are more than the query's memory, it has read too
 * much or its time is over, by the processor or the clock, ERR_CANCELLED when nobody waits for it.
 * To be called now and then. */
enum err_code scan_check_limits(const struct scan *scan, size_t bytes) MUST_USE;
/* What became of waiting for others, with the reason where it was given up (ERR_CANCELLED). */
enum err_code scan_explain_wait(const struct scan *scan, enum err_code code) MUST_USE;

/*
 * Blocks are open for their series, so that of granules only profiles can be read. This opens the
 * task's with its stacks, which stay open as long; where they cannot be read the task is broken,
 * and passed over. Handles: what scan_run does.
 */
enum err_code scan_open_stacks(struct scan *scan, struct scan_task *task) MUST_USE;
/* For all tasks, several blocks at once; those that are broken are none any more. With hashes those
 * are made, too, where a union is asked for. */
enum err_code scan_open_all_stacks(struct scan *scan, bool wants_hashes) MUST_USE;

/* Task `at` is read now, the next ones are asked of the disk: their totals, and where the window is
 * not all of a granule its profiles and rows. */
void scan_read_ahead(struct scan *scan, uint32_t at);
/* The same of tasks that are read in place of the walk's. */
void scan_read_ahead_of(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                        uint32_t at);

/* A task was read, or could not be (code): what is broken is counted, and passed over. */
enum err_code scan_note_read(struct scan *scan, struct scan_task *task, uint64_t row_count,
                             uint64_t bytes, enum err_code code) MUST_USE;

/* The first and the last moment of the granule's hour. */
void scan_find_hour(const struct block_granule *granule, int64_t *ret_first_ns,
                    int64_t *ret_last_ns);

/* An hour of which totals alone are kept does not fit the question: the answer is without it. */
void scan_note_cut(struct scan *scan, const struct scan_task *task);

/* Counts the tasks that are totals of series without a label that the question asks for: of these
 * names, of its filter, that a selector requires, or any. Samples may have had it. To be called
 * before the tasks are read. */
void scan_count_unlabelled(struct scan *scan, const struct span *names, size_t name_count);

/* How many of the task's profiles are in the window, or reach into it. */
static inline uint32_t scan_profile_count(const struct scan_task *task)
{
    return task->is_neighbour ? 0 : task->end - task->first - task->outside_count;
}

/* The ordinal of the first neighbour before a moment, among ascending profiles: neighbours are the
 * profiles of the CADENCE_NEIGHBOURS nearest times, of deltas only those without a duration. end is
 * the ordinal of the first profile at the moment or later; it is returned if there is none. */
uint32_t scan_find_before(const struct block_profile *profiles, uint32_t end,
                          enum store_aggregation aggregation);
/* The ordinal behind the last neighbour of profiles[first] and later ones; first if there is none.
 */
uint32_t scan_find_after(const struct block_profile *profiles, uint32_t first, uint32_t count,
                         enum store_aggregation aggregation);

/* Is the window all of the task's granule? */
static inline bool scan_is_whole(const struct scan_task *task)
{
    return task->end - task->first == task->granule->profile_count;
}

/* Orders tasks by series; those of one series stay in order of blocks and hours. */
void scan_sort_by_series(struct scan *scan);

#endif
