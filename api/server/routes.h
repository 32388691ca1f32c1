/*
 * routes: the tables of all parts of the server (api/http/route.h), in the order of matching.
 *
 * The authorisation matrix test walks the same tables through `perfoliod routes --json`.
 */
#ifndef API_SERVER_ROUTES_H
#define API_SERVER_ROUTES_H

#include "api/http/route.h"

#include <stdio.h>

/* All tables, in the order of matching. */
const struct route_table *const *routes_all(size_t *ret_table_count);

/*
 * The route for method and path, with what {…} matched in ret_params.
 * Handles: ERR_NOT_FOUND (no such path), ERR_UNSUPPORTED (the path exists with other methods).
 */
enum err_code routes_match(enum http_method method, struct span path,
                           struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                           const struct route **ret_route, struct err *err) MUST_USE;

/* The methods that path answers, as in the field Allow: "GET, HEAD, POST"; "" when there are none.
 */
void routes_allow(struct span path, struct buf *buf);

/* The table as JSON lines, for tests and for the curious. */
void routes_print(FILE *file);

#endif
