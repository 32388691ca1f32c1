/*
 * pages: what a browser loads: the HTML shell for each page's path, and the assets it names.
 *
 * The shell is web/dist/index.html with its marker <!--perfolio:head--> replaced by a title and
 * OpenGraph tags for that page. A path that leads nowhere has the shell too, for browsers.
 * Assets under /assets/ carry a hash in their name and never change.
 */
#ifndef API_SERVER_PAGES_H
#define API_SERVER_PAGES_H

#include "api/http/route.h"

extern const struct route_table page_routes;

/* Is this an error that a browser shall see as a page: nothing found or a path that cannot be
 * decoded, outside the API and the assets, and asked for with Accept: text/html? */
bool pages_shows_error(const struct request *request, const struct err *problem);

/* The shell that says there is nothing here, with status 404, or that the address cannot be read,
 * with 400; may run on a loop thread. */
enum err_code pages_respond_no_page(struct request *request, struct response *response,
                                    struct err *err) MUST_USE;

/* Content-Security-Policy of every HTML answer, and of those that other sites may show in a frame:
 * /embed/{id} of shares that anyone with the link may see. */
extern const char *const pages_content_security_policy;
extern const char *const pages_framed_content_security_policy;

#endif
