/*
 * store: continuous profiles of many tenants: durable when acknowledged, merged when asked.
 *
 * The only header of this room that others include. A tenant is a number here; who may ask is
 * decided above. See store/DESIGN.md for how it works.
 *
 * Threads: a store is shared by any number.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/symbolize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct batch;
struct filter;
struct flight_entry;
struct label_filter;
struct object_store;
struct pg_connection;
struct pg_pool;
struct profile;
struct store;

/* ---- names of addresses ---- */

/* A binary's addresses, ascending and distinct: offsets in its file where the sender told how it
 * was mapped, else as it gave them. Either of build_id and file may be empty, not both. */
struct frame_query {
    int64_t tenant_id;
    struct span build_id; /* hexadecimal */
    struct span file;
    const uint64_t *addresses;
    uint32_t address_count;
};

/*
 * Who knows names, asked when a question is answered, never when profiles come in: what gets its
 * names late has them in old profiles too. Filters of functions match these names. A store asks for
 * the addresses of each block and answer anew, so a resolver keeps what is expensive. Threads: any.
 */
struct frame_resolver {
    void *context;
    /* Grows whenever names of the tenant's binaries may have changed: answers of one generation
     * have the same names. NULL: always 0. */
    uint64_t (*generation)(void *context, int64_t tenant_id);
    /* Told of a question's binaries before the first of them is asked about, where there are
     * several, so that what is known of them is fetched at once. May be NULL. Handles: any, as
     * resolve. */
    enum err_code (*prepare)(void *context, int64_t tenant_id,
                             const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err);
    /* answers[i] is of addresses[i], zeros to begin with; what it points to lives in arena, or
     * until the call after this one of the same thread. Not to know is no error. Handles: any; it
     * is that of the whole question. */
    enum err_code (*resolve)(void *context, const struct frame_query *question, struct arena *arena,
                             struct symbolize_frames *answers, struct err *err);
};

/* What became of the addresses without names that an answer needed. */
struct store_symbolization {
    uint64_t generation;    /* of before the first was asked: a later one may know more */
    uint32_t address_count; /* that were asked: per answer of merges, per block of filters */
    uint32_t unknown_count; /* of them those that stay binary and address */
};

/* A block that a query could not read. */
struct store_damage {
    int64_t tenant_id;
    const char *object_key;
    enum err_code code; /* ERR_CORRUPT, ERR_NOT_FOUND (it is lost), ERR_IO (unreadable) */
    const char *message;
};

struct store_options {
    struct object_store *objects;  /* outlives the store */
    struct pg_pool *database;      /* as perfolio_server: row-level security applies */
    struct pg_pool *jobs_database; /* as perfolio_jobs: flushes and background work */
    const char *name;              /* of this server, for people: host and process */
    int64_t retention_s;           /* of tenants that have none of their own; 0: for ever */
    int64_t query_time_s;          /* that a question of such a tenant may take by the clock */
    int flush_interval_ms;         /* how long the first batch of a flush waits for others; 0: 25 */
    int flush_requests;            /* so many that wait need no more company; 0: any number */
    size_t max_waiting_bytes;      /* of batches that wait for a flush; 0: 64 MiB */
    size_t cache_bytes;            /* of open blocks; 0: 256 MiB */
    size_t answer_bytes;           /* of what is kept for the same question again; 0: nothing */
    const struct frame_resolver *resolver; /* outlives the store; NULL: nobody knows names */
    /* Told what background work could not do; it is tried again. Any thread. May be NULL. */
    void (*report)(void *context, const char *work, const struct err *err);
    void *report_context;
    /* Called for each block, or granule of one, that a query could not read and left out. Any
     * thread. May be NULL. */
    void (*damaged)(void *context, const struct store_damage *damage);
    void *damaged_context;
};

/* Starts the thread that flushes; the database may come later. */
enum err_code store_open(const struct store_options *options, struct store **ret_store,
                         struct err *err) MUST_USE;
/* Flushes what waits. Nobody may use the store any more. NULL is a no-op. */
void store_close(struct store *store);

