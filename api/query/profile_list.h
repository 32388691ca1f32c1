/*
 * profile_list: single profiles of the store: GET /api/v1/profiles.
 *
 * The newest first, `limit` of them; `next` is what `after` must be for those that follow. An id
 * says which series and moment it is of, so it stays valid as long as the profile is kept; GET
 * /api/v1/profiles/{id} opens it (api/query/query.h). What a series has at one moment is one
 * profile.
 */
#ifndef API_QUERY_PROFILE_LIST_H
#define API_QUERY_PROFILE_LIST_H

#include "api/http/route.h"

extern const struct route_table profile_list_routes;

#endif
