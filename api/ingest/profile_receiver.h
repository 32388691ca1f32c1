/*
 * profiles: continuous profiles come in: POST /api/v1/profiles with one profile of any format.
 *
 * Answers 200 when the profile is durable and seen by every query that begins afterwards. Each
 * `label` parameter is one name=value of its series; `name` is the first part of the profile types,
 * made of the types where it is missing; `time` is the begin, else that of the profile, else now. A
 * profile that is sent twice counts once: by the field Perfolio-Batch-Id, or else, when it has a
 * time, by labels, time and content.
 *
 * A profile may be gzip or zstd, which is told by its bytes, whether Content-Encoding says so or
 * not: one layer, since a saved profile is compressed already. What else that field says is
 * refused.
 */
#ifndef API_INGEST_PROFILE_RECEIVER_H
#define API_INGEST_PROFILE_RECEIVER_H

#include "api/http/route.h"

struct buf;
struct store_receipt;

extern const struct route_table profile_routes;

/* What was added, as the JSON of an answer. */
void profile_receiver_write_receipt(const struct store_receipt *receipt, struct buf *json);

#endif
