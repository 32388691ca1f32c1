/*
 * health: /healthz (the process responds), /readyz (database and disk can be used), /metrics.
 */
#ifndef API_SERVER_HEALTH_H
#define API_SERVER_HEALTH_H

#include "api/http/route.h"

extern const struct route_table health_routes;

#endif
