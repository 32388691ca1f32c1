/*
 * cpuprofile: the JSON of V8's CPU profiler: Chrome's .cpuprofile, node --cpu-prof, Deno
 * (chromedevtools.github.io/devtools-protocol, Profiler.Profile).
 *
 * nodes[] with children ids, or parent ids, or the old form: one tree under "head". Two sample
 * types: "samples" (count) and "time" (microseconds). A sample lasts until the next one, the last
 * until endTime, as Chrome's own DevTools count; a clock that goes back counts as standing still.
 * Without samples, hitCount says how often a node was the leaf, and the time from startTime to
 * endTime is shared out by it. The node "(root)" is left out of the stacks.
 * time_ns is not set: startTime counts from when the machine started. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_CPUPROFILE_H
#define LIB_PROFILE_FORMATS_CPUPROFILE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct profile;
struct profile_limits;

/*
 * text needs to live only for the call; the caller destroys *ret_profile. limits may be NULL.
 * Handles: ERR_INVALID (no JSON, or contradictory; the message says where), ERR_TOO_LARGE (a
 * limit).
 */
enum err_code cpuprofile_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err) MUST_USE;

#endif
