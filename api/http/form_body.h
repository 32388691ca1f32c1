/*
 * form_body: recognises a profile that a client sent as a form by mistake.
 *
 * `curl -F file=@FILE` wraps the file in multipart/form-data. `curl -d @FILE` removes the line
 * breaks and NULs of the file; of text with a stack per line, one stack with a wrong value would
 * be left, without an error. curl sends the same Content-Type with --data-binary, which keeps the
 * bytes, so the body decides. Threads: any.
 */
#ifndef API_HTTP_FORM_BODY_H
#define API_HTTP_FORM_BODY_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct err;
struct request;

/* Checks a request whose body is a profile. may_be_multipart: the handler reads
 * multipart/form-data. Errors: ERR_UNSUPPORTED (a form), ERR_INVALID (text that lost its line
 * breaks). */
enum err_code form_body_check(const struct request *request, bool may_be_multipart,
                              struct err *err) MUST_USE;

/* For the error of decoding such a body: names --data-binary if the body lost bytes, which a
 * compressed profile does not survive. Returns code. */
enum err_code form_body_explain(const struct request *request, enum err_code code, struct err *err);

#endif
