/*
 * object_s3_store: what the files of the S3 backend share: the store, and its writers' functions.
 */
#ifndef LIB_IO_OBJECT_S3_STORE_H
#define LIB_IO_OBJECT_S3_STORE_H

#include "lib/io/object_backend.h"
#include "lib/io/s3_client.h"

#include <stdatomic.h>

struct s3_store {
    struct object_store base;
    struct s3_client *client;
    int64_t upload_max_age_ns;
    uint64_t open_max_bytes;
    char *temporary_folder;
    bool is_opening;
    atomic_bool has_failed_to_write; /* the last write did; object_check tries one */
};

static inline struct s3_store *s3_store_of(struct object_store *store)
{
    return (struct s3_store *)store;
}

/*
 * The code as object.h promises it, for callers that know nothing of S3: settings and rights that
 * the operator has to mend are ERR_IO, what may pass by itself is ERR_BUSY. Sets err->public_text.
 * Unchanged while the store is opening: there the operator reads the message.
 */
enum err_code s3_store_outward(const struct s3_store *store, enum err_code code, struct err *err);

/* The same of writing, for object_store_check. That there is no such key is no answer to a write:
 * senders would take 404 for final, and drop what they have. */
enum err_code s3_store_write_outward(struct s3_store *store, enum err_code code, struct err *err);

/*
 * For struct s3_request: ERR_NETWORK unless the response has an ETag, as that of an S3 server to
 * every request for an object has. What answers without one, such as the sign-in page of a proxy
 * with status 200, neither stores nor holds objects.
 */
enum err_code s3_store_check_etag(void *context, const struct http_client_answer *answer,
                                  struct err *err) MUST_USE;
enum { S3_STORE_ETAG_MAX_BYTES = 256 };

/* One object in one request, repeated where that helps. */
enum err_code s3_store_put(struct s3_store *store, const char *key, struct span bytes,
                           struct err *err) MUST_USE;

/* object_s3_writer.c */
enum err_code s3_writer_open(struct object_store *store, const char *key,
                             struct object_writer **ret_writer, struct err *err) MUST_USE;
enum err_code s3_writer_append(struct object_writer *writer, struct span bytes,
                               struct err *err) MUST_USE;
enum err_code s3_writer_commit(struct object_writer *writer, struct err *err) MUST_USE;
void s3_writer_abort(struct object_writer *writer);
/* Ends an upload that nobody will complete; one that is gone already is no error. */
enum err_code s3_writer_abort_upload(struct s3_store *store, const char *key, const char *upload_id,
                                     struct err *err) MUST_USE;

/* object_s3_list.c */
enum err_code s3_store_list(struct object_store *store, const char *prefix, object_visit *visit,
                            void *context, struct err *err) MUST_USE;
enum err_code s3_store_sweep(struct object_store *store, struct err *err) MUST_USE;

/* object_s3_delete.c */
enum err_code s3_store_delete_many(struct object_store *store, const char *const *keys,
                                   size_t count, struct err *err) MUST_USE;

#endif
