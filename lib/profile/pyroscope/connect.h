/*
 * connect: what answers look like in the Connect protocol for unary calls
 * (connectrpc.com/docs/protocol), which Pyroscope's clients and Grafana speak.
 *
 * A request is a POST of application/proto or application/json; success is 200 with the same
 * content type, and an error is always JSON, {"code":"…","message":"…"}, under the status of its
 * code. Texts of errors are for people, and so are ours.
 *
 *   invalid_argument 400: invalid, unsupported, too large    unauthenticated 401
 *   permission_denied 403: forbidden                         not_found 404: not found, gone
 *   already_exists 409: conflict                             resource_exhausted 429: rate, quota
 *   canceled 499                                             internal 500; data_loss 500: corrupt
 *   unavailable 503: busy, database, network                 deadline_exceeded 504
 *
 * What is too large is not 429: clients would send the same again. Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_CONNECT_H
#define LIB_PROFILE_PYROSCOPE_CONNECT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum connect_encoding { CONNECT_PROTOBUF, CONNECT_JSON };

/* By the content type of a request, whatever its parameters; "application/protobuf" and
 * "application/x-protobuf" are taken, too. False when it is neither. */
bool connect_find_encoding(struct span content_type, enum connect_encoding *ret_encoding);
const char *connect_content_type(enum connect_encoding encoding);

int connect_status(enum err_code code);
const char *connect_code(enum err_code code);

/* Appends the body of an answer that says nothing but "done". */
void connect_write_empty(enum connect_encoding encoding, struct buf *body);

#endif
