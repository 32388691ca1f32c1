/*
 * export: what a question to the store finds, as one Parquet file (store/query/export.h tells its
 * columns).
 *
 *   GET /api/v1/export?query=SELECTOR&start=&end=&format=parquet, label, span_selector and
 *   trace_id_selector as in api/query/query.h
 *
 * The file is written to a file without a name in the data folder and sent from there: memory stays
 * bounded whatever its size, its size is known before its first byte, and what goes wrong on the
 * way (a limit, a merge of blocks that takes an object away) is a problem document or a second try,
 * never a file cut short. One of more than EXPORT_MAX_BYTES is refused, and so is any when the disk
 * has too little left. Limits are those of other questions; a tenant's exports take turns
 * (api/http/concurrency_limit.h).
 */
#ifndef API_QUERY_EXPORT_H
#define API_QUERY_EXPORT_H

#include "api/http/route.h"

#define EXPORT_MAX_BYTES ((uint64_t)8 << 30)

extern const struct route_table export_routes;

#endif
