/*
 * scrub_routes: /api/v1/admin/scrub: operators read the result of the scrub (api/ops/scrub.h), and
 * pause, resume or start its passes.
 *
 * The routes read and change the rows that the scrub of any server works with.
 */
#ifndef API_OPS_SCRUB_ROUTES_H
#define API_OPS_SCRUB_ROUTES_H

#include "api/http/route.h"

extern const struct route_table scrub_routes;

#endif
