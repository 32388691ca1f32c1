/*
 * folded: "root;…;leaf value" lines, as stackcollapse-*.pl, inferno, py-spy, rbspy, async-profiler
 * and bpftrace scripts write them (github.com/brendangregg/FlameGraph).
 *
 * The value stands behind the last blank. Lines may end in CR LF; empty ones and comments ("# …",
 * "// …", also with a number behind, but not when there are several frames before it, or a name
 * directly behind "//") are passed over; lines without a value are skipped, and the profile's
 * warning counts them. There may be few of these (FOLDED_SKIPPED_FEW, or a tenth of the stacks):
 * text that has more is something else. Values are whole, or decimals, "2.5" or "25e-1": then all
 * are multiplied by the power of ten that keeps up to six decimal places (fewer where the largest
 * value would not fit an int64), and the unit says so ("count/1000"). The sample type is "samples".
 *
 * Text whose stacks all have two values, as difffolded.pl and comparisons' exports write them, is
 * refused: either value alone would be a wrong profile. Where only some have, or no stack has a
 * caller ("worker 1 200"), the first number is part of the leaf's name.
 *
 * Frames stay as they are written, their annotations too; besides, those of perf and Java say where
 * the frame belongs: "_[k]" kernel and "_[j]" compiled at run time become the mappings
 * "[kernel.kallsyms]" and "[jit]", and "_[i]" an inlined call of the frame before it.
 * Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FOLDED_H
#define LIB_PROFILE_FORMATS_FOLDED_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct profile;
struct profile_limits;

enum { FOLDED_SKIPPED_FEW = 3 /* where there are more stacks */ };

/*
 * text needs to live only for the call; the caller destroys *ret_profile. limits may be NULL.
 * Handles: ERR_INVALID (no line is a stack, or too many are none), ERR_UNSUPPORTED (two values),
 * ERR_TOO_LARGE (a limit).
 */
enum err_code folded_decode(struct span text, const struct profile_limits *limits,
                            struct profile **ret_profile, struct err *err) MUST_USE;

/* Values are multiplied by at most 10 to the power of FOLDED_DECIMALS_MAX, and only while all are
 * less than FOLDED_VALUE_END, short of 2^63: a double below it is an int64 however it is rounded.
 */
enum { FOLDED_DECIMALS_MAX = 6, FOLDED_UNIT_BYTES = 16 };
#define FOLDED_VALUE_END 9.2e18

/* "count", or "count/1000" for values that were multiplied by the power of ten. */
void folded_print_unit(unsigned decimals, char ret_unit[FOLDED_UNIT_BYTES]);

/* Decimal places that unit "count/1000" stands for; 0 for every unit that is not of this kind. */
unsigned folded_unit_decimals(struct span unit);

#endif
