/*
 * flight_cache: costly values by key, made once (single flight), kept within a bound of bytes.
 *
 * Of many threads that ask for the same absent value one makes it, the others wait for it. The
 * least recently used are dropped when all together pass the bound; what is in use stays, found by
 * others too, until its last user has given it back. Failures go to all who waited and are not
 * kept. Threads: any.
 */
#ifndef LIB_BASE_FLIGHT_CACHE_H
#define LIB_BASE_FLIGHT_CACHE_H

#include "lib/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct flight_cache;
struct flight_entry;
struct wait_limit;

/* How long one may wait for another's work, seconds. */
enum { FLIGHT_WAIT_S = 60 };

/* destroy frees a value; it runs on whichever thread uses the value last. */
struct flight_cache *flight_cache_create(size_t max_bytes, void (*destroy)(void *value));
/*
 * For values that are asked for again and again in turn, such as all parts of what many questions
 * are about: when those together pass the bound, to drop the one unused for longest would drop each
 * just before it is asked for. What was used within hold_ns stays then, and the newest goes. To be
 * called before the cache is used.
 */
void flight_cache_hold(struct flight_cache *cache, int64_t hold_ns);
/* The bound is another one from now on; what is past it goes with what is made or given back next.
 */
void flight_cache_bound(struct flight_cache *cache, size_t max_bytes);
/* NULL is a no-op. Nothing may be in use any more. */
void flight_cache_destroy(struct flight_cache *cache);

/* Makes a value; *ret_bytes is what it holds of memory. */
typedef enum err_code flight_make(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err);

/*
 * The value of key, made by make(context) if it is absent. The caller gives *ret_entry back with
 * flight_cache_unref; flight_cache_get borrows from it. Handles: what make returns, ERR_BUSY
 * (waited longer than FLIGHT_WAIT_S).
 */
enum err_code flight_cache_ref(struct flight_cache *cache, const char *key, flight_make *make,
                               void *context, struct flight_entry **ret_entry,
                               struct err *err) MUST_USE;
/* The same for somebody who does not wait for ever: ERR_CANCELLED once the patience is over. What
 * make itself waits for is its own matter; when that was given up by another who made the value,
 * whoever waited for it makes it. */
enum err_code flight_cache_ref_within(struct flight_cache *cache, const char *key,
                                      const struct wait_limit *wait_limit, flight_make *make,
                                      void *context, struct flight_entry **ret_entry,
                                      struct err *err) MUST_USE;
/* The value of key if it is there, without waiting for it: NULL otherwise. */
struct flight_entry *flight_cache_try(struct flight_cache *cache, const char *key);
/* The value of key is this one from now on, unless there is one or somebody makes it: then it is
 * destroyed. Made by other means, as of many keys at once. */
void flight_cache_give(struct flight_cache *cache, const char *key, void *value, size_t bytes);
void *flight_cache_get(const struct flight_entry *entry);
/* NULL is a no-op. */
void flight_cache_unref(struct flight_entry *entry);

/* Forgets one key: nobody who asks later gets its value. */
void flight_cache_forget(struct flight_cache *cache, const char *key);
/* Forgets all keys that start with prefix: nobody who asks later gets their values. */
void flight_cache_drop(struct flight_cache *cache, const char *prefix);

/* For metrics and tests: bytes kept, and how often a value was made. */
size_t flight_cache_bytes(struct flight_cache *cache);
uint64_t flight_cache_made_count(struct flight_cache *cache);

#endif
