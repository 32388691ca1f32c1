/*
 * upload: large files in parts: begin, put parts in any order, query the state, complete.
 *
 * POST /api/v1/uploads returns an id, a token for clients without an account, and the part size
 * (UPLOAD_PART_BYTES). Each part is durable when its PUT is acknowledged, and putting it again
 * replaces it, so that an interrupted upload can continue, for settings->upload_lifetime_s after
 * the last part (without an account: settings_anonymous_upload_lifetime_s). A part that is sent
 * again with equal bytes starts this time again at most once a minute. api/share/share_upload.h
 * completes uploads of profiles. Debug files are sent in the same way, below UPLOAD_DEBUGINFO_PATH,
 * with the scope debuginfo; api/debuginfo/debuginfo_upload.h completes them. Threads: any.
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

/* One row of the table upload; texts are never NULL and live in the request's arena. */
struct upload {
    const char *id;
    int64_t tenant_id;
    struct span token_hash;
    int64_t size_bytes;
    int64_t part_bytes;
    int64_t part_count;
    const char *filename;
    struct span sha256;   /* empty if the client sent none */
    const char *share_id; /* "" until it is complete */
    int64_t expires_ms;   /* since 1970 */
};

/* Finds the upload with that id, if the request's principal may continue it. Errors:
 * ERR_NOT_FOUND. */
enum err_code upload_find_mine(struct request *request, struct span id, struct upload *ret_upload,
                               struct err *err) MUST_USE;

#endif
