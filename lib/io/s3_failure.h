/*
 * s3_failure: what an S3 server's refusal means and what to do about it, in a sentence.
 */
#ifndef LIB_IO_S3_FAILURE_H
#define LIB_IO_S3_FAILURE_H

#include "lib/io/s3_client.h"
#include "lib/io/s3_settings.h"

/* Always sets err. The server's own words are cut and cleaned; it never gets secrets to repeat that
 * an error's text would hold. */
enum err_code s3_failure_describe(const struct s3_settings *settings,
                                  const struct s3_request *request,
                                  const struct http_client_answer *answer,
                                  struct err *err) MUST_USE;

/* The meaning of an error's code in an answer's body, for one key among many. */
enum err_code s3_failure_code(const char *name);

#endif
