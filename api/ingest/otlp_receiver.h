/*
 * otlp_in: OpenTelemetry's profiles come in: POST /v1development/profiles (OTLP/HTTP, lib/profile/
 * otlp.h), in protobuf and JSON, under any Content-Encoding of api/ingest/ingest_body.h.
 *
 * One request is one batch: what is wrong in single profiles is named in the answer
 * (partial_success), the others are durable and seen by every query that begins afterwards. A
 * request whose profiles all have a time counts once, however often it is sent.
 */
#ifndef API_INGEST_OTLP_RECEIVER_H
#define API_INGEST_OTLP_RECEIVER_H

#include "api/http/route.h"

extern const struct route_table otlp_receiver_routes;

#endif
