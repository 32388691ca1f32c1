/*
 * deletion: what a team deletes of its continuous profiles: DELETE /api/v1/profiles, and what
 * became of it: GET /api/v1/deletions. Both need SCOPE_ADMIN.
 */
#ifndef API_QUERY_DELETION_H
#define API_QUERY_DELETION_H

#include "api/http/route.h"

extern const struct route_table deletion_routes;

#endif
