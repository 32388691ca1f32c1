/*
 * store_json: what answers of the store (store/store.h) that are JSON have in common.
 */
#ifndef API_QUERY_STORE_JSON_H
#define API_QUERY_STORE_JSON_H

#include "api/http/request.h"
#include "store/store.h"

enum { STORE_JSON_MAX_BYTES = 256 << 20 };

/* {"blocks":…}: what was read; begin_ns: of the monotonic clock, when the question came. */
void store_json_append_statistics(struct buf *json, const struct store_statistics *statistics,
                                  int64_t begin_ns);

/* "name":"value", … of the labels. */
void store_json_append_labels(struct buf *json, const struct store_label *labels, uint32_t count);

/* 32 hexadecimal digits: the moment, then the series; in their order. */
void store_json_append_profile_id(struct buf *json, const struct store_profile_id *id);
/* False when text is none. */
bool store_json_parse_profile_id(struct span text, struct store_profile_id *ret_id);

/* JSON as a finished answer, which no cache keeps. */
enum err_code store_json_respond(struct request *request, struct response *response,
                                 const struct buf *json, struct err *err) MUST_USE;

#endif
