/*
 * witness: is it one object that cannot be read, or all of them?
 *
 * A bad sector, or a file whose rights were taken away, is its object's alone: that is passed over
 * and marked, as what is corrupt is, and the rest is served. A disk that is gone, or a bucket that
 * refuses, is everybody's: nothing is marked for it, and no answer is made without it. Which of
 * both it is others can tell: some of the oldest and newest objects of the catalogue are read, from
 * the disk and not from memory, until one can be. Private to the room.
 */
#ifndef STORE_CATALOGUE_REACHABILITY_H
#define STORE_CATALOGUE_REACHABILITY_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct object_store;
struct wait_limit;
struct pg_pool;

/* Who is asked for others. */
struct reachability {
    struct pg_pool *database;
    int64_t tenant_id; /* or PG_NO_TENANT, where the role sees all */
    struct object_store *objects;
    const struct wait_limit *wait_limit; /* or NULL */
};

/* Whether failure says that this object could not be read, and others can be. Where there is no
 * other, or nobody can say which there are, it is false. */
bool reachability_is_alone(const struct reachability *reachability, const char *object_key,
                           const struct err *failure);

#endif
