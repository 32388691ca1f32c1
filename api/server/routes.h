/*
 * routes: the routes of perfoliod: the tables of all parts of the server (api/http/route.h).
 *
 * The test of the authorisation matrix reads the same tables through `perfoliod routes --json`.
 */
#ifndef API_SERVER_ROUTES_H
#define API_SERVER_ROUTES_H

#include "api/http/route.h"

#include <stdio.h>

/* All tables, in the order of matching. server_run passes them to the HTTP server. */
extern const struct route_list routes_all;

/* Prints the tables as JSON lines, for tests and for operators. */
void routes_print(FILE *file);

#endif
