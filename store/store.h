/*
 * store: stores continuous profiles of many tenants. A profile is durable when its request is
 * acknowledged; a query merges what it selects.
 *
 * This is the only header of store/ that other folders include; store/types.h has the types of
 * queries and results. A tenant is a number here; callers check permissions. store/README.md
 * explains how it works and defines the terms.
 *
 * Threads: any number of threads may share a store.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "store/types.h"

struct arena;
struct batch;
struct object_store;
struct pg_connection;
struct pg_pool;
struct store;

struct store_options {
    struct object_store *objects;  /* outlives the store */
    struct pg_pool *database;      /* role perfolio_server: row-level security applies */
    struct pg_pool *jobs_database; /* role perfolio_jobs: flushes and background work */
    const char *name;              /* of this server, for people: host and process */
    int64_t retention_s;           /* of tenants without a retention of their own; 0: for ever */
    int64_t query_time_s;          /* wall-clock limit of a query, of tenants without their own */
    int flush_interval_ms;         /* longest wait of a flush's first batch for others; 0: 25 */
    int flush_requests;            /* a flush starts when so many requests wait; 0: no number */
    size_t max_waiting_bytes;      /* of batches that wait for a flush; 0: 64 MiB */
    size_t cache_bytes;            /* of open blocks; 0: 256 MiB */
    uint64_t copy_bytes;           /* of their copies on the disk; 0: `objects` makes no copies */
    size_t result_cache_bytes;     /* of cached results; 0: none are cached */
    int64_t max_batch_ids;         /* above it, the oldest of the team with most go; 0: no limit */
    size_t merge_bytes;            /* memory of blocks that a merge has open at once; 0: 512 MiB */
    const struct frame_resolver *resolver; /* outlives the store; NULL: no names are looked up */
    /* Called when background work failed, which is tried again. On any thread. May be NULL. */
    void (*report)(void *context, const char *work, const struct err *err);
    void *report_context;
    /* Returns whether the disk has space for a merge to write. is_needed: the merge removes deleted
     * or expired profiles. Called on the thread of the merge. NULL: there is always space. */
    bool (*has_space)(void *context, bool is_needed);
    void *has_space_context;
    /* Called for each block or granule that a query could not read and left out. Any thread. May be
     * NULL. */
    void (*damaged)(void *context, const struct store_damage *damage);
    void *damaged_context;
};

/* Starts the threads for flushes, maintenance and the search for orphans. The database may become
 * available later. */
enum err_code store_open(const struct store_options *options, struct store **ret_store,
                         struct err *err) MUST_USE;
/* Evicts a block that no query uses from the cache, to free its copy on the disk; for a block that
 * is also open with its stacks that takes two calls. false: there is none. */
bool store_evict_block(struct store *store);
/* Flushes the batches that wait and frees the store. No other thread may use it any more. NULL is a
 * no-op. */
void store_close(struct store *store);

/* ---- ingest ---- */

struct store_receipt {
    uint64_t row_count;
    uint64_t bytes;    /* of the batch in the segment */
    bool is_duplicate; /* the batch had been stored before: nothing was added */
};

/*
 * Adds a batch to a tenant's profiles. When this returns ERR_NONE the batch is durable, and every
 * query that begins afterwards sees it. A batch with a batch_id that was stored before is not added
 * again; NULL: no id. Errors: ERR_BUSY (too much waits already), ERR_TOO_LARGE, ERR_NOT_FOUND (no
 * such tenant), ERR_INVALID (all of it is older than the tenant's retention), ERR_IO, ERR_DATABASE.
 */
enum err_code store_append(struct store *store, int64_t tenant_id, const struct batch *batch,
                           const uint8_t *batch_id, struct store_receipt *ret_receipt,
                           struct err *err) MUST_USE;

/* Several batches of one request; either all are added or none. Each batch is encoded by
 * store_addition_put and may be freed when that returns. An addition belongs to one thread. */
struct store_addition;

struct store_addition *store_addition_create(struct store *store, int64_t tenant_id);
/* Discards what was not committed. NULL is a no-op. */
void store_addition_destroy(struct store_addition *addition);
/* batch_id as in store_append; it is copied. Errors: ERR_TOO_LARGE. */
enum err_code store_addition_put(struct store_addition *addition, const struct batch *batch,
                                 const uint8_t *batch_id, struct err *err) MUST_USE;
/* Called at most once. Does not wait for the database after deadline_ns of clock_monotonic_ns (0:
 * 15 s from now). receipt->is_duplicate is set when there is at least one batch and all had been
 * stored before. Errors: as store_append. */
enum err_code store_addition_commit(struct store_addition *addition, int64_t deadline_ns,
                                    struct store_receipt *ret_receipt, struct err *err) MUST_USE;

/*
 * Deletes a tenant's stored profiles that match the selector and begin at start_ns or later
 * and before end_ns. It runs in the caller's transaction, which was begun for that tenant as
 * perfolio_server and may contain other statements; row-level security keeps other tenants'
 * profiles out of reach. From the commit on no query reads these profiles; within minutes no object
 * contains them. Profiles that arrive later are not deleted, but the ids of deleted batches stay
 * known. *ret_id is the deletion's id. Errors: ERR_INVALID (the selector; the message points at the
 * position), ERR_NOT_FOUND (no such tenant), ERR_RATE_LIMITED (100 deletions of the last hour are
 * not done yet, or there were 1,000 in 24 hours).
 */
