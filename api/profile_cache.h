/*
 * profile_cache: decoded profiles by share id, so that viewing decodes once and not per view.
 *
 * Single flight: of many threads that ask for the same absent profile one decodes, the others wait
 * for it. At most PROFILE_CACHE_HEAVY decodes of large inputs run at the same time. The least
 * recently used are dropped when all together pass max_bytes; what is in use stays valid until its
 * last user has given it back. Threads: any.
 */
#ifndef API_PROFILE_CACHE_H
#define API_PROFILE_CACHE_H

#include "lib/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_cache;
struct profile_cache_entry;

enum { PROFILE_CACHE_HEAVY = 2, PROFILE_CACHE_WAIT_S = 60 };

/* 0 means 256 MiB. A profile larger than that is decoded, used and dropped. */
struct profile_cache *profile_cache_create(size_t max_bytes);
/* NULL is a no-op. Nothing may be in use any more. */
void profile_cache_destroy(struct profile_cache *cache);

/*
 * The profile of key, decoded by decode(context) if it is absent; input_bytes tells how heavy that
 * is. The caller gives *ret_entry back with profile_cache_unref; profile_cache_get borrows from it.
 * Failures go to all who waited and are not kept. Handles: what decode returns, ERR_BUSY (waited
 * longer than PROFILE_CACHE_WAIT_S).
 */
enum err_code profile_cache_ref(struct profile_cache *cache, const char *key, size_t input_bytes,
                                enum err_code (*decode)(void *context, struct profile **ret_profile,
                                                        struct err *err),
                                void *context, struct profile_cache_entry **ret_entry,
                                struct err *err) MUST_USE;
const struct profile *profile_cache_get(const struct profile_cache_entry *entry);
/* NULL is a no-op. */
void profile_cache_unref(struct profile_cache_entry *entry);

/* Forgets key: nobody who asks later gets it. */
void profile_cache_drop(struct profile_cache *cache, const char *key);

/* For metrics and tests. */
size_t profile_cache_bytes(struct profile_cache *cache);
uint64_t profile_cache_decode_count(struct profile_cache *cache);

static inline void profile_cache_cleanup(struct profile_cache_entry **entry)
{
    profile_cache_unref(*entry);
}
#define profile_cache_auto                                                                         \
    __attribute__((cleanup(profile_cache_cleanup))) struct profile_cache_entry *

#endif
