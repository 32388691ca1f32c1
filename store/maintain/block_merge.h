/*
 * block_merge: merges several blocks of one tenant into one with the same rows.
 *
 * All blocks must have been opened with one seed. Memory: the united dictionary and the largest
 * granule. Deleted profiles are left out, and so are profiles outside [begin_ns, last_ns], so that
 * one input can be spread over several outputs. The output contains no name, label or stack that
 * only the left-out profiles referred to. Threads: any; inputs are only read. Private to store/.
 */
#ifndef STORE_MAINTAIN_BLOCK_MERGE_H
#define STORE_MAINTAIN_BLOCK_MERGE_H

#include "lib/base/err.h"
#include "store/block/block_read.h"
#include "store/catalogue/deletion_set.h"

/* Counts what could not be read. */
struct block_losses {
    uint64_t profile_count;
    uint64_t row_count;
    struct err failure; /* the last failure other than ERR_CORRUPT; zeros: none */
};

struct block_merge_options {
    int64_t tenant_id;
    int level; /* compression level of zstd */
    int64_t begin_ns;
    int64_t last_ns; /* inclusive, so that every time can be covered */
    struct block_sink sink;
    struct deletion_set *deleted;             /* NULL: nothing is deleted */
    const struct deletion_set_ids *deletions; /* [block_count] */
    /* Not NULL: granules that cannot be read are left out and counted here. NULL: such a granule is
     * an error, ERR_CORRUPT or ERR_IO with is_unreadable. */
    struct block_losses *losses;
};

/* When no rows are left, nothing is written and *ret_summary has no granules. Errors: ERR_CORRUPT
 * (names the input), ERR_TOO_LARGE, what the sink returns. */
enum err_code block_merge(const struct block *const *blocks, uint32_t block_count,
                          const struct block_merge_options *options,
                          struct block_summary *ret_summary, struct err *err) MUST_USE;

#endif
