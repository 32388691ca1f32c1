/*
 * cpuprofile: the JSON of V8's CPU profiler: Chrome's .cpuprofile, node --cpu-prof, Deno
 * (chromedevtools.github.io/devtools-protocol, Profiler.Profile).
 *
 * nodes[] with ids of children or of parents, or the old form: one tree under "head". Two sample
 * types: "samples" (count) and "time" (microseconds). A sample lasts until the next one, the last
 * until endTime, as in Chrome's DevTools; if the clock goes back, the duration is 0. Without
 * samples, hitCount is the number of times a node was the leaf, and the time from startTime to
 * endTime is distributed in proportion to it. Stacks do not include the node "(root)". time_ns is
 * not set: startTime is relative to the start of the machine. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_CPUPROFILE_H
#define LIB_PROFILE_FORMATS_CPUPROFILE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct profile;
struct profile_limits;

/*
 * Whether the top-level object of text has the members of a CPU profile: "nodes" or "head" with a
 * time, or "nodes" alone. V8's heap profiles have "head" without a time; its heap snapshots have
 * "nodes" and "snapshot" without a time.
 */
bool cpuprofile_detect(struct span text);

/*
 * text is needed only during the call; the caller destroys *ret_profile. limits may be NULL.
 * Errors: ERR_INVALID (not JSON, or inconsistent; the message states where), ERR_TOO_LARGE (a
 * limit).
 */
enum err_code cpuprofile_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err) MUST_USE;

#endif
