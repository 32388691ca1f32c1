/*
 * s3_sign: AWS Signature Version 4 for S3, in the Authorization field.
 *
 * Source: "Authenticating Requests: Using the Authorization Header" of the Amazon S3 API reference.
 * libcurl's own signing omits x-amz-content-sha256, which radosgw requires, so it is implemented
 * here. Threads: any.
 */
#ifndef LIB_IO_S3_SIGN_H
#define LIB_IO_S3_SIGN_H

#include <stddef.h>
#include <stdint.h>

struct buf;

enum { S3_SIGN_TIME_BYTES = 17 }; /* "20130524T000000Z" and NUL */

struct s3_sign_field {
    const char *name;  /* lower case */
    const char *value; /* without leading, trailing or double blanks */
};

struct s3_sign_request {
    const char *method;
    const char *path;  /* percent-encoded as sent, from the first slash */
    const char *query; /* as sent: encoded, sorted by name, "name=" without a value; or "" */
    /* Fields to sign, sorted by name: at least host, x-amz-content-sha256 and x-amz-date. */
    const struct s3_sign_field *fields;
    size_t field_count;
    const char *payload_hash; /* SHA-256 of the body in hexadecimal, as in x-amz-content-sha256 */
    const char *time;         /* as in x-amz-date */
    const char *access_key;
    const char *secret_key;
    const char *region;
};

/* Formats wall time for x-amz-date. */
void s3_sign_time(int64_t wall_ns, char ret_text[S3_SIGN_TIME_BYTES]);
/* Appends the value of the Authorization field. */
void s3_sign_authorization(const struct s3_sign_request *request, struct buf *text);

#endif
