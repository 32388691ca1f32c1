/*
 * catalogue: the PostgreSQL tables that record which segments and blocks exist, the usage of
 * tenants, deletions, retention rules, and which parts cannot be read.
 *
 * The tables are in api/migrations/0006_store.sql. The files store/catalogue/catalogue*.c are the
 * only ones of store/ that contain SQL. A flush is one transaction: catalogue_begin_flush finds the
 * new batches and locks them, the caller puts the segment, and catalogue_commit_flush makes it
 * exist. A failure before the commit leaves at most an object that no row names.
 *
 * Threads: any; a connection belongs to one thread from the start of a flush to its commit.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_H
#define STORE_CATALOGUE_CATALOGUE_H

#include "lib/base/err_code.h"
#include "store/catalogue/deletion_set.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_connection;
struct pg_pool;

/* Registers a writer. Its id is part of the key of every object that it puts. */
enum err_code catalogue_open_writer(struct pg_pool *jobs, const char *name, int64_t *ret_writer_id,
                                    struct err *err) MUST_USE;
/* Ends the writer and releases what it has claimed. */
enum err_code catalogue_close_writer(struct pg_pool *jobs, int64_t writer_id,
                                     struct err *err) MUST_USE;

/* One batch of a flush, encoded as a block in memory. */
struct catalogue_part {
    int64_t tenant_id;
    const uint8_t *batch_id; /* 32 bytes, or NULL */
    int64_t begin_ns;
    int64_t end_ns;
    int64_t reach_ns; /* as in struct block_summary (store/block/block_write.h) */
    uint64_t row_count;
    uint64_t profile_count;
    uint64_t cut_string_count; /* lib/profile/long_string.h */
    const uint64_t *series; /* hashes of its series, except those that are known as counted today */
    uint32_t series_count;
    uint64_t offset; /* in the segment; set before the commit */
    uint64_t bytes;
    uint32_t footer_crc; /* as in struct block_summary (store/block/block_write.h) */
    enum {
        CATALOGUE_NEW,
        CATALOGUE_DUPLICATE, /* its batch id was stored before */
        CATALOGUE_NO_TENANT,
        CATALOGUE_TOO_OLD /* every profile is older than the tenant's retention */
    } state;
};

/* Begins the transaction and sets the state of each part. retention_s applies to tenants without a
 * retention of their own; 0: for ever. Waits for concurrent flushes that hold one of the same batch
 * ids. After a failure the connection is as it was before the call. */
enum err_code catalogue_begin_flush(struct pg_connection *connection, struct arena *arena,
                                    int64_t retention_s, struct catalogue_part *parts,
                                    uint32_t count, struct err *err) MUST_USE;

/* Commits the segment, in which the new parts of one tenant are adjacent and in order. Errors:
 * ERR_CONFLICT (this writer was ended because it had not been seen for too long), ERR_DATABASE
 * (with err->is_disconnect the outcome of the commit is unknown). */
enum err_code catalogue_commit_flush(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, const char *object_key, uint64_t bytes,
                                     const struct catalogue_part *parts, uint32_t count,
                                     struct err *err) MUST_USE;

/* Adds the new parts to the usage of their tenants on that day (days since 1970), in the same
 * transaction and before the commit. A failure shows when the transaction is committed. */
enum err_code catalogue_queue_usage(struct pg_connection *connection, struct arena *arena,
                                    int64_t writer_id, int32_t day,
                                    const struct catalogue_part *parts, uint32_t count,
                                    struct err *err) MUST_USE;

/* How long the ids of batches are kept: a batch that is sent again later counts again. */
enum { CATALOGUE_BATCH_ID_S = 24 * 3600 };

/* The place of a block: a range of an object. */
struct catalogue_place {
    const char *object_key;
    uint64_t offset;
    uint64_t bytes;                    /* 0: the whole object */
    uint32_t level;                    /* compaction level; 0: in a segment */
    uint32_t footer_crc;               /* of the block */
    struct deletion_set_ids deletions; /* deletions that may concern its profiles */
};

/* A deletion: profiles that match the selector with begin_ns <= begin < end_ns. */
struct catalogue_deletion {
    int64_t id;
    const char *selector;
    int64_t begin_ns;
    int64_t end_ns;
};

/* A retention rule. Profiles that match the selector are kept for keep_s from their start; 0: for
 * ever. From then until totals_s only the totals of each hour are kept; 0: totals are not kept. */
struct catalogue_rule {
    const char *selector;
    int64_t keep_s;
    int64_t totals_s;
};

