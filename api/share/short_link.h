/*
 * short_link: /s/<22 letters and digits> in place of the address of a view, which may be long.
 *
 * Whoever may see the share may create one. The id is computed from the path
 * (api/share/viewer_path.h) under a key of the server, so that the same path always has the same
 * link and none can be guessed: it has 128 bits, as the id of the unlisted share to which it leads.
 * A link grants nothing: it leads to the page, where the share's visibility is checked as usual; it
 * reveals the view's parameters to its holder, as the long address would. It is deleted with its
 * shares, by a trigger (api/migrations/0003_shares.sql). Threads: any.
 */
#ifndef API_SHARE_SHORT_LINK_H
#define API_SHARE_SHORT_LINK_H

#include "api/http/route.h"

enum {
    SHORT_LINK_LENGTH = 22,
    SHORT_LINK_PATH_BYTES = 16384,
    /* Limits per share, for its team; others may use half of both, so that they cannot use up all.
     */
    SHORT_LINK_MAX_PER_SHARE = 2000,
    SHORT_LINK_MAX_BYTES_PER_SHARE = 4 << 20,
    /* Limits of new links. */
    SHORT_LINK_ADDRESS_MINUTE = 30,
    SHORT_LINK_TENANT_MINUTE = 300
};

extern const struct route_table short_link_routes;

/* The path of a short link, in the request's arena; *ret_is_public, if not NULL, is whether search
 * engines may follow it. Handles: ERR_NOT_FOUND (also for shares that have ended). */
enum err_code short_link_find(struct request *request, struct span id, const char **ret_path,
                              bool *ret_is_public, struct err *err) MUST_USE;

#endif
