/*
 * share_upload: completes an upload in parts (api/upload/upload.h): its parts become one object,
 * which is decoded and becomes a share (api/share/share.h). Completing again returns the same
 * share, with the same delete token. Threads: any.
 */
#ifndef API_SHARE_SHARE_UPLOAD_H
#define API_SHARE_SHARE_UPLOAD_H

#include "api/http/route.h"

extern const struct route_table share_upload_routes;

#endif
