/*
 * prune: what drop_frames and keep_frames of a profile cut away, as google/pprof's
 * RemoveUninteresting does (profile/prune.go) when `go tool pprof` loads a file.
 *
 * Both are regular expressions that must match a whole function name, whose argument list and
 * leading "." do not count. Seen from the root, behind the first frame that does not match, the
 * first frame that matches drop_frames and not keep_frames goes, with all that it calls. Threads:
 * an object belongs to one thread while it is made, then it is read only.
 */
#ifndef LIB_PROFILE_PRUNE_H
#define LIB_PROFILE_PRUNE_H

#include "lib/profile/profile.h"

struct prune {
    const uint32_t *first_line; /* per location: where its lines start now */
    const uint8_t *marks;       /* per location; NULL: nothing is cut */
    bool has_failed; /* the expressions are not supported or too costly: nothing is cut */
};

/* In arena. */
void prune_create(struct arena *arena, const struct profile *profile, struct prune *ret_prune);

/* How many entries at the leaf's end of a stack are cut away. */
size_t prune_stack(const struct prune *prune, const uint32_t *stack, size_t depth);

#endif
