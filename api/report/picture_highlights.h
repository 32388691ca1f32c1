/*
 * picture_highlights: the frames of a flame graph that a page's search (q) and marked function (m)
 * match, and the share of the total that they hold, as web/src/model/search/search.ts computes it.
 * Threads: any.
 */
#ifndef API_REPORT_PICTURE_HIGHLIGHTS_H
#define API_REPORT_PICTURE_HIGHLIGHTS_H

#include "lib/base/buf.h"

struct arena;
struct flame;

struct picture_highlights {
    const uint8_t *frames; /* [frames of the graph]: 1 if the frame matches; NULL: none does */
    struct span text;      /* "search json: 12.3 %"; empty without a search */
};

/* An expression that the server does not accept, or that takes too long, matches nothing, like an
 * empty one. The search ignores case unless it has an upper-case letter or is an escaped name.
 * Values count a stack once. The result lives in arena. */
void picture_highlights_find(struct arena *arena, const struct flame *flame, struct span search,
                             struct span marked, struct picture_highlights *ret_marks);

#endif
