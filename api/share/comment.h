/*
 * comment: what people say about a share, with the frame that they mean and the view they saw.
 *
 *   read     whoever may see the share
 *   write    a signed-in user who may see the share and is member or owner of a team, of any: an
 *            anonymous share has no team of its own
 *   edit     its author, as long as these hold
 *   delete   its author; an owner of the share's team; whoever shows the share's delete token
 *
 * Tokens do not write: a comment is a person's. Texts are Markdown as typed, which the browser
 * renders. Comments go with the share (api/migrations/0005_share_comments.sql), and what is done to
 * them stands in the audit log of the share's tenant. Threads: any.
 */
#ifndef API_SHARE_COMMENT_H
#define API_SHARE_COMMENT_H

#include "api/http/route.h"

enum {
    COMMENT_TEXT_BYTES = 8192,
    COMMENT_FUNCTION_BYTES = 4096,
    COMMENT_VIEW_BYTES = 4096,
    COMMENT_MAX_PER_SHARE = 500,
    COMMENT_WRITES_PER_MINUTE = 20, /* of a user, edits too */
    COMMENT_PAGE = 100
};

extern const struct route_table comment_routes;

#endif