/* The retention rules of a tenant. The first rule that matches a series applies to it. */
struct catalogue_rules {
    const struct catalogue_rule *rules;
    uint32_t count;
    int64_t default_s; /* for series that no rule matches */
    int64_t now_ns;    /* the database's clock when the rules were read */
};

/* The blocks and segments that a query has to read. */
struct catalogue_found {
    const struct catalogue_place *places;       /* oldest objects first */
    const struct catalogue_deletion *deletions; /* that the places refer to; ordered by id */
    uint32_t count;
    uint32_t deletion_count;
    struct catalogue_rules rules;
};

/* The profiles that a query reads: those with start_ns <= begin < end_ns, and those that begin at
 * far_ns or later and end after reach_ns (INT64_MAX: none). */
struct catalogue_window {
    int64_t start_ns;
    int64_t end_ns;
    int64_t far_ns;
    int64_t reach_ns;
};

/* Finds all blocks of a tenant that may contain such profiles. Results are in arena. retention_s
 * applies to tenants without a retention of their own. */
enum err_code catalogue_find(struct pg_pool *database, struct arena *arena, int64_t tenant_id,
                             int64_t retention_s, const struct catalogue_window *window,
                             struct catalogue_found *ret_found, struct err *err) MUST_USE;

/* ---- retention ---- */

/* Reads the rules of tenant_id into arena. pg_tenant is the tenant for row-level security, or
 * PG_NO_TENANT for a role that sees all tenants. */
enum err_code catalogue_load_rules(struct pg_connection *connection, struct arena *arena,
                                   int64_t pg_tenant, int64_t tenant_id, int64_t retention_s,
                                   struct catalogue_rules *ret_rules, struct err *err) MUST_USE;

/* ---- deletions ---- */

/*
 * Adds a deletion, in a transaction of the tenant, whose row-level security keeps other tenants'
 * rows out of reach. From the commit on no query reads the stored profiles that the deletion
 * matches, and merges of blocks that may contain such profiles have lost their lease. Sets
 * deletion->id. Errors: ERR_NOT_FOUND (no such tenant), ERR_RATE_LIMITED (100 deletions that the
 * tenant made within an hour are not done yet, or it has made 1,000 within 24 hours).
 */
enum err_code catalogue_add_deletion(struct pg_connection *connection, struct arena *arena,
                                     int64_t tenant_id, struct catalogue_deletion *deletion,
                                     struct err *err) MUST_USE;
/* Locks swaps of the tenant until the transaction ends. A swap takes the lock shared, a deletion
 * exclusive, so that a deletion sees every block that a swap adds. */
enum err_code catalogue_lock_swaps(struct pg_connection *connection, struct arena *arena,
                                   int64_t tenant_id, bool is_shared, struct err *err) MUST_USE;
/* Loads the deletions that the places refer to, by id, in arena. */
enum err_code catalogue_load_deletions(struct pg_connection *connection, struct arena *arena,
                                       int64_t tenant_id, const struct catalogue_place *places,
                                       uint32_t count, const struct catalogue_deletion **ret_list,
                                       uint32_t *ret_count, struct err *err) MUST_USE;
/* Marks a deletion as done when no object contains profiles that it deleted. Removes deletions that
 * have been done for 30 days. */
enum err_code catalogue_finish_deletions(struct pg_connection *connection, struct arena *arena,
                                         struct err *err) MUST_USE;

/* ---- background maintenance ---- */

enum {
    CATALOGUE_CLAIM_ROTATION =
        8, /* length of the rotation in which each kind of work comes first: see catalogue_claim */
    CATALOGUE_LEVELS = 4, /* the last level; README.md of store/ lists the levels */
    /* A lease that is not renewed for so long expires: another server may claim the blocks, and the
     * first merge can no longer commit. */
    CATALOGUE_LEASE_S = 120,
    /* If a deletion waits for a part that was unreadable for so many days, the part is given up. */
    CATALOGUE_LOSS_DAYS = 7,
    CATALOGUE_GRACE_S = 120 /* swapped objects are kept at least so long: see catalogue_tidy */
};

/* Why a part is marked, so that merges skip it. */
enum catalogue_mark_reason {
    CATALOGUE_NOT_MARKED, /* not marked */
    CATALOGUE_UNREADABLE,
    CATALOGUE_MISSING,
    CATALOGUE_TOO_LARGE /* by itself */
};

/* A marked part that is due for a retry. */
struct catalogue_mark {
    enum catalogue_mark_reason reason;
    bool is_shared; /* the object contains other tenants' parts */
    bool can_drop;  /* a deletion waits for it, and it has been marked for CATALOGUE_LOSS_DAYS */
    uint64_t row_count;
    int64_t begin_ns;
    int64_t end_ns;
};

