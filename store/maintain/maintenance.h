/*
 * upkeep: the work behind: segments become blocks, small blocks become larger ones, what was
 * swapped is forgotten, what a dead server left is found.
 *
 * Merges take turns by what they are of (store/catalogue/catalogue.h), and what goes by the clock
 * comes between them, so that nothing waits for segments, of which there may always be more. One
 * thread per server; any number of servers share the work: a merge is claimed with a lease, and
 * only who still has it swaps. Private to the room.
 */
#ifndef STORE_MAINTAIN_MAINTENANCE_H
#define STORE_MAINTAIN_MAINTENANCE_H

#include "lib/base/err.h"
#include "store/catalogue/reachability.h"

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
    int64_t retention_s;  /* of tenants without one of their own; 0: for ever */
    int64_t query_time_s; /* that a question may take, of tenants without a limit of their own */
    /* Told what went wrong; the work is tried again later. */
    void (*report)(void *context, const char *work, const struct err *err);
    void *report_context;
};

/* For background work: whether other objects than a failed one can be read. */
struct reachability maintenance_reachability(const struct maintenance_options *options);

enum err_code maintenance_create(const struct maintenance_options *options,
                                 struct maintenance **ret_upkeep, struct err *err) MUST_USE;
/* Ends the thread once what it merges is done. NULL is a no-op. */
void maintenance_destroy(struct maintenance *maintenance);

#endif
