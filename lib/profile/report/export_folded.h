/*
 * export_folded: a view as folded stacks, one line "root;…;leaf value\n" per distinct stack.
 *
 * Frames are the view's (by default functions, inlined calls included), so filters and grouping
 * apply; ";" in a name becomes ":" and each control character (C0, DEL, C1) " ", since the format
 * knows no escape.
 * Lines are sorted by stack; stacks that sum to zero are left out, and so is a stack without any
 * frame. Values in "count/10", "count/100", … are written with their decimals again. Of a diff both
 * values are written, "stack before after", as difffolded.pl does; what a normalised one rounds to
 * "0 0" is no stack that sums to zero. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_FOLDED_H
#define LIB_PROFILE_REPORT_EXPORT_FOLDED_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct view;

/* Appends to output. Handles: ERR_TOO_LARGE (output's maximum; the view's
 * deadline). */
enum err_code export_folded(const struct view *view, struct buf *output, struct err *err) MUST_USE;

#endif
