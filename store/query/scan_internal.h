/*
 * scan_internal: struct scan and the state that the files store/query/scan*.c share. scan.c opens
 * blocks and runs a scan, scan_plan.c finds the tasks of a block, scan_damage.c leaves out damaged
 * data, scan_limits.c checks limits, scan_types.c reports profile types.
 *
 * Threads: as scan.h.
 */
#ifndef STORE_QUERY_SCAN_INTERNAL_H
#define STORE_QUERY_SCAN_INTERNAL_H

#include "lib/base/map.h"
#include "store/block/selector.h"
#include "store/query/neighbours.h"
#include "store/query/scan.h"

struct catalogue_place;
struct deletion_set;
struct deletion_set_ids;
struct flight_entry;

enum { SCAN_TEXT_MAX_BYTES = 1 << 30 };

struct scan {
    const struct store_query *query;
    struct arena *arena; /* of the result; types and series live in it */
    struct store_type *types;
    struct store_series *series;
    struct scan_task *tasks; /* by block, series, hour, until the query sorts them */
    uint32_t type_count;
    uint32_t series_count;
    uint32_t task_count;
    uint32_t block_count; /* in use */
    int64_t first_ns;     /* starts of the first and last profile in the window */
    int64_t last_ns;
    struct store_statistics statistics;
    /* Selectors that the labels of samples have to match, because some series lack a label that the
     * selectors compare (row_labels). NULL: the labels of series decide. */
    const struct selector_set *row_selectors;
    /* SCAN_SERIES: samples may have labels that selectors require. */
    bool may_be_of_samples;
    /* A delta without a duration begins within reach_ns before the window, and the query has no
     * ahead_ns, with which it would be a task: only neighbours show whether it ends in the window.
     */
    bool has_open_ends_before;
    struct block_cursor *cursor;
    const struct frame_resolver *resolver;
    struct err *err;
    struct scan_state *state;
};

struct scan_state {
    const struct scan_source *source;
    enum scan_kind kind;
    struct selector_set set;       /* none: every series matches */
    bool matches_known_labels;     /* match series without labels that samples may have */
    bool has_open_labels;          /* a series lacks a label that is compared */
    bool block_has_sample_labels;  /* samples of the current block may have a required label */
    bool needs_sample_labels;      /* a series lacks a required label that samples may have */
    bool needs_rerun;              /* the scan has to run again, with matches_known_labels */
    uint64_t bytes_read;           /* by the first run, if the scan runs again (needs_rerun) */
    struct flight_entry **entries; /* open blocks in use, by block index */
    struct flight_entry **stacks;  /* the same with their stacks; NULL: not opened */
    bool *stacks_failed;           /* they could not be opened with stacks */
    bool *are_dropped; /* oversized blocks left out (store/block/oversized.h); entries has NULL */
    size_t oversized_bytes;                /* memory of the oversized blocks that are in use */
    size_t largest_dropped;                /* strings of the largest block that was left out */
    const struct catalogue_place **places; /* of the open blocks and of the current one, by index */
    struct deletion_set *deleted;
    struct map_bytes type_numbers; /* by whole name */
    struct map_bytes series_numbers;
    uint32_t type_capacity;
    uint32_t series_capacity;
    uint32_t task_capacity;
    size_t cursor_bytes;  /* of the largest granule that was read */
    size_t checked_bytes; /* of the result, at the last check of the limits */
    size_t outer_bytes;   /* of the caller's arena, which adopts the scan's when it succeeds */
    size_t block_bytes;   /* of the blocks in use */
    struct buf text;      /* of the current series */
    size_t granted_bytes; /* share of the memory of all queries */
    size_t needed_bytes;  /* bytes that were not granted; 0: all were */
    uint32_t match_count; /* series compared with selectors */
    uint32_t ahead;       /* index of the first task whose reads were not announced */
    bool is_last_try;     /* an object that is missing now counts as lost, not as swapped */
    bool is_reachable;    /* the object store is reachable: a failing object is damaged */
};

/* The query's reach: scan_reach_back <= time < scan_reach_ahead. */
static inline int64_t scan_reach_back(const struct store_query *query)
{
    int64_t from_ns;
    return __builtin_sub_overflow(query->start_ns, query->reach_ns, &from_ns) ? INT64_MIN : from_ns;
}

static inline int64_t scan_reach_ahead(const struct store_query *query)
{
    int64_t until_ns;
    return __builtin_add_overflow(query->end_ns, query->ahead_ns, &until_ns) ? INT64_MAX : until_ns;
}

/* The earliest start of deltas that extend into the window according to their granules (reach_ns).
 * Granules in between are not read. */
static inline int64_t scan_far_back(const struct store_query *query)
{
    int64_t from_ns;
    if (!query->reach_ns || query->reach_ns > NEIGHBOURS_REACH_MAX_NS)
        return scan_reach_back(query);
    return __builtin_sub_overflow(query->start_ns, NEIGHBOURS_REACH_MAX_NS, &from_ns) ? INT64_MIN
                                                                                      : from_ns;
}

/* Adds the tasks of an open block, whose index is the scan's block_count. Damaged granules are
 * skipped. Errors: ERR_INVALID (a selector), what scan_check_limits returns. */
enum err_code scan_plan_block(struct scan *scan, const struct block *block,
                              const struct deletion_set_ids *deletions) MUST_USE;

/* Adds the task's profiles and times to those of the scan. */
void scan_count_task(struct scan *scan, const struct scan_task *task);

/* Counts and reports damage (code) and returns ERR_NONE; any other failure is returned. */
enum err_code scan_skip_broken(struct scan *scan, const char *object_key,
                               enum err_code code) MUST_USE;

/* The CPU part of scan_check_limits, which is cheap. */
enum err_code scan_check_cpu(const struct scan *scan) MUST_USE;
size_t scan_max_memory(const struct store_query *query);

#endif
