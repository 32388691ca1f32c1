/*
 * maintenance: the background thread. It merges segments and blocks, deletes what was swapped long
 * enough ago, and ends writers that are gone or in doubt.
 *
 * Merges rotate through the kinds of work (store/catalogue/catalogue.h), and timed work runs
 * between them, so that nothing starves while segments keep arriving. One thread per server; any
 * number of servers share the work: a merge is claimed with a lease, and only the holder of the
 * lease commits it. Private to store/.
 */
#ifndef STORE_MAINTAIN_MAINTENANCE_H
#define STORE_MAINTAIN_MAINTENANCE_H

#include "lib/base/err_code.h"
#include "store/catalogue/reachability.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_store;
struct block_cache;
struct pg_pool;
struct maintenance;
struct writer;

struct maintenance_options {
    struct object_store *objects;
    struct pg_pool *jobs_database;
    struct block_cache *blocks;
    struct writer *writer;
    int64_t retention_s;   /* for tenants without a retention of their own; 0: for ever */
    int64_t query_time_s;  /* limit of a query, of tenants without their own */
    int64_t max_batch_ids; /* see struct store_options */
    size_t max_open_bytes; /* memory of the blocks that a merge has open together; 0: 512 MiB */
    /* Called when work failed; it is tried again later. On the thread of the work. */
    void (*report)(void *context, const char *work, const struct err *err);
    void *report_context;
    bool (*has_space)(void *context, bool is_needed); /* see struct store_options; NULL: always */
    void *has_space_context;
};

/*
 * The reachability check for background work: whether objects other than a failed one can be read.
 */
struct reachability maintenance_reachability(const struct maintenance_options *options);

bool maintenance_has_space(const struct maintenance_options *options, bool is_needed);

enum err_code maintenance_create(const struct maintenance_options *options,
                                 struct maintenance **ret_maintenance, struct err *err) MUST_USE;
/* Ends the thread after its current merge. NULL is a no-op. */
void maintenance_destroy(struct maintenance *maintenance);

#endif
