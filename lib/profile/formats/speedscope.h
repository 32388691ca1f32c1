/*
 * speedscope: the JSON that speedscope exports and py-spy, rbspy, dotnet-trace and others write
 * (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts), versions 0.0.1 to 1.x.
 *
 * Sampled profiles give each stack its weight; evented ones the time that it stood between two
 * events. Several profiles in one file (threads, mostly) become one profile: those of one unit
 * share a sample type, and each sample carries its profile's name in the label "profile". Sample
 * types are "samples" (unit none), "time" and "space". Times keep the file's unit where all numbers
 * are whole and of one unit, else they become nanoseconds. Fractions of samples are kept as
 * folded.h keeps them, by a unit such as "count/10". What remains of other fractions is rounded so
 * that the stacks of a type add up to the rounded total, each within one of its value. A stack
 * whose values add up to more than an int64 holds is refused. default_sample_type is that of the
 * profile which the file says to show first. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_SPEEDSCOPE_H
#define LIB_PROFILE_FORMATS_SPEEDSCOPE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct profile;
struct profile_limits;

/*
 * text needs to live only for the call; the caller destroys *ret_profile. limits may be NULL.
 * Handles: ERR_INVALID (no JSON, or contradictory; the message says where), ERR_UNSUPPORTED (a kind
 * of profile or a unit that is not known), ERR_TOO_LARGE (a limit).
 */
enum err_code speedscope_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err) MUST_USE;

#endif
