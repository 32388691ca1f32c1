/*
 * s3_settings: the options of an S3 store, checked, completed and copied. Private to s3_*.c.
 */
#ifndef LIB_IO_S3_SETTINGS_H
#define LIB_IO_S3_SETTINGS_H

#include "lib/io/object_s3.h"

struct s3_settings {
    const char *scheme; /* "https" or "http" */
    /* value of the Host field: includes the bucket unless is_path_style; no default port */
    char *host;
    char *bucket;
    char *prefix; /* "" or ending in "/" */
    char *region;
    char *access_key;
    char *secret_key;
    char *session_token; /* or NULL */
    char *ca_file;       /* or NULL */
    bool is_path_style;
    int connect_timeout_ms;
    int read_timeout_s;
};

/* Errors: ERR_INVALID. Call s3_settings_fini also after a failure. */
enum err_code s3_settings_init(struct s3_settings *settings,
                               const struct object_s3_options *options, struct err *err) MUST_USE;
void s3_settings_fini(struct s3_settings *settings);

#endif
