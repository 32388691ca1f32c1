/*
 * source_links: where a team's source code can be read. A rule maps files to pages of a repository:
 *
 *   path_prefix  the start of the file's path, in whole parts (/src is no prefix of /srcother/x.c);
 *                the rest of the path is {path}
 *   build_id     of the binary, may contain * and ?; empty: any. Ids that cannot have a symbol
 *                table (more than 256 hexadecimal digits) match nothing
 *   label        key=value of the profile's samples; empty: any
 *   url          "https://example.com/shop/blob/{revision}/{path}#L{line}": https only, and
 *                nothing is filled in before the path, so that no profile chooses the site
 *   revision     the text for {revision}
 *   audience     team: links are shown to the team only; everyone: also to others who may see a
 *                share
 *
 * If several rules match, a rule with a build id takes precedence over one with a label, and that
 * over one with neither; among equals the one with the longest prefix, then the newest one.
 *
 *   GET, POST /api/v1/source-links     read with SCOPE_READ, written with SCOPE_ADMIN
 *   DELETE /api/v1/source-links/{id}
 *   GET /api/v1/shares/{id}/source-links   the rules that match the share, for anyone who may see
 *               it: with revisions filled in, and the binaries selected by build ids; 413 if
 *               comparing takes more steps than api/share/source_link_matcher.h allows
 *
 * The page fills in the other parts and escapes each part of a path
 * (web/src/model/symbols/source_link.ts). Threads: any.
 */
#ifndef API_SHARE_SOURCE_LINKS_H
#define API_SHARE_SOURCE_LINKS_H

#include "api/http/route.h"

extern const struct route_table source_links_routes;

/* Whether url is valid in a rule. Errors: ERR_INVALID, which states what is wrong. */
enum err_code source_links_check_url(const char *url, struct err *err) MUST_USE;

#endif
