/*
 * profile_list: lists the single profiles of a window, newest first, without their rows.
 *
 * Private to store/; store/store.h describes the result (store_list_profiles).
 */
#ifndef STORE_QUERY_PROFILE_LIST_H
#define STORE_QUERY_PROFILE_LIST_H

#include "store/types.h"

struct scan_source;

enum err_code profile_list_make(const struct scan_source *source, struct arena *arena,
                                const struct store_profile_query *query,
                                struct store_profile_list *ret_list, struct err *err) MUST_USE;

#endif
