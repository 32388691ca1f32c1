/*
 * object_readiness: can the object store be used? For /readyz, which has to respond within 2 s.
 *
 * A check of an S3 server that is slow takes up to 10 s, so a thread of its own makes it. A request
 * that finds the last result older than OBJECT_READINESS_S wakes the thread, waits for the new
 * result for OBJECT_READINESS_WAIT_MS at most, and takes the last one otherwise. An S3 server that
 * does not respond at all is noticed by object_store_is_responding.
 * Threads: any.
 */
#ifndef API_OPS_OBJECT_READINESS_H
#define API_OPS_OBJECT_READINESS_H

#include "lib/base/err.h"

struct object_readiness;
struct object_store;

enum { OBJECT_READINESS_S = 3, OBJECT_READINESS_WAIT_MS = 1500 };

/* Starts the thread; objects must outlive it. */
enum err_code object_readiness_create(struct object_store *objects,
                                      struct object_readiness **ret_readiness,
                                      struct err *err) MUST_USE;
/* Waits for a check that is running. NULL is a no-op. */
void object_readiness_destroy(struct object_readiness *readiness);

/* The problem that the last check found, as far as clients may know of it (a literal); NULL: none.
 * The log has the rest. */
const char *object_readiness_problem(struct object_readiness *readiness);

#endif