/* ---- in ---- */

enum { STORE_BATCH_ID_BYTES = 32 };

struct store_receipt {
    uint64_t row_count;
    uint64_t bytes;    /* that the batch takes in the segment */
    bool is_duplicate; /* it had been taken before: nothing was added */
};

/*
 * Adds a batch to a tenant's profiles. When this returns ERR_NONE they are durable and seen by
 * every query that begins afterwards. batch_id makes a batch that is sent twice count once; NULL
 * where there is none. Handles: ERR_BUSY (too much waits already), ERR_TOO_LARGE, ERR_NOT_FOUND (no
 * such tenant), ERR_INVALID (all of it is older than the tenant keeps), ERR_IO, ERR_DATABASE.
 */
enum err_code store_append(struct store *store, int64_t tenant_id, const struct batch *batch,
                           const uint8_t *batch_id, struct store_receipt *ret_receipt,
                           struct err *err) MUST_USE;

/*
 * Several batches of one request, of which all are added or none. Blocks are made of them one by
 * one, so that a batch is needed until store_addition_put returns only. An addition belongs to one
 * thread.
 */
struct store_addition;

struct store_addition *store_addition_create(struct store *store, int64_t tenant_id);
/* What was not committed is forgotten. NULL is a no-op. */
void store_addition_destroy(struct store_addition *addition);
/* batch_id as in store_append; it is copied. Handles: ERR_TOO_LARGE. */
enum err_code store_addition_put(struct store_addition *addition, const struct batch *batch,
                                 const uint8_t *batch_id, struct err *err) MUST_USE;
/* At most once. The database is not waited for after deadline_ns of clock_monotonic_ns (0: 15 s
 * from now). Handles: what store_append does. Of the receipt, is_duplicate is set when all batches,
 * of which there is at least one, had been taken before. */
enum err_code store_addition_commit(struct store_addition *addition, int64_t deadline_ns,
                                    struct store_receipt *ret_receipt, struct err *err) MUST_USE;

/*
 * Deletes what a tenant has stored of a selector's profiles that begin at start_ns and later, and
 * before end_ns: in a transaction of the caller's, begun for that tenant as perfolio_server, which
 * may do more in it: row-level security keeps other tenants' profiles out of reach. From its commit
 * on no question reads any of that; within minutes no object has it. What comes later is not meant;
 * but a batch id that was known stays so. Handles: ERR_INVALID (the selector; the message points at
 * the place), ERR_NOT_FOUND (no such tenant), ERR_RATE_LIMITED (100 of the last hour are not done
 * yet).
 */
enum err_code store_delete(struct pg_connection *connection, struct arena *arena, int64_t tenant_id,
                           struct span selector, int64_t start_ns, int64_t end_ns, int64_t *ret_id,
                           struct err *err) MUST_USE;

/* Is it one that what is kept may have? *ret_canonical is in arena and the same for selectors that
 * differ only in what selector_append_canonical (store/block/selector.h) says.
 * Handles: ERR_INVALID, pointing at the place. */
enum err_code store_check_selector(struct arena *arena, struct span selector,
                                   const char **ret_canonical, struct err *err) MUST_USE;

/* Of a series' type and labels: the same in every block and process. */
uint64_t store_series_hash(const struct batch *batch, uint32_t series);

/* ---- out ---- */

/* How values of several profiles of one series become one; those of one moment are one snapshot. */
enum store_aggregation {
    STORE_SUM,        /* deltas: each profile tells what happened in its time */
    STORE_MEAN,       /* gauges: the sum over series, averaged over the time that any covers */
    STORE_DIFFERENCE, /* counters since a start: differences of consecutive snapshots */
    STORE_AGGREGATION_COUNT
};
const char *
store_aggregation_name(enum store_aggregation aggregation); /* "sum", "mean", "difference" */

/* What one series had at one moment: the same however its blocks are compacted. */
struct store_profile_id {
    int64_t time_ns;
    uint64_t series;
};

