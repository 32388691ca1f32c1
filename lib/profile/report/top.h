/*
 * top: flat and cumulative value per frame, the numbers of `go tool pprof -top`.
 *
 * flat is the value of the samples whose leaf is the frame; cum is the value of the samples that
 * contain it, counted once per sample even if it recurs. Rows whose flat and cum are both 0 are
 * left out, as in pprof (in a diff: 0 on both sides, before a normalised diff is scaled and
 * rounded). Ordered by descending |flat|, |cum|, then name; in a diff by the size of the deltas.
 * When grouped by a label, rows are label values and functions together, as with pprof's -tagroot;
 * the values, which have no flat value of their own, come first.
 */
#ifndef LIB_PROFILE_REPORT_TOP_H
#define LIB_PROFILE_REPORT_TOP_H

#include "lib/profile/report/view.h"

struct top_row {
    uint32_t frame; /* index in the view */
    int64_t flat[VIEW_SIDE_COUNT];
    int64_t cum[VIEW_SIDE_COUNT];
};

struct top {
    const struct view *view;
    const struct top_row *rows;
    uint32_t row_count; /* all rows; a caller shows as many as it needs */
};

/* Allocates in arena. Does not check the view's deadline. */
const struct top *top_create(struct arena *arena, const struct view *view);

/* b - a of a diff, clamped to int64. */
int64_t top_delta(const int64_t sides[VIEW_SIDE_COUNT]);

#endif
