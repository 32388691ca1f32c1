/*
 * query: questions to the store (store/store.h) over HTTP: what a selector finds in a window, as
 * any report that shares have.
 *
 * The window is start <= begin of a profile < end; both as lib/base/when.h reads them, the last
 * hour where they are missing. Reports and their parameters are those of shares (api/report.h).
 * Answers tell how they were made in fields: Perfolio-Profile-Type, Perfolio-Rule (sum, mean,
 * difference), Perfolio-Statistics (what was read), and Perfolio-Warning when something stored is
 * broken and the answer is of the rest.
 */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "api/routes.h"

extern const struct route_table query_routes;

#endif
