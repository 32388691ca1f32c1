/*
 * pyroscope_in: profiles of Pyroscope's agents come in, by both of their ways, under any
 * Content-Encoding of api/ingest/ingest_body.h.
 *
 *   POST /push.v1.PusherService/Push      lib/profile/pyroscope/pyroscope_push.h; answers as
 * Connect does POST /ingest, /pyroscope/ingest       lib/profile/pyroscope/pyroscope_ingest.h; 200
 * and no other success
 *
 * All profiles of a push are added, or none, and when the answer comes they are durable and seen by
 * every query that begins afterwards. Each that has a time counts once, however often it is sent.
 */
#ifndef API_INGEST_PYROSCOPE_RECEIVER_H
#define API_INGEST_PYROSCOPE_RECEIVER_H

#include "api/http/route.h"

extern const struct route_table pyroscope_receiver_routes;

#endif
