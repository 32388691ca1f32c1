/*
 * connect: responses and errors of the Connect protocol for unary calls
 * (connectrpc.com/docs/protocol), which Pyroscope's clients and Grafana use.
 *
 * A request is a POST of application/proto or application/json. Success is 200 with the same
 * content type; an error is always JSON, {"code":"…","message":"…"}, with the status of its code.
 * Error messages are for people.
 *
 *   invalid_argument 400: invalid, unsupported, too large    unauthenticated 401
 *   permission_denied 403: forbidden                         not_found 404: not found, gone
 *   already_exists 409: conflict                             resource_exhausted 429: rate, quota
 *   resource_exhausted 422: ERR_LIMIT                        canceled 499
 *   data_loss 500: corrupt, lost                             internal 500: all others
 *   unavailable 503: busy, database, network, I/O            deadline_exceeded 504
 *
 * A request that is too large, or a query that costs too much (ERR_LIMIT), does not get 429,
 * because clients would send it again. Threads: any.
 */
#ifndef LIB_PROFILE_PYROSCOPE_CONNECT_H
#define LIB_PROFILE_PYROSCOPE_CONNECT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct buf;

enum connect_encoding { CONNECT_PROTOBUF, CONNECT_JSON };

/* Determines the encoding from the content type of a request, ignoring parameters;
 * "application/protobuf" and "application/x-protobuf" are accepted, too. False for other types. */
bool connect_find_encoding(struct span content_type, enum connect_encoding *ret_encoding);
const char *connect_content_type(enum connect_encoding encoding);

/* The HTTP status, and the Connect code such as "not_found", of an error, by the table above. */
int connect_status(enum err_code code);
const char *connect_code(enum err_code code);

/* Appends the body of an empty successful response. */
void connect_write_empty(enum connect_encoding encoding, struct buf *body);

#endif
