/*
 * retention: the retention rules of a team's continuous profiles: /api/v1/retention (needs
 * SCOPE_ADMIN), and for operators /api/v1/admin/tenants/{id}/retention. store/catalogue/retention.h
 * explains rules. Rules of a team keep at most TENANT_LIMIT_RULE_KEEP_S; one that an operator set
 * beyond that stays until it is changed.
 */
#ifndef API_QUERY_RETENTION_H
#define API_QUERY_RETENTION_H

#include "api/http/route.h"

extern const struct route_table retention_routes;

#endif