/* The blocks of a segment's part that stay marked when its other blocks are swapped. They move to
 * an object of their own. */
struct catalogue_remainder {
    const char *object_key;
    const uint64_t *lengths; /* sizes of the blocks, in the order in which the object has them */
    const uint32_t *footer_crcs; /* of the blocks */
    uint32_t count;
    uint64_t bytes;
    uint64_t row_count;
    int64_t begin_ns;
    int64_t end_ns;
    enum catalogue_mark_reason reason;
    bool is_rewritten; /* the object contains nothing that the part's deletions match */
};

/* Blocks that one writer has leased to merge. */
struct catalogue_claim {
    int64_t tenant_id;
    uint32_t level; /* compaction level of the inputs; 0: segments */
    const struct catalogue_place *places;
    const int64_t *owners; /* per place: the id of its segment or block */
    uint32_t count;        /* 0: nothing is due */
    int64_t *ids;          /* ids of the segments or blocks, distinct */
    uint32_t id_count;
    bool is_rewrite;            /* one block or marked part; a block keeps its level */
    struct catalogue_mark mark; /* CATALOGUE_NOT_MARKED, or the claim is one marked part */
    const struct catalogue_deletion *deletions; /* that the places refer to; ordered by id */
    uint32_t deletion_count;
    struct catalogue_rules rules; /* the tenant's */
    bool is_expiry;               /* the claim is one block on which rules may be due */
    int64_t retention_key;        /* is_expiry: the key of `rules`, or of older rules */
};

/* The order in which claims choose among due work. */
struct catalogue_claim_order {
    uint64_t rotation;
    const int64_t *costly; /* ids of tenants */
    uint32_t costly_count;
    bool only_needed; /* only merges that remove deleted or expired profiles */
};

/*
 * Claims work that is due. Kinds of work, in their default order:
 *   1. segments of one tenant, once there are 64 or 32 MiB of them or one is 15 s old
 *      (tenant of the oldest segment first), or at once when a deletion waits for one of them;
 *   2. a block that contains deleted profiles (oldest deletion first);
 *   3. blocks of one level in one window, once there are 16 (8 of level 4) or, below
 *      level 4, once the window is over;
 *   4. a block on which a retention rule is due, or that was not checked against
 *      the current rules;
 *   5. a marked part that is due for a retry.
 * order->rotation counts the caller's claims. In CATALOGUE_CLAIM_ROTATION consecutive claims each
 * kind, including segments that a deletion waits for, is tried first at least once, so that no kind
 * starves another. In kinds 1 to 3 tenants of order->costly come after all others, so that a tenant
 * whose merges take long does not starve the rest. With order->only_needed only kinds 2 and 4, and
 * of kind 1 segments that a deletion waits for, are tried. retention_s applies to tenants without a
 * retention of their own. *ret_claim is in arena; its count is 0 when nothing is due.
 */
enum err_code catalogue_claim(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                              int64_t retention_s, const struct catalogue_claim_order *order,
                              struct catalogue_claim *ret_claim, struct err *err) MUST_USE;

/* Renews the writer's heartbeat and the lease of the claim. Errors: ERR_CONFLICT (the writer was
 * ended, or the lease was lost). */
enum err_code catalogue_renew(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err) MUST_USE;

/* Releases those rows of the claim that this writer still holds; they can be claimed again after
 * wait_s. */
enum err_code catalogue_release(struct pg_pool *jobs, int64_t writer_id,
                                const struct catalogue_claim *claim, int64_t wait_s,
                                struct err *err) MUST_USE;

/* Releases a claim of blocks that need not be merged: they can be merged with others after wait_s,
 * and be claimed for deletions and retention at once. */
enum err_code catalogue_leave(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, int64_t wait_s,
                              struct err *err) MUST_USE;

struct catalogue_block {
    const char *object_key;
    uint64_t bytes;
    uint64_t row_count;
    uint64_t profile_count;
    uint32_t series_count;
    int64_t begin_ns;
    int64_t end_ns;
    int64_t reach_ns;
    uint32_t footer_crc;
    int64_t retention_key;    /* key of the rules that it was written by; 0: it has to be checked */
    int64_t retention_due_ns; /* when the next rule is due; INT64_MAX: never */
    struct deletion_set_ids deletions; /* that a later merge applies */
};

/* Replaces the claimed blocks by these, at `level`, and by the remainder (or NULL) of a claim of
 * one marked part of a segment, in one transaction. Errors: ERR_CONFLICT (the lease was lost, this
 * writer was ended, or the tenant is gone: no row names the objects that were written). */
