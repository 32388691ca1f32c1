/*
 * diff: two profiles side by side, as a view with two sides; every report can be made of it.
 *
 * delta is always b - a. Normalised, b is scaled to a's total of this sample type, sample by sample
 * and rounded to whole numbers, as `go tool pprof -diff_base a -normalize b` does: what remains is
 * how the shares changed. Totals are then those after scaling.
 *
 * The sample types must have the same unit; sample_type is looked up by name in each, an empty one
 * in b, and then by its name in a (if a has no such name, but as many types: by index).
 */
#ifndef LIB_PROFILE_DIFF_H
#define LIB_PROFILE_DIFF_H

#include "lib/profile/view.h"

enum diff_mode { DIFF_ABSOLUTE, DIFF_NORMALISED };

/* "absolute" (also when empty) or "normalised" ("normalized" too); false for anything else. */
bool diff_find_mode(struct span text, enum diff_mode *ret_mode);

/*
 * As view_create; a and b live as long as arena. Handles also: ERR_INVALID (a has no such sample
 * type, or its unit differs).
 */
enum err_code diff_view_create(struct arena *arena, const struct profile *a,
                               const struct profile *b, enum diff_mode mode,
                               const struct view_options *options, const struct view **ret_view,
                               struct err *err) MUST_USE;

#endif
