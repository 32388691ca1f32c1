#include "api/identity/idempotency.h"

#include "api/core/server.h"
#include "api/core/server_key.h"
#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

static enum err_code check_key(struct span key, struct err *err)
{
    bool is_right = key.size <= IDEMPOTENCY_KEY_BYTES;
    for (size_t i = 0; is_right && i < key.size; i++)
        is_right = key.data[i] > ' ' && key.data[i] < 0x7f;
    if (is_right)
        return ERR_NONE;
    return err_set(err, ERR_INVALID,
                   "Idempotency-Key must have 1 to %d visible ASCII characters and no blank",
                   IDEMPOTENCY_KEY_BYTES);
}

static void hash_key(const struct request *request, struct span key, uint8_t ret_hash[DIGEST_BYTES])
{
    const struct principal *principal = &request->principal;
    const char *owner = principal->kind == PRINCIPAL_ANONYMOUS
                            ? request->address
                            : arena_printf(request->arena, "user %" PRId64 " token %" PRId64,
                                           principal->user_id, principal->token_id);
    digest_sha256(span_text(arena_printf(request->arena, "%s %.*s", owner, SPAN_PRINT(key))),
                  ret_hash);
}

/* Leaves out the password of a share: its plain hash must not be stored. */
static void hash_request(const struct request *request, uint8_t ret_hash[DIGEST_BYTES])
{
    struct digest_stream *stream = digest_stream_create();
    digest_stream_append(stream, request->path);
    digest_stream_append(stream, SPAN_LITERAL("?"));
    digest_stream_append(stream, request->query);
    digest_stream_append(stream, SPAN_LITERAL("\n"));
    digest_stream_append(stream, request->body);
    digest_stream_finish(stream, ret_hash);
    digest_stream_destroy(stream);
}

static enum err_code derive_secret(struct request *request, struct idempotency *idempotency,
                                   struct err *err)
{
    uint8_t signature[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    digest_hex(span_of(idempotency->key_hash, DIGEST_BYTES), hex);
    enum err_code code = server_key_sign(
        request->server,
        span_text(arena_printf(request->arena, "idempotent %s %s", idempotency->id, hex)),
        signature, err);
    if (code)
        return code;
    digest_base62(span_of(signature, sizeof(signature)), DIGEST_SECRET_LENGTH, idempotency->secret);
    return ERR_NONE;
}

static enum err_code look_up(struct request *request, struct idempotency *idempotency,
                             struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, request->principal.tenant_id,
                           "SELECT made_id, request_hash FROM idempotency"
                           " WHERE tenant_id = $1::bigint AND key_hash = $2::bytea",
                           request->arena, &result, err, PG_I64(request->principal.tenant_id),
                           PG_BYTES(span_of(idempotency->key_hash, DIGEST_BYTES)));
    if (code)
        return code;
    idempotency->is_known = pg_row_count(result) > 0;
    digest_random_id(idempotency->id);
    if (!idempotency->is_known)
        return ERR_NONE;
    if (!digest_equal(pg_get_bytes(result, 0, 1), span_of(idempotency->request_hash, DIGEST_BYTES)))
        return err_set(err, ERR_CONFLICT,
                       "this Idempotency-Key was sent with another request: use a new one");
    snprintf(idempotency->id, sizeof(idempotency->id), "%s", pg_get_text(result, 0, 0));
    return ERR_NONE;
}

enum err_code idempotency_find(struct request *request, struct idempotency *ret_idempotency,
                               struct err *err)
{
    struct idempotency idempotency = {0};
    struct span key = request_field(request, "idempotency-key");
    *ret_idempotency = idempotency;
    if (key.size == 0)
        return ERR_NONE;
    enum err_code code = check_key(key, err);
    if (code)
        return code;
    idempotency.is_wanted = true;
    hash_key(request, key, idempotency.key_hash);
    hash_request(request, idempotency.request_hash);
    code = look_up(request, &idempotency, err);
    if (code)
        return code;
    code = derive_secret(request, &idempotency, err);
    if (code)
        return code;
    *ret_idempotency = idempotency;
    return ERR_NONE;
}

enum err_code idempotency_find_winner(struct request *request, enum err_code code,
                                      struct idempotency *idempotency, struct err *err)
{
    if (code != ERR_CONFLICT || !idempotency->is_wanted)
        return code;
    struct err find_err;
    struct idempotency found;
    enum err_code find_code = idempotency_find(request, &found, &find_err);
    if (find_code)
        *err = find_err;
    else if (found.is_known)
        *idempotency = found;
    return find_code ? find_code : found.is_known ? ERR_NONE : code;
}

enum err_code idempotency_record(struct pg_connection *connection, struct request *request,
                                 const struct idempotency *idempotency, struct err *err)
{
    if (!idempotency->is_wanted)
        return ERR_NONE;
    return pg_queue_values(connection, request->principal.tenant_id,
                           "INSERT INTO idempotency (tenant_id, key_hash, request_hash, made_id)"
                           " VALUES ($1::bigint, $2::bytea, $3::bytea, $4::text)",
                           request->arena, err, PG_I64(request->principal.tenant_id),
                           PG_BYTES(span_of(idempotency->key_hash, DIGEST_BYTES)),
                           PG_BYTES(span_of(idempotency->request_hash, DIGEST_BYTES)),
                           PG_TEXT(idempotency->id));
}
