/*
 * compact_internal: the state of one merge. compact_inputs.c opens its inputs in batches,
 * compact.c writes and swaps its outputs.
 *
 * Threads: as compact.h.
 */
#ifndef STORE_MAINTAIN_COMPACT_INTERNAL_H
#define STORE_MAINTAIN_COMPACT_INTERNAL_H

#include "store/catalogue/catalogue.h"
#include "store/catalogue/match_budget.h"
#include "store/maintain/compact.h"
#include "store/query/block_cache.h"

struct retention;

struct compaction {
    const struct maintenance_options *options;
    const struct catalogue_claim *claim;
    const struct compact_plan *plan;
    int64_t writer_id;
    struct arena *arena;
    uint32_t next_index;  /* of the claim, after those that were opened */
    uint32_t input_count; /* inputs of the batches before */
    uint32_t group_count; /* groups of the batches before */
    /* The current batch, all open: */
    struct open_block *opened;
    uint32_t *indexes; /* per block: its index in the claim */
    const struct block **blocks;
    uint32_t count;
    size_t open_bytes; /* memory of the blocks */
    struct retention *retention;
    struct match_budget matching;
    struct deletion_set *deleted;       /* NULL: nothing is deleted or expired */
    struct deletion_set_ids *deletions; /* per block */
    struct catalogue_block *outputs;
    uint32_t output_count;
    int64_t due_ns; /* when the next rule is due on an expiry's output; INT64_MAX: never */
    int64_t renewed_ns;
    bool is_due;       /* something has expired */
    bool may_have_put; /* outputs were put that no row names if the merge fails */
    struct err *err;
};

/* A large merge or a slow bucket may take longer than the lease and the writer's heartbeat last.
 * Renews both if they were not renewed lately. Errors: as catalogue_renew. */
enum err_code compact_renew_lease(struct compaction *compaction) MUST_USE;

/* Creates the arrays of a batch; called once. */
void compact_create_batch(struct compaction *compaction);
/* Opens inputs until they take the memory of a merge; at least one, and at most one more than fits.
 * Errors: ERR_CORRUPT (an input was marked), as block_cache_borrow. */
enum err_code compact_open_batch(struct compaction *compaction) MUST_USE;
/* Creates the set of deleted and expired profiles if the batch may have any. */
enum err_code compact_find_expired(struct compaction *compaction) MUST_USE;
/* Finds and marks the input of the batch that is damaged. Returns ERR_CORRUPT, or reason if none
 * is. */
enum err_code compact_mark_broken_input(struct compaction *compaction,
                                        enum err_code reason) MUST_USE;
void compact_return_batch(struct compaction *compaction);

#endif
