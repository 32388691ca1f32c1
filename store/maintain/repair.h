/*
 * repair: retries a marked part, which an earlier merge could not read or could not merge.
 *
 * A part that reads without error is merged as usual. If the part belongs to a segment, its intact
 * blocks are merged and its damaged ones move to an object of their own. So the segment can be
 * deleted, and with it the bytes of other tenants and deleted bytes. A block that is too large to
 * merge is rewritten in that object without deleted profiles. If a deletion waits for a part that
 * was unreadable for CATALOGUE_LOSS_DAYS, the granules that still cannot be read are given up and
 * reported. Everything else stays as it is until the next retry. Private to store/.
 */
#ifndef STORE_MAINTAIN_REPAIR_H
#define STORE_MAINTAIN_REPAIR_H

#include "store/maintain/maintenance_options.h"

struct catalogue_claim;

/* Repairs the one marked part of the claim. Errors: as compact_merge. */
enum err_code repair_claim(const struct maintenance_options *options, int64_t writer_id,
                           const struct catalogue_claim *claim, struct err *err) MUST_USE;

#endif
