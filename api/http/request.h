/*
 * request: what a handler sees of HTTP: one request, one response, no h2o.
 *
 * Handlers run on worker threads. Everything in a request lives in its arena until the response has
 * been sent. A handler returns ERR_NONE after filling the response, or an error, which becomes an
 * RFC 9457 problem document (api/http/problem.h); it never logs the error that it returns.
 */
#ifndef API_HTTP_REQUEST_H
#define API_HTTP_REQUEST_H

#include "api/http/concurrency_limit.h"
#include "api/http/method.h"
#include "api/http/principal.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct integrity_object;
struct query_memory_slot;
struct route;
struct sources_service;
struct server;

/* The largest body of any route: larger uploads are sent in parts. */
#define HTTP_MAX_BODY_BYTES ((size_t)8 << 20)

enum {
    REQUEST_MAX_PATH_PARAMS = 4,
    REQUEST_ID_BYTES = 20,
    REQUEST_ADDRESS_BYTES = 64,
    REQUEST_MATCHED_HASHES = 2, /* one for each side of a diff */
};

struct http_field {
    struct span name; /* lower case */
    struct span value;
};

struct request {
    struct arena *arena;
    struct server *server;
    const struct route *route;
    enum http_method method;
    struct span path;       /* decoded and normalised, without query */
    bool is_page_malformed; /* the path cannot be decoded, and is not below /api/; path is empty
                               then */
    struct span query;      /* raw, without "?" */
    struct span path_params[REQUEST_MAX_PATH_PARAMS]; /* the texts that matched {…} of the pattern,
                                                         decoded */
    const struct http_field *fields;
    size_t field_count;
    struct span body;
    char id[REQUEST_ID_BYTES];           /* in the log, in X-Request-Id and in problem documents */
    char address[REQUEST_ADDRESS_BYTES]; /* of the client, as text without port */
    bool is_tls;
    int64_t start_ns;    /* monotonic */
    int64_t deadline_ns; /* monotonic: deadline of the statements of a request that adds profiles;
                            0: none */
    const atomic_bool *is_cancelled; /* the client has gone: long work may be aborted */
    struct principal principal;
    /* Set by handlers once everything that the request's ids name exists and may be seen: a 404 for
     * a part of it (a function, a comment) is then no guess at an id. */
    bool has_found;
    /* Hashes that the password in X-Perfolio-Password is known to match: finding out is costly, and
     * a request may be handled again. */
    const char *matched_hashes[REQUEST_MATCHED_HASHES];
    /* Set by the receivers of agents for api/ingest/sources.h: the services of the profiles, also
     * of those that are refused. */
    struct sources_service *services;
    size_t service_count;
    /* The service in the request's address, for a refusal before anything was decoded; or empty. */
    struct span named_service;
    /* What was refused or dropped although the request succeeds; NULL: nothing. */
    const char *partial_error;
    /* Before slow work a handler sets concurrency_slot.key and takes the slot. Without one it
     * returns ERR_BUSY at once: a GET is then put aside, and handled again from the start when a
     * slot is free. So is a request of another method if its handler has set may_run_again, because
     * it has changed nothing yet. */
    struct concurrency_slot concurrency_slot;
    bool may_run_again;
    struct query_memory_slot *query_slots; /* memory of the request's queries
                                            (api/core/query_memory.h), until it has been handled */
};

/* Takes the request's slot of the limit for key (the first key of a request that waited counts,
 * which must live as long as the request). Handles: ERR_BUSY with retry_after_s and busy_message.
 */
enum err_code request_take_slot(struct request *request, struct concurrency_limit *limit,
                                const char *key, const char *busy_message,
                                struct err *err) MUST_USE;

/* The header field's value, empty if absent; name in lower case. */
struct span request_field(const struct request *request, const char *name);
/* Decoded value of the first query parameter of that name; false if absent. */
bool request_query(const struct request *request, const char *name, struct span *ret_value);
/* The n-th (from 0) of repeated parameters. */
bool request_query_nth(const struct request *request, const char *name, size_t n,
                       struct span *ret_value);
