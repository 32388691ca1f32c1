/*
 * s3_writer: writes an object in parts of 8 MiB (S3's multipart upload), of which one is in memory.
 *
 * The functions are those of object_backend.h. An object that fits into one part is put by one
 * request at the commit. An upload that its writer could not abort is swept later (s3_store_sweep).
 * Private to the S3 backend.
 */
#ifndef LIB_IO_S3_WRITER_H
#define LIB_IO_S3_WRITER_H

#include "lib/io/s3_store.h"

enum err_code s3_writer_open(struct object_store *store, const char *key,
                             struct object_writer **ret_writer, struct err *err) MUST_USE;
enum err_code s3_writer_append(struct object_writer *writer, struct span bytes,
                               struct err *err) MUST_USE;
enum err_code s3_writer_commit(struct object_writer *writer, struct err *err) MUST_USE;
void s3_writer_abort(struct object_writer *writer);

/* Aborts an abandoned upload; an upload that does not exist is not an error. */
enum err_code s3_writer_abort_upload(struct s3_store *store, const char *key, const char *upload_id,
                                     struct err *err) MUST_USE;

#endif
