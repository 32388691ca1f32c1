/*
 * compact: merges claimed blocks into the blocks that replace them, all in one merge.
 * claimed_work decides which blocks of a claim are merged together.
 *
 * The blocks of segments become one block for each day (UTC) that they contain. Blocks of one level
 * become one block of the next level; a block that is alone in its window moves up unchanged. An
 * unreadable or missing input is marked and left out of later merges; queries still read the parts
 * of it that are readable.
 *
 * Threads: any; a claim is merged by the thread that has it. Private to store/.
 */
#ifndef STORE_MAINTAIN_COMPACT_H
#define STORE_MAINTAIN_COMPACT_H

#include "store/maintain/maintenance_options.h"

struct block_losses;
struct catalogue_claim;
struct catalogue_remainder;

/* How repair changes the merge of a claim; all zeros: as usual. */
struct compact_plan {
    bool is_apart;           /* each place becomes a block by itself */
    bool is_unmatched;       /* deletions and rules are left to later merges; needs is_apart if
                                there are deletions, since places may have different ones */
    const bool *is_left_out; /* per place; NULL: none is left out */
    const struct catalogue_remainder
        *remainder; /* its object has been put, the swap adds its row; NULL: there is none */
    /* Granules that cannot be read are left out and counted here; NULL: they are an error. */
    struct block_losses *losses;
};

/* Merges a claim and swaps it in one step. Errors: ERR_CONFLICT (the lease was lost: another server
 * does the work), ERR_TOO_LARGE (for one merge), ERR_CORRUPT (an input was marked) and others. */
enum err_code compact_merge(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, const struct compact_plan *plan,
                            struct err *err) MUST_USE;

/* True for errors that the data, rules and deletions of one team cause. All others are the bucket's
 * or the database's and affect every claim. */
bool compact_is_caused_by_claim(enum err_code code);

#endif
