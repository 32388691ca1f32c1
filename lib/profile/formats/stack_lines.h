/*
 * stack_lines: one stack per line, "root;…;leaf", each with the value 1: the format "lines" of
 * Pyroscope's agents. Empty lines are ignored; lines end in LF or CR LF. The sample type is
 * "samples" ("count"). Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_STACK_LINES_H
#define LIB_PROFILE_FORMATS_STACK_LINES_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct profile;
struct profile_limits;

/* text is needed only during the call; the caller destroys *ret_profile. limits may be NULL.
 * Errors: ERR_INVALID (all lines are empty), ERR_TOO_LARGE (a limit). */
enum err_code stack_lines_decode(struct span text, const struct profile_limits *limits,
                                 struct profile **ret_profile, struct err *err) MUST_USE;

#endif
