/*
 * store_json: common parts of the store's results in JSON (store/store.h).
 */
#ifndef API_QUERY_STORE_JSON_H
#define API_QUERY_STORE_JSON_H

#include "api/http/request.h"
#include "store/store.h"

enum { STORE_JSON_MAX_BYTES = 256 << 20 };

/* Appends the statistics of a query as {"blocks":…}. begin_ns: the start of the query, of the
 * monotonic clock. */
void store_json_append_statistics(struct buf *json, const struct store_statistics *statistics,
                                  int64_t begin_ns);

/* "name":"value", … for the labels. */
void store_json_append_labels(struct buf *json, const struct store_label *labels, uint32_t count);

/* 32 hexadecimal digits: the time, then the series; sortable. */
void store_json_append_profile_id(struct buf *json, const struct store_profile_id *id);
/* False if text is malformed. */
bool store_json_parse_profile_id(struct span text, struct store_profile_id *ret_id);

/* Sends JSON as a complete response that no cache keeps. */
enum err_code store_json_respond(struct request *request, struct response *response,
                                 const struct buf *json, struct err *err) MUST_USE;

#endif
