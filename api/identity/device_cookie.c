#include "api/identity/device_cookie.h"

#include "api/core/server_key.h"
#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

#include <inttypes.h>

static enum err_code sign_cookie(struct request *request, int64_t begun_s, struct span id,
                                 const char *account, char ret_signature[DIGEST_HEX_BYTES],
                                 struct err *err)
{
    const char *message = arena_printf(request->arena, "device %" PRId64 " %.*s %s", begun_s,
                                       SPAN_PRINT(id), account);
    uint8_t signature[DIGEST_BYTES];
    enum err_code code = server_key_sign(request->server, span_text(message), signature, err);
    if (code)
        return code;
    digest_hex(span_of(signature, sizeof(signature)), ret_signature);
    return ERR_NONE;
}

enum err_code device_cookie_add(struct request *request, struct response *response,
                                const char *account, struct err *err)
{
    char id[DIGEST_SECRET_BYTES], signature[DIGEST_HEX_BYTES];
    int64_t now_s = clock_wall_ns() / CLOCK_NS_PER_S;
    digest_random_secret(id);
    enum err_code code = sign_cookie(request, now_s, span_text(id), account, signature, err);
    if (code)
        return code;
    response_add(request, response, "set-cookie",
                 arena_printf(request->arena,
                              DEVICE_COOKIE "=%" PRId64 ".%s.%s; Path=/; Secure; HttpOnly; "
                                            "SameSite=Strict; Max-Age=%d",
                              now_s, id, signature, DEVICE_COOKIE_LIFETIME_S));
    return ERR_NONE;
}

enum err_code device_cookie_find(struct request *request, const char *account, struct span *ret_id,
                                 struct err *err)
{
    struct span begun, rest, id, shown;
    int64_t begun_s;
    char signature[DIGEST_HEX_BYTES];
    *ret_id = (struct span){0};
    if (!span_split(request_cookie(request, DEVICE_COOKIE), '.', &begun, &rest) ||
        !span_split(rest, '.', &id, &shown) || !digest_is_secret(id) ||
        !span_parse_i64(begun, &begun_s))
        return ERR_NONE;
    int64_t now_s = clock_wall_ns() / CLOCK_NS_PER_S;
    if (begun_s > now_s || begun_s < now_s - DEVICE_COOKIE_LIFETIME_S)
        return ERR_NONE;
    enum err_code code = sign_cookie(request, begun_s, id, account, signature, err);
    if (!code && digest_equal(shown, span_text(signature)))
        *ret_id = id;
    return code;
}
