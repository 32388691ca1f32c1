/*
 * protocol_error: errors in the form of the agents' protocols, in place of problem documents; also
 * for errors before a handler runs: wrong tokens, bodies too large, a busy server.
 *
 *   ROUTE_OTLP       google.rpc.Status in the encoding of the request. Agents retry only 429, 502,
 *                    503 and 504, so a failing disk is 503; each has Retry-After.
 *   ROUTE_CONNECT    {"code":"invalid_argument","message":"…"}, lib/profile/pyroscope/connect.h; an
 *                    unknown content type is 415, a Content-Encoding 501 (unimplemented)
 *   ROUTE_PYROSCOPE  the same body; 400 is for the address, 422 for the content of the body; there
 *                    is no 408: a client whose body arrives too slowly is disconnected
 *
 * Threads: any.
 */
#ifndef API_SERVER_PROTOCOL_ERROR_H
#define API_SERVER_PROTOCOL_ERROR_H

#include "api/http/request.h"

/* Fills the response with err in the form of the route's protocol. Returns false if the request has
 * no route, or its route has none of these flags. */
bool protocol_error_respond(struct request *request, struct response *response,
                            const struct err *err);

#endif