/* Room for what an answer is known by: all questions that have it in common have one answer. */
enum { STORE_IDENTITY_BYTES = 96 };

/* What limits are called and where they are set; NULL: nothing is said of it. */
struct store_limit_texts {
    const char *cpu;
    const char *time;
    const char *memory;
    const char *read;
};

/* The memory of all questions together, which is shared out by whoever asks them. */
struct store_memory {
    /* A question is about to hold so many bytes: how many it may, fewer when there is no room. */
    size_t (*grow)(void *context, size_t bytes);
    /* It needed so many, got fewer and has let go of all: it begins again after ERR_NONE, and
     * will never need more than most. Any code is that of the question. */
    enum err_code (*wait)(void *context, size_t needed, size_t most, struct err *err);
    void *context;
};

struct store_query {
    int64_t tenant_id;
    /* process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"}; any of them; none: all. Labels
     * that no series has may be ones of samples, which are filtered by them (store/query/scan.h).
     */
    const struct span *selectors;
    size_t selector_count;
    const char *selectors_name;             /* in messages, its number behind it; NULL: "query" */
    const struct store_profile_id *profile; /* its series alone, as it is; NULL: all */
    bool wants_single_profiles;             /* single ones: what is kept as totals alone is none */
    /* Rows whose labels it keeps: their own, trace_id and span_id, and those of their series that
     * they do not have themselves. NULL: all. Of merges and values over time. */
    const struct label_filter *label_filter;
    /* Of merges: labels that the answer's samples shall have: those named, or all but ids of traces
     * and spans, and those named. */
    const struct span *label_names;
    size_t label_name_count;
    bool wants_all_labels;
    bool wants_own_profile; /* that nobody else has, to be changed */
    /* Of merges: told what the answer is known by before anything is added up. True: that answer is
     * there already, and none is made. NULL: one is made. */
    bool (*has_result)(void *context, const char *identity);
    void *has_result_context;
    const struct frame_resolver *resolver; /* who knows names, for once; NULL: the store's own */
    int64_t start_ns;                      /* profiles that begin at start_ns and later … */
    int64_t end_ns;                        /* … and before end_ns */
    /* Also deltas that begin at most so long before start_ns and end after it: of values over time
     * and of merges, which set both themselves. */
    int64_t reach_ns;
    /* Above 0: also the neighbours of the window's snapshots, and of its deltas without a duration:
     * a few before start_ns, at most reach_ns, and a few after end_ns, at most so long
     * (store/query/cadence.h says how many are needed). */
    int64_t ahead_ns;
    int64_t cpu_deadline_ns;           /* of parallel_cpu_ns(); 0: none */
    struct wait_limit wait_limit;      /* a deadline of the clock's, and whether anybody waits */
    size_t max_memory;                 /* 0: 1 GiB */
    uint64_t max_read_bytes;           /* of stored profiles, and to open what has them; 0: any */
    struct store_limit_texts texts;    /* of these four, for ERR_LIMIT */
    const struct store_memory *memory; /* NULL: as if there were no other questions */
};

/* The parts of a profile type's name, in their order. */
enum store_type_part {
    STORE_TYPE_NAME,
    STORE_TYPE_SAMPLE_TYPE,
    STORE_TYPE_SAMPLE_UNIT,
    STORE_TYPE_PERIOD_TYPE,
    STORE_TYPE_PERIOD_UNIT,
    STORE_TYPE_PARTS
};

struct store_type {
    const char *name; /* whole */
    struct span parts[STORE_TYPE_PARTS];
    bool is_delta;
    enum store_aggregation aggregation;
};

struct store_label {
    struct span name;
    struct span value;
};

struct store_series {
    const struct store_label *labels; /* by name */
    uint32_t label_count;
    uint32_t type; /* index */
    uint64_t hash; /* as store_series_hash */
};

