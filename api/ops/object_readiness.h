/*
 * object_readiness: checks whether the object store can be used, for /readyz, which has to respond
 * within 2 s.
 *
 * A check of a slow S3 server takes up to 10 s, so a thread of its own does it. A request that
 * finds the last result older than OBJECT_READINESS_S wakes the thread, waits for the new result
 * for OBJECT_READINESS_WAIT_MS at most, and otherwise uses the last one. An S3 server that does not
 * respond at all is detected by object_store_is_responding. Threads: any.
 */
#ifndef API_OPS_OBJECT_READINESS_H
#define API_OPS_OBJECT_READINESS_H

#include "lib/base/err_code.h"

struct object_readiness;
struct object_store;

enum { OBJECT_READINESS_S = 3, OBJECT_READINESS_WAIT_MS = 1500 };

/* Starts the thread; objects must outlive it. */
enum err_code object_readiness_create(struct object_store *objects,
                                      struct object_readiness **ret_readiness,
                                      struct err *err) MUST_USE;
/* Waits for a running check. NULL is a no-op. */
void object_readiness_destroy(struct object_readiness *readiness);

/* The problem that the last check found, in a form that clients may see (a literal); NULL: none.
 * The log has the details. */
const char *object_readiness_problem(struct object_readiness *readiness);

#endif
