/*
 * series_list: the types and series with profiles in a window, from dictionaries and granules
 * alone.
 *
 * Private to the room; store/store.h describes what it does (store_list_series and what follows).
 */
#ifndef STORE_QUERY_SERIES_LIST_H
#define STORE_QUERY_SERIES_LIST_H

#include "store/store.h"

struct scan_source;

enum err_code series_list_make(const struct scan_source *source, struct arena *arena,
                               const struct store_query *query, struct store_series_list *ret_list,
                               struct err *err) MUST_USE;
enum err_code series_list_find_absent_label(const struct scan_source *source, struct arena *arena,
                                            const struct store_query *query, struct span *ret_name,
                                            struct err *err) MUST_USE;

#endif
