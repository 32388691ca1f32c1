/*
 * share: a profile with a permalink: the uploaded bytes, unchanged, and its settings.
 *
 * The bytes are in the object store, the settings in the table share. share_create commits the row
 * only after the object is durable and decoded, so an acknowledged share is complete;
 * share_jobs_run deletes objects without a row. A share is found by its id alone, without its
 * tenant; api/share/share_access.h decides who may see it. Threads: any.
 */
#ifndef API_SHARE_SHARE_H
#define API_SHARE_SHARE_H

#include "api/http/route.h"

struct arena;
struct idempotency;
struct integrity_object;
struct pg_connection;
struct share_settings;

/* Ends the message of each ERR_NOT_FOUND about a share, so that a missing share cannot be
 * distinguished from one of another team. */
#define SHARE_NOT_FOUND_ADVICE ": check that the link is complete, or sign in if it is your team's"

/* Shares themselves and their takedown; matched before the pages' /p/{id}. */
extern const struct route_table share_routes;

enum { SHARE_ID_BYTES = 22, SHARE_HASH_BYTES = 32 };

enum share_visibility { SHARE_PUBLIC, SHARE_UNLISTED, SHARE_TEAM, SHARE_PASSWORD };

/* One row; all of it lives in the arena passed to share_find. Texts are never NULL, except
 * reader_comments. */
struct share {
    const char *id;
    int64_t tenant_id;
    int64_t user_id;  /* the creator; 0 unless a user */
    int64_t token_id; /* the creator; 0 unless a token */
    enum share_visibility visibility;
    const char *password_hash;     /* "" unless SHARE_PASSWORD */
    struct span delete_token_hash; /* SHA-256 */
    const char *title;
    const char *description; /* Markdown, as typed: the browser renders it */
    int64_t created_ms;      /* since 1970 */
    int64_t expires_ms;      /* 0: never */
    int64_t idle_expiry_s;   /* > 0: each view sets expires_ms to the time of the view plus this */
    const char *object_key;
    uint64_t raw_bytes;
    struct span raw_sha256;
    const char *format; /* format_name() */
    const char *filename;
    const char *labels;          /* JSON object of texts */
    const char *summary;         /* JSON object, see api/share/share_summary.h */
    int64_t views;               /* those already written to the row */
    const char *reader_comments; /* their number, in digits; NULL if they were not counted */
};

/* The share of an id, without access checks. One round trip. Errors: ERR_NOT_FOUND (no such id, or
 * malformed), ERR_GONE (expired, deleted or taken down; the message states which). */
enum err_code share_find(struct server *server, struct span id, struct arena *arena,
                         struct share *ret_share, struct err *err) MUST_USE;

/* The stored object of a share, as its row describes it; borrows from share. */
struct integrity_object share_stored_object(const struct share *share);
/* Opens the object of a share and compares its size with the row. Errors: ERR_GONE (the share was
 * deleted meanwhile), otherwise as integrity_open. */
enum err_code share_open_object(struct server *server, const struct share *share, int *ret_fd,
                                struct err *err) MUST_USE;

/* Appends a range of the object of a share to buf. Errors: ERR_GONE, otherwise as
 * integrity_read_range. */
enum err_code share_read_range(struct server *server, const struct share *share, uint64_t offset,
                               size_t size, struct buf *buf, struct err *err) MUST_USE;

/* The facts that the HTML of /p/{id} may show to anyone who has the link, including link previews.
 */
struct share_public_metadata {
    const char *title;       /* "" if there is none or it may not be shown */
    const char *description; /* Markdown as typed; "" in the same cases */
    const char *facts;       /* total and top function in a sentence each; "" in the same cases */
    bool may_preview;        /* /p/{id}/og.png can be read without a password or a session */
    bool may_index; /* public: search engines may index it; otherwise the page says noindex */
    const char *sample_type; /* of the default value type, "" if not shown */
    const char *format;      /* "pprof"; "" if not shown */
};

