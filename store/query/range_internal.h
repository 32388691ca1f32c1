/*
 * range_internal: the state of one query for values over time, which range_query.c, range_series.c
 * and range_read.c share. No other file includes it.
 *
 * range_query.c plans the passes over the series, range_series.c adds up one series, range_read.c
 * reads one task of the scan. Threads: one.
 */
#ifndef STORE_QUERY_RANGE_INTERNAL_H
#define STORE_QUERY_RANGE_INTERNAL_H

#include "lib/base/map.h"
#include "store/query/frame_resolution.h"
#include "store/query/neighbours.h"
#include "store/query/range_groups.h"
#include "store/query/range_query.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"
#include "store/query/stack_filter.h"
#include "store/values/counter_increase.h"
#include "store/values/interleaving.h"
#include "store/values/partial_coverage.h"
#include "store/values/spread.h"

/* A series has no group yet (RANGE_NO_GROUP), one group (its number) or RANGE_SEVERAL_GROUPS. */
#define RANGE_NO_GROUP UINT32_MAX
#define RANGE_SEVERAL_GROUPS (UINT32_MAX - 1)

/* The value of one profile in one group. */
struct row_sum {
    int64_t value;
    uint32_t group;
    uint32_t ordinal;
};

struct range {
    struct scan *scan;
    const struct store_range_query *query;
    enum store_aggregation aggregation;
    struct spread_steps steps;
    uint32_t step_count;
    struct stack_filters *filters;
    struct names_memory names_memory; /* checks the names that stack_query looks up */
    struct stack_filter_query stack_query;
    const bool **kept_stacks; /* per block in use: per stack; NULL: not yet known */
    struct flight_entry **kept_entries;
    uint32_t kept_count; /* blocks in use */
    size_t kept_bytes;
    uint32_t series_count; /* of the scan */
    struct row_labels *labels;
    struct range_groups *groups; /* by the number of the labels' group */
    uint32_t *groups_of_series;  /* a group's number, RANGE_NO_GROUP or RANGE_SEVERAL_GROUPS */
    bool is_second_pass;
    bool is_of_deltas;      /* false also if no series has a profile within the reach */
    bool lacks_neighbours;  /* the query has to run again, with neighbours */
    uint64_t unknown_count; /* spread.unknown_count after the first pass */
    int64_t *intervals_ns;  /* of series with a known interval; see note_series_interval */
    uint32_t interval_count;
    struct partial_coverage partial;
    uint32_t crowded_count;  /* as in struct store_range */
    struct spread_hour hour; /* the last one with totals only, of hour_series */
    uint32_t hour_series;    /* of the task */
    enum err_code stop_code; /* the exceeded limit, for which spread has stopped */
    uint64_t checked_at;     /* spread.add_count at the last check of the limits */
    struct neighbours neighbours;
    /* The current series: */
    struct spread spread;
    bool has_left_out;  /* a task was skipped: none of its rows is wanted, or it has none */
    bool has_lost_rows; /* rows of deltas or gauges were read whose labels are not wanted */
    struct counter_increase increase;
    struct interleaving interleaving; /* of gauges */
    uint64_t increase_magnitude; /* counter_increase.magnitude of all series of the pass so far */
    struct map_u64 earlier_increases; /* indexes of values, by time of the snapshot */
    /* The current granule: */
    int64_t *values; /* per profile, of one group */
    uint32_t value_capacity;
    struct map_u64 row_numbers; /* of the other groups, by group and ordinal */
    struct row_sum *row_sums;
    uint32_t row_sum_count;
    uint32_t row_sum_capacity;
    uint32_t *keys; /* per row */
    uint32_t key_capacity;
    struct store_range result;
};

/* ---- range_read.c ---- */

enum err_code range_check_limits(const struct range *range) MUST_USE;
/* The same with more bytes, for names or the result; context is a struct range
 * (store/query/frame_resolution.h). */
enum err_code range_check_more(void *context, size_t bytes, struct err *err) MUST_USE;
/* Adds the values and the covered time of a task to range->spread. */
enum err_code range_read_task(struct range *range, struct scan_task *task) MUST_USE;
/* Adds only the covered time of a task, whose profiles have no rows, or none with wanted labels. */
enum err_code range_read_times(struct range *range, struct scan_task *task) MUST_USE;
/* True for a granule of deltas or gauges without rows: it has no labels of samples, so it is time
 * in which each group of the series is 0. Whether such profiles have a granule of their own depends
 * on compaction. */
bool range_is_idle(const struct range *range, const struct scan_task *task);
/* True for an hour of deltas with totals only that is in several steps: its sum cannot be divided.
 */
bool range_is_cut(const struct range *range, const struct scan_task *task);

/* ---- range_series.c ---- */

/* Reads the tasks of one series, begin <= task < end, and adds it to range->groups. */
enum err_code range_read_series(struct range *range, struct scan_task *tasks, uint32_t begin,
                                uint32_t end) MUST_USE;

#endif
