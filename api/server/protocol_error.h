/*
 * protocol_error: errors as the protocols of agents have them, in place of problem documents; also
 * those that come before a handler: wrong tokens, bodies too large, a busy server.
 *
 *   ROUTE_OTLP       google.rpc.Status in the encoding of the request. Agents repeat 429, 502, 503
 *                    and 504 alone, so a disk that fails is 503; each says when (Retry-After).
 *   ROUTE_CONNECT    {"code":"invalid_argument","message":"…"}, lib/profile/pyroscope/connect.h; a
 * content type that it does not know is 415, a Content-Encoding 501 (unimplemented) ROUTE_PYROSCOPE
 * the same body; 400 is for the address, 422 for what the body holds; there is no 408: whose body
 * comes too slowly loses the connection
 *
 * Threads: any.
 */
#ifndef API_SERVER_PROTOCOL_ERROR_H
#define API_SERVER_PROTOCOL_ERROR_H

#include "api/http/request.h"

/* Fills the response; false when the request's route has none of those flags, or there is none. */
bool protocol_error_respond(struct request *request, struct response *response,
                            const struct err *err);

#endif
