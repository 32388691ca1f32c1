/*
 * share_views: counts views in memory, so that looking at a share writes nothing.
 *
 * One address counts once per share and SHARE_VIEWS_AGAIN_S; to remember that, a table of fixed
 * size keeps hashes, whose collisions lose a view now and then. The jobs thread takes what has
 * gathered and adds it to the database; what is not yet written when the process dies is lost.
 * Threads: any.
 */
#ifndef API_SHARE_VIEW_COUNTER_H
#define API_SHARE_VIEW_COUNTER_H

#include "lib/base/buf.h"

#include <stdint.h>

struct arena;
struct share_views;

enum { SHARE_VIEWS_AGAIN_S = 1800, SHARE_VIEWS_PENDING = 65536 };

struct share_views *share_views_create(void);
/* NULL is a no-op. */
void share_views_destroy(struct share_views *views);

/* now_ns is monotonic. Beyond SHARE_VIEWS_PENDING shares since the last take nothing is counted. */
void share_views_count(struct share_views *views, struct span share_id, const char *address,
                       int64_t now_ns);

struct share_view_count {
    const char *share_id;
    int64_t count;
};

/* Takes all that has gathered, into arena; returns how many shares. */
uint32_t share_views_take(struct share_views *views, struct arena *arena,
                          const struct share_view_count **ret_counts);
/* Puts counts back that could not be written down. */
void share_views_give(struct share_views *views, const struct share_view_count *counts,
                      uint32_t count);

#endif
