/*
 * s3_client: signed requests to one bucket, with retries. Private to object_s3*.c.
 *
 * Threads: a client may be shared; each running request uses a connection of its own, and up to 16
 * are kept for later requests.
 */
#ifndef LIB_IO_S3_CLIENT_H
#define LIB_IO_S3_CLIENT_H

#include "lib/io/http_client.h"
#include "lib/io/object_s3.h"

enum { S3_CLIENT_DEFAULT_RETRY_S = 20 };

struct wait_limit;
struct s3_client;

struct s3_request {
    const char *action; /* for messages: "list", "put", … */
    const char *method;
    const char *key;   /* without the store's prefix; NULL: the bucket itself */
    const char *query; /* encoded and sorted, as s3_sign requires; NULL: none */
    struct span body;
    const char *content_md5; /* NULL: none */
    uint64_t range_offset;   /* if range_size > 0: only these bytes */
    uint64_t range_size;
    uint64_t max_response_bytes; /* limit of a 2xx body; more is ERR_BUSY and was_too_large */
    int response_fd;             /* receives a 2xx body, from its start; or HTTP_CLIENT_NO_FD */
    /* Called before a 2xx body of that size is written to response_fd, at each attempt; false ends
     * the request with ERR_LIMIT. NULL: not called. */
    bool (*has_space)(void *context, int response_fd, uint64_t bytes, bool is_background);
    void *has_space_context;
    bool is_background; /* passed to has_space */
    /* Checks a 2xx response. ERR_BUSY, ERR_NETWORK and ERR_TIMEOUT mean that a retry may
     * succeed. */
    enum err_code (*check)(void *context, const struct http_client_response *response,
                           struct err *err);
    void *check_context;
    int64_t deadline_ms; /* of one attempt; 0: computed from the number of bytes */
    bool has_one_try;    /* no retries */
    bool may_trickle;    /* the server sends blanks while it works, to keep the connection alive */
    bool needs_fresh_connection;
    /* a probe of the watch: not given up when the breaker opens */
    bool is_probe;
    const struct wait_limit *wait_limit; /* limit of the caller's wait; NULL: none */
};

/* Creates a client without sending anything. Errors: ERR_INVALID (an option). */
enum err_code s3_client_create(const struct object_s3_options *options,
                               struct s3_client **ret_client, struct err *err) MUST_USE;
void s3_client_destroy(struct s3_client *client); /* NULL is a no-op */
/* Sets the time after which a request is not retried again. */
void s3_client_set_retry(struct s3_client *client, int64_t retry_ms);
/*
 * Starts the circuit breaker. A request for which no data moves for 0.4 s makes a thread send two
 * small requests of its own, on a kept and on a new connection. If neither gets a whole response
 * within 1.2 s, and no other request gets one or a good part of one meanwhile, the server counts as
 * not responding: running requests end with ERR_BUSY and new ones fail at once, until a probe
 * (several per second) gets a response. A server that is known to be slow has three times as long
 * as its recent responses to probes took, up to 10 s (lib/base/breaker.h). If all requests have
 * failed for longer than the retry time, a request is not retried. report is called on that
 * thread when the server stops responding and when it responds again.
 */
enum err_code s3_client_watch(struct s3_client *client, void (*report)(bool is_responding),
                              struct err *err) MUST_USE;
bool s3_client_is_responding(const struct s3_client *client);
/* The time that a small request may take, according to the watch; 0 without a watch. */
int64_t s3_client_deadline_ms(const struct s3_client *client);
/* The prefix of each key: "" or "a/". */
const char *s3_client_prefix(const struct s3_client *client);

void s3_request_init(struct s3_request *request, const char *action, const char *method,
                     const char *key);
/*
 * Sends a request, with retries, and fills *response, which the caller has initialised. A request
 * whose body or response has begun and then moves too slowly ends with ERR_BUSY. So does one whose
 * response is larger than allowed (response->was_too_large), before its body is read if
 * Content-Length states the size. Errors: ERR_NOT_FOUND (no object with that key), ERR_CORRUPT
 * (the range is not in the object), ERR_GONE (no such upload), ERR_UNSUPPORTED (the server responds
 * with 501: some lack multi-delete; s3_store_delete.c then deletes one by one), ERR_NETWORK,
 * ERR_TIMEOUT and ERR_BUSY (after all retries), ERR_CANCELLED (the request's wait_limit is over),
 * ERR_UNAUTHENTICATED, ERR_FORBIDDEN and ERR_INVALID (settings).
 */
enum err_code s3_client_send(struct s3_client *client, const struct s3_request *request,
                             struct http_client_response *response, struct err *err) MUST_USE;

/* The error in a response's body; ERR_NETWORK if it contains none. */
enum err_code s3_client_failure(const struct s3_client *client, const struct s3_request *request,
                                const struct http_client_response *response,
                                struct err *err) MUST_USE;

#endif
