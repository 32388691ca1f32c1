/*
 * claimed_work: the work on one claim: its blocks are merged (compact), or its marked part is
 * repaired (repair).
 *
 * Blocks that are too large together (by the sum of their values or the number of their days) are
 * merged in halves, in the end one by one. A block that is too large alone moves up unchanged, or
 * is marked, so that it does not keep other blocks from being merged.
 *
 * A segment has the profiles of many teams, and its object is deleted once all teams' parts were
 * merged. So that no team keeps the deleted profiles of others, a merge of segments that spends its
 * budget for the team's deletions and rules (store/catalogue/match_budget.h) is repeated without
 * them. The output inherits the deletions; later merges, which take blocks of this team alone,
 * apply the deletions and rules.
 *
 * Threads: any; a claim belongs to the thread that works on it. Private to store/.
 */
#ifndef STORE_MAINTAIN_CLAIMED_WORK_H
#define STORE_MAINTAIN_CLAIMED_WORK_H

#include "store/maintain/maintenance_options.h"

struct catalogue_claim;

/*
 * Merges a claim and swaps it, or repairs a marked part (store/maintain/repair.h). A failure caused
 * by the claim's data, or by its team's rules and deletions, is reported and the claim is put off,
 * so that other claims go on. is_costly: the team's merges took long recently, so its segments are
 * merged without deletions and rules at the first attempt. Errors: ERR_CONFLICT (the lease was
 * lost: another server does the work).
 */
enum err_code claimed_work_do(const struct maintenance_options *options, int64_t writer_id,
                              const struct catalogue_claim *claim, bool is_costly,
                              struct err *err) MUST_USE;

#endif
