/*
 * compact: merges claimed blocks into the blocks that replace them.
 *
 * The blocks of segments become one block for each day (UTC) that they contain. Blocks of one level
 * become one block of the next level; a block that is alone in its window moves up unchanged. An
 * unreadable or missing input is marked and left out of later merges; queries still read the parts
 * of it that are readable.
 *
 * Blocks that are too large together (by the sum of their values or the number of their days) are
 * merged in halves, in the end one by one. A block that is too large alone moves up unchanged, or
 * is marked, so that it does not keep other blocks from being merged.
 *
 * A segment has the profiles of many teams, and its object is deleted once all teams' parts were
 * merged. So that no team keeps the deleted profiles of others, a merge of segments that spends its
 * budget for the team's deletions and rules (store/catalogue/match_budget.h) is repeated without
 * them: the blocks inherit the deletions, and later merges, of this team's blocks alone, apply
 * both. Private to store/.
 */
#ifndef STORE_MAINTAIN_COMPACT_H
#define STORE_MAINTAIN_COMPACT_H

#include "store/maintain/maintenance.h"

struct block_losses;
struct catalogue_claim;
struct catalogue_remainder;

/* How repair changes the merge of a claim; all zeros: as usual. */
struct compact_plan {
    bool is_apart;           /* each place becomes a block by itself */
    bool is_unmatched;       /* deletions and rules are left to later merges; is_apart if there
                                are deletions, which the places may not share */
    const bool *is_left_out; /* per place; NULL: none is left out */
    const struct catalogue_remainder
        *remainder; /* has been put, and is swapped in; NULL: there is none */
    /* Granules that cannot be read are left out and counted here; NULL: they are an error. */
    struct block_losses *losses;
};

/* Merges a claim and swaps it in one step. Errors: as compact_claim, and the errors that
 * compact_claim handles itself: ERR_TOO_LARGE, ERR_CORRUPT (an input was marked) and others. */
enum err_code compact_merge(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, const struct compact_plan *plan,
                            struct err *err) MUST_USE;

/*
 * Merges a claim and swaps it, or repairs a marked part (store/maintain/repair.h). A failure caused
 * by the claim's data, or by its team's rules and deletions, is reported and the claim is put off,
 * so that other claims go on. is_costly: the team's merges took long recently; its segments are
 * merged without deletions and rules at once. Errors: ERR_CONFLICT (the lease was lost: another
 * server does the work).
 */
enum err_code compact_claim(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, bool is_costly,
                            struct err *err) MUST_USE;

#endif
