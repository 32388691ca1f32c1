/*
 * profile_receiver: receives continuous profiles: POST /api/v1/profiles with one profile of any
 * format.
 *
 * Responds with 200 when the profile is durable and visible to every later query. Each `label`
 * parameter is one name=value of its series. `name` is the first part of the profile types; without
 * it, that part is derived from the sample types (batch_type.h). `time` is the start of the
 * profile; the default is the time in the profile, or else the present time. A profile that is sent
 * twice counts once, unless neither the request nor the profile states a time
 * (api/ingest/batch_id.h).
 *
 * A profile may be compressed with gzip or zstd, which is detected from its bytes whether
 * Content-Encoding names it or not. Only one layer of compression is removed. Other values of that
 * field are refused.
 */
#ifndef API_INGEST_PROFILE_RECEIVER_H
#define API_INGEST_PROFILE_RECEIVER_H

#include "api/http/route.h"

struct buf;
struct store_receipt;

extern const struct route_table profile_receiver_routes;

/* Appends the counts in receipt as JSON, the body of the response. */
void profile_receiver_write_receipt(const struct store_receipt *receipt, struct buf *json);

#endif
