/*
 * pyroscope_receiver: receives profiles of Pyroscope's agents, with both of their protocols and any
 * Content-Encoding of api/ingest/ingest_body.h.
 *
 *   POST /push.v1.PusherService/Push   lib/profile/pyroscope/pyroscope_push.h; Connect's responses
 *   POST /ingest, /pyroscope/ingest    lib/profile/pyroscope/pyroscope_ingest.h; success is 200
 *
 * All profiles of a push are added, or none; when the response is sent they are durable and visible
 * to every later query. Each that has a time counts once, however often it is sent.
 */
#ifndef API_INGEST_PYROSCOPE_RECEIVER_H
#define API_INGEST_PYROSCOPE_RECEIVER_H

#include "api/http/route.h"

extern const struct route_table pyroscope_receiver_routes;

#endif