enum err_code store_delete(struct pg_connection *connection, struct arena *arena, int64_t tenant_id,
                           struct span selector, int64_t start_ns, int64_t end_ns, int64_t *ret_id,
                           struct err *err) MUST_USE;

/*
 * Checks a selector that is to be stored, such as a retention rule's. *ret_canonical is in arena;
 * selectors that differ only in the ways listed at selector_append_canonical
 * (store/block/selector.h) have the same text. Errors: ERR_INVALID (the message points at the
 * position).
 */
enum err_code store_check_selector(struct arena *arena, struct span selector,
                                   const char **ret_canonical, struct err *err) MUST_USE;

/* Hashes a series' type and labels; the hash is the same in every block and process. */
uint64_t store_series_hash(const struct batch *batch, uint32_t series);

/* ---- queries ---- */

const char *
store_aggregation_name(enum store_aggregation aggregation); /* "sum", "mean", "difference" */

/*
 * Merges everything that the selectors match into one profile. Its samples are the distinct stacks,
 * for each combination of the labels that the query names. Without any match it has no samples.
 * Unreadable data is left out and counted in the statistics. Errors: ERR_INVALID (the selector;
 * the message points at the position), ERR_NOT_FOUND (the window has no profile type of that name;
 * the message lists those that it has), ERR_LIMIT (the query's limits), ERR_TOO_LARGE (the sum of
 * the values overflows), ERR_CANCELLED, what the query's memory returns.
 */
enum err_code store_merge(struct store *store, struct arena *arena, const struct store_query *query,
                          struct store_result *ret_result, struct err *err) MUST_USE;
/* Frees or returns what a result holds; a no-op on zeros. */
void store_result_fini(struct store_result *result);
/* Bytes of cached results. */
size_t store_result_bytes(struct store *store);
/* Bytes of open blocks. */
size_t store_block_bytes(struct store *store);

/* ---- lists of types and series ---- */

/* Errors: as store_merge, but an unknown type gives an empty list. */
enum err_code store_list_series(struct store *store, struct arena *arena,
                                const struct store_query *query, struct store_series_list *ret_list,
                                struct err *err) MUST_USE;

/* Explains an empty result: finds a label that the query's first selector requires and that neither
 * a sample nor a series of any type has, of those with a profile in the window. *ret_name is in the
 * arena; it is empty when there is no such label. Errors: as store_list_series. */
enum err_code store_find_absent_label(struct store *store, struct arena *arena,
                                      const struct store_query *query, struct span *ret_name,
                                      struct err *err) MUST_USE;

/* Lists the names of the series' labels, distinct and sorted, in the arena. */
void store_list_label_names(struct arena *arena, const struct store_series_list *list,
                            const struct span **ret_names, uint32_t *ret_count);
/* Lists the values of a label; "__profile_type__" lists the names of the types. */
void store_list_label_values(struct arena *arena, const struct store_series_list *list,
                             struct span label, const struct span **ret_values,
                             uint32_t *ret_count);

/* ---- values over time ---- */

/* Computes values over time. All in arena. Errors: as store_merge; ERR_TOO_LARGE also for more
 * than STORE_RANGE_STEPS_MAX steps. */
enum err_code store_range(struct store *store, struct arena *arena,
                          const struct store_range_query *query, struct store_range *ret_range,
                          struct err *err) MUST_USE;

/* ---- single profiles ---- */

/* Lists single profiles. The selectors may match several types. Errors: as store_list_series. */
enum err_code store_list_profiles(struct store *store, struct arena *arena,
                                  const struct store_profile_query *query,
                                  struct store_profile_list *ret_list, struct err *err) MUST_USE;

/* ---- export as a table ---- */

/*
 * Writes the samples that the selectors match, of any profile types, as one Parquet file
 * (lib/io/parquet.h). store/query/export.h describes the columns. All members of the query that
 * select profiles and rows apply as in store_merge, and so do its limits; the members that concern
 * the form of a merge's result are ignored. Values are exported as they were sent, not aggregated.
 * Errors: as store_merge; ERR_TOO_LARGE (more than STORE_EXPORT_LABELS_MAX names of labels), the
 * codes of the sink.
 */
enum err_code store_export(struct store *store, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err) MUST_USE;

/* ---- for operators, with or without a running server ---- */

/*
 * Reads every byte that the catalogue names, verifies all checksums and compares the contents with
 * the catalogue. Objects that are merged or deleted meanwhile are no problem. A marked part that is
 * intact now loses its mark, so that merges take it. Problems are reported to check->found and are
 * no errors. Errors: what the object store and the database return.
 */
enum err_code store_verify(const struct store_check *check, struct store_check_result *ret_result,
                           struct err *err) MUST_USE;

/* Reads the catalogue into arena. */
enum err_code store_catalogue_read(struct pg_pool *database, struct arena *arena,
                                   const struct store_catalogue **ret_catalogue,
                                   struct err *err) MUST_USE;
/* Verifies a copy of the objects as store_verify does, but every difference is a problem and
 * nothing is written to the database. check->database and check->keys are not used. */
enum err_code store_verify_copy(const struct store_check *check,
                                const struct store_catalogue *catalogue,
                                struct store_check_result *ret_result, struct err *err) MUST_USE;

/* Measures the store, by tenant and level, in arena. */
enum err_code store_measure(struct pg_pool *database, struct arena *arena,
                            const struct store_measure **ret_measures, uint32_t *ret_count,
                            struct err *err) MUST_USE;

#endif
