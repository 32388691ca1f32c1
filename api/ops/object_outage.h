/*
 * object_outage: distinguishes damage to one object from an outage of the whole object store.
 *
 * An unmounted disk, or a bucket that refuses all reads, makes every object missing or unreadable.
 * None of them is damaged then. So an object counts as damaged only if another object that the
 * database names can be read at that time. store/catalogue/reachability.h does the same for merges
 * and queries, with the objects of the store alone. Threads: any.
 */
#ifndef API_OPS_OBJECT_OUTAGE_H
#define API_OPS_OBJECT_OUTAGE_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct object_store;
struct pg_pool;

/* Whether a failed read may be due to an outage: the object is missing or unreadable. */
bool object_outage_is_possible(enum err_code code, const struct err *failure);
/*
 * Reads a byte of the two oldest and the two newest objects other than `key`, of each kind except
 * parts of uploads, until one read succeeds. If the database names no other object, there is no
 * outage. Does not check the store itself (integrity_check_store). Errors: ERR_BUSY (an outage),
 * ERR_DATABASE.
 */
enum err_code object_outage_check(struct pg_pool *database, struct object_store *objects,
                                  const char *key, struct err *err) MUST_USE;

#endif
