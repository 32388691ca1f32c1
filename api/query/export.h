/*
 * export: the result of a query as one Parquet file (store/query/export.h describes its columns).
 *
 *   GET /api/v1/export?query=SELECTOR&start=&end=&format=parquet, label, span_selector and
 *   trace_id_selector as in api/query/query.h
 *
 * The file is written to an unnamed file in the data folder and sent from there: memory is bounded
 * whatever its size, its size is known before its first byte, and a failure (a limit, a merge of
 * blocks that deletes an object) is a problem document or a second attempt, never a truncated file.
 * An export of more than EXPORT_MAX_BYTES is refused, and so is one for which export_space has no
 * space. It has the limits of other queries; a tenant's exports are computed one after the other
 * (api/http/concurrency_limit.h).
 */
#ifndef API_QUERY_EXPORT_H
#define API_QUERY_EXPORT_H

#include "api/http/route.h"

#define EXPORT_MAX_BYTES ((uint64_t)8 << 30)

extern const struct route_table export_routes;

#endif
