/*
 * callers: who calls a frame and whom it calls, the numbers of `go tool pprof -peek`.
 *
 * An edge's value is that of the samples that have caller and callee next to each other, counted
 * once per sample; a frame that calls itself makes no edge. Rows are ordered by descending value,
 * then name.
 */
#ifndef LIB_PROFILE_REPORT_CALLERS_H
#define LIB_PROFILE_REPORT_CALLERS_H

#include "lib/profile/report/view.h"

struct callers_row {
    uint32_t frame; /* of the view */
    int64_t value[VIEW_SIDE_COUNT];
};

struct callers {
    const struct view *view;
    uint32_t frame; /* the one asked for */
    int64_t flat[VIEW_SIDE_COUNT];
    int64_t cum[VIEW_SIDE_COUNT];
    const struct callers_row *callers;
    uint32_t caller_count;
    const struct callers_row *callees;
    uint32_t callee_count;
};

/*
 * name is a whole frame name, not an expression; of several frames with it (lines, addresses) the
 * first in the view's order. In arena. Handles: ERR_NOT_FOUND (no frame has that name).
 */
enum err_code callers_create(struct arena *arena, const struct view *view, struct span name,
                             const struct callers **ret_callers, struct err *err) MUST_USE;

#endif
