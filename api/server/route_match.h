/*
 * route_match: finds the row of a list of routes (api/http/route.h) for a request.
 *
 * The HTTP server gets its list from http_options.routes, so it depends on no handler.
 */
#ifndef API_SERVER_ROUTE_MATCH_H
#define API_SERVER_ROUTE_MATCH_H

#include "api/http/route.h"

/* The route for method and path, with the texts that {…} matched in ret_params. Errors:
 * ERR_NOT_FOUND (no such path), ERR_UNSUPPORTED (the path exists with other methods). */
enum err_code route_match(const struct route_list *list, enum http_method method, struct span path,
                          struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                          const struct route **ret_route, struct err *err) MUST_USE;

/* The methods of a path, in the form of the field Allow: "GET, HEAD, POST"; "" if there are none.
 */
void route_match_methods(const struct route_list *list, struct span path, struct buf *buf);

#endif
