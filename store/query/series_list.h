/*
 * series_list: lists the types and series with profiles in a window, from dictionaries and granules
 * only.
 *
 * Private to store/; store/store.h describes the results (store_list_series and the functions after
 * it).
 */
#ifndef STORE_QUERY_SERIES_LIST_H
#define STORE_QUERY_SERIES_LIST_H

#include "store/types.h"

struct scan_source;

enum err_code series_list_make(const struct scan_source *source, struct arena *arena,
                               const struct store_query *query, struct store_series_list *ret_list,
                               struct err *err) MUST_USE;
enum err_code series_list_find_absent_label(const struct scan_source *source, struct arena *arena,
                                            const struct store_query *query, struct span *ret_name,
                                            struct err *err) MUST_USE;

/* Lists the names of the series' labels, distinct and sorted, in the arena. */
void series_list_label_names(struct arena *arena, const struct store_series_list *list,
                             const struct span **ret_names, uint32_t *ret_count);
/* Lists the values of a label; "__profile_type__" lists the names of the types. */
void series_list_label_values(struct arena *arena, const struct store_series_list *list,
                              struct span label, const struct span **ret_values,
                              uint32_t *ret_count);

#endif
