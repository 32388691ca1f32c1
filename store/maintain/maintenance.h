/*
 * maintenance: the background thread. It merges segments and blocks, deletes the rows of those that
 * were swapped long enough ago, and ends writers that are gone or in doubt.
 *
 * Merges rotate through the kinds of work (store/catalogue/catalogue.h), and timed work runs
 * between them, so that nothing starves while segments keep arriving. One thread per server; any
 * number of servers share the work: a merge is claimed with a lease, and only the holder of the
 * lease commits it. Private to store/.
 */
#ifndef STORE_MAINTAIN_MAINTENANCE_H
#define STORE_MAINTAIN_MAINTENANCE_H

#include "store/maintain/maintenance_options.h"

struct maintenance;

enum err_code maintenance_create(const struct maintenance_options *options,
                                 struct maintenance **ret_maintenance, struct err *err) MUST_USE;
/* Ends the thread after its current merge. NULL is a no-op. */
void maintenance_destroy(struct maintenance *maintenance);

#endif
