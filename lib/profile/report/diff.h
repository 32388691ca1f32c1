/*
 * diff: compares two profiles, as a view with two sides from which every report can be made.
 *
 * Profile a is side A of the view, the base; b is side B. A delta is always b - a. In a normalised
 * diff, b's sums are scaled to a's total of this sample type and rounded to whole numbers, so
 * deltas show how the percentages changed; totals are those after scaling. `go tool pprof
 * -diff_base a -normalize b` scales and rounds each sample instead. If one of the totals is not
 * above zero, there are no percentages: b's sums and its total are then 0.
 *
 * The compared sample types have the same name, and units that are equal or convert into each other
 * (unit.h), such as "ns" and "milliseconds" or "count" and "count/100"; values are in the finer
 * unit. sample_type names a type of b, which a must have, too. Empty means b's default type, else
 * a's, else the last type of b that a has.
 */
#ifndef LIB_PROFILE_REPORT_DIFF_H
#define LIB_PROFILE_REPORT_DIFF_H

#include "lib/profile/report/view.h"

enum diff_mode { DIFF_ABSOLUTE, DIFF_NORMALISED };

/* "absolute" (also when empty) or "normalised" ("normalized" too); false for anything else. */
bool diff_find_mode(struct span text, enum diff_mode *ret_mode);

/*
 * Finds the value type of each profile that is compared; text is as sample_type above. Errors:
 * ERR_INVALID (b has no such type: the message lists its types; or a has none: the message lists
 * those of both).
 */
enum err_code diff_find_types(const struct profile *a, const struct profile *b, struct span text,
                              uint32_t *ret_a, uint32_t *ret_b, struct err *err) MUST_USE;

/* As view_create; a and b must live as long as arena. Errors also: those of diff_find_types. */
enum err_code diff_view_create(struct arena *arena, const struct profile *a,
                               const struct profile *b, enum diff_mode mode,
                               const struct view_options *options, const struct view **ret_view,
                               struct err *err) MUST_USE;

#endif
