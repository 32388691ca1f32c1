/*
 * prune: applies drop_frames and keep_frames of a profile, like RemoveUninteresting of google/pprof
 * (profile/prune.go) when `go tool pprof` loads a file.
 *
 * Both are regular expressions that must match a whole function name, without its argument list and
 * a leading ".". Going from the root to the leaf, after the first frame that does not match, the
 * first frame that matches drop_frames and not keep_frames is removed together with everything it
 * calls. Threads: an object belongs to one thread while it is made; afterwards it is read-only.
 */
#ifndef LIB_PROFILE_PRUNE_H
#define LIB_PROFILE_PRUNE_H

#include "lib/profile/profile.h"

struct prune {
    const uint32_t *first_line; /* per location: its first line that is kept */
    const uint8_t *marks;       /* per location, for prune_stack; NULL: nothing is removed */
    bool has_failed; /* the expressions are unsupported or too costly: nothing is removed */
};

/* Allocates in arena. */
void prune_create(struct arena *arena, const struct profile *profile, struct prune *ret_prune);

/* The number of entries at the leaf end of a stack that are removed. */
size_t prune_stack(const struct prune *prune, const uint32_t *stack, size_t depth);

#endif
