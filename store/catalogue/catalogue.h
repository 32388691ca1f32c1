/*
 * catalogue: the tables of api/migrations/0008_store.sql, 0010_ingest_usage.sql, 0012_deletion.sql,
 * 0014_retention.sql, 0016_mending.sql and 0017_totals.sql: which segments and blocks exist, what
 * was sent, what is deleted, how long the rest is kept, and what cannot be read.
 *
 * The only file of this room that knows SQL. A flush is one transaction: catalogue_begin_flush says
 * which batches are new and locks them, then the segment is put, catalogue_commit_flush makes it
 * exist. Whatever goes wrong before leaves nothing but an object that nobody knows.
 * Threads: any; a struct catalogue_flush belongs to one.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_H
#define STORE_CATALOGUE_CATALOGUE_H

#include "lib/base/err.h"
#include "store/catalogue/deletion_set.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_connection;
struct pg_pool;

/* Registers a writer; its number stands in the keys of all that it puts. */
enum err_code catalogue_open_writer(struct pg_pool *jobs, const char *name, int64_t *ret_writer_id,
                                    struct err *err) MUST_USE;
/* It writes no more, and what it claims is free. */
enum err_code catalogue_close_writer(struct pg_pool *jobs, int64_t writer_id,
                                     struct err *err) MUST_USE;

/* One batch of a flush, as a block in memory. */
struct catalogue_part {
    int64_t tenant_id;
    const uint8_t *batch_id; /* 32 bytes, or NULL */
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t row_count;
    uint64_t profile_count;
    uint64_t cut_string_count; /* lib/profile/long_string.h */
    const uint64_t *series;    /* hashes of those that may not have been seen that day */
    uint32_t series_count;
    uint64_t offset; /* in the segment; set before the commit */
    uint64_t bytes;
    enum {
        CATALOGUE_NEW,
        CATALOGUE_DUPLICATE, /* its batch id is known */
        CATALOGUE_NO_TENANT,
        CATALOGUE_TOO_OLD /* all of it is beyond what the tenant keeps */
    } state;
};

/*
 * Begins the transaction and sets the state of each part. retention_s is of tenants without one of
 * their own, 0 for ever. Waits for flushes of others that have
 * one of the same batch ids in hand. After a failure the connection is as before.
 */
enum err_code catalogue_begin_flush(struct pg_connection *connection, struct arena *arena,
                                    int64_t retention_s, struct catalogue_part *parts,
                                    uint32_t count, struct err *err) MUST_USE;

/*
 * Commits the segment: of each tenant the new parts, which stand together in it and in order.
 * Handles: ERR_CONFLICT (this writer was ended, since it had not been seen for long), ERR_DATABASE
 * (err->is_disconnect: whether it was committed is not known).
 */
enum err_code catalogue_commit_flush(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, const char *object_key, uint64_t bytes,
                                     const struct catalogue_part *parts, uint32_t count,
                                     struct err *err) MUST_USE;

/*
 * Before the commit: adds the new parts to what their tenants have sent on that day (since 1970),
 * in the same transaction. Fails with the commit.
 */
enum err_code catalogue_queue_usage(struct pg_connection *connection, struct arena *arena,
                                    int64_t writer_id, int32_t day,
                                    const struct catalogue_part *parts, uint32_t count,
                                    struct err *err) MUST_USE;

/* A block somewhere in an object. */
struct catalogue_place {
    const char *object_key;
    uint64_t offset;
    uint64_t bytes;                    /* 0: the whole object */
    uint32_t level;                    /* 0: in a segment */
    struct deletion_set_ids deletions; /* that may be of profiles in it */
};

/* What a team deleted, or will: profiles with begin_ns <= begin < end_ns. */
struct catalogue_deletion {
    int64_t id;
    const char *selector;
    int64_t begin_ns;
    int64_t end_ns;
};

/* Profiles that it finds are kept for keep_s by their begin; 0: for ever. Then until totals_s what
 * each hour has together is; 0: nothing is. */
struct catalogue_rule {
    const char *selector;
    int64_t keep_s;
    int64_t totals_s;
};

/* How long a tenant keeps profiles: the first rule that finds a series counts. */
struct catalogue_rules {
    const struct catalogue_rule *rules;
    uint32_t count;
    int64_t default_s; /* of what none finds */
    int64_t now_ns;    /* the database's, when they were read */
};

/* What there is to read for a question. */
struct catalogue_found {
    const struct catalogue_place *places;       /* oldest objects first */
    const struct catalogue_deletion *deletions; /* that places name, by id */
    uint32_t count;
    uint32_t deletion_count;
    struct catalogue_rules rules;
};

/* All blocks of a tenant that may hold profiles with start <= begin < end. In arena.
 * retention_s is of tenants without one of their own. */
