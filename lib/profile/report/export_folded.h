/*
 * export_folded: writes a view as folded stacks, one line "root;…;leaf value\n" per distinct stack.
 *
 * Frames are those of the view (by default functions, including inlined calls), so filters and
 * grouping apply. The format has no escapes: ";" in a name becomes ":" and each control character
 * (C0, DEL, C1) a blank. Lines are sorted by stack. Stacks whose values sum to zero, and stacks
 * without frames, are left out. Values in "count/10", "count/100", … are written as decimals again.
 * For a diff both values are written, "stack before after", as difffolded.pl does; a stack of a
 * normalised diff that only rounds to "0 0" is not left out. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_FOLDED_H
#define LIB_PROFILE_REPORT_EXPORT_FOLDED_H

#include "lib/base/err_code.h"

struct buf;
struct view;

/* Appends to output. Errors: ERR_TOO_LARGE (output's maximum; the view's deadline). */
enum err_code export_folded(const struct view *view, struct buf *output, struct err *err) MUST_USE;

#endif