/* What was read for an answer. */
struct store_statistics {
    uint32_t block_count;
    uint32_t granule_count;
    uint32_t series_count;
    uint64_t profile_count;
    uint64_t row_count;         /* whose values are in the answer, by rows or by totals */
    uint64_t bytes_read;        /* of blocks that are open already, too */
    uint32_t broken_count;      /* blocks and granules that cannot be read: they are left out */
    const char *broken_message; /* of the first; in the arena; NULL when there is none */
    /* Blocks that are left out since their strings would take too much of the query's memory
     * (store/block/oversized.h). */
    uint32_t oversized_count;
    const char *oversized_message; /* of the largest; in the arena; NULL when there is none */
    /* Hours of which totals alone are kept, by series and block: those in the answer, and those
     * that are left out, since they are not in the window, or in one step, as a whole. */
    uint32_t totals_count;
    uint32_t cut_count;
    /* Of totals_count: of series without a label that is asked for, which samples may have had. */
    uint32_t unlabelled_count;
    struct store_symbolization names;
};

struct store_result {
    const struct profile *profile; /* until store_result_fini; others may have it too */
    struct profile *own_profile;   /* the same where the query wants its own */
    struct flight_entry *kept;
    bool is_known;                       /* the query has it already: there is no profile */
    char identity[STORE_IDENTITY_BYTES]; /* what it is known by; empty: it is like no other */
    enum store_aggregation aggregation;
    const char *type;        /* the whole name of the profile type; in the arena */
    int64_t left_out;        /* what the samples that label_filter does not keep have together */
    int64_t wanted_reach_ns; /* of store/query/neighbours.h, for who makes it */
    /* Of label_names one that no sample has, though there are some: which there are; NULL: none. */
    const char *absent_label;
    struct store_statistics statistics;
};

/*
 * One profile of all that the selector finds: samples are its distinct stacks, with each
 * combination of the labels that are asked for. Without any match it has none. Handles: ERR_INVALID
 * (the selector; the message points at the place), ERR_NOT_FOUND (no profile type of that name in
 * the window; the message says which there are), ERR_LIMIT (the query's limits), ERR_TOO_LARGE
 * (values that add up to too much), ERR_CANCELLED, what the query's memory gives. What is broken is
 * left out, and the statistics say so.
 */
enum err_code store_merge(struct store *store, struct arena *arena, const struct store_query *query,
                          struct store_result *ret_answer, struct err *err) MUST_USE;
/* Gives back what an answer has; of zeros a no-op. */
void store_result_fini(struct store_result *answer);
/* Bytes that kept answers take. */
size_t store_result_bytes(struct store *store);
/* And that open blocks take. */
size_t store_block_bytes(struct store *store);

/* ---- what there is ---- */

/* Types and series with profiles in a window; all in the arena. */
struct store_series_list {
    const struct store_type *types;    /* by name */
    const struct store_series *series; /* by text */
    const char *const *texts;          /* of each series: a selector that finds it, and tells it */
    uint32_t type_count;
    uint32_t series_count;
    struct store_statistics statistics;
};

/* Handles: as store_merge, but that a type which is not there finds nothing. */
enum err_code store_list_series(struct store *store, struct arena *arena,
                                const struct store_query *query, struct store_series_list *ret_list,
                                struct err *err) MUST_USE;

/*
 * A label that the first selector of the query, which finds nothing, requires, and that no series
 * with a profile in the window has, whatever its type, nor any sample. *ret_name is empty where
 * there is none; it lives in the arena. Handles: as store_list_series.
 */
enum err_code store_find_absent_label(struct store *store, struct arena *arena,
                                      const struct store_query *query, struct span *ret_name,
                                      struct err *err) MUST_USE;

/* Names of the series' labels, distinct and in order, in the arena. */
void store_list_label_names(struct arena *arena, const struct store_series_list *list,
                            const struct span **ret_names, uint32_t *ret_count);
/* Values that the label has; "__profile_type__" stands for the types' names. */
void store_list_label_values(struct arena *arena, const struct store_series_list *list,
                             struct span label, const struct span **ret_values,
                             uint32_t *ret_count);

/* ---- over time ---- */

