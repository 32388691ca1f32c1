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
 * value would not fit an int64), and the unit says so ("count/1000"). Such units convert into each
 * other and into "count" (unit.h); series have one of them (batch_from_profile.h). The sample type
 * is "samples".
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

/* Values are multiplied by the power of ten of unit.h only while all are less than this, short of
 * 2^63: a double below it is an int64 however it is rounded. */
#define FOLDED_VALUE_END 9.2e18

#endif