enum err_code catalogue_find(struct pg_pool *database, struct arena *arena, int64_t tenant_id,
                             int64_t retention_s, int64_t start_ns, int64_t end_ns,
                             struct catalogue_found *ret_found, struct err *err) MUST_USE;

/* ---- retention ---- */

/* In arena; pg_tenant is the tenant, or none for who sees all. */
enum err_code catalogue_load_rules(struct pg_connection *connection, struct arena *arena,
                                   int64_t pg_tenant, int64_t tenant_id, int64_t retention_s,
                                   struct catalogue_rules *ret_rules, struct err *err) MUST_USE;

/* ---- deletions ---- */

/*
 * In a transaction of the tenant's, where row-level security sees to it that no other's rows are
 * touched: from its commit on nobody reads what was
 * stored before and is meant, and whoever merges it has lost the lease. Sets deletion->id. Handles:
 * ERR_NOT_FOUND (no such tenant), ERR_RATE_LIMITED (too many of the tenant's are not done yet).
 */
enum err_code catalogue_add_deletion(struct pg_connection *connection, struct arena *arena,
                                     int64_t tenant_id, struct catalogue_deletion *deletion,
                                     struct err *err) MUST_USE;
/* Until the transaction ends: whoever swaps blocks of a tenant shares, whoever deletes is alone, so
 * that what a swap adds is seen by a deletion. */
enum err_code catalogue_lock_swaps(struct pg_connection *connection, struct arena *arena,
                                   int64_t tenant_id, bool is_shared, struct err *err) MUST_USE;
/* Those that the places name, by id, in arena. */
enum err_code catalogue_load_deletions(struct pg_connection *connection, struct arena *arena,
                                       int64_t tenant_id, const struct catalogue_place *places,
                                       uint32_t count, const struct catalogue_deletion **ret_list,
                                       uint32_t *ret_count, struct err *err) MUST_USE;
/* Says of those of which no object has anything that they are done, and forgets them later. */
enum err_code catalogue_finish_deletions(struct pg_connection *connection, struct arena *arena,
                                         struct err *err) MUST_USE;

/* ---- upkeep ---- */

enum {
    CATALOGUE_CLAIM_ROTATION =
        8,                /* claims until each kind of work has come first: see catalogue_claim */
    CATALOGUE_LEVELS = 4, /* 1: of segments, 2: ten minutes, 3: an hour, 4: a day */
    /* A merge of which nothing is heard for longer may be begun by another, and is then lost. */
    CATALOGUE_LEASE_S = 120,
    /* What cannot be read for so long is given up where a deletion waits for it. */
    CATALOGUE_LOSS_DAYS = 7,
    CATALOGUE_GRACE_S = 120 /* what was swapped stays that long at least: see catalogue_tidy */
};

/* Why no merge takes a part. */
enum catalogue_mark_reason {
    CATALOGUE_NOT_MARKED, /* one does */
    CATALOGUE_UNREADABLE,
    CATALOGUE_MISSING,
    CATALOGUE_TOO_LARGE /* alone */
};

/* A part that is marked, and is to be looked at again. */
struct catalogue_mark {
    enum catalogue_mark_reason reason;
    bool is_shared; /* other tenants' parts are in the object */
    bool can_drop;  /* it is told of a deletion and has been marked for CATALOGUE_LOSS_DAYS */
    uint64_t row_count;
    int64_t begin_ns;
    int64_t end_ns;
};

/* What stays marked of a segment's part whose blocks are swapped: it has an object of its own. */
struct catalogue_remainder {
    const char *object_key;
    const uint64_t *lengths; /* of its blocks, one after the other */
    uint32_t count;
    uint64_t bytes;
    uint64_t row_count;
    int64_t begin_ns;
    int64_t end_ns;
    enum catalogue_mark_reason reason;
    bool is_rewritten; /* nothing is in it of which the part was told that it is deleted */
};

/* Blocks that one writer merges now. */
struct catalogue_claim {
    int64_t tenant_id;
    uint32_t level; /* of the inputs; 0: in segments */
    const struct catalogue_place *places;
    const int64_t *owners; /* per place: its segment, or its own block */
    uint32_t count;        /* 0: there is nothing to do */
    int64_t *ids;          /* of the segments or blocks, distinct */
    uint32_t id_count;
    bool is_rewrite; /* one block, of which something is deleted: it stays on its level */
    struct catalogue_mark mark;                 /* sound, or the claim is of one marked part */
    const struct catalogue_deletion *deletions; /* that places name, by id */
    uint32_t deletion_count;
    struct catalogue_rules rules; /* the tenant's */
    bool is_expiry;               /* one block, of which rules may be due */
    int64_t retention_key;        /* of expiries: of these rules, or of older ones */
};