enum { STORE_RANGE_STEPS_MAX = 11000, STORE_RANGE_SERIES_MAX = 1000 };

struct store_range_query {
    struct store_query query;
    int64_t step_ns;             /* at least 1 */
    int64_t lead_ns;             /* so long before start_ns the first step begins; below step_ns */
    const struct span *group_by; /* names of labels; none: all series are one */
    size_t group_by_count;
    /* At most STORE_RANGE_SERIES_MAX: of more series the largest by their sum over the window, of
     * equal ones the first by their labels, are returned, and all others as one. */
    uint32_t max_series;
    const struct filter *filter; /* its focus and ignore: of these stacks alone; NULL: of all */
    /* Of deltas: a sample that came with the moments when it was seen is in their steps, its value
     * in equal parts, and not in that of its profile's begin. Those outside the window are left
     * out. */
    bool is_by_timestamps;
    /* The values are to be read by time: levels, which have no rate, are refused. */
    bool is_rate;
};

/*
 * One step of a group of series. Deltas are spread over their durations, differences of counters
 * over the time between their snapshots, and a gauge holds until its next snapshot
 * (store/query/spread.h). value is what deltas and counters have in the step, rounded so that the
 * values of all steps add up to the series' total; of gauges the rounded average. average is the
 * exact value, or integral of the gauges, divided by covered_ns: the part of the step that the
 * profiles of any series of the group cover; where nothing does, though a sample's moment lies
 * there, by the step. Steps that nothing covers are left out.
 */
struct store_point {
    uint32_t step;
    int64_t value;
    double average; /* of deltas and counters per ns */
    uint64_t covered_ns;
};

struct store_range_series {
    const struct store_label *labels; /* those of group_by; one that series lack is empty */
    struct store_point *points;
    uint32_t point_count;
    uint64_t covered_ns; /* the part of the window that profiles of any series cover */
    /* In the window, whatever the steps are; gauges: 0. Values and totals of all series, and of
     * other, add up to those of one series without groups. */
    int64_t total;
    double average; /* as of a point, for all of covered_ns: the same for any steps */
};

struct store_range {
    const struct store_type *type;           /* NULL: nothing matches */
    const struct store_range_series *series; /* by labels */
    uint32_t series_count;
    /* What all series beyond max_series have together, without labels: so that values of a step add
     * up to the rounded total. NULL: there are no more. */
    const struct store_range_series *other;
    uint32_t other_count; /* how many series that is */
    /* Deltas without a duration, and the median over all series of the usual interval of such
     * deltas (0 for a series whose deltas all have a duration): shorter steps show more than is
     * known of most series. */
    uint64_t unknown_count;
    int64_t interval_ns;
    /* The longest interval of a series, and how many series have one above the step. */
    int64_t longest_interval_ns;
    uint32_t longer_count;
    struct store_statistics statistics;
};

/* All in arena. Handles: as store_merge; ERR_TOO_LARGE also for more steps. */
enum err_code store_range(struct store *store, struct arena *arena,
                          const struct store_range_query *query, struct store_range *ret_range,
                          struct err *err) MUST_USE;

/* ---- single profiles ---- */

enum { STORE_PROFILES_MAX = 10000 };

struct store_profile_query {
    struct store_query query;
    uint32_t max_profiles;                /* at most STORE_PROFILES_MAX */
    const struct store_profile_id *after; /* the last of the page before; NULL: none */
};

struct store_profile_entry {
    struct store_profile_id id;
    uint32_t series; /* index */
    int64_t duration_ns;
    int64_t total; /* of its values */
};

/* The newest first; what a series has at one moment is one entry. All in the arena. */
struct store_profile_list {
    const struct store_type *types;
    const struct store_series *series;
    const struct store_profile_entry *profiles;
    uint32_t profile_count;
    bool has_more;
    struct store_statistics statistics;
};

/* Any types may match. Handles: as store_list_series. */
enum err_code store_list_profiles(struct store *store, struct arena *arena,
                                  const struct store_profile_query *query,
                                  struct store_profile_list *ret_list, struct err *err) MUST_USE;

