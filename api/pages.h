/*
 * pages: what a browser loads: the HTML shell for each page's path, and the assets it names.
 *
 * The shell is web/dist/index.html with its marker <!--perfolio:head--> replaced by a title and
 * OpenGraph tags for that page. Assets under /assets/ carry a hash in their name and never change.
 */
#ifndef API_PAGES_H
#define API_PAGES_H

#include "api/routes.h"

extern const struct route_table page_routes;

/* Content-Security-Policy of every HTML answer, for tests and for handlers that send HTML. */
extern const char *const pages_content_security_policy;

#endif
