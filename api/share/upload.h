/*
 * upload: large files in parts: begin, put parts in any order, look what is there, complete.
 *
 * POST /api/v1/uploads gives an id, a token for those without an account, and the part size
 * (UPLOAD_PART_BYTES). Each part is durable when its PUT is answered, and putting it again replaces
 * it, so that a broken upload goes on where it stopped, for settings->upload_lifetime_s after the
 * last part (anonymous_upload_lifetime_s without an account). Completing streams the parts into one
 * object, decodes it and makes the share (api/share/share.h); completing again names the share that
 * it became, with the same delete token. Debug files come the same way, below
 * UPLOAD_DEBUGINFO_PATH, with the scope debuginfo; what they become is told to
 * api/debuginfo/routes.h. Threads: any.
 */
#ifndef API_SHARE_UPLOAD_H
#define API_SHARE_UPLOAD_H

#include "api/routes.h"

#define UPLOAD_PART_BYTES INT64_C(4194304)
#define UPLOAD_DEBUGINFO_PATH "/api/v1/debuginfo/uploads"

extern const struct route_table upload_routes;

#endif