/* ---- as a table ---- */

/* Where an export goes. */
struct store_export_sink {
    /* Forgets what came before: an export begins anew when a merge of blocks passes it. */
    enum err_code (*begin)(void *context, struct err *err);
    enum err_code (*append)(void *context, struct span bytes, struct err *err);
    void *context;
};

enum { STORE_EXPORT_LABELS_MAX = 256 };

/*
 * The samples that the selectors find, of any profile types, as one Parquet file
 * (lib/io/parquet.h), whose columns store/query/export.h tells. Of the query count label_filter and
 * what store_merge takes. Samples come as they were sent, whatever their type's rule. Handles: as
 * store_merge; ERR_TOO_LARGE (more than STORE_EXPORT_LABELS_MAX names of labels), what the sink
 * gives.
 */
enum err_code store_export(struct store *store, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err) MUST_USE;

/* ---- for operators, beside a server that runs or not ---- */

enum store_problem {
    STORE_PROBLEM_BROKEN,     /* a checksum, a number or an end is wrong */
    STORE_PROBLEM_UNREADABLE, /* the disk or the bucket refuses it */
    STORE_PROBLEM_MISSING,    /* the catalogue names it, and there is none */
    STORE_PROBLEM_DIFFERS,    /* whole, but not what the catalogue says */
    STORE_PROBLEM_COUNT
};

struct store_check {
    struct pg_pool *database; /* of who may see all tenants */
    struct object_store *objects;
    const char *const *keys; /* only these objects are read; NULL: all */
    uint32_t key_count;
    /* Called for each. */
    void (*found)(void *context, enum store_problem problem, const char *object_key,
                  int64_t tenant_id, const char *detail);
    /* Called before each part of an object; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t count, uint64_t byte_count);
    void *context;
};

struct store_check_result {
    uint64_t object_count;
    uint64_t block_count;    /* that are whole */
    uint64_t byte_count;     /* of these */
    uint64_t unmarked_count; /* parts that could not be merged and are whole now */
    uint64_t problem_counts[STORE_PROBLEM_COUNT];
};

/*
 * Reads every byte that the catalogue names, verifies all checksums and compares what is there with
 * what the catalogue says. What is merged or deleted meanwhile is no problem. What could not be
 * read once, and is whole now, is merged from then on. Handles: what objects and database do;
 * problems are no errors.
 */
enum err_code store_verify(const struct store_check *check, struct store_check_result *ret_result,
                           struct err *err) MUST_USE;

/* The catalogue at one time, for a copy of the objects that is verified later. */
struct store_catalogue;
/* In arena. */
enum err_code store_catalogue_read(struct pg_pool *database, struct arena *arena,
                                   const struct store_catalogue **ret_catalogue,
                                   struct err *err) MUST_USE;
/* As store_verify, of a copy: every difference is a problem, and nothing is written to the
 * database. check->database and check->keys are not used. */
enum err_code store_verify_copy(const struct store_check *check,
                                const struct store_catalogue *catalogue,
                                struct store_check_result *ret_result, struct err *err) MUST_USE;

/* What one tenant has on one level: 0 are segments, each part of one is a block here. */
struct store_measure {
    int64_t tenant_id;
    const char *tenant_name;
    uint32_t level;
    uint64_t block_count;
    uint64_t bytes;
    uint64_t row_count;
    int64_t begin_ns; /* of the oldest profile, and of the newest */
    int64_t end_ns;
    uint64_t broken_count;   /* that cannot be merged */
    uint64_t merging_count;  /* that are being merged */
    uint64_t deleting_count; /* that wait to be written without what was deleted */
    uint64_t replaced_count; /* not among block_count: they wait for their deletion */
    uint64_t replaced_bytes;
};

/* By tenant and level, in arena. */
enum err_code store_measure(struct pg_pool *database, struct arena *arena,
                            const struct store_measure **ret_measures, uint32_t *ret_count,
                            struct err *err) MUST_USE;

#endif
