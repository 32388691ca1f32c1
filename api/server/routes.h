/*
 * routes: the tables of all parts of the server (api/http/route.h), in the order of matching.
 *
 * The test of the authorisation matrix reads the same tables through `perfoliod routes --json`.
 */
#ifndef API_SERVER_ROUTES_H
#define API_SERVER_ROUTES_H

#include "api/http/route.h"

#include <stdio.h>

/* All tables, in the order of matching. */
const struct route_table *const *routes_all(size_t *ret_table_count);

/* The route for method and path, with the texts that {…} matched in ret_params. Errors:
 * ERR_NOT_FOUND (no such path), ERR_UNSUPPORTED (the path exists with other methods). */
enum err_code routes_match(enum http_method method, struct span path,
                           struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                           const struct route **ret_route, struct err *err) MUST_USE;

/* The methods of a path, in the form of the field Allow: "GET, HEAD, POST"; "" if there are none.
 */
void routes_allow(struct span path, struct buf *buf);

/* Prints the table as JSON lines, for tests and for operators. */
void routes_print(FILE *file);

#endif
