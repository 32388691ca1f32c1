/*
 * prune: applies drop_frames and keep_frames of a profile, like RemoveUninteresting of google/pprof
 * (profile/prune.go) when `go tool pprof` loads a file.
 *
 * Both are regular expressions that must match a whole function name, without its argument list and
 * a leading ".". A name is uninteresting if drop_frames matches it and keep_frames does not.
 *
 * A location loses the outermost call with an uninteresting name and the calls inlined into it,
 * unless that call is the location's last line (first_line). A stack is searched from the root to
 * the leaf for the first location with an uninteresting name after a location without one. It loses
 * everything that this location calls and, if the name is that of the location's last line, the
 * location itself (prune_stack).
 *
 * Threads: an object belongs to one thread while it is made; afterwards it is read-only.
 */
#ifndef LIB_PROFILE_PRUNE_H
#define LIB_PROFILE_PRUNE_H

#include "lib/profile/profile.h"

/* A limit for prune_create where a profile is received: about the CPU time to decode the largest
 * body of a continuous profile. */
enum { PRUNE_RECEIVE_CPU_MS = 200 };

struct prune {
    const uint32_t *first_line; /* per location: its first line that is kept; never NULL */
    const uint8_t *marks;       /* per location, for prune_stack; NULL: nothing is removed */
    bool has_failed; /* the expressions are unsupported or too costly: nothing is removed */
};

/* Allocates in arena. Cannot fail: see has_failed. cpu_ms: the CPU time that all matches of one of
 * the expressions may take. */
void prune_create(struct arena *arena, const struct profile *profile, uint32_t cpu_ms,
                  struct prune *ret_prune);

/* The number of entries at the leaf end of a stack that are removed: its first ones, because a
 * stack is leaf first. */
size_t prune_stack(const struct prune *prune, const uint32_t *stack, size_t depth);

#endif
