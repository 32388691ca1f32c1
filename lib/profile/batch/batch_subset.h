/*
 * batch_subset: makes a batch without some of the profiles of another batch.
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_SUBSET_H
#define LIB_PROFILE_BATCH_BATCH_SUBSET_H

#include "lib/profile/batch/batch.h"

/*
 * Keeps the profiles for which keeps is true, with their samples and series. The result borrows
 * everything else from batch; its own parts are in batch's arena, so it is never destroyed
 * separately.
 */
struct batch *batch_subset(struct batch *batch, const bool *keeps);

#endif
