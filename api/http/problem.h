/*
 * problem: errors as HTTP responses: RFC 9457 application/problem+json.
 *
 * problem.c contains the only table from err_code to HTTP status. A document looks like
 *   {"type":"/problems/too-large","title":"Too large","status":413,
 *    "detail":"the body is 9000000 bytes, …","instance":"/api/v1/shares","request_id":"…"}
 * type ends with err_code_name(), and the server has a page at that path. For internal failures
 * (database, disk, our own bugs) detail is a general sentence, and the text of the error is written
 * to the log only, with the request id.
 */
#ifndef API_HTTP_PROBLEM_H
#define API_HTTP_PROBLEM_H

#include "api/http/request.h"

/* The HTTP status of a code: 400 for ERR_INVALID, 500 for an internal failure, … */
int problem_status(enum err_code code);
/* The short name of a kind of problem, such as "Not found". */
const char *problem_title(enum err_code code);
/* One sentence that explains the problem, for the page /problems/<name>. */
const char *problem_explanation(enum err_code code);
/* The code whose err_code_name() is name; ERR_NONE if there is none. */
enum err_code problem_find(struct span name);
/* Whether the text of a failure is for the log, not for the client. */
bool problem_is_internal(enum err_code code);

/* Replaces the content of response by the document for err (with Retry-After, WWW-Authenticate and
 * Allow where they apply). status 0: problem_status of the error's code. */
void problem_respond(struct request *request, struct response *response, int status,
                     const struct err *err);

/* The text of err that the client may read: err_public_text, or a general sentence for internal
 * failures. */
const char *problem_text(const struct err *err);
/* As problem_respond, with a body in the format of another protocol; the body is copied. */
void problem_respond_as(struct request *request, struct response *response, int status,
                        const struct err *err, const char *content_type, struct span body);

/* Logs the problem that is sent, under the request id that the client gets. */
void problem_log(const struct request *request, int status, const struct err *err);

#endif
