/*
 * health: /healthz (the process answers), /readyz (database and disk can be used), /metrics.
 */
#ifndef API_OPS_HEALTH_H
#define API_OPS_HEALTH_H

#include "api/routes.h"

extern const struct route_table health_routes;

#endif
