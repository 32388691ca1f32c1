/*
 * password_cache: passwords that matched in the last minutes, so that sending a right password
 * again computes no hash.
 *
 * An API client sends the password of a share with every request. Without the cache a few clients
 * that know one password would keep all slots for hashing (api/identity/password.h) occupied.
 *
 * An entry is a HMAC of the stored text and the password, with a key that is made at the start and
 * never leaves the process. The stored text contains its salt, so a changed password needs another
 * entry. An entry expires PASSWORD_CACHE_S after the hash was computed. Threads: any.
 */
#ifndef API_IDENTITY_PASSWORD_CACHE_H
#define API_IDENTITY_PASSWORD_CACHE_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { PASSWORD_CACHE_S = 600 };

struct password_cache;

/* now_ns: clock_monotonic_ns, or the clock of a test. */
struct password_cache *password_cache_create(int64_t (*now_ns)(void));
void password_cache_destroy(struct password_cache *cache); /* NULL is a no-op */

/* Whether password matched the stored text within PASSWORD_CACHE_S. */
bool password_cache_has(struct password_cache *cache, const char *stored, struct span password);
/* Records that password matches; replaces the entry that expires first if all are in use. */
void password_cache_add(struct password_cache *cache, const char *stored, struct span password);

#endif
