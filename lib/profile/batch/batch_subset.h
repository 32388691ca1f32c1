/*
 * batch_subset: makes a batch without some of the profiles of another batch.
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_SUBSET_H
#define LIB_PROFILE_BATCH_BATCH_SUBSET_H

#include "lib/profile/batch/batch.h"

/*
 * Keeps the profiles i for which keeps[i] is true, with their samples and series. Everything of the
 * result is in batch's arena and lives as long as batch, which stays unchanged: do not destroy the
 * result.
 */
struct batch *batch_subset(struct batch *batch, const bool *keeps);

#endif
