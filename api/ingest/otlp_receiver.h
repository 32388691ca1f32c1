/*
 * otlp_receiver: receives OpenTelemetry's profiles: POST /v1development/profiles (OTLP/HTTP,
 * lib/profile/otlp/), in protobuf and JSON, with any Content-Encoding of api/ingest/ingest_body.h.
 *
 * One request is one batch: errors in single profiles are reported in the response
 * (partial_success), the other profiles are durable and visible to every later query. A request
 * counts once, however often it is sent, if at least one of its profiles has a time
 * (api/ingest/batch_id.h).
 */
#ifndef API_INGEST_OTLP_RECEIVER_H
#define API_INGEST_OTLP_RECEIVER_H

#include "api/http/route.h"

extern const struct route_table otlp_receiver_routes;

#endif
