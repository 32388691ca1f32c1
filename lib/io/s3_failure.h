/*
 * s3_failure: translates an error response of an S3 server to an error code and a message with
 * advice.
 */
#ifndef LIB_IO_S3_FAILURE_H
#define LIB_IO_S3_FAILURE_H

#include "lib/io/s3_client.h"
#include "lib/io/s3_settings.h"

/* Always sets err. The server's text is truncated and cleaned; no request contains secrets that
 * it could repeat there. */
enum err_code s3_failure_describe(const struct s3_settings *settings,
                                  const struct s3_request *request,
                                  const struct http_client_response *response,
                                  struct err *err) MUST_USE;

/* The code for an error name in a response's body, for one key among many. */
enum err_code s3_failure_code(const char *name);

#endif
