/*
 * tree_rounding: rounds the values of a merged profile to whole numbers, so that the sum of every
 * subtree of the call tree is right.
 *
 * The mean of a gauge over a window, and a counter's increase in a part of an interval, are
 * fractions. Rounded one by one, ten stacks of 0.4 would add up to 0, and ten of 0.6 to 10. Here
 * the samples are put in the order of the tree (by labels, then by the names of their frames from
 * the root on), and each gets the difference of the rounded sums up to it and before it. The
 * samples of a subtree follow each other, so their sum differs from the exact one by less than 1,
 * and the total by at most a half.
 *
 * Example: the values 0.4 0.4 0.4 0.4 have the sums 0.4 0.8 1.2 1.6, rounded 0 1 1 2, and become 0
 * 1 0 1.
 *
 * An increase is the value until its end less the value until its start; both are rounded in this
 * way. The order depends on names only, so the increases of consecutive windows add up exactly.
 * Threads: any. Private to store/.
 */
#ifndef STORE_QUERY_TREE_ROUNDING_H
#define STORE_QUERY_TREE_ROUNDING_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

struct profile;

/* Rounds to the nearest whole number, halves away from 0. Parts that should add up to a half may be
 * slightly less, so a value that is at most a millionth below a half counts as a half. */
int64_t tree_rounding_round(int64_t scaled, int scale_bits);

/* An upper bound of the memory that tree_rounding_apply takes. */
size_t tree_rounding_memory(const struct profile *profile);

/* Replaces the values of a profile of one value type, which are scaled by 2^scale_bits, with whole
 * numbers, and drops samples that become 0. starts: per sample, the part that is subtracted, scaled
 * likewise; NULL: none. New arrays are in the profile's arena. The sums of all values and of all
 * starts are below 2^63. Errors: ERR_TOO_LARGE (cpu_deadline_ns, in parallel_cpu_ns; 0: none). */
enum err_code tree_rounding_apply(struct profile *profile, const int64_t *starts, int scale_bits,
                                  int64_t cpu_deadline_ns, struct err *err) MUST_USE;

#endif
