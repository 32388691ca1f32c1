/*
 * orphans: the thread that searches the objects of ended writers for those that no row names, and
 * discards them.
 *
 * It is not the maintenance thread, since a listing of a bucket may take long. The search runs in
 * time slices of a few seconds, on one server at a time. A writer is searched until a day after its
 * end (catalogue_begin_search), because a put that failed may store its object late. Private to
 * store/.
 */
#ifndef STORE_MAINTAIN_ORPHANS_H
#define STORE_MAINTAIN_ORPHANS_H

#include "lib/base/err_code.h"

struct maintenance_options;
struct orphans;

/* options are copied. */
enum err_code orphans_create(const struct maintenance_options *options,
                             struct orphans **ret_orphans, struct err *err) MUST_USE;
/* Ends the thread after its current request to the object store. NULL is a no-op. */
void orphans_destroy(struct orphans *orphans);

#endif
