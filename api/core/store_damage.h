/*
 * store_damage: counts and logs blocks of the store that queries could not read.
 *
 * A query continues without such a block and reports that in its response. Each read is counted by
 * problem (perfolio_store_damaged_reads_total); each block is logged at error level at most once an
 * hour, whatever the number of queries that read it. perfolio_store_damaged_blocks is the number of
 * different blocks within the last hour, at most STORE_DAMAGE_BLOCKS; reads of further blocks are
 * counted, but not logged. Threads: any.
 */
#ifndef API_CORE_STORE_DAMAGE_H
#define API_CORE_STORE_DAMAGE_H

#include "store/store.h"

#include <stdint.h>

struct metrics;
struct store_damage_log;

enum { STORE_DAMAGE_BLOCKS = 256 };

/* now_ns: a monotonic clock. */
struct store_damage_log *store_damage_log_create(struct metrics *metrics, int64_t (*now_ns)(void));
void store_damage_log_destroy(struct store_damage_log *log); /* NULL is a no-op */

/* Counts a read that failed; called by the store (store_options.damaged). Returns true if the block
 * was logged. */
bool store_damage_log_note(struct store_damage_log *log, const struct store_damage *damage);

#endif
