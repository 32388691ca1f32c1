#include "api/share/share_runtime.h"

#include "api/report/memory_gate.h"
#include "api/server.h"
#include "api/settings.h"
#include "api/share/profile_cache.h"
#include "api/share/view_counter.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <string.h>

/* More than that is no profile to look at: half a gigabyte of stacks, or more. */
#define MEMORY_BYTES_MOST (UINT64_C(1) << 30)

static void destroy_answer(void *value)
{
    struct share_answer *answer = value;
    buf_fini(&answer->body);
    mem_free(answer);
}

struct share_runtime *share_runtime_create(uint64_t max_heavy_bytes)
{
    struct share_runtime *memory = mem_new(struct share_runtime, 1);
    memory->gate = memory_gate_create(max_heavy_bytes);
    memory->views = view_counter_create();
    memory->answers = flight_cache_create(SHARE_RUNTIME_ANSWER_BYTES, destroy_answer);
    pthread_mutex_init(&memory->key_mutex, NULL);
    return memory;
}

void share_runtime_destroy(struct share_runtime *memory)
{
    if (!memory)
        return;
    flight_cache_destroy(memory->answers);
    view_counter_destroy(memory->views);
    memory_gate_destroy(memory->gate);
    pthread_mutex_destroy(&memory->key_mutex);
    mem_free(memory);
}

static bool find_key(struct share_runtime *memory, uint8_t ret_key[DIGEST_BYTES])
{
    pthread_mutex_lock(&memory->key_mutex);
    bool has_key = memory->has_cookie_key;
    if (has_key)
        memcpy(ret_key, memory->cookie_key, DIGEST_BYTES);
    pthread_mutex_unlock(&memory->key_mutex);
    return has_key;
}

static void keep_key(struct share_runtime *memory, const uint8_t key[DIGEST_BYTES])
{
    pthread_mutex_lock(&memory->key_mutex);
    memcpy(memory->cookie_key, key, DIGEST_BYTES);
    memory->has_cookie_key = true;
    pthread_mutex_unlock(&memory->key_mutex);
}

/* Without the mutex, since it may wait for the database; several who find none read the same. */
static enum err_code read_key(struct server *server, uint8_t key[DIGEST_BYTES], struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(server->database, &connection, err);
    if (!code)
        code = pg_query_values(connection, PG_NO_TENANT, "SELECT server_secret_find($1::text)",
                               arena, &result, err, PG_TEXT("share cookie"));
    if (code)
        return err_add(err, "reading the key for cookies");
    struct span secret = pg_get_bytes(result, 0, 0);
    if (secret.size != DIGEST_BYTES)
        return err_set(err, ERR_CORRUPT, "the key for cookies has %zu bytes", secret.size);
    memcpy(key, secret.data, DIGEST_BYTES);
    return ERR_NONE;
}

enum err_code share_runtime_sign(struct server *server, struct span message,
                                 uint8_t ret_signature[DIGEST_BYTES], struct err *err)
{
    uint8_t key[DIGEST_BYTES];
    enum err_code code = ERR_NONE;
    if (!find_key(server->shares, key)) {
        code = read_key(server, key, err);
        if (!code)
            keep_key(server->shares, key);
    }
    if (!code)
        digest_hmac_sha256(span_of(key, DIGEST_BYTES), message, ret_signature);
    return code;
}

void share_runtime_forget(struct server *server, const char *share_id)
{
    profile_cache_drop(server->profiles, share_id);
    flight_cache_forget_prefix(server->shares->answers, share_id);
}

struct profile_limits share_runtime_limits(const struct settings *settings, uint64_t heavy_bytes)
{
    uint64_t samples = settings->max_profile_samples;
    return (struct profile_limits){
        .raw_bytes = (size_t)settings->max_profile_bytes,
        .memory_bytes = heavy_bytes < MEMORY_BYTES_MOST ? heavy_bytes : MEMORY_BYTES_MOST,
        .expansion_ratio = (uint32_t)settings->max_share_expansion_ratio,
        .expansion_setting = "max-share-expansion-ratio",
        .sample_count = samples > UINT32_MAX ? UINT32_MAX : (uint32_t)samples,
    };
}
