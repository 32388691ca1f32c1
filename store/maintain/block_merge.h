/*
 * block_merge: several blocks of one tenant as one, with the same rows.
 *
 * All must have been opened with one seed. Memory is of the united dictionary and of the largest
 * granule. Rows of profiles outside of [begin_ns, last_ns] are left out, so that one input can be
 * spread over several outputs, and so are deleted profiles: nothing of what they alone referred to
 * (names, labels, stacks) is in the output either. Private to the room. Threads: any; inputs are
 * only read.
 */
#ifndef STORE_MAINTAIN_BLOCK_MERGE_H
#define STORE_MAINTAIN_BLOCK_MERGE_H

#include "store/block/block_read.h"
#include "store/catalogue/deletion_set.h"

/* What could not be read. */
struct block_losses {
    uint64_t profile_count;
    uint64_t row_count;
    struct err failure; /* the last that was no ERR_CORRUPT; zeros: there was none */
};

struct block_merge_options {
    int64_t tenant_id;
    int level; /* of zstd */
    int64_t begin_ns;
    int64_t last_ns; /* inclusive: no moment is out of reach */
    struct block_sink sink;
    struct deletion_set *deleted;             /* NULL: nothing is */
    const struct deletion_set_ids *deletions; /* of each block */
    /* Granules that cannot be read are left out and added to it; NULL: they are ERR_CORRUPT, or
     * ERR_IO with is_unreadable. */
    struct block_losses *losses;
};

/* *ret_summary has no rows and nothing was written when there are none. Handles: ERR_CORRUPT (which
 * names the input), ERR_TOO_LARGE, what the sink does. */
enum err_code block_merge(const struct block *const *blocks, uint32_t block_count,
                          const struct block_merge_options *options,
                          struct block_summary *ret_summary, struct err *err) MUST_USE;

#endif
