/*
 * flight_cache: a cache of expensive values by key, with single flight and a limit in bytes.
 *
 * When several threads request the same absent value, one makes it and the others wait for it. When
 * the total size exceeds the limit, the cache evicts the least recently used values. A value that
 * is referenced is not evicted and can be found until its last reference is dropped. A failure is
 * returned to all threads that waited and is not cached. Threads: any.
 */
#ifndef LIB_BASE_FLIGHT_CACHE_H
#define LIB_BASE_FLIGHT_CACHE_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flight_cache;
struct flight_entry;
struct wait_limit;

/* The longest time that a thread waits for a value that another makes, in seconds. */
enum { FLIGHT_WAIT_S = 60 };

/* destroy frees a value. It runs on the thread that drops the last reference, without a lock. */
struct flight_cache *flight_cache_create(size_t max_bytes, void (*destroy)(void *value));
/*
 * Protects recently used values from eviction, for scans that use the same values again and again
 * in the same order. When such a cycle is larger than the limit, evicting the least recently used
 * value would remove each one just before its next use. With hold_ns, values used within that time
 * are kept, and a value that does not fit is evicted as soon as it is no longer referenced. Call it
 * before the first use.
 */
void flight_cache_set_hold(struct flight_cache *cache, int64_t hold_ns);
/* Changes the limit. The cache shrinks when the next value is made or released. */
void flight_cache_set_max_bytes(struct flight_cache *cache, size_t max_bytes);
/* No value may be referenced any more. NULL is a no-op. */
void flight_cache_destroy(struct flight_cache *cache);

/* Makes a value. *ret_bytes is the memory that it occupies. */
typedef enum err_code flight_make(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err);

/*
 * Returns a reference to the value of key, calling make(context) if it is absent. The caller drops
 * *ret_entry with flight_cache_unref; flight_cache_get borrows the value from it. Errors: the
 * errors of make, ERR_BUSY (waited longer than FLIGHT_WAIT_S).
 */
enum err_code flight_cache_ref(struct flight_cache *cache, const char *key, flight_make *make,
                               void *context, struct flight_entry **ret_entry,
                               struct err *err) MUST_USE;
/* The same with a limit on the wait: ERR_CANCELLED once wait_limit is over. The limit does not
 * apply to make itself. If make returns ERR_CANCELLED, one of the waiting threads makes the value.
 */
enum err_code flight_cache_ref_within(struct flight_cache *cache, const char *key,
                                      const struct wait_limit *wait_limit, flight_make *make,
                                      void *context, struct flight_entry **ret_entry,
                                      struct err *err) MUST_USE;
/* Returns a reference to the value of key if it is ready, else NULL. Does not wait. */
struct flight_entry *flight_cache_try(struct flight_cache *cache, const char *key);
/* Adds a value that was made by other means, for example together with those of other keys. If
 * the key is present or being made, or bytes exceeds the limit, value is destroyed. */
void flight_cache_give(struct flight_cache *cache, const char *key, void *value, size_t bytes);
void *flight_cache_get(const struct flight_entry *entry);
/* Drops a reference. NULL is a no-op. */
void flight_cache_unref(struct flight_entry *entry);

/* Removes one key, also while its value is made: later requests make a new value. Threads that hold
 * or wait for the old value still get it. */
void flight_cache_forget(struct flight_cache *cache, const char *key);
/* Removes all keys that start with prefix. */
void flight_cache_forget_prefix(struct flight_cache *cache, const char *prefix);

/* Evicts the least recently used value that is not referenced, even if it is held, and whose key
 * starts with prefix. false: there is none. */
bool flight_cache_evict_oldest(struct flight_cache *cache, const char *prefix);

/* For metrics and tests: the bytes of all values, and how many values were made. */
size_t flight_cache_bytes(struct flight_cache *cache);
uint64_t flight_cache_made_count(struct flight_cache *cache);

#endif