/* Whole number within [low, high], or fallback if absent. Handles: ERR_INVALID, naming it. */
enum err_code request_query_i64(const struct request *request, const char *name, int64_t low,
                                int64_t high, int64_t fallback, int64_t *ret_number,
                                struct err *err) MUST_USE;
/* The value of a cookie, empty if absent. */
struct span request_cookie(const struct request *request, const char *name);
/* Whether Accept-Encoding names this coding ("gzip") without q=0. */
bool request_accepts_encoding(const struct request *request, const char *coding);
/*
 * Refuses query parameters that are in neither NULL-terminated list, so that typing errors are
 * noticed; parameters of single that are given more than once; and values with a "%" without two
 * hexadecimal digits. If repeatable is NULL, parameters that are not in single are accepted.
 * Handles: ERR_INVALID, naming the parameter.
 */
enum err_code request_check_parameters(const struct request *request, const char *const *single,
                                       const char *const *repeatable, struct err *err) MUST_USE;
/* As request_check_parameters; no parameter may be repeated. */
enum err_code request_check_query(const struct request *request, const char *const *known,
                                  struct err *err) MUST_USE;

enum response_body { RESPONSE_EMPTY, RESPONSE_BYTES, RESPONSE_FILE };

struct response {
    int status; /* 200 unless set */
    const char *content_type;
    enum response_body body_kind;
    struct span bytes; /* lives in the request's arena, or as long as the process */
    /* How many responses are sending these bytes now, stored beside them; NULL: only this one.
     * Memory that many responses share is counted once. */
    _Atomic uint32_t *reader_count;
    int file_fd; /* owned by the response; -1 with stored_object */
    /* The file is this object (integrity_copy), of which each piece is read from the store when it
     * is sent, so that no worker waits for the whole object and no copy fills the disk; NULL: it is
     * file_fd. */
    const struct integrity_object *stored_object;
    uint64_t file_bytes;
    uint64_t file_offset; /* sending starts there; 0 unless set */
    /* Compares the file, sent as a whole, with its digest: its last piece is sent only if they are
     * equal. NULL: not compared. api/core/integrity.h. */
    struct integrity_stream *file_check;
    bool may_compress;     /* lets the server compress with zstd or gzip as the client accepts */
    bool is_open_to_sites; /* with ROUTE_CORS_IF_OPEN: scripts of other sites may read it */
    bool may_be_framed;    /* HTML that pages of other sites may show in a frame */
    struct http_field *fields;
    size_t field_count;
    size_t field_capacity;
};

/* Adds a header field; both texts are copied into the arena. CR, LF and NUL are refused by
 * assertion: values from outside go through buf_append_url or are checked first. */
void response_add(struct request *request, struct response *response, const char *name,
                  const char *value);
/* Sets status and a body that lives long enough. */
void response_bytes(struct response *response, int status, const char *content_type,
                    struct span bytes);
/* Copies buf into the arena. Handles: ERR_TOO_LARGE if buf has failed. */
enum err_code response_buf(struct request *request, struct response *response, int status,
                           const char *content_type, const struct buf *buf,
                           struct err *err) MUST_USE;

/* Adds ETag (including quotes, such as "\"abc\"" or "W/\"abc\"") and Cache-Control. True if the
 * client has that version already: the response is then a complete 304 and the handler returns. */
bool response_is_cached(struct request *request, struct response *response, const char *etag,
                        const char *cache_control);
/* Whether If-Match names that version, in a list or as "*". True without If-Match. */
bool request_if_match(const struct request *request, const char *etag);
/* Sets the file from offset 0 as the body; takes ownership of fd, even if the request fails later.
 */
void response_file(struct response *response, int status, const char *content_type, int fd,
                   uint64_t size);
/* Sets a stored object as the body, in place of the file of response_file. */
void response_stored(struct request *request, struct response *response,
                     const struct integrity_object *object);

#endif
