/*
 * s3_client: signed requests to one bucket, repeated where that may help; for object_s3*.c alone.
 *
 * Threads: a client is shared; each request in hand uses a connection of its own, and up to 16 are
 * kept for the next.
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
    const char *query; /* encoded and sorted, as s3_sign wants it; NULL: none */
    struct span body;
    const char *content_md5; /* NULL: none */
    uint64_t range_offset;   /* with range_size > 0: these bytes only */
    uint64_t range_size;
    uint64_t max_answer_bytes; /* of a 2xx answer's body; more is ERR_BUSY and was_too_large */
    int answer_fd;             /* takes a 2xx answer's body, from its start; or HTTP_CLIENT_NO_FD */
    /* Looks at a 2xx answer; ERR_BUSY, ERR_NETWORK and ERR_TIMEOUT mean that another try may do. */
    enum err_code (*check)(void *context, const struct http_client_answer *answer, struct err *err);
    void *check_context;
    int64_t deadline_ms; /* of one try; 0: by the number of bytes */
    bool has_one_try;    /* it is not repeated */
    bool may_trickle;    /* the server keeps the connection alive by blanks while it works */
    bool needs_fresh_connection;
    bool is_probe;                       /* of the watch: not given up when the breaker opens */
    const struct wait_limit *wait_limit; /* whoever waits for the answer; NULL: without end */
};

/* Handles: ERR_INVALID (an option). Nothing is sent. */
enum err_code s3_client_create(const struct object_s3_options *options,
                               struct s3_client **ret_client, struct err *err) MUST_USE;
void s3_client_destroy(struct s3_client *client); /* NULL is a no-op */
/* No new try of a request after this long; at first the default. */
void s3_client_set_retry(struct s3_client *client, int64_t retry_ms);
/*
 * From now on a request for which nothing moves for 0.4 s makes a thread send two small ones of its
 * own, on a kept and on a new connection. Without a whole response to either within 1.2 s, nor one
 * to another request meanwhile, nor a good part of one, the server counts as not responding:
 * requests in hand end with ERR_BUSY, new ones at once, until a probe, several each second, is
 * responded to. A server that is known to be slow has three times as long as its recent responses
 * to probes took, up to 10 s (lib/base/breaker.h). A server that could not be used for longer than
 * the time for retries is not waited for any more. report is called on that thread when the server
 * stops responding and when it responds again.
 */
enum err_code s3_client_watch(struct s3_client *client, void (*report)(bool is_responding),
                              struct err *err) MUST_USE;
bool s3_client_is_responding(const struct s3_client *client);
/* How long a small request may take, by what the watch has learnt; 0 without a watch. */
int64_t s3_client_deadline_ms(const struct s3_client *client);
/* What stands before each key: "" or "a/". */
const char *s3_client_prefix(const struct s3_client *client);

void s3_request_init(struct s3_request *request, const char *action, const char *method,
                     const char *key);
/*
 * Sends it, again where that may help, and fills *answer, which the caller has initialised. A
 * request whose body or response has begun and then moves too slowly ends with ERR_BUSY, and so
 * does one whose response is larger than allowed (answer->was_too_large), before its body is read
 * where Content-Length states that.
 * Handles: ERR_NOT_FOUND (no object of that key), ERR_CORRUPT (the range is not in the object),
 * ERR_GONE (no such upload), ERR_UNSUPPORTED (a server that answers 501: some know no multi-delete;
 * object_s3_delete.c then deletes one by one), ERR_NETWORK,
 * ERR_TIMEOUT and ERR_BUSY (after all tries), ERR_CANCELLED (the request's patience is over),
 * ERR_UNAUTHENTICATED, ERR_FORBIDDEN and ERR_INVALID
 * (settings).
 */
enum err_code s3_client_send(struct s3_client *client, const struct s3_request *request,
                             struct http_client_answer *answer, struct err *err) MUST_USE;

/* The error that an answer's body tells; ERR_NETWORK when it tells none. */
enum err_code s3_client_failure(const struct s3_client *client, const struct s3_request *request,
                                const struct http_client_answer *answer, struct err *err) MUST_USE;

#endif
