/*
 * upload: large files in parts: begin, put parts in any order, query the state, complete.
 *
 * POST /api/v1/uploads returns an id, a token for clients without an account, and the part size
 * (UPLOAD_PART_BYTES). Each part is durable when its PUT is acknowledged, and putting it again
 * replaces it, so that an interrupted upload can continue, for settings->upload_lifetime_s after
 * the last part (anonymous_upload_lifetime_s without an account). A repeated part with equal bytes
 * may extend that up to a minute less. api/share/share_upload.h
 * completes uploads of profiles. Debug files are sent in the same way, below UPLOAD_DEBUGINFO_PATH,
 * with the scope debuginfo; api/debuginfo/debuginfo_routes.h completes them. Threads: any.
 */
#ifndef API_UPLOAD_UPLOAD_H
#define API_UPLOAD_UPLOAD_H

#include "api/http/route.h"

struct arena;

#define UPLOAD_PART_BYTES INT64_C(4194304)
#define UPLOAD_DEBUGINFO_PATH "/api/v1/debuginfo/uploads"

enum { UPLOAD_FILENAME_CHARACTERS = 255 };

extern const struct route_table upload_routes;

/* The last part of a path, without control characters; may be empty. */
const char *upload_base_name(struct arena *arena, struct span path);

#endif
