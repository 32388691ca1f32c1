/*
 * pages: HTML and assets for browsers: the HTML for each page's path, and the assets that it names.
 *
 * The HTML is web/dist/index.html with its marker <!--perfolio:head--> replaced by a title and
 * OpenGraph tags for that page. For browsers, unknown paths get it too. Assets under /assets/
 * contain a hash in their name and never change.
 */
#ifndef API_SERVER_PAGES_H
#define API_SERVER_PAGES_H

#include "api/http/route.h"

extern const struct route_table pages_routes;

/* Whether the error is to be sent as a page instead of a problem document. True if the path does
 * not exist or cannot be decoded, does not belong to the API or the assets, and was requested with
 * Accept: text/html. */
bool pages_shows_error(const struct request *request, const struct err *problem);

/* Responds with the page for a path that does not exist (status 404) or cannot be decoded (400).
 * May run on a loop thread. */
enum err_code pages_respond_no_page(struct request *request, struct response *response,
                                    struct err *err) MUST_USE;

/* The Content-Security-Policy of HTML responses. The second one is for responses that other sites
 * may show in a frame: /embed/{id} of shares that anyone with the link may see. */
extern const char *const pages_content_security_policy;
extern const char *const pages_framed_content_security_policy;

#endif
