/*
 * maintenance_options: what background work needs from its server: the object store, the database,
 * the limits, and whom to report failures. Every kind of work (claimed_work, repair, orphans) gets
 * the same options.
 *
 * Threads: the options do not change, so any number of threads may use them. Private to store/.
 */
#ifndef STORE_MAINTAIN_MAINTENANCE_OPTIONS_H
#define STORE_MAINTAIN_MAINTENANCE_OPTIONS_H

#include "lib/base/err_code.h"
#include "store/catalogue/reachability.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_store;
struct block_cache;
struct pg_pool;
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
struct reachability maintenance_options_reachability(const struct maintenance_options *options);

/* Whether the disk has space for a merge. is_needed: for one that removes profiles. */
bool maintenance_options_has_space(const struct maintenance_options *options, bool is_needed);

/* The memory that the blocks of a merge may take together. */
size_t maintenance_options_open_bytes(const struct maintenance_options *options);

#endif
