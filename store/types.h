/*
 * types: the types of store/ that its callers and the files inside it share: queries, their results
 * and statistics, resolvers of names, checks. It declares no functions; those are in store/store.h,
 * for the callers, and in the headers of the modules.
 *
 * Ownership: what a type points to belongs to the caller (queries) or to the arena of the function
 * that returns it (results), if its comment states nothing else.
 */
#ifndef STORE_TYPES_H
#define STORE_TYPES_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/batch/batch.h"
#include "lib/profile/symbolize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct filter;
struct flight_entry;
struct label_filter;
struct object_store;
struct pg_pool;
struct profile;

/* ---- ingest ---- */

enum {
    STORE_BATCH_ID_BYTES = 32,
    STORE_BATCH_ID_S = 24 * 3600 /* how long ids are kept */
};

/* ---- symbolization ---- */

/* Addresses of one binary, ascending and distinct: offsets in its file where the sender reported
 * how it was mapped, else as the sender gave them. build_id or file may be empty, but not both. */
struct frame_query {
    int64_t tenant_id;
    struct span build_id; /* hexadecimal */
    struct span file;
    const uint64_t *addresses;
    uint32_t address_count;
    bool *is_incomplete; /* the resolver sets it if it left out names that it may have soon */
};

/*
 * Finds names for addresses. Names are looked up when a query runs, never when profiles arrive, so
 * names that become available later also appear in old profiles. Filters of functions match these
 * names. A store looks up the addresses of each block and each result again, so a resolver caches
 * what is expensive. Threads: any.
 */
struct frame_resolver {
    void *context;
    /* Grows whenever names of the tenant's binaries may have changed: results of one generation
     * have the same names. NULL: always 0. */
    uint64_t (*generation)(void *context, int64_t tenant_id);
    /* Called with all binaries of a query before the first `resolve`, when there are several, so
     * that a resolver can fetch what it needs at once. May be NULL. Errors: as resolve. */
    enum err_code (*prepare)(void *context, int64_t tenant_id,
                             const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err);
    /* Sets frames[i], zero before the call, to the frames of addresses[i]. The data that they point
     * to is in arena, or valid until the thread's next call. An unknown address is no error. If
     * this function fails, the whole query fails with its code. */
    enum err_code (*resolve)(void *context, const struct frame_query *query, struct arena *arena,
                             struct symbolize_frames *frames, struct err *err);
};

/* Counts the addresses without names that a result needed. */
struct store_symbolization {
    uint64_t generation;    /* before the first lookup: a later generation may know more */
    uint32_t address_count; /* looked up: per result of a merge, per block of a filter */
    uint32_t unknown_count; /* addresses of address_count without a name: shown as binary+offset */
    bool is_incomplete;     /* names were left out that the resolver may have soon */
};

/* A block that a query could not read. */
struct store_damage {
    int64_t tenant_id;
    const char *object_key;
    enum err_code code; /* ERR_CORRUPT, ERR_NOT_FOUND (lost), ERR_IO (unreadable) */
    const char *message;
};

/* ---- queries ---- */

/* The rule by which values of several profiles of one series are aggregated. Profiles of a gauge or
 * counter with equal times are one snapshot. */
enum store_aggregation {
    STORE_SUM,           /* deltas: events during the profile are summed */
    STORE_MEAN,          /* gauges: sum over series, averaged over the covered time */
    STORE_COUNTER_DELTA, /* counters: increases between consecutive snapshots; in the API
                            "difference" */
    STORE_AGGREGATION_COUNT
};

/* Identifies one snapshot of one series; compaction does not change it. */
struct store_profile_id {
    int64_t time_ns;
    uint64_t series;
};

/* Size of the identity of a result: equal identities mean equal results. */
enum { STORE_IDENTITY_BYTES = 96 };

/* For each limit, the text that messages contain: its name and where it is set. NULL: none. */
struct store_limit_texts {
    const char *cpu;
    const char *time;
    const char *memory;
    const char *read;
};

/* The memory that all queries share; the caller of the query implements it. */
struct store_memory {
    /* Called before a query holds `bytes` in all. Returns how many it may hold, fewer when the
     * memory is used up. */
    size_t (*grow)(void *context, size_t bytes);
    /* Called after grow granted less than `needed` and the query has freed everything. It waits for
     * memory: after ERR_NONE the query starts again; any other code ends the query. most: the query
     * never needs more than that. */
    enum err_code (*wait)(void *context, size_t needed, size_t most, struct err *err);
    void *context;
};

