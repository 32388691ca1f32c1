/*
 * object_s3: objects in a bucket of an S3-compatible server; a backend of lib/io/object.h.
 *
 * Requests are signed with Signature Version 4 including the payload, over kept-alive connections,
 * one per concurrent request. Failures that may be temporary (500, 502, 503, 504, 429, timeouts,
 * broken connections, truncated responses) are retried with growing, random pauses for a bounded
 * time. All requests are safe to repeat, since keys are never reused. Conditional writes are not
 * used, because servers refuse or ignore them. Bytes and lengths that do not match the response's
 * header fields are an error, never a short object.
 *
 * Writers send parts of 8 MiB. object_sweep_temporary removes what a killed writer left: uploads
 * older than upload_max_age_s, the age at which a running writer gives up its own upload.
 */
#ifndef LIB_IO_OBJECT_S3_H
#define LIB_IO_OBJECT_S3_H

#include "lib/io/object.h"

#include <stdbool.h>

struct object_s3_options {
    const char *endpoint; /* "https://host" or "http://host:port"; not restricted to public
                             addresses, since the operator sets it */
    const char *bucket;
    const char *prefix; /* put before all keys, such as "a/b/"; NULL or "": none */
    const char *region; /* NULL: "us-east-1" */
    /* NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment. */
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* needed for temporary credentials; NULL: none */
    const char *ca_file;       /* PEM file to trust instead of the system's; NULL: the system's */
    bool is_path_style;        /* host/bucket/key; false: bucket.host/key */
    int connect_timeout_ms;    /* 0: 5 s */
    int read_timeout_s;        /* time without any data; 0: 20 s */
    int retry_s;               /* no further retry of a request after this time; 0: 20 s */
    int upload_max_age_s;      /* 0: a day */
    uint64_t open_max_bytes;   /* the largest object for object_open; 0: 1 GiB */
    const char *temporary_folder; /* for the copies of object_open; NULL: /tmp */
};

/*
 * Opens a store and tests it: lists, puts, reads and deletes an object with a random name. The
 * options are copied. Error messages state what to do and contain no secrets. Errors: ERR_INVALID
 * (an option is malformed, no such bucket, another region), ERR_UNAUTHENTICATED (keys, clock, the
 * server's certificate), ERR_FORBIDDEN (the key lacks a permission), ERR_NETWORK, ERR_TIMEOUT and
 * ERR_BUSY (unreachable), ERR_IO (any other response of the server).
 */
enum err_code object_s3_open(const struct object_s3_options *options,
                             struct object_store **ret_store, struct err *err) MUST_USE;

/* Makes object_open call has_space before it writes a copy of `bytes` bytes to fd, a new file in
 * the temporary folder; has_space may allocate the space. is_background: the caller is
 * object_open_in_background. If has_space returns false, object_open returns ERR_BUSY. Call this
 * before the store is shared. */
void object_s3_set_space(struct object_store *store,
                         bool (*has_space)(void *context, int fd, uint64_t bytes,
                                           bool is_background),
                         void *context);

/*
 * Starts the circuit breaker for a store that serves requests: a server that does not respond then
 * delays a request by less than 2 s before ERR_BUSY, and later requests fail at once until it
 * responds again (lib/io/s3_client.h). report is called on a thread of the store when that changes;
 * it may be NULL. Call it before the store is shared.
 */
enum err_code object_s3_watch(struct object_store *store, void (*report)(bool is_responding),
                              struct err *err) MUST_USE;

#endif
