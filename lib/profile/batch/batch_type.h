/*
 * batch_type: derives the name and the kind of a profile's values for a series, if the sender does
 * not state them.
 *
 * NAME, the first part of "process_cpu:cpu:nanoseconds:cpu:nanoseconds", is the sender's, or else
 * derived from the types of all the profile's values, as in Pyroscope; '-' counts as '_':
 *
 *   1. one of them is "wall"                                     wall
 *   2. else the first that has a rule:
 *      contains "cpu"; "samples" (of a period "wall": wall); "itimer"        process_cpu
 *      contains "alloc_", "inuse_" or "_space"; "space", "objects", "live";
 *      begins with "heap_live"                                               memory
 *      contains "mutex_"; "contentions", "delay"                             mutex
 *      contains "block_" or "lock_"                                          block
 *      contains "goroutine"                                                  goroutines
 *   3. else the first that has a name; else                                  unknown
 *
 * Go's block and mutex profiles have the same types; a sender distinguishes them by a name, or by
 * display names ("block_count"). Two rules apply to any name: "godeltaprof_memory" becomes memory,
 * and the values of type "cpu" in a profile named wall become process_cpu.
 *
 * KIND. Amounts in use are gauges, which must never be added over time: types "inuse_…", "live…",
 * "goroutine…", "thread(s)", "space" and "objects" (of V8's heap and of TCMalloc's),
 * "resident_space", "swapped_space", "stale_space" and "locked_space" (TCMalloc), "heap_space" and
 * "heap_live…" (Datadog's profilers of Python and Ruby), and all types of a profile named
 * goroutine(s).
 *
 * Go and others count allocations and contentions since the program's start: types "alloc_…",
 * "contentions", "delay", "mutex_…", "block_…", "lock_…" and "threadcreate" are cumulative. They
 * are deltas, which cover only the profile's time, if the profile has a duration, if its name began
 * with "godeltaprof_", or if the protocol states it. Profiles of "/debug/pprof/heap?seconds=30"
 * have a duration, those since the start have none. In the former, gauges are changes, too, and are
 * left out (batch_type_is_go_delta).
 *
 * Everything else, above all CPU time, is measured during the profile only: a delta. A sender's
 * declaration for a type overrides these rules; it is stored, and shown as the last part of the
 * type's name (":gauge"), if it differs from them.
 *
 * PARTS of a type are separated by ':' and precede the '{' of a selector. In a part, a ':' (as in
 * perf's event "cycles:u"), a blank, a brace or a byte that is not UTF-8 is replaced by '_', for
 * all protocols, so that queries find what lists show.
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_TYPE_H
#define LIB_PROFILE_BATCH_BATCH_TYPE_H

#include "lib/profile/batch/batch.h"

/* Derives the name of a profile without one by steps 1 to 3. display_names, one per value type,
 * replace the names of types in step 2 where they are not empty; NULL: none. The result is borrowed
 * from the profile, or static. */
struct span batch_type_derive_name(const struct profile *profile, const struct span *display_names);

/* Removes the prefix "godeltaprof_" from *name; returns true if it was there. */
bool batch_type_take_delta_prefix(struct span *name);

/* Returns the form of part in a type's name (see PARTS): part itself if it needs no change, else a
 * copy in arena. */
struct span batch_type_part(struct arena *arena, struct span part);

/* Returns name for one of the profile's value types: name itself, or process_cpu for type "cpu" of
 * a profile named wall. */
struct span batch_type_name(const struct profile *profile, struct span name, uint32_t value_type);

/* Whether values of this type, of a profile or a stored series with this name, are a gauge by the
 * rule. */
bool batch_type_is_gauge(struct span name, struct span type);
/* The kind of a series of one of the profile's value types: BATCH_KIND_BY_RULE for gauges and
 * cumulative values as the rules find them, else BATCH_KIND_DELTA or, if the sender contradicts the
 * rules, its declaration. declared: what the sender states for this type; BATCH_KIND_BY_RULE:
 * nothing. is_delta: the protocol states that cumulative values cover only the profile's duration.
 */
enum batch_kind batch_type_kind(const struct profile *profile, struct span name,
                                uint32_t value_type, enum batch_kind declared, bool is_delta);
/* Whether it is a profile of Go's /debug/pprof/heap, allocs, block, mutex, goroutine or
 * threadcreate with ?seconds=N. All its values are changes, also those of gauges, and its time is
 * the end of the N seconds (net/http/pprof). */
bool batch_type_is_go_delta(const struct profile *profile);
/* The last part of a type's name with its ':', "" for BATCH_KIND_BY_RULE. */
const char *batch_type_suffix(enum batch_kind kind);

#endif
