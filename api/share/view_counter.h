/*
 * view_counter: counts views in memory, so that viewing a share writes nothing.
 *
 * Views of one share from one address count once in VIEW_COUNTER_AGAIN_S. A table of hashes, of
 * fixed size, detects repeated views; a collision in it loses a view now and then. The jobs thread
 * adds the counts to the database; counts that are not yet written when the process dies are lost.
 * Threads: any.
 */
#ifndef API_SHARE_VIEW_COUNTER_H
#define API_SHARE_VIEW_COUNTER_H

#include "lib/base/buf.h"

#include <stdint.h>

struct arena;
struct view_counter;

enum { VIEW_COUNTER_AGAIN_S = 1800, VIEW_COUNTER_PENDING = 65536 };

struct view_counter *view_counter_create(void);
/* NULL is a no-op. */
void view_counter_destroy(struct view_counter *views);

/* Counts a view; now_ns is monotonic. After views of VIEW_COUNTER_PENDING shares, views of further
 * shares are not counted until view_counter_take. */
void view_counter_count(struct view_counter *views, struct span share_id, const char *address,
                        int64_t now_ns);

struct view_count {
    const char *share_id;
    int64_t count;
};

/* Takes all counts, into arena; returns the number of shares. */
uint32_t view_counter_take(struct view_counter *views, struct arena *arena,
                           const struct view_count **ret_counts);
/* Adds counts again that view_counter_take returned and that could not be written to the database.
 */
void view_counter_give(struct view_counter *views, const struct view_count *counts, uint32_t count);

#endif
