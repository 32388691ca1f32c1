/*
 * scrub: reads every stored object in the background and compares it with its row.
 *
 * One thread per server; if several servers share a database, the one with the lease works. A pass
 * reads all kinds of objects in the order of their rows (api/ops/object_verify.h). It begins half a
 * period (--scrub-period, default 30 days) after the previous pass began and reads at a rate that
 * takes a quarter of the period, at least 4 MiB/s, so that every object is read once in each
 * period. Progress is committed after each page, so that a restart repeats at most one page.
 *
 * An object that is damaged or lost is logged at error level once per pass (at most 1000 objects in
 * each) and entered in the table object_problem, as are those that requests find
 * (api/core/integrity.h). It stays there until a later pass reads the object intact, or ends
 * without finding the problem again. Counts are in /metrics (perfolio_scrub_*,
 * perfolio_object_problems); operators control it through api/ops/scrub_routes.h.
 */
#ifndef API_OPS_SCRUB_H
#define API_OPS_SCRUB_H

#include "lib/base/err_code.h"

struct scrub;
struct server;

/* Starts the thread; *ret_scrub is NULL if --scrub-period is 0. */
enum err_code scrub_start(struct server *server, struct scrub **ret_scrub,
                          struct err *err) MUST_USE;
/* Releases the lease, so that another server continues at once. NULL is a no-op. */
void scrub_stop(struct scrub *scrub);

#endif
