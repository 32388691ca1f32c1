/*
 * partial_sums: sums granules of one block per stack of the block, on several threads.
 *
 * Tasks are collected until they are worth the cost of waking threads (lib/base/parallel.h). Each
 * thread sums a share of them into an array of its own, and the arrays are added when the sums are
 * read. A small amount is summed by the caller alone. Threads: an object belongs to one. Private to
 * store/.
 */
#ifndef STORE_QUERY_PARTIAL_SUMS_H
#define STORE_QUERY_PARTIAL_SUMS_H

#include "lib/base/err_code.h"

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

/* Adds a task of the block that is not broken; it is borrowed until the next partial_sums_compute.
 * True: enough tasks are collected, and the caller should compute. */
bool partial_sums_add_task(struct partial_sums *partials, struct scan_task *task);

/* Called for a task that was read, or that failed: then code is not ERR_NONE and the scan's err has
 * the reason. */
typedef enum err_code partial_sums_note(void *context, struct scan_task *task, enum err_code code);

/* Sums all collected tasks, then calls note for each, in their order, until it returns another code
 * than ERR_NONE, which is returned. A task that failed adds nothing. */
enum err_code partial_sums_compute(struct partial_sums *partials, struct scan *scan,
                                   partial_sums_note *note, void *context) MUST_USE;

/* The sums per stack of the block. All collected tasks must have been computed. */
const int64_t *partial_sums_sums(struct partial_sums *partials);

/* Bytes, including those that the next partial_sums_compute will need. */
size_t partial_sums_memory(const struct partial_sums *partials);

#endif
