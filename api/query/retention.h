/*
 * retention: for how long a team keeps which of its continuous profiles: /api/v1/retention (needs
 * SCOPE_ADMIN), and for operators /api/v1/admin/tenants/{id}/retention. store/catalogue/retention.h
 * tells what rules mean. A team's own keep no longer than TENANT_LIMIT_RULE_KEEP_S; what an
 * operator set beyond that stays until it is set anew.
 */
#ifndef API_QUERY_RETENTION_H
#define API_QUERY_RETENTION_H

#include "api/http/route.h"

extern const struct route_table retention_routes;

#endif
