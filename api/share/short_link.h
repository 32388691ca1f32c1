/*
 * short_link: /s/<22 letters and digits> in place of the address of a view, which may be long.
 *
 * Anyone who may see the share may create a short link. The id is a keyed hash of the path
 * (api/share/viewer_path.h, api/core/server_key.h), so the same path always has the same link, and
 * no link can be guessed: the id has 128 bits, as many as the id of a share. A link gives no
 * access: it redirects to the page, where the visibility of the share is checked as usual. It
 * reveals the parameters of the view, as the long address does. A trigger deletes it with its
 * shares (api/migrations/0003_shares.sql). Threads: any.
 */
#ifndef API_SHARE_SHORT_LINK_H
#define API_SHARE_SHORT_LINK_H

#include "api/http/route.h"

enum {
    SHORT_LINK_LENGTH = 22,
    SHORT_LINK_PATH_BYTES = 16384,
    /* Limits per share. Clients that do not belong to its team may use half of each, so that the
     * rest is left for the team. */
    SHORT_LINK_MAX_PER_SHARE = 2000,
    SHORT_LINK_MAX_BYTES_PER_SHARE = 4 << 20,
    /* Limits of new links. */
    SHORT_LINK_ADDRESS_MINUTE = 30,
    SHORT_LINK_TENANT_MINUTE = 300
};

extern const struct route_table short_link_routes;

/* Finds the path that a short link leads to; it is in the request's arena. ret_is_public may be
 * NULL; *ret_is_public is true if search engines may follow the link. Errors: ERR_NOT_FOUND (also
 * if a share of the path has ended). */
enum err_code short_link_find(struct request *request, struct span id, const char **ret_path,
                              bool *ret_is_public, struct err *err) MUST_USE;

#endif