/*
 * Claims what is due: a tenant's segments once there are 64 or one is 15 s old, oldest tenant
 * first, and those of which something is deleted at once; else a block of which something is
 * deleted; else blocks of one level in one window, once there are 16 or the window is over; else a
 * block of which a rule of retention is due, or that has not been looked at with the rules that
 * there are; else a part that is marked and due to be looked at again. turn counts the claims of
 * who asks: in CATALOGUE_CLAIM_ROTATION of them each of these, and segments that a deletion waits
 * for, is asked for first at least once, so that none waits for ever for another. Of what is
 * deleted the oldest deletion comes first. retention_s is of tenants without one of their own.
 * *ret_claim is in arena.
 */
enum err_code catalogue_claim(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                              int64_t retention_s, uint64_t rotation,
                              struct catalogue_claim *ret_claim, struct err *err) MUST_USE;

/* Says that the writer lives and goes on with the claim, whose lease begins anew. Handles:
 * ERR_CONFLICT (one of both was lost). */
enum err_code catalogue_renew(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err) MUST_USE;

/* The claim is given up: what of it is still this writer's is free in wait_s. */
enum err_code catalogue_release(struct pg_pool *jobs, int64_t writer_id,
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
    int64_t retention_key;    /* of the rules that it was written by; 0: it is to be looked at */
    int64_t retention_due_ns; /* when the next of them is; INT64_MAX: never */
};

/*
 * Swaps the claimed blocks for these, at `level`, and for the rest (or NULL) of a claim of one
 * marked part of a segment, in one transaction. Handles: ERR_CONFLICT (the lease was lost, this
 * writer was ended, or the tenant is gone: what was written is nobody's).
 */
enum err_code catalogue_swap(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                             const struct catalogue_claim *claim, uint32_t level,
                             const struct catalogue_block *blocks, uint32_t count,
                             const struct catalogue_remainder *remainder, struct err *err) MUST_USE;
/* A claimed block alone in its window becomes one of `level` as it is. Handles: as catalogue_swap.
 */
enum err_code catalogue_promote(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                const struct catalogue_claim *claim, uint32_t level,
                                struct err *err) MUST_USE;
/* Of an expiry nothing is due yet: the block stays as it is, and is told when to look again.
 * Handles: as catalogue_swap. */
enum err_code catalogue_postpone(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                 const struct catalogue_claim *claim, int64_t due_ns,
                                 struct err *err) MUST_USE;
/* One of the claimed (owner) cannot be merged: it is looked at again after a minute, then after
 * twice as long each time, up to a day. The claim is given up. */
enum err_code catalogue_mark_broken(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                    const struct catalogue_claim *claim, int64_t owner,
                                    enum catalogue_mark_reason reason, struct err *err) MUST_USE;
/* Some of the newest and of the oldest objects that no merge has marked, but for this one.
 * tenant_id: whose blocks, where the role sees one team's alone. */
enum err_code catalogue_list_others(struct pg_pool *database, struct arena *arena,
                                    int64_t tenant_id, const char *object_key,
                                    const char *const **ret_keys, uint32_t *ret_count,
                                    struct err *err) MUST_USE;
/* No merge takes what of the claim is still leased before a minute, then twice as long each time,
 * up to a day, has passed; a deletion of any of it ends the wait. Handles: ERR_DATABASE. */
enum err_code catalogue_defer(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err) MUST_USE;
/* The claimed part that was marked is whole again: merges take it. */
enum err_code catalogue_unmark(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                               const struct catalogue_claim *claim, struct err *err) MUST_USE;

/* Says that the writer lives, ends those that have not for a minute, whose claims are free then,
 * and forgets what was swapped long enough ago: its objects go to object_trash.
 * What was swapped stays for questions that began before: for CATALOGUE_GRACE_S, and longer where
 * they may take longer, be it query_time_s or what a tenant has of its own. */
enum err_code catalogue_tidy(struct pg_pool *jobs, int64_t writer_id, int64_t query_time_s,
                             struct err *err) MUST_USE;
/* Blocks and parts of segments that are older than any of their tenant's rules keeps go whole. */
enum err_code catalogue_expire(struct pg_pool *jobs, int64_t retention_s, struct err *err) MUST_USE;

/* Writers that have ended, until all their objects were looked at a day after that: what they put
 * last is there by then. */
enum err_code catalogue_list_ended(struct pg_pool *jobs, struct arena *arena,
                                   const int64_t **ret_writer_ids, uint32_t *ret_count,
                                   struct err *err) MUST_USE;
enum err_code catalogue_mark_swept(struct pg_pool *jobs, struct arena *arena,
                                   const int64_t *writer_ids, uint32_t count,
                                   struct err *err) MUST_USE;
/* Of these keys, those that no row knows go to object_trash. */
enum err_code catalogue_discard_unknown(struct pg_pool *jobs, struct arena *arena,
                                        const char *const *keys, uint32_t count,
                                        struct err *err) MUST_USE;

#endif
