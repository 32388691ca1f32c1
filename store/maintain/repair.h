/*
 * repair: retries a marked part, which a merge could not take.
 *
 * A part that reads without error is merged as usual. Of a segment's part, intact blocks are merged
 * and damaged ones move to an object of their own, so that neither other tenants' bytes nor deleted
 * ones stay because of them; what is too large to merge is rewritten there without deleted
 * profiles. If a deletion waits for a part that was unreadable for CATALOGUE_LOSS_DAYS, the
 * granules that still cannot be read are given up and reported. Everything else stays as it is
 * until the next retry. Private to store/.
 */
#ifndef STORE_MAINTAIN_REPAIR_H
#define STORE_MAINTAIN_REPAIR_H

#include "store/maintain/maintenance.h"

struct catalogue_claim;

/* Repairs the one marked part of the claim. Handles: as compact_claim. */
enum err_code repair_claim(const struct maintenance_options *options, int64_t writer_id,
                           const struct catalogue_claim *claim, struct err *err) MUST_USE;

#endif
