/*
 * speedscope: the JSON that speedscope exports and py-spy, rbspy, dotnet-trace and others write
 * (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts), versions 0.0.1 to 1.x.
 *
 * In a sampled profile, a stack's value is its weight; in an evented one, the time for which it was
 * the stack of open frames. Several profiles in one file, usually of threads, become one profile:
 * profiles with the same kind of unit share a sample type, and the label "profile" of each sample
 * is the name of its profile. Sample types are "samples" (unit none), "time" and "space". Times
 * become nanoseconds, whatever their unit in the file, so that all files of a tool have one type.
 * Decimals of samples are kept by a unit such as "count/10", as in folded.h. Other fractions are
 * rounded so that the stacks of a type add up to the rounded total, and each differs from its value
 * by less than 1. A stack whose value does not fit an int64 is refused. default_sample_type is that
 * of the profile that activeProfileIndex names. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_SPEEDSCOPE_H
#define LIB_PROFILE_FORMATS_SPEEDSCOPE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct profile;
struct profile_limits;

/* Whether the top-level object of text has the members "profiles" and "shared". */
bool speedscope_detect(struct span text);

/*
 * text is needed only during the call; the caller destroys *ret_profile. limits may be NULL.
 * Errors: ERR_INVALID (not JSON, or inconsistent; the message states where), ERR_UNSUPPORTED (an
 * unknown kind of profile, or an unknown unit), ERR_TOO_LARGE (a limit).
 */
enum err_code speedscope_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err) MUST_USE;

#endif
