/*
 * health: the routes for monitoring.
 *
 *   /healthz   200 as long as the process responds
 *   /readyz    200 if the database, the objects and the disk can be used and the server is not
 *              stopping, otherwise 503; a successful check of the database counts for a second
 *   /metrics   api/core/metrics.h; for operators only unless the setting public-metrics is on
 */
#ifndef API_SERVER_HEALTH_H
#define API_SERVER_HEALTH_H

#include "api/http/route.h"

extern const struct route_table health_routes;

#endif
