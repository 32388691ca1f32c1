/*
 * folded: "root;…;leaf value" lines, as stackcollapse-*.pl, inferno, py-spy, rbspy, async-profiler
 * and bpftrace scripts write them (github.com/brendangregg/FlameGraph).
 *
 * The value follows the last blank. Lines may end in CR LF. Empty lines and comments are ignored.
 * These lines are comments:
 *
 *   "#"
 *   "# …", "// …"   "# samples by bash 42", unless several frames precede a number: "# a;b 42" is
 *                   a stack
 *   "//…"           "//by hand", unless it ends in a number: "//app:main 42" is a stack
 *
 * Lines without a value are skipped, and the profile's warning counts them. The number of skipped
 * lines may be a tenth of the number of stacks, or up to FOLDED_SKIPPED_FEW if there are more
 * stacks than skipped lines; otherwise the text is refused, unless was_accepted is set in limits.
 *
 * Values are whole numbers or decimals, "2.5" or "25e-1". With decimals, all values are multiplied
 * by the power of ten that keeps up to six decimal places (fewer if the largest value would not fit
 * an int64), and the unit states that power ("count/1000"). "count" and the coarser of such
 * units convert into the finer ones (unit.h); a series has one of them (batch_from_profile.h). The
 * sample type is "samples".
 *
 * Text whose stacks all have two values, as difffolded.pl and exported comparisons have, is
 * refused, because each value alone would be a wrong profile. If only some stacks have two, or no
 * stack has a caller ("worker 1 200"), the first number is part of the leaf's name.
 *
 * Frame names are kept unchanged, including the annotations of perf and Java. "_[k]" (kernel) and
 * "_[j]" (compiled at run time) also become the mappings "[kernel.kallsyms]" and "[jit]"; "_[i]"
 * makes the frame an inlined call of the frame before it. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FOLDED_H
#define LIB_PROFILE_FORMATS_FOLDED_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct profile;
struct profile_limits;

enum { FOLDED_SKIPPED_FEW = 3 };

/* Always true: only folded_decode can find out whether text that no other format detects consists
 * of stacks. */
bool folded_detect(struct span text);

/*
 * text is needed only during the call; the caller destroys *ret_profile. limits may be NULL.
 * Errors: ERR_INVALID (no line is a stack, or too many are not), ERR_UNSUPPORTED (two values),
 * ERR_TOO_LARGE (a limit).
 */
enum err_code folded_decode(struct span text, const struct profile_limits *limits,
                            struct profile **ret_profile, struct err *err) MUST_USE;

/* Values are multiplied by a power of ten (unit.h) only while all of them stay below this limit. It
 * is slightly less than 2^63, so a double below it fits an int64 after any rounding. */
#define FOLDED_VALUE_END 9.2e18

#endif
