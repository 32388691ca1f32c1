/*
 * pile: what granules of one block add up to, per stack of the block, added by several threads.
 *
 * Tasks are put on it until there is enough for a crew (lib/base/parallel.h); each of its threads
 * adds up a part of them by itself, and all are put together when the sums are asked for. Little is
 * added up by the caller alone. Threads: a pile belongs to one. Private to the room.
 */
#ifndef STORE_QUERY_PARTIAL_SUMS_H
#define STORE_QUERY_PARTIAL_SUMS_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct partial_sums;
struct scan;
struct scan_task;

/* The block is borrowed. */
struct partial_sums *partial_sums_create(const struct block *block);
void partial_sums_destroy(struct partial_sums *partials); /* NULL is a no-op */

/* Tasks of the block that are not broken; they are borrowed until the next partial_sums_compute.
 * True: there are enough, it is time for it. */
bool partial_sums_add_task(struct partial_sums *partials, struct scan_task *task);

/* Of a task that was read, or could not be: then code is not ERR_NONE, and the walk's err says why.
 */
typedef enum err_code partial_sums_note(void *context, struct scan_task *task, enum err_code code);

/* Adds up all that was put there, and calls note for each task, in their order, until it gives
 * something else than ERR_NONE, which is returned. Of what could not be read nothing is added. */
enum err_code partial_sums_compute(struct partial_sums *partials, struct scan *scan,
                                   partial_sums_note *note, void *context) MUST_USE;

/* Per stack of the block; all that was put there was added. */
const int64_t *partial_sums_sums(struct partial_sums *partials);

/* With what partial_sums_compute is going to need. */
size_t partial_sums_memory(const struct partial_sums *partials);

#endif