struct store_query {
    int64_t tenant_id;
    /* For example process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"}. A series matches
     * when any selector matches it; none: all series. A label that no series has may be a label of
     * samples, which are filtered by it then (store/query/scan.h). */
    const struct span *selectors;
    size_t selector_count;
    const char *selectors_name;             /* in messages, followed by its number; NULL: "query" */
    const struct store_profile_id *profile; /* only this snapshot, not aggregated; NULL: all */
    bool wants_single_profiles;             /* hours of which only totals are stored are left out */
    /* Keeps the rows whose labels match. A row has the labels of its series, and those labels of
     * its own, trace_id and span_id among them, that the series does not have. NULL: keeps all
     * rows. Used by merges and values over time. */
    const struct label_filter *label_filter;
    /* For merges: the labels of the result's samples. With wants_all_labels these are all labels
     * except ids of traces and spans, plus those named; else only those named. */
    const struct span *label_names;
    size_t label_name_count;
    bool wants_all_labels;
    bool wants_own_profile; /* a copy of the profile that the caller may change */
    /* For merges: called with the identity of the result before rows are read. True: the caller has
     * that result already, and none is computed. NULL: one is computed. */
    bool (*has_result)(void *context, const char *identity);
    void *has_result_context;
    /* For merges: the memory that the caller needs to use a result with this profile, in bytes. It
     * counts as memory of the query. NULL: none. */
    size_t (*result_use_bytes)(const void *context, const struct profile *profile);
    const void *result_use_context;
    const struct frame_resolver *resolver; /* for this query; NULL: the store's own */
    int64_t start_ns;                      /* profiles that begin at start_ns or later … */
    int64_t end_ns;                        /* … and before end_ns */
    /* Also includes deltas that begin at most reach_ns before start_ns and end after it. Values
     * over time and merges set both this and ahead_ns themselves. */
    int64_t reach_ns;
    /* Above 0: also includes the neighbours of the window's snapshots and of its deltas without a
     * duration: a few before start_ns, by at most reach_ns, and a few after end_ns, by at most
     * ahead_ns (store/values/cadence.h defines how many are needed). */
    int64_t ahead_ns;
    int64_t cpu_deadline_ns;           /* in parallel_cpu_ns(); 0: none */
    struct wait_limit wait_limit;      /* wall-clock deadline, and whether the client still waits */
    size_t max_memory;                 /* bytes; 0: 1 GiB */
    uint64_t max_read_bytes;           /* of profiles and of opening their blocks; 0: no limit */
    struct store_limit_texts texts;    /* of these four limits, for ERR_LIMIT */
    const struct store_memory *memory; /* NULL: memory is not shared with other queries */
};

/* The parts of a profile type's name, in order. */
enum store_type_part {
    STORE_TYPE_NAME,
    STORE_TYPE_SAMPLE_TYPE,
    STORE_TYPE_SAMPLE_UNIT,
    STORE_TYPE_PERIOD_TYPE,
    STORE_TYPE_PERIOD_UNIT,
    STORE_TYPE_PARTS
};

struct store_type {
    const char *name; /* the whole name */
    struct span parts[STORE_TYPE_PARTS];
    enum batch_kind kind;
    enum store_aggregation aggregation;
};

struct store_label {
    struct span name;
    struct span value;
};

struct store_series {
    const struct store_label *labels; /* sorted by name */
    uint32_t label_count;
    uint32_t type; /* index */
    uint64_t hash; /* as store_series_hash */
};

/* Statistics of a query: the data that it read. */
struct store_statistics {
    uint32_t block_count;
    uint32_t granule_count;
    uint32_t series_count;
    uint64_t profile_count;
    uint64_t row_count;         /* rows whose values are in the result, read as rows or as totals */
    uint64_t bytes_read;        /* also counts blocks that were open already */
    uint32_t broken_count;      /* unreadable blocks and granules, which are left out */
    const char *broken_message; /* of the first; in the arena; NULL when there is none */
    /* Blocks that are left out because their strings would take too much of the query's memory
     * (store/block/oversized.h). */
    uint32_t oversized_count;
    const char *oversized_message; /* of the largest; in the arena; NULL when there is none */
    /* Hours that have only totals, counted by series and block: those in the result, and those that
     * are left out because the window or a step cuts them. */
    uint32_t totals_count;
    uint32_t cut_count;
    /* The part of totals_count for series that lack a label which the query names; their samples
     * may have had it. */
    uint32_t unlabelled_count;
    /* Hours of the window that have only totals and that no selector matches, because the series
     * lacks a label; their samples may have had it. */
    uint32_t unmatched_count;
    /* Series of counters that restart in more than a quarter of their snapshots. */
    uint32_t restarting_count;
    /* Series of gauges whose snapshots come from several processes in turn
     * (store/values/interleaving.h). */
    uint32_t interleaved_count;
    /* A label that label_filter compares, and that nothing has which the selectors match, as a text
     * for messages. NULL: there is none. */
    const char *absent_filter_label;
    struct store_symbolization names;
};

