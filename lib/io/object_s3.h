/*
 * object_s3: objects in a bucket of an S3-compatible server; the second backend of lib/io/object.h.
 *
 * Requests are signed with Signature Version 4, payload included, over kept-alive connections, as
 * many as threads use at a time. What a server or the network may do well at another try (500, 502,
 * 503, 504, 429, timeouts, broken connections, answers cut short) is repeated with growing, random
 * pauses for a bounded time; all requests are safe to repeat, since keys are never given twice. No
 * conditional writes are relied on: servers refuse or ignore them. Bytes and lengths that do not
 * fit the answer's header fields are an error, never a short object.
 *
 * Writers send parts of 8 MiB. What a killed one leaves is found by object_sweep_temporary: an
 * upload older than upload_max_age_s, past which no living writer goes on with its own.
 */
#ifndef LIB_IO_OBJECT_S3_H
#define LIB_IO_OBJECT_S3_H

#include "lib/io/object.h"

#include <stdbool.h>

struct object_s3_options {
    const char
        *endpoint; /* "https://host" or "http://host:port"; any address: it is the operator's */
    const char *bucket;
    const char *prefix; /* of all keys, "a/b/"; NULL or "": none */
    const char *region; /* NULL: "us-east-1" */
    /* NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment. */
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* of temporary credentials; NULL: none */
    const char *ca_file;       /* PEM file to trust instead of the system's; NULL: the system's */
    bool is_path_style;        /* host/bucket/key; false: bucket.host/key */
    int connect_timeout_ms;    /* 0: 5 s */
    int read_timeout_s;        /* nothing moves for this long; 0: 20 s */
    int retry_s;               /* no new try of a request after this long; 0: 20 s */
    int upload_max_age_s;      /* 0: a day */
    uint64_t open_max_bytes;   /* the largest object for object_open; 0: 1 GiB */
    const char *temporary_folder; /* of its copies; NULL: /tmp */
};

/*
 * Opens a store and makes sure that it works: lists, puts, reads and deletes an object of a random
 * name. The options are copied. The texts of errors say what to do and hold no secrets. Handles:
 * ERR_INVALID (an option is malformed, no such bucket, another region), ERR_UNAUTHENTICATED (keys,
 * clock, the server's certificate), ERR_FORBIDDEN (the key may not do one of these), ERR_NETWORK,
 * ERR_TIMEOUT and ERR_BUSY (out of reach), ERR_IO (anything else that the server says).
 */
enum err_code object_s3_open(const struct object_s3_options *options,
                             struct object_store **ret_store, struct err *err) MUST_USE;

/*
 * For a store that serves requests: from now on a server that does not respond costs a request less
 * than 2 s, then ERR_BUSY, and later ones nothing until it responds again (lib/io/s3_client.h).
 * report is called on a thread of the store when that changes; or NULL. Before the store is shared.
 */
enum err_code object_s3_watch(struct object_store *store, void (*report)(bool is_responding),
                              struct err *err) MUST_USE;

#endif
