/*
 * compact: claimed blocks become the ones that replace them.
 *
 * Blocks of segments become one block for each day (UTC) that they have; blocks of one level become
 * one of the next; one alone in its window moves up as it is. What cannot be read, or is missing,
 * is marked, and left out of later merges; the rest of it is still read by questions. Private to
 * the room.
 *
 * Blocks that are too large together (their values' sum, their days) are merged in halves, at last
 * each by itself; one that is so alone moves up as it is, or is marked, so that it stands in no
 * other's way.
 */
#ifndef STORE_MAINTAIN_COMPACT_H
#define STORE_MAINTAIN_COMPACT_H

#include "store/maintain/maintenance.h"

struct block_losses;
struct catalogue_claim;
struct catalogue_remainder;

/* How a claim becomes blocks, other than as all do. */
struct compact_plan {
    bool is_apart;           /* what each place has, by itself */
    const bool *is_left_out; /* of each place; NULL: none is */
    const struct catalogue_remainder
        *remainder;              /* has been put, and is swapped in; NULL: there is none */
    struct block_losses *losses; /* what cannot be read is left out and added; or NULL */
};

/* Merges and swaps, all at once. Handles: as compact_claim, and whatever
 * compact_claim sets aside: ERR_TOO_LARGE, ERR_CORRUPT (an input was marked) and others. */
enum err_code compact_merge(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, const struct compact_plan *plan,
                            struct err *err) MUST_USE;

/* Merges and swaps; or mends (store/maintain/repair.h). What fails for what the claim holds, or for
 * its team's rules and deletions, is reported and set aside for a while: nobody else waits for it.
 * Handles: ERR_CONFLICT (the lease was lost: somebody else does it). */
enum err_code compact_claim(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, struct err *err) MUST_USE;

#endif