struct store_result {
    const struct profile *profile; /* until store_result_fini; may be shared with other queries */
    struct profile *own_profile;   /* with wants_own_profile: the profile; may be changed */
    struct flight_entry *kept;
    bool is_known; /* the caller has it already: there is no profile */
    /* equal identities mean equal results; empty: not cacheable */
    char identity[STORE_IDENTITY_BYTES];
    enum store_aggregation aggregation;
    const char *type; /* the whole name of the profile type; in the arena */
    int64_t left_out; /* sum of the samples that label_filter leaves out */
    /* A label of label_names that no sample has, with a list of those that exist, as a text for
     * messages. NULL: all exist. */
    const char *absent_label;
    struct store_statistics statistics;
};

/* ---- lists of types and series ---- */

/* The types and series that have profiles in a window; all in the arena. */
struct store_series_list {
    const struct store_type *types;    /* by name */
    const struct store_series *series; /* sorted by text */
    const char *const *texts;          /* per series: a selector that matches this series only */
    uint32_t type_count;
    uint32_t series_count;
    struct store_statistics statistics;
};

/* ---- values over time ---- */

enum { STORE_RANGE_STEPS_MAX = 11000, STORE_RANGE_SERIES_MAX = 1000 };

struct store_range_query {
    struct store_query query;
    int64_t step_ns;             /* at least 1 */
    int64_t lead_ns;             /* the first step begins so long before start_ns; below step_ns */
    const struct span *group_by; /* names of labels; none: all series are one group */
    size_t group_by_count;
    /* At most STORE_RANGE_SERIES_MAX. When there are more groups, those with the largest sum over
     * the window are returned (ties: the first by labels), and all others as one. */
    uint32_t max_series;
    const struct filter *filter; /* only stacks that its focus and ignore keep; NULL: all stacks */
    /* For deltas: the value of a sample that came with timestamps is divided equally among the
     * steps of these timestamps, in place of its profile's time. Timestamps outside the window are
     * left out. */
    bool is_by_timestamps;
    /* The caller divides the values by time: gauges, which have no rate, are refused. */
    bool is_rate;
};

/*
 * One step of one group. A delta is spread over its duration, a counter's increase over the time
 * between its snapshots, and a gauge holds until its next snapshot (store/values/spread.h). value
 * is the part of deltas and counters in the step, rounded so that the values of all steps add up to
 * the series' total; of gauges it is 0. average is the exact value, or the integral of the gauges,
 * divided by covered_ns: the part of the step that profiles of any series of the group cover. Where
 * nothing is covered but a sample's timestamp lies, it is divided by the length of the step. Steps
 * that nothing covers are left out.
 */
struct store_point {
    uint32_t step;
    int64_t value;
    double average; /* of deltas and counters: per ns */
    uint64_t covered_ns;
};

struct store_range_series {
    const struct store_label *labels; /* those of group_by; empty where a series lacks the label */
    struct store_point *points;
    uint32_t point_count;
    uint64_t covered_ns; /* the part of the window that profiles of any series cover */
    /* The sum over the window, independent of the steps; gauges: 0. The values and totals of all
     * groups and of `other` add up to those of one group of all series. */
    int64_t total;
    double average; /* as of a point, over all of covered_ns: independent of the steps */
};