/* For team and password shares the texts are empty. Errors: ERR_NOT_FOUND, ERR_GONE. */
enum err_code share_find_public_metadata(struct server *server, struct span id, struct arena *arena,
                                         struct share_public_metadata *ret_metadata,
                                         struct err *err) MUST_USE;

/* The profile of a new share: sent in this request, or (if uploaded in parts) an object in the
 * store. */
struct share_source {
    struct span bytes;        /* the profile; of a stored object, a mapping of it */
    bool is_stored;           /* the bytes are already durable, under share_object_key(id) */
    const char *id;           /* NULL: a random one */
    const char *delete_token; /* NULL: a random one */
    const uint8_t *sha256;    /* of the bytes that are already stored */
    const char *upload_id;    /* NULL, or the upload that becomes this share in one transaction;
                                 its bytes have been charged already */
    const struct idempotency *idempotency; /* NULL, or the key to record with the share */
};

enum { SHARE_OBJECT_KEY_BYTES = 40 };
/* Writes the key of the object of a share, "share/<id>", and returns ret_key. */
const char *share_object_key(const char *id, char ret_key[SHARE_OBJECT_KEY_BYTES]);

/*
 * Decodes and checks the bytes, stores them, commits the row with its quota charge and audit
 * record, and responds with 201, links and the delete token. Errors: ERR_INVALID, ERR_UNSUPPORTED,
 * ERR_TOO_LARGE, ERR_QUOTA, ERR_RATE_LIMITED, ERR_BUSY, ERR_CONFLICT (with an upload or an
 * idempotency key: another request came first).
 */
enum err_code share_create(struct request *request, const struct share_settings *settings,
                           const struct share_source *source, struct response *response,
                           struct err *err) MUST_USE;

/* share_create for a request with an idempotency key that was not found: id and secret of
 * idempotency become the share's id and delete token. */
enum err_code share_create_once(struct request *request, const struct share_settings *settings,
                                struct span bytes, struct idempotency *idempotency,
                                struct response *response, struct err *err) MUST_USE;

/* Handles POST /api/v1/shares with a profile as the body. The route is in api/query/query_share.h,
 * because the same path accepts a query instead of a body. */
enum err_code share_routes_create(struct request *request, struct response *response,
                                  struct err *err) MUST_USE;

/* Repeats the response of an earlier request, whose response was lost, for the share with that id.
 * Errors: ERR_GONE (it was deleted meanwhile). */
enum err_code share_create_respond_again(struct request *request, const char *id,
                                         const char *delete_token, struct response *response,
                                         struct err *err) MUST_USE;

/* Appends the share in the form of GET /api/v1/shares/{id} and of the list. is_editor is the member
 * can_edit (share_access_is_editor). */
void share_append_json(const struct request *request, const struct share *share, bool is_editor,
                       struct buf *buf);

/* The value of Content-Disposition for a download with that name: plain ASCII for all clients, and
 * the exact name for those that implement RFC 6266. */
const char *share_attachment(struct arena *arena, const char *name);

/*
 * Background work, called every few seconds by one thread. connection is the one whose session
 * holds SERVER_SWEEP_LOCK: if it breaks, the lock is lost and nothing more is deleted. The call
 * ends expired shares, deletes the bytes of shares that have ended, makes their rows tombstones,
 * and deletes objects and uploads that are not needed, old idempotency keys and closed reports of
 * abuse. Each call does a bounded amount of work;
 * *ret_has_more, set also on an error, is true if the call made progress and the next one should
 * follow at once.
 */
enum err_code share_jobs_run(struct server *server, struct pg_connection *connection,
                             bool *ret_has_more, struct err *err) MUST_USE;
/* Adds the views that this server has counted to the rows; any number of servers at a time. */
enum err_code share_jobs_write_views(struct server *server, struct err *err) MUST_USE;

#endif
