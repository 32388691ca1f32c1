/*
 * usage: what the own tenant has sent as continuous profiles, by day (UTC): GET /api/v1/usage.
 *
 * Counted where profiles are added (store/catalogue/catalogue_usage.c), so it is exact.
 */
#ifndef API_INGEST_USAGE_H
#define API_INGEST_USAGE_H

#include "api/http/route.h"

extern const struct route_table usage_routes;

#endif
