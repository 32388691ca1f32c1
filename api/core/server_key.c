#include "api/core/server_key.h"

#include "api/core/server.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

struct server_key {
    pthread_mutex_t mutex;
    bool is_known;
    uint8_t key[DIGEST_BYTES];
};

struct server_key *server_key_create(void)
{
    struct server_key *key = mem_new(struct server_key, 1);
    pthread_mutex_init(&key->mutex, NULL);
    return key;
}

void server_key_destroy(struct server_key *key)
{
    if (!key)
        return;
    pthread_mutex_destroy(&key->mutex);
    mem_free(key);
}

static bool find_key(struct server_key *kept, uint8_t ret_key[DIGEST_BYTES])
{
    pthread_mutex_lock(&kept->mutex);
    bool has_key = kept->is_known;
    if (has_key)
        memcpy(ret_key, kept->key, DIGEST_BYTES);
    pthread_mutex_unlock(&kept->mutex);
    return has_key;
}

static void keep_key(struct server_key *kept, const uint8_t key[DIGEST_BYTES])
{
    pthread_mutex_lock(&kept->mutex);
    memcpy(kept->key, key, DIGEST_BYTES);
    kept->is_known = true;
    pthread_mutex_unlock(&kept->mutex);
}

/* Runs without the mutex, since it may wait for the database. Several threads that find no key read
 * the same one. */
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

enum err_code server_key_load(struct server *server, struct err *err)
{
    uint8_t key[DIGEST_BYTES];
    enum err_code code = read_key(server, key, err);
    if (!code)
        keep_key(server->key, key);
    return code;
}

enum err_code server_key_sign(struct server *server, struct span message,
                              uint8_t ret_signature[DIGEST_BYTES], struct err *err)
{
    uint8_t key[DIGEST_BYTES];
    enum err_code code = ERR_NONE;
    if (!find_key(server->key, key)) {
        code = read_key(server, key, err);
        if (!code)
            keep_key(server->key, key);
    }
    if (code)
        return code;
    digest_hmac_sha256(span_of(key, DIGEST_BYTES), message, ret_signature);
    return ERR_NONE;
}
