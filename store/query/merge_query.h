/*
 * merge_query: merges all that a query matches into one profile, from totals or rows.
 *
 * Private to store/; store/store.h describes the result (store_merge).
 */
#ifndef STORE_QUERY_MERGE_QUERY_H
#define STORE_QUERY_MERGE_QUERY_H

#include "store/store.h"

struct scan_source;

enum err_code merge_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_query *query, struct store_result *ret_result,
                              struct err *err) MUST_USE;

#endif
