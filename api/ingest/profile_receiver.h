/*
 * profile_receiver: receives continuous profiles: POST /api/v1/profiles with one profile of any
 * format.
 *
 * Responds with 200 when the profile is durable and visible to every later query. Each `label`
 * parameter is one name=value of its series; `name` is the first part of the profile types, made of
 * the types if it is missing; `time` is the begin, by default that of the profile, or now. A
 * profile that is sent twice counts once: by the field Perfolio-Batch-Id or, if it has a time, by
 * labels, time and content.
 *
 * A profile may be gzip or zstd, which is detected from its bytes, whether Content-Encoding names
 * it or not: one layer, since a saved profile is compressed already. Other values of that field are
 * refused.
 */
#ifndef API_INGEST_PROFILE_RECEIVER_H
#define API_INGEST_PROFILE_RECEIVER_H

#include "api/http/route.h"

struct buf;
struct store_receipt;

extern const struct route_table profile_routes;

/* Appends what was added, as the JSON of a response. */
void profile_receiver_write_receipt(const struct store_receipt *receipt, struct buf *json);

#endif
