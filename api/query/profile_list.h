/*
 * profile_list: single profiles of the store: GET /api/v1/profiles.
 *
 * The newest first, `limit` of them; `next` is the value of `after` for the following ones. An id
 * contains series and time, so it stays valid as long as the profile is kept; GET
 * /api/v1/profiles/{id} opens it (api/query/query_report.h). All data of a series at one time is
 * one profile.
 */
#ifndef API_QUERY_PROFILE_LIST_H
#define API_QUERY_PROFILE_LIST_H

#include "api/http/route.h"

extern const struct route_table profile_list_routes;

#endif
