/*
 * s3_store: the store and the functions that the files of the S3 backend share.
 */
#ifndef LIB_IO_S3_STORE_H
#define LIB_IO_S3_STORE_H

#include "lib/io/object_backend.h"
#include "lib/io/s3_client.h"

#include <stdatomic.h>

struct s3_store {
    struct object_store base;
    struct s3_client *client;
    int64_t upload_max_age_ns;
    uint64_t open_max_bytes;
    char *temporary_folder;
    bool (*has_space)(void *context, int fd, uint64_t bytes,
                      bool is_background); /* object_s3_set_space */
    void *has_space_context;
    bool is_opening; /* object_s3_open is testing the store; see s3_store_outward */
    /* set after a failed write; object_store_check then tries one */
    atomic_bool has_failed_to_write;
};

static inline struct s3_store *s3_store_of(struct object_store *store)
{
    return (struct s3_store *)store;
}

/*
 * Converts a code for callers that do not know S3, as object.h defines: errors in settings and
 * permissions, which the operator has to fix, become ERR_IO; temporary ones become ERR_BUSY. Sets
 * err->public_text. Returns the code unchanged while the store is being opened, when the operator
 * reads the message.
 */
enum err_code s3_store_outward(const struct s3_store *store, enum err_code code, struct err *err);

/* The same for writes, and records the result for object_store_check. ERR_NOT_FOUND is converted
 * too: senders would treat 404 as final and drop their data. */
enum err_code s3_store_write_outward(struct s3_store *store, enum err_code code, struct err *err);

/*
 * For struct s3_request: returns ERR_NETWORK unless the response has an ETag, which every S3
 * response to a request for an object has. A server without ETags, such as a proxy that sends its
 * sign-in page with status 200, does not store objects.
 */
enum err_code s3_store_check_etag(void *context, const struct http_client_response *response,
                                  struct err *err) MUST_USE;
enum { S3_STORE_ETAG_MAX_BYTES = 256 };

/* Puts one object in one request, with retries. */
enum err_code s3_store_put(struct s3_store *store, const char *key, struct span bytes,
                           struct err *err) MUST_USE;

/* s3_store_list.c: the list and sweep of object_backend.h. */
enum err_code s3_store_list(struct object_store *store, const char *prefix, object_visit *visit,
                            void *context, struct err *err) MUST_USE;
enum err_code s3_store_sweep(struct object_store *store, struct err *err) MUST_USE;

/* s3_store_delete.c: the delete_many of object_backend.h. */
enum err_code s3_store_delete_many(struct object_store *store, const char *const *keys,
                                   size_t count, struct err *err) MUST_USE;

#endif
