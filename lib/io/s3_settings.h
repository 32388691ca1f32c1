/*
 * s3_settings: the options of an S3 store, checked, completed and copied; for s3_*.c alone.
 */
#ifndef LIB_IO_S3_SETTINGS_H
#define LIB_IO_S3_SETTINGS_H

#include "lib/io/object_s3.h"

struct s3_settings {
    const char *scheme; /* "https" or "http" */
    char *host;         /* as in the Host field: with the bucket unless is_path_style, without the
                         * scheme's own port */
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

/* Handles: ERR_INVALID. After a failure, too, s3_settings_fini is due. */
enum err_code s3_settings_init(struct s3_settings *settings,
                               const struct object_s3_options *options, struct err *err) MUST_USE;
void s3_settings_fini(struct s3_settings *settings);

#endif
