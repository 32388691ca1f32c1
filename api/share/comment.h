/*
 * comment: comments on a share, with the frame and the view that they are about.
 *
 *   read     anyone who may see the share
 *   write    a signed-in user who may see the share and is member or owner of any team: an
 *            anonymous share has no team of its own
 *   edit     its author, who must still fulfil these conditions
 *   delete   its author; an owner of the share's team; anyone with the share's delete token
 *
 * Tokens cannot write: a comment belongs to a person. Texts are Markdown as typed, which the
 * browser renders. Comments are deleted with the share (table share_comment), and changes of them
 * are in the audit log of the share's tenant, to whose quota their bytes are charged
 * (api/share/share_charge.h). Threads: any.
 */
#ifndef API_SHARE_COMMENT_H
#define API_SHARE_COMMENT_H

#include "api/http/route.h"

enum {
    COMMENT_TEXT_BYTES = 8192,
    COMMENT_FUNCTION_BYTES = 4096,
    COMMENT_VIEW_BYTES = 4096,
    COMMENT_MAX_PER_SHARE = 500,
    COMMENT_WRITES_PER_MINUTE = 20, /* of a user, including edits */
    COMMENT_PAGE = 100
};

extern const struct route_table comment_routes;

#endif
