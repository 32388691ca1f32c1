/*
 * diff: two profiles side by side, as a view with two sides; every report can be made of it.
 *
 * delta is always b - a. Normalised, b's sums are scaled to a's total of this sample type and
 * rounded to whole numbers: what remains is how the shares changed. Totals are then those after
 * scaling. `go tool pprof -diff_base a -normalize b` scales and rounds each sample instead. Where
 * either total is not above zero there are no shares: b's sums, and its total, are then 0.
 *
 * Compared are sample types of the same name whose units are the same or convert into each other
 * (unit.h), as "ns" and "milliseconds" or "count" and "count/100": values are then those of the
 * finer unit. sample_type is looked up in b, and what it names there must be in a as well. An empty
 * one asks for b's default, else a's, else the last one of b that a has too.
 */
#ifndef LIB_PROFILE_REPORT_DIFF_H
#define LIB_PROFILE_REPORT_DIFF_H

#include "lib/profile/report/view.h"

enum diff_mode { DIFF_ABSOLUTE, DIFF_NORMALISED };

/* "absolute" (also when empty) or "normalised" ("normalized" too); false for anything else. */
bool diff_find_mode(struct span text, enum diff_mode *ret_mode);

/*
 * Which value type of each is compared. Handles: ERR_INVALID (b has no such type, or there is no
 * such type in a; the message lists those of both).
 */
enum err_code diff_find_types(const struct profile *a, const struct profile *b, struct span text,
                              uint32_t *ret_a, uint32_t *ret_b, struct err *err) MUST_USE;

/* As view_create; a and b live as long as arena. Handles also what diff_find_types does. */
enum err_code diff_view_create(struct arena *arena, const struct profile *a,
                               const struct profile *b, enum diff_mode mode,
                               const struct view_options *options, const struct view **ret_view,
                               struct err *err) MUST_USE;

#endif
