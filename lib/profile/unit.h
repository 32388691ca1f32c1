/*
 * unit: units of values that convert into each other by whole factors, and so exactly.
 *
 * Three kinds: times ("ns" … "seconds"), memory ("bytes" … "GiB", powers of 1024), and counts:
 * "count" and the units of decimals, "count/10" … "count/1000000" (formats/folded.h). A file's own
 * digits decide which of these it gets. Two files of one tool therefore differ in it as easily as
 * in their values, and comparing and merging both convert to the finer unit.
 *
 * A series is different: profiles of years meet in it, and its type contains the unit. There one
 * unit stands for all decimals (batch_from_profile.h).
 * Threads: any.
 */
#ifndef LIB_PROFILE_UNIT_H
#define LIB_PROFILE_UNIT_H

#include "lib/base/buf.h"

/* Decimal places that values may have. */
enum { UNIT_DECIMALS_MAX = 6, UNIT_NAME_BYTES = 16 };

/* "count", or "count/1000" for values that were multiplied by the power of ten. */
void unit_print_decimals(unsigned decimals, char ret_unit[UNIT_NAME_BYTES]);

/* Decimal places that unit "count/1000" stands for; 0 for every unit that is not of this kind. */
unsigned unit_decimals(struct span unit);

/*
 * How many of unit to are one of unit from: at least 1, which also stands for two spellings of one
 * unit, and for equal texts of an unknown unit. 0: from is finer than to, or they are of two kinds.
 */
int64_t unit_factor(struct span from, struct span to);

/* Do values of one convert into the other's unit, in either direction? */
bool unit_is_like(struct span one, struct span other);

#endif
