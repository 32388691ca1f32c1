/*
 * reachability: distinguishes damage to one object from an outage of the whole object store.
 *
 * A bad sector, or a file whose permissions were removed, affects one object: queries skip it,
 * merges mark it, and the rest is served. An unmounted disk, or a bucket that refuses all requests,
 * affects every object: then nothing is marked and queries fail. The check reads some of the oldest
 * and newest objects of the catalogue, from the disk and not from memory, until one can be read.
 *
 * Threads: any. Private to store/.
 */
#ifndef STORE_CATALOGUE_REACHABILITY_H
#define STORE_CATALOGUE_REACHABILITY_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct object_store;
struct wait_limit;
struct pg_pool;

/* Where other objects are looked for. */
struct reachability {
    struct pg_pool *database;
    int64_t tenant_id; /* or PG_NO_TENANT for a role that sees all tenants */
    struct object_store *objects;
    const struct wait_limit *wait_limit; /* or NULL: no limit */
};

/* True when failure reports an unreadable object and another object can be read. False when there
 * is no other object, or when the catalogue cannot be read. */
bool reachability_is_alone(const struct reachability *reachability, const char *object_key,
                           const struct err *failure);

#endif
