/*
 * export_folded: a profile as folded stacks, one line "root;…;leaf value\n" per distinct stack.
 *
 * Frames are function names, inlined calls included, named as in the flame graph; ";" and line
 * breaks inside a name become ":" and " ", since the format knows no escape. Lines are sorted by
 * stack, stacks that sum to zero are left out. Threads: any.
 */
#ifndef LIB_PROFILE_EXPORT_FOLDED_H
#define LIB_PROFILE_EXPORT_FOLDED_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct profile;

/* Appends to output. Handles: ERR_TOO_LARGE (output's maximum). */
enum err_code export_folded(const struct profile *profile, uint32_t value_type_index,
                            struct buf *output, struct err *err) MUST_USE;

#endif
