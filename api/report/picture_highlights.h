/*
 * picture_marks: which frames of a graph a page's search (q) and marked function (m) name, and how
 * much they hold, as web/src/model/search.ts has it. Threads: any.
 */
#ifndef API_REPORT_PICTURE_HIGHLIGHTS_H
#define API_REPORT_PICTURE_HIGHLIGHTS_H

#include "lib/base/buf.h"

struct arena;
struct flame;

struct picture_highlights {
    const uint8_t *frames; /* per frame of the graph: 1 where it is named; NULL: nothing is */
    struct span text;      /* "search json: 12.3 %"; empty without a search */
};

/*
 * An expression that the server does not take, or that takes too long, names nothing, as where it
 * is empty. It finds either case as long as it has no upper-case letter and is
 * no escaped name. Values count a stack once.
 * All lives in arena.
 */
void picture_highlights_find(struct arena *arena, const struct flame *flame, struct span search,
                             struct span marked, struct picture_highlights *ret_marks);

#endif
