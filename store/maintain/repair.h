/*
 * mend: a part that is marked, since no merge could take it, is looked at again.
 *
 * What reads whole by now is merged as ever. Of a segment's part, blocks that are whole are merged,
 * and those that are not get an object of their own, so that neither other tenants' bytes nor
 * deleted ones stay because of them; what is too large to be merged is written anew there, without
 * what is deleted. What a deletion waits for and could not be read for CATALOGUE_LOSS_DAYS is given
 * up, granule by granule, and reported. All else is left as it is and looked at later. Private to
 * the room.
 */
#ifndef STORE_MAINTAIN_REPAIR_H
#define STORE_MAINTAIN_REPAIR_H

#include "store/maintain/maintenance.h"

struct catalogue_claim;

/* The claim is of one marked part. Handles: as compact_claim. */
enum err_code repair_claim(const struct maintenance_options *options, int64_t writer_id,
                           const struct catalogue_claim *claim, struct err *err) MUST_USE;

#endif
