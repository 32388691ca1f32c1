/*
 * callers: the callers and callees of a frame, with the values of `go tool pprof -peek`.
 *
 * The value of an edge is that of the samples in which caller and callee are adjacent, counted once
 * per sample. A frame that calls itself makes no edge. Rows are ordered by descending magnitude of
 * the value, in a diff of the delta, then by name.
 */
#ifndef LIB_PROFILE_REPORT_CALLERS_H
#define LIB_PROFILE_REPORT_CALLERS_H

#include "lib/profile/report/view.h"

struct callers_row {
    uint32_t frame; /* index in the view */
    int64_t value[VIEW_SIDE_COUNT];
};

struct callers {
    const struct view *view;
    uint32_t frame; /* the requested frame */
    int64_t flat[VIEW_SIDE_COUNT];
    int64_t cum[VIEW_SIDE_COUNT];
    const struct callers_row *callers;
    uint32_t caller_count;
    const struct callers_row *callees;
    uint32_t callee_count;
};

/*
 * name is a whole frame name, not an expression. If several frames have it (lines, addresses), the
 * first in the view's order is used. Allocates in arena. Errors: ERR_NOT_FOUND (no frame has that
 * name).
 */
enum err_code callers_create(struct arena *arena, const struct view *view, struct span name,
                             const struct callers **ret_callers, struct err *err) MUST_USE;

#endif
