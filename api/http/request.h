/*
 * request: what a handler sees of HTTP: one request, one response (api/http/response.h), no h2o.
 *
 * Handlers run on worker threads. Everything in a request lives in its arena until the response has
 * been sent. A handler returns ERR_NONE after filling the response, or an error, which becomes an
 * RFC 9457 problem document (api/http/problem.h); it never logs the error that it returns.
 */
#ifndef API_HTTP_REQUEST_H
#define API_HTTP_REQUEST_H

#include "api/http/concurrency_limit.h"
#include "api/http/http_method.h"
#include "api/http/principal.h"
#include "api/http/response.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct query_memory_slot;
struct route;
struct sources_service;
struct server;

/* The largest body of any route: larger uploads are sent in parts. */
#define HTTP_MAX_BODY_BYTES ((size_t)8 << 20)

enum {
    REQUEST_MAX_PATH_PARAMS = 4,
    REQUEST_MAX_QUERY_BYTES = 64 << 10, /* before decoding */
    REQUEST_MAX_PARAMETERS = 1000,      /* bounds the time of request_query_nth, which starts at the
                                           first parameter */
    REQUEST_ID_BYTES = 20,
    REQUEST_ADDRESS_BYTES = 64,
    REQUEST_MATCHED_HASHES = 2, /* one for each side of a diff */
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
    /* Set by a handler once it has found every object that the ids in the request name and the
     * client may see them. A 404 for a part of such an object (a function, a comment) then does not
     * count as a guess at an id (ROUTE_LIMIT_404). */
    bool has_found;
    /* The password hashes that X-Perfolio-Password was found to match. They are kept because a
     * match is costly to compute and a request may be handled again. */
    const char *matched_hashes[REQUEST_MATCHED_HASHES];
    /* Set by the receivers of agents for api/ingest/sources.h: the services of the profiles,
     * including refused profiles. */
    struct sources_service *services;
    size_t service_count;
    /* The service that the request's URL names; empty: none. The source of an error that occurs
     * before the profiles are decoded. */
    struct span named_service;
    /* Describes the data that were refused or dropped although the request succeeds; NULL: none. */
    const char *partial_error;
    /* A batch of the request is so old that it may have been sent before its id was forgotten. */
    bool may_repeat;
    /* The start of the oldest profile that an agent sent; 0: none. */
    int64_t oldest_ns;
    /* Before slow work, a handler takes the slot with request_take_slot. If it gets none, it
     * returns ERR_BUSY at once; a GET is then put aside, and handled again from the start when a
     * slot is free. A handler of another method sets may_run_again if it has changed nothing yet:
     * its request is then put aside in the same way. */
    struct concurrency_slot concurrency_slot;
    bool may_run_again;
    bool is_change_counted; /* api/identity/change_limit.h */
    /* Bytes of a day that were taken for texts and are not committed (api/identity/quota.h). */
    uint64_t uncommitted_bytes;
    /* The bytes of a day that an anonymous client may store, once quota.c has read them; else 0. */
    uint64_t daily_bytes;
    /* The client's share of the workers, which the server takes before the handler runs and returns
     * while the request is put aside (request_limits.workers). */
    struct concurrency_slot worker_slot;
    struct query_memory_slot *query_slots; /* memory of the request's queries
                                            (api/core/query_memory.h), until it has been handled */
};

/* Takes the request's slot of the limit, for key and for the request's client. If the request is
 * handled again, the first key counts; it must live as long as the request. Errors: ERR_BUSY with
 * retry_after_s and busy_message. */
enum err_code request_take_slot(struct request *request, struct concurrency_limit *limit,
                                const char *key, const char *busy_message,
                                struct err *err) MUST_USE;

/* Call it when a slot for slow work was taken without request_take_slot: from then on the request
 * counts as slow (concurrency_limit_create_shares). */
void request_note_slow(struct request *request);

/* Takes one of the workers that the request's client may occupy at a time, of a limit created by
 * concurrency_limit_create_shares. Errors: ERR_BUSY with retry_after_s. */
enum err_code request_take_worker(struct request *request, struct concurrency_limit *shares,
                                  struct err *err) MUST_USE;

/* The header field's value, empty if absent; name in lower case. */
struct span request_field(const struct request *request, const char *name);
/* Checks REQUEST_MAX_QUERY_BYTES and REQUEST_MAX_PARAMETERS; called before a request is handled.
 * Errors: ERR_INVALID. */
enum err_code request_check_query_size(const struct request *request, struct err *err) MUST_USE;
/* Decoded value of the first query parameter of that name; false if absent. */
bool request_query(const struct request *request, const char *name, struct span *ret_value);
/* The n-th (from 0) of repeated parameters. */
bool request_query_nth(const struct request *request, const char *name, size_t n,
                       struct span *ret_value);
/* A whole number within [low, high], or fallback if the parameter is absent. Errors: ERR_INVALID
 * (the message names the parameter). */
enum err_code request_query_i64(const struct request *request, const char *name, int64_t low,
                                int64_t high, int64_t fallback, int64_t *ret_number,
                                struct err *err) MUST_USE;
/* The value of a cookie, empty if absent. */
struct span request_cookie(const struct request *request, const char *name);
/* Whether Accept-Encoding names this coding ("gzip") without q=0. */
bool request_accepts_encoding(const struct request *request, const char *coding);
/*
 * Checks the names and values of the query parameters. single and repeatable are NULL-terminated
 * lists of names. Refused are: a name that is in neither list, so that typing errors are noticed
 * (with repeatable NULL, other names are accepted); a name of single that occurs more than once; a
 * value with a "%" that two hexadecimal digits do not follow. Errors: ERR_INVALID (the message
 * names the parameter).
 */
enum err_code request_check_parameters(const struct request *request, const char *const *single,
                                       const char *const *repeatable, struct err *err) MUST_USE;
/* As request_check_parameters; no parameter may be repeated. */
enum err_code request_check_query(const struct request *request, const char *const *known,
                                  struct err *err) MUST_USE;

#endif