struct store_range {
    const struct store_type *type;           /* NULL: nothing matches */
    const struct store_range_series *series; /* sorted by labels */
    uint32_t series_count;
    /* The sum of all groups beyond max_series, without labels, so that the values of a step add up
     * to the rounded total. NULL: there are no more groups. */
    const struct store_range_series *other;
    uint32_t other_count; /* the number of groups that `other` sums */
    /* How many deltas have no duration, and the median over all series of the usual interval of
     * such deltas (0 for a series whose deltas all have a duration): shorter steps show more detail
     * than most series have. */
    uint64_t unknown_count;
    int64_t interval_ns;
    /* The longest interval of a series, and how many series have one above the step. */
    int64_t longest_interval_ns;
    uint32_t longer_count;
    /* Hours of series with totals only whose deltas may cover more than the hour, because one
     * extends beyond it by more than a hundredth of an hour: their rates may be too high. */
    uint32_t crowded_count;
    /* The part of the rate of all groups together that is missing, because their series are
     * profiled only part of the time, at different times; 0 if each group has one series. */
    double lacking_part;
    /* Series with a single profile in the window, of which a group sums several, at different
     * times; 0: there are none. */
    uint32_t single_count;
    struct store_statistics statistics;
};

/* ---- single profiles ---- */

enum { STORE_PROFILES_MAX = 10000 };

struct store_profile_query {
    struct store_query query;
    uint32_t max_profiles;                /* at most STORE_PROFILES_MAX */
    const struct store_profile_id *after; /* the last of the previous page; NULL: the first page */
};

struct store_profile_entry {
    struct store_profile_id id;
    uint32_t series; /* index */
    int64_t duration_ns;
    int64_t total; /* sum of its values */
};

/* Newest first; one entry per snapshot of a series. All in the arena. */
struct store_profile_list {
    const struct store_type *types;
    const struct store_series *series;
    const struct store_profile_entry *profiles;
    uint32_t profile_count;
    bool has_more;
    struct store_statistics statistics;
};

/* ---- export as a table ---- */

/* The destination of an export. */
struct store_export_sink {
    /* Discards what was appended before: an export starts again when a compaction replaces its
     * blocks. */
    enum err_code (*begin)(void *context, struct err *err);
    enum err_code (*append)(void *context, struct span bytes, struct err *err);
    void *context;
};

enum { STORE_EXPORT_LABELS_MAX = 256 };

/* ---- for operators ---- */

enum store_problem {
    STORE_PROBLEM_BROKEN,     /* a checksum, a number or a length is wrong */
    STORE_PROBLEM_UNREADABLE, /* the disk or the bucket refuses to read it */
    STORE_PROBLEM_MISSING,    /* the catalogue names it, but there is no object */
    STORE_PROBLEM_DIFFERS,    /* readable, but not what the catalogue records */
    STORE_PROBLEM_COUNT
};

struct store_check {
    struct pg_pool *database; /* role that sees all tenants */
    struct object_store *objects;
    const char *const *keys; /* only these objects are read; NULL: all */
    uint32_t key_count;
    /* Called for each problem. */
    void (*found)(void *context, enum store_problem problem, const char *object_key,
                  int64_t tenant_id, const char *detail);
    /* Called when an object is missing or unreadable, to check whether the object store can be
     * used. ERR_NONE: it can, so the object is a problem. Any other code ends the verification. Not
     * called for a copy. May be NULL: the object is a problem. */
    enum err_code (*check_outage)(void *context, const char *object_key, struct err *err);
    /* Called before each part of an object; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t count, uint64_t byte_count);
    void *context;
};

struct store_check_result {
    uint64_t object_count;
    uint64_t block_count;    /* intact blocks */
    uint64_t byte_count;     /* bytes of the intact blocks */
    uint64_t unmarked_count; /* marked parts that are intact now */
    uint64_t problem_counts[STORE_PROBLEM_COUNT];
};

/* A snapshot of the catalogue, for a copy of the objects that is verified later. */
struct store_catalogue;

/* The data of one tenant on one compaction level. Level 0 are segments; each part of a segment
 * counts as a block here. */
struct store_measure {
    int64_t tenant_id;
    const char *tenant_name;
    uint32_t level;
    uint64_t block_count;
    uint64_t bytes;
    uint64_t row_count;
    int64_t begin_ns; /* start of the oldest and of the newest profile */
    int64_t end_ns;
    uint64_t broken_count;   /* marked: they cannot be merged */
    uint64_t merging_count;  /* leased for a merge */
    uint64_t deleting_count; /* that wait to be rewritten without deleted profiles */
    uint64_t replaced_count; /* replaced by others, not in block_count: they wait for deletion */
    uint64_t replaced_bytes;
};

#endif
