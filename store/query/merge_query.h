/*
 * merge_query: merges all that a query matches into one profile, from totals or rows.
 *
 * Private to store/; store/store.h describes the result (store_merge).
 */
#ifndef STORE_QUERY_MERGE_QUERY_H
#define STORE_QUERY_MERGE_QUERY_H

#include "store/types.h"

struct scan_source;

enum err_code merge_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_query *query, struct store_result *ret_result,
                              struct err *err) MUST_USE;

/* Frees or returns what a result holds; a no-op on zeros. */
void merge_query_fini_result(struct store_result *result);

#endif
