/*
 * answers: merged profiles of questions, kept while there is room.
 *
 * What is to be read decides an answer, whatever the words and the window of its question were: the
 * tenant, the blocks, of each which profiles, what is kept of their labels, and what names were
 * known. So the catalogue and the blocks' lists are looked at each time, and whatever is added,
 * deleted, merged or past its time, by this server or another, makes another answer at once; but
 * the same question again, another report of it, or a window that has moved past nothing, costs no
 * reading and no adding up. Single flight: many who ask for one answer make it once; when who makes
 * it fails, the next of them does, by its own limits. What is broken is not kept. Threads: any.
 * Private to the room.
 */
#ifndef STORE_QUERY_RESULT_CACHE_H
#define STORE_QUERY_RESULT_CACHE_H

#include "store/store.h"

struct result_cache;
struct scan;

struct result_cache *result_cache_create(size_t max_bytes);
void result_cache_destroy(
    struct result_cache *results); /* NULL is a no-op; no answer is in use any more */
size_t result_cache_bytes(struct result_cache *results);

/* What the answer to a walk's question is known by; empty: it is like no other. */
void result_cache_identify(const struct scan *scan, char ret_identity[STORE_IDENTITY_BYTES]);

/*
 * The answer of that identity, made by make if it is absent. Handles: what make does,
 * ERR_CANCELLED (the query's patience is over while others make it; scan_explain_wait says why).
 */
enum err_code
result_cache_ref(struct result_cache *results, struct scan *scan, const char *identity,
                 enum err_code (*make)(struct scan *scan, struct store_result *ret_result),
                 struct store_result *ret_result) MUST_USE;

#endif
