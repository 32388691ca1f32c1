/*
 * source_links: where a team's source code can be read. A rule leads files to a page of a
 * repository:
 *
 *   path_prefix  how the file's path begins, in whole parts (/src is not how /srcother/x.c does);
 *                what follows it is {path}
 *   build_id     of the binary, with * and ? in it; empty: of any
 *   label        key=value that samples of the profile have; empty: of any
 *   url          "https://example.com/shop/blob/{revision}/{path}#L{line}": https alone, and
 * nothing to fill in before the path, so that no profile says which site a link leads to revision
 * what {revision} stands for audience     team: links are shown to the team alone; everyone: also
 * to others who may see a share
 *
 * Of several rules that fit, one with a build id comes before one with a label and that before one
 * with neither, then the longest prefix counts, then the newest rule.
 *
 *   GET, POST /api/v1/source-links     read by SCOPE_READ, written by SCOPE_ADMIN
 *   DELETE /api/v1/source-links/{id}
 *   GET /api/v1/shares/{id}/source-links   those that fit the share, for who may see it: with
 *                revisions filled in, and the binaries that build ids chose
 *
 * The page fills in what it shows, with each part of a path escaped (web/src/model/source_link.ts).
 * Threads: any.
 */
#ifndef API_SHARE_SOURCE_LINKS_H
#define API_SHARE_SOURCE_LINKS_H

#include "api/http/route.h"

extern const struct route_table source_link_routes;

/* Is it a url of a rule? Handles: ERR_INVALID, which says what is wrong. */
enum err_code source_links_check_url(const char *url, struct err *err) MUST_USE;

/* Does text, all of it, match a pattern in which * stands for any text and ? for one byte? Takes
 * the product of both lengths at the worst. */
bool source_links_match(struct span pattern, struct span text);

#endif
