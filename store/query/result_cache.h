/*
 * result_cache: caches merged profiles by what they were computed from.
 *
 * The identity of a result covers the tenant, the blocks and the profiles read of each, what is
 * kept of their labels, and the generation of names. It does not cover the query's text, and its
 * window only if neighbours count. The catalogue and the blocks' lists are read for each query, so
 * every addition, deletion, merge and expiry, by any server, changes the identity at once. The same
 * query again, another report of it, and a window that moved but contains the same profiles read no
 * rows.
 *
 * Single flight: concurrent callers of one result compute it once; when that caller fails, the next
 * one computes it, under its own limits. Only results without damaged data are cached. Threads:
 * any. Private to store/.
 */
#ifndef STORE_QUERY_RESULT_CACHE_H
#define STORE_QUERY_RESULT_CACHE_H

#include "store/types.h"

struct result_cache;
struct scan;

struct result_cache *result_cache_create(size_t max_bytes);
void result_cache_destroy(
    struct result_cache *results); /* NULL is a no-op; no result is in use any more */
size_t result_cache_bytes(struct result_cache *results);

/* The identity of the scan's result; empty: it is not cacheable. */
void result_cache_identify(const struct scan *scan, char ret_identity[STORE_IDENTITY_BYTES]);

/* Returns the result of that identity, computed by make if it is not cached. Errors: what make
 * returns, ERR_CANCELLED (the query's wait limit ended while another computes it; scan_explain_wait
 * has the reason). */
enum err_code
result_cache_ref(struct result_cache *results, struct scan *scan, const char *identity,
                 enum err_code (*make)(struct scan *scan, struct store_result *ret_result),
                 struct store_result *ret_result) MUST_USE;

#endif
