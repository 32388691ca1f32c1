/*
 * batch_type: what a profile's values are called in a series, and whether they may be added up over
 * time, where the sender does not say.
 *
 * THE NAME, the first part of "process_cpu:cpu:nanoseconds:cpu:nanoseconds", is the sender's, or
 * else made of the types of all the profile's values, as Pyroscope does; '-' counts as '_':
 *   1. one of them is "wall"                                     wall
 *   2. else the first that has a rule:
 *      contains "cpu"; "samples" (of a period "wall": wall); "itimer"        process_cpu
 *      contains "alloc_" or "inuse_"; "space", "objects", "live"             memory
 *      contains "mutex_"; "contentions", "delay"                             mutex
 *      contains "block_" or "lock_"                                          block
 *      contains "goroutine"                                                  goroutines
 *   3. else the first that has a name; else                                  unknown
 * Go's block and mutex profiles have the same types: a sender tells them apart by a name, or by
 * names to display ("block_count"). Whoever named it: "godeltaprof_memory" is memory, and the
 * values of type "cpu" in a profile that is called wall are process_cpu.
 *
 * THE KIND. What is in use is a level, never to be added over time: types "inuse_…", "live…",
 * "goroutine(s)", "space" and "objects" (of V8's heap), and all of a profile called goroutine(s).
 * Go and others count allocations and contentions since the program's start: types "alloc_…",
 * "contentions", "delay", "mutex_…", "block_…", "lock_…", "threadcreate" are cumulative. They are
 * those of the profile's time alone when that is stated: the profile has a duration (as those of
 * "/debug/pprof/heap?seconds=30" have, and those since the start do not), its name began with
 * "godeltaprof_", or the protocol says so. Everything else, CPU time first of all, is measured
 * during the profile and nothing before: a delta.
 * THE PARTS are told apart by ':', and stand before the '{' of a selector. One that has a ':' of
 * its own, as perf's event "cycles:u" does, a space, a brace or a byte that is no UTF-8, has '_' in
 * its place: so questions find what is listed. It is the same by all protocols.
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_TYPE_H
#define LIB_PROFILE_BATCH_BATCH_TYPE_H

#include "lib/profile/profile.h"

enum batch_kind {
    BATCH_KIND_BY_RULE, /* the sender does not say */
    BATCH_KIND_DELTA,
    BATCH_KIND_CUMULATIVE,
    BATCH_KIND_LEVEL
};

/* The name for a profile that has none, by steps 1 to 3. display_names, one per value type, replace
 * the names of types where they are not empty; NULL: none. Borrowed from the profile, or static. */
struct span batch_type_derive_name(const struct profile *profile, const struct span *display_names);

/* Takes the start "godeltaprof_" off *name; true when it was there. */
bool batch_type_take_delta_prefix(struct span *name);

/* part as it stands in a type's name: itself, or a copy in arena. */
struct span batch_type_part(struct arena *arena, struct span part);

/* name for one of the profile's value types: that "wall" of "cpu" is process_cpu. */
struct span batch_type_name(const struct profile *profile, struct span name, uint32_t value_type);

/* Never BATCH_KIND_BY_RULE. is_stated: the protocol says that values are of the profile's time. */
enum batch_kind batch_type_kind(const struct profile *profile, struct span name,
                                uint32_t value_type, bool is_stated);

#endif