enum err_code catalogue_swap(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                             const struct catalogue_claim *claim, uint32_t level,
                             const struct catalogue_block *blocks, uint32_t count,
                             const struct catalogue_remainder *remainder, struct err *err) MUST_USE;
/* Moves a claimed block that is alone in its window to `level` unchanged. Errors: as
 * catalogue_swap. */
enum err_code catalogue_promote(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                const struct catalogue_claim *claim, uint32_t level,
                                struct err *err) MUST_USE;
/* Releases a claim with is_expiry of which no rule is due yet. The block is not changed and is
 * claimed again at due_ns. Errors: as catalogue_swap. */
enum err_code catalogue_postpone(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                 const struct catalogue_claim *claim, int64_t due_ns,
                                 struct err *err) MUST_USE;
/* Marks one claimed segment part or block (owner) as one that cannot be merged, and releases the
 * claim. It is retried after a minute, then after twice as long each time, up to a day. */
enum err_code catalogue_mark_broken(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                    const struct catalogue_claim *claim, int64_t owner,
                                    enum catalogue_mark_reason reason, struct err *err) MUST_USE;
/* Lists some of the newest and oldest unmarked objects other than object_key. tenant_id limits the
 * list to one tenant where the role sees one only. */
enum err_code catalogue_list_others(struct pg_pool *database, struct arena *arena,
                                    int64_t tenant_id, const char *object_key,
                                    const char *const **ret_keys, uint32_t *ret_count,
                                    struct err *err) MUST_USE;
/* Releases the rows of the claim that are still leased, and delays their next claim for a minute,
 * then twice as long each time, up to a day. A deletion that concerns a row ends its delay.
 * Errors: ERR_DATABASE. */
enum err_code catalogue_defer(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err) MUST_USE;
/* Removes the mark of a claimed part that is readable again; merges then include it. */
enum err_code catalogue_unmark(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                               const struct catalogue_claim *claim, struct err *err) MUST_USE;

/*
 * Renews the writer's heartbeat, ends writers that were not seen for a minute (their claims become
 * free), and deletes the rows of swapped objects after the grace time; a trigger puts the objects'
 * keys into object_trash. The grace time lets queries that began before the swap finish: it is a
 * minute longer than any query may take (query_time_s or a tenant's own limit), and at least
 * CATALOGUE_GRACE_S. Forgets ids of batches after CATALOGUE_BATCH_ID_S. If there are more than
 * max_batch_ids (0: no limit), also forgets the oldest ids of the team that has most.
 */
enum err_code catalogue_tidy(struct pg_pool *jobs, int64_t writer_id, int64_t query_time_s,
                             int64_t max_batch_ids, struct err *err) MUST_USE;
/* Removes blocks and segment parts that are older than every rule of their tenant keeps. */
enum err_code catalogue_expire(struct pg_pool *jobs, int64_t retention_s, struct err *err) MUST_USE;

/* ---- the search for orphans: objects that no row names (store/maintain/orphans.h) ---- */

/* One time slice of the search. At most one server searches at a time. */
struct catalogue_search {
    struct pg_connection *connection;
    bool is_locked;            /* false: another server searches now, and nothing is due here */
    const int64_t *writer_ids; /* ended writers whose search is due, not all if there are many */
    uint32_t count;
    const char *begun_at; /* the database's time at the start, recorded as that of each search */
};

/*
 * Begins a time slice; catalogue_end_search ends it, also after a failure. Writers with ids above
 * after_writer_id come first. A writer is due at its end, 150 s later, then after twice the time
 * since its end each time. Its last search is the first that begins a day or more after its end: by
 * then its last puts have finished. Results are in arena.
 */
enum err_code catalogue_begin_search(struct pg_pool *jobs, struct arena *arena,
                                     int64_t after_writer_id, struct catalogue_search *ret_search,
                                     struct err *err) MUST_USE;
/* Puts those keys into object_trash that no row names. */
enum err_code catalogue_search_discard(struct catalogue_search *search, struct arena *arena,
                                       const char *const *keys, uint32_t count,
                                       struct err *err) MUST_USE;
/* Records that all objects of this writer were searched. */
enum err_code catalogue_note_search(struct catalogue_search *search, struct arena *arena,
                                    int64_t writer_id, struct err *err) MUST_USE;
enum err_code catalogue_end_search(struct catalogue_search *search, struct arena *arena,
                                   struct err *err) MUST_USE;
/* As catalogue_search_discard, without a search: for objects that the caller has put. */
enum err_code catalogue_discard_unknown(struct pg_pool *jobs, struct arena *arena,
                                        const char *const *keys, uint32_t count,
                                        struct err *err) MUST_USE;

#endif
