/*
 * share: a profile with a permalink: the uploaded bytes exactly as they came, and its settings.
 *
 * Bytes lie in the object store, settings in the table share (api/migrations/0002_shares.sql).
 * Creating commits the row only when the object is durable and understood: what is acknowledged is
 * whole; an object without a row is collected by share_jobs_run. Looking up needs no tenant: the
 * row says which it is, and api/share/share_access.h decides who may see it. Threads: any.
 */
#ifndef API_SHARE_SHARE_H
#define API_SHARE_SHARE_H

#include "api/http/route.h"

struct arena;
struct idempotency;
struct integrity_object;
struct pg_connection;
struct share_settings;

/* The same wherever a share is not found, so that none can be told from one of another team. */
#define SHARE_NOT_FOUND_ADVICE ": look whether the link is whole, or sign in if it is your team's"

/* Shares themselves and their takedown; to be matched before the pages' /p/{id}. */
extern const struct route_table share_routes;

enum { SHARE_ID_BYTES = 22, SHARE_HASH_BYTES = 32 };

enum share_visibility { SHARE_PUBLIC, SHARE_UNLISTED, SHARE_TEAM, SHARE_PASSWORD };

/* One row; all of it lives in the arena that share_find got. Texts are never NULL. */
struct share {
    const char *id;
    int64_t tenant_id;
    int64_t user_id;  /* who made it; 0 unless a user */
    int64_t token_id; /* 0 unless a token */
    enum share_visibility visibility;
    const char *password_hash;     /* "" unless SHARE_PASSWORD */
    struct span delete_token_hash; /* SHA-256 */
    const char *title;
    const char *description; /* Markdown, as typed: the browser renders it */
    int64_t created_ms;      /* since 1970 */
    int64_t expires_ms;      /* 0: never */
    int64_t idle_expiry_s;   /* > 0: a view moves expires_ms to this long after it */
    const char *object_key;
    uint64_t raw_bytes;
    struct span raw_sha256;
    const char *format; /* format_name() */
    const char *filename;
    const char *labels;          /* JSON object of texts */
    const char *summary;         /* JSON object, see api/share/share_summary.h */
    int64_t views;               /* those already written down */
    const char *reader_comments; /* how many, in digits; NULL where they were not counted */
};

/*
 * The share of an id, without regard to who asks. One round trip.
 * Handles: ERR_NOT_FOUND (no such id, or not of an id's form), ERR_GONE (expired, deleted or taken
 * down; the message says which).
 */
enum err_code share_find(struct server *server, struct span id, struct arena *arena,
                         struct share *ret_share, struct err *err) MUST_USE;

/* What its row states of its object; borrows from share. */
struct integrity_object share_stored_object(const struct share *share);
/* Opens it and compares its size. Handles: ERR_GONE (the share was deleted meanwhile), otherwise as
 * integrity_open. */
enum err_code share_open_object(struct server *server, const struct share *share, int *ret_fd,
                                struct err *err) MUST_USE;

/* What the HTML shell of /p/{id} may tell anyone who has the link, link previews included. */
struct share_public_metadata {
    const char *title;       /* "" when there is none or it may not be told */
    const char *description; /* Markdown as typed; "" likewise */
    const char *facts;       /* total and top function in a sentence each; "" likewise */
    bool may_preview;        /* /p/{id}/og.png answers without a password or a session */
    bool may_index;          /* public: search engines are welcome; else say noindex */
    const char *sample_type; /* of the default value type, "" when not told */
    const char *format;      /* "pprof"; "" when not told */
};

/* Team and password shares give empty texts. Handles: ERR_NOT_FOUND, ERR_GONE. */
enum err_code share_find_public_metadata(struct server *server, struct span id, struct arena *arena,
                                         struct share_public_metadata *ret_metadata,
                                         struct err *err) MUST_USE;

/* A new share's bytes: in memory, or (for what came in parts) an object already in the store. */
struct share_source {
    struct span bytes;
    bool is_stored;           /* the bytes are already durable, under share_object_key(id) */
    const char *id;           /* NULL: a random one */
    const char *delete_token; /* NULL: a random one */
    const uint8_t *sha256;    /* of what is stored already */
    const char *upload_id;    /* NULL, or the upload that becomes this share in one transaction;
                                 its bytes have been charged already */
    const struct idempotency *idempotency; /* NULL, or what is to be recorded with the share */
};

enum { SHARE_OBJECT_KEY_BYTES = 40 };
const char *share_object_key(const char *id, char ret_key[SHARE_OBJECT_KEY_BYTES]);

/*
 * Decodes and checks the bytes, stores them, commits the row with its quota charge and audit
 * record, and answers 201 with links and the delete token.
 * Handles: ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE, ERR_QUOTA, ERR_RATE_LIMITED, ERR_BUSY,
 * ERR_CONFLICT (with an upload or an idempotency key: another request came first).
 */
enum err_code share_create(struct request *request, const struct share_settings *settings,
                           const struct share_source *source, struct response *response,
                           struct err *err) MUST_USE;

/* share_create for a request's key, which was not known when it was looked up: id and secret of
 * idempotency become the share's id and delete token. */
enum err_code share_create_once(struct request *request, const struct share_settings *settings,
                                struct span bytes, struct idempotency *idempotency,
                                struct response *response, struct err *err) MUST_USE;

/* POST /api/v1/shares with a profile as the body; its route is in api/query/query_share.h, since
 * the same address takes a query instead. */
enum err_code share_handle_create(struct request *request, struct response *response,
                                  struct err *err) MUST_USE;

/* The same answer once more, for a request whose first answer got lost. Handles: ERR_GONE. */
enum err_code share_create_answer_again(struct request *request, const char *id,
                                        const char *delete_token, struct response *response,
                                        struct err *err) MUST_USE;

/* The share as GET /api/v1/shares/{id} and the list show it. */
void share_append_json(const struct request *request, const struct share *share, bool is_editor,
                       struct buf *buf);

/* The value of Content-Disposition for a download of that name: plain ASCII for all, and the exact
 * name for those who know RFC 6266. */
const char *share_attachment(struct arena *arena, const char *name);

/*
 * Background work, called every few seconds by one thread, with the connection whose session holds
 * SERVER_SWEEP_LOCK: should it break, the lock is lost and nothing is deleted any more. Turns
 * expired shares into tombstones, deletes the bytes of what is to go, collects objects and uploads
 * that nobody needs. Each call does a bounded amount; *ret_has_more, set in any case, says that it
 * got somewhere and that the next call should follow at once.
 */
enum err_code share_jobs_run(struct server *server, struct pg_connection *connection,
                             bool *ret_has_more, struct err *err) MUST_USE;
/* Adds the views that this server has counted to the rows; any number of servers at a time. */
enum err_code share_jobs_write_views(struct server *server, struct err *err) MUST_USE;

#endif
