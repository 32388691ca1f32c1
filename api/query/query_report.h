/*
 * query_report: reports of continuous profiles over HTTP.
 *
 * One route merges the profiles that a selector matches in a window and responds with a report, of
 * the same kinds as for shares. Another route returns one profile of a list
 * (api/query/profile_list.h), not merged with others. Reports and their parameters are those of
 * shares (api/report/report.h). The header fields of the response are those of
 * api/query/query_fields.h.
 */
#ifndef API_QUERY_QUERY_REPORT_H
#define API_QUERY_QUERY_REPORT_H

#include "api/http/route.h"

extern const struct route_table query_report_routes;

#endif
