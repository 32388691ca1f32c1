/*
 * The entries form SET_COUNT sets of WAYS entries. The first bytes of an HMAC select its set, so a
 * look-up compares WAYS entries, and clients with many passwords replace each other's entries but
 * never use more memory.
 */
#include "api/identity/password_cache.h"

#include "api/identity/password.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <string.h>

enum { SET_COUNT = 512, WAYS = 4 };

struct match {
    uint8_t hash[DIGEST_BYTES];
    int64_t expires_ns; /* 0: free */
};

struct password_cache {
    int64_t (*now_ns)(void);
    uint8_t key[DIGEST_BYTES];
    pthread_mutex_t mutex; /* guards the sets */
    struct match sets[SET_COUNT][WAYS];
};

struct password_cache *password_cache_create(int64_t (*now_ns)(void))
{
    struct password_cache *cache = mem_new(struct password_cache, 1);
    cache->now_ns = now_ns;
    digest_random(cache->key, sizeof(cache->key));
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void password_cache_destroy(struct password_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->mutex);
    mem_free(cache);
}

/* The stored text ends at its NUL, so no other pair has the same bytes. Returns the set; NULL:
 * texts of these sizes do not match. */
static struct match *compute_hash(struct password_cache *cache, const char *stored,
                                  struct span password, uint8_t ret_hash[DIGEST_BYTES])
{
    uint8_t text[DIGEST_PASSWORD_BYTES + PASSWORD_MAX_BYTES];
    const size_t stored_bytes = strlen(stored) + 1;
    uint16_t number;
    if (stored_bytes > DIGEST_PASSWORD_BYTES || password.size > PASSWORD_MAX_BYTES)
        return NULL;
    memcpy(text, stored, stored_bytes);
    if (password.size)
        memcpy(text + stored_bytes, password.data, password.size);
    digest_hmac_sha256(span_of(cache->key, sizeof(cache->key)),
                       span_of(text, stored_bytes + password.size), ret_hash);
    memcpy(&number, ret_hash, sizeof(number));
    return cache->sets[number % SET_COUNT];
}

bool password_cache_has(struct password_cache *cache, const char *stored, struct span password)
{
    uint8_t hash[DIGEST_BYTES];
    const struct match *set = compute_hash(cache, stored, password, hash);
    const int64_t now_ns = cache->now_ns();
    bool is_found = false;
    if (!set)
        return false;
    pthread_mutex_lock(&cache->mutex);
    for (int i = 0; i < WAYS; i++)
        is_found |= set[i].expires_ns > now_ns && memcmp(set[i].hash, hash, sizeof(hash)) == 0;
    pthread_mutex_unlock(&cache->mutex);
    return is_found;
}

void password_cache_add(struct password_cache *cache, const char *stored, struct span password)
{
    uint8_t hash[DIGEST_BYTES];
    struct match *set = compute_hash(cache, stored, password, hash);
    const int64_t expires_ns = cache->now_ns() + PASSWORD_CACHE_S * CLOCK_NS_PER_S;
    if (!set)
        return;
    pthread_mutex_lock(&cache->mutex);
    struct match *slot = &set[0];
    for (int i = 0; i < WAYS; i++) {
        if (memcmp(set[i].hash, hash, sizeof(hash)) == 0) {
            slot = &set[i];
            break;
        }
        if (set[i].expires_ns < slot->expires_ns)
            slot = &set[i];
    }
    memcpy(slot->hash, hash, sizeof(hash));
    slot->expires_ns = expires_ns;
    pthread_mutex_unlock(&cache->mutex);
}
