/*
 * batch_subset: a batch without some of its profiles, which then leave nothing behind.
 *
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_SUBSET_H
#define LIB_PROFILE_BATCH_BATCH_SUBSET_H

#include "lib/profile/batch/batch.h"

/*
 * The profiles that keeps says true for, with their samples and series. The result borrows all else
 * of batch, what it has of its own is in batch's arena: it is never destroyed on its own.
 */
struct batch *batch_subset(struct batch *batch, const bool *keeps);

#endif
