/*
 * unit: units of values that convert into each other by whole factors, and so exactly.
 *
 * Three kinds: times ("ns" … "seconds"), memory ("bytes" … "GiB", powers of 1024), and counts:
 * "count" and the units of decimals, "count/10" … "count/1000000" (formats/folded.h). The number of
 * decimal places in a file determines its unit, so two files of one tool may have different units;
 * diff and merge convert both to the finer one.
 *
 * In a series, which contains profiles of a long time and whose type contains the unit, one unit is
 * used for all decimals (batch_from_profile.h).
 * Threads: any.
 */
#ifndef LIB_PROFILE_UNIT_H
#define LIB_PROFILE_UNIT_H

#include "lib/base/span.h"

/* Decimal places that values may have. */
enum { UNIT_DECIMALS_MAX = 6, UNIT_NAME_BYTES = 16 };

/* Writes the unit of values that were multiplied by 10^decimals: "count" for 0, "count/1000" for 3.
 * decimals is at most UNIT_DECIMALS_MAX. */
void unit_print_decimals(unsigned decimals, char ret_unit[UNIT_NAME_BYTES]);

/* The decimal places of a unit such as "count/1000"; 0 for all other units. */
unsigned unit_decimals(struct span unit);

/*
 * How many of unit `to` make one of unit `from`: at least 1, also for two spellings of one unit and
 * for equal texts of an unknown unit. 0: `from` is finer than `to`, or they are of different kinds.
 */
int64_t unit_factor(struct span from, struct span to);

/* Whether values of one unit convert into the other, in either direction. */
bool unit_is_like(struct span one, struct span other);

#endif
