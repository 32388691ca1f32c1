/*
 * deletion: deletes continuous profiles of a team: DELETE /api/v1/profiles, and lists deletions:
 * GET /api/v1/deletions. Both need SCOPE_ADMIN.
 */
#ifndef API_QUERY_DELETION_H
#define API_QUERY_DELETION_H

#include "api/http/route.h"

extern const struct route_table deletion_routes;

#endif
