#include "api/share/share_access.h"

#include "api/core/server.h"
#include "api/core/server_key.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/identity_parts.h"
#include "api/identity/password_attempt.h"
#include "api/share/share.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Lifetime of the cookie that opens a share in a browser after the right password. */
static const int64_t cookie_lifetime_s = 12 * 3600;

enum { COOKIE_NAME_BYTES = 64 };

static bool is_of_tenant(const struct request *request, const struct share *share)
{
    return request->principal.kind != PRINCIPAL_ANONYMOUS &&
           request->principal.tenant_id == share->tenant_id;
}

/* A token without the scope read may not see the shares of others in its team. */
static bool may_read_as_tenant(const struct request *request, const struct share *share)
{
    const struct principal *who = &request->principal;
    bool has_made = who->kind == PRINCIPAL_TOKEN && who->token_id == share->token_id;
    return is_of_tenant(request, share) &&
           (principal_has(who, SCOPE_READ) || (principal_has(who, SCOPE_SHARE) && has_made));
}

bool share_access_is_editor(const struct request *request, const struct share *share)
{
    return may_read_as_tenant(request, share) && principal_has(&request->principal, SCOPE_SHARE);
}

static const char *cookie_name(const struct share *share, char name[COOKIE_NAME_BYTES])
{
    snprintf(name, COOKIE_NAME_BYTES, "__Host-perfolio_share_%s", share->id);
    return name;
}

/* Bound to the stored hash, so that a new password revokes the cookies of the old one. */
static enum err_code sign_cookie(struct request *request, const struct share *share,
                                 int64_t expires_s, char ret_signature[DIGEST_HEX_BYTES],
                                 struct err *err)
{
    const char *message = arena_printf(request->arena, "open %s %" PRId64 " %s", share->id,
                                       expires_s, share->password_hash);
    uint8_t signature[DIGEST_BYTES];
    enum err_code code = server_key_sign(request->server, span_text(message), signature, err);
    if (code)
        return code;
    digest_hex(span_of(signature, sizeof(signature)), ret_signature);
    return ERR_NONE;
}

static enum err_code check_cookie(struct request *request, const struct share *share,
                                  bool *ret_is_open, struct err *err)
{
    char name[COOKIE_NAME_BYTES];
    struct span expires, shown;
    int64_t expires_s;
    *ret_is_open = false;
    if (!span_split(request_cookie(request, cookie_name(share, name)), '.', &expires, &shown) ||
        !span_parse_i64(expires, &expires_s) || expires_s < clock_wall_ns() / CLOCK_NS_PER_S)
        return ERR_NONE;
    char signature[DIGEST_HEX_BYTES];
    enum err_code code = sign_cookie(request, share, expires_s, signature, err);
    if (code)
        return code;
    *ret_is_open = digest_equal(shown, span_text(signature));
    return ERR_NONE;
}

static enum err_code check_password(struct request *request, const struct share *share,
                                    struct span password, struct err *err)
{
    const struct password_attempt attempt = {
        .subject = PASSWORD_OF_SHARE,
        .key = span_text(share->id),
        .address = span_text(request->address),
    };
    bool matches = false;
    enum err_code code = password_attempt_verify(request->server->identity->passwords,
                                                 request->server->limits->rate_limiter, &attempt,
                                                 password, share->password_hash, &matches, err);
    if (code || matches)
        return code;
    audit_record_refused(request, share->tenant_id, "share.refuse", share->id);
    return err_set(err, ERR_UNAUTHENTICATED,
                   "the password is wrong: type it again, or ask the person who sent the link");
}

static bool has_matched(const struct request *request, const struct share *share)
{
    for (size_t i = 0; i < REQUEST_MATCHED_HASHES; i++)
        if (request->matched_hashes[i] &&
            strcmp(request->matched_hashes[i], share->password_hash) == 0)
            return true;
    return false;
}

static void keep_match(struct request *request, const struct share *share)
{
    for (size_t i = REQUEST_MATCHED_HASHES - 1; i > 0; i--)
        request->matched_hashes[i] = request->matched_hashes[i - 1];
    request->matched_hashes[0] = share->password_hash;
}

static enum err_code check_shown_password(struct request *request, const struct share *share,
                                          struct span password, struct err *err)
{
    if (has_matched(request, share))
        return ERR_NONE;
    enum err_code code = check_password(request, share, password, err);
    if (code)
        return code;
    keep_match(request, share);
    return ERR_NONE;
}

static enum err_code check_protected(struct request *request, const struct share *share,
                                     struct err *err)
{
    struct span password = request_field(request, "x-perfolio-password");
    if (password.size)
        return check_shown_password(request, share, password, err);
    bool is_open;
    enum err_code code = check_cookie(request, share, &is_open, err);
    if (code || is_open)
        return code;
    return err_set(err, ERR_UNAUTHENTICATED,
                   "this share needs a password: send it in the header X-Perfolio-Password");
}

enum err_code share_access_check_read(struct request *request, const struct share *share,
                                      struct err *err)
{
    if (share->visibility == SHARE_PUBLIC || share->visibility == SHARE_UNLISTED ||
        may_read_as_tenant(request, share))
        return ERR_NONE;
    if (share->visibility == SHARE_PASSWORD)
        return check_protected(request, share, err);
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return err_set(err, ERR_UNAUTHENTICATED, "this share is for a team: sign in to see it");
    return err_set(err, ERR_NOT_FOUND, "there is no share %s" SHARE_NOT_FOUND_ADVICE, share->id);
}

enum err_code share_access_find(struct request *request, struct span id, struct share *ret_share,
                                struct err *err)
{
    enum err_code code = share_find(request->server, id, request->arena, ret_share, err);
    return code ? code : share_access_check_read(request, ret_share, err);
}

static bool shows_delete_token(const struct request *request, const struct share *share)
{
    uint8_t hash[DIGEST_BYTES];
    struct span token = request_field(request, "x-perfolio-delete-token");
    if (!digest_is_secret(token))
        return false;
    digest_sha256(token, hash);
    return digest_equal(span_of(hash, sizeof(hash)), share->delete_token_hash);
}

enum err_code share_access_check_edit(struct request *request, const struct share *share,
                                      struct err *err)
{
    /* A client that presents a delete token is checked by it alone: a session does not make up for
     * a wrong one. */
    if (request_field(request, "x-perfolio-delete-token").size)
        return shows_delete_token(request, share)
                   ? ERR_NONE
                   : err_set(err, ERR_FORBIDDEN,
                             "the delete token is not that of this share: use the one that was "
                             "shown when the share was created");
    if (share_access_is_editor(request, share))
        return ERR_NONE;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "changing a share needs its team's token, a session or its delete token in "
                       "X-Perfolio-Delete-Token");
    if (is_of_tenant(request, share) && principal_has(&request->principal, SCOPE_SHARE))
        return err_set(err, ERR_FORBIDDEN,
                       "a token with only the scope share may change only what it created: use one "
                       "that also has the scope read");
    if (is_of_tenant(request, share))
        return err_set(err, ERR_FORBIDDEN,
                       "changing a share needs the scope share: use a token that has it");
    return err_set(err, ERR_NOT_FOUND, "there is no share %s" SHARE_NOT_FOUND_ADVICE, share->id);
}

enum err_code share_access_unlock(struct request *request, struct response *response,
                                  const struct share *share, struct span password, struct err *err)
{
    enum err_code code = check_password(request, share, password, err);
    if (code)
        return code;
    char name[COOKIE_NAME_BYTES], signature[DIGEST_HEX_BYTES];
    int64_t expires_s = clock_wall_ns() / CLOCK_NS_PER_S + cookie_lifetime_s;
    code = sign_cookie(request, share, expires_s, signature, err);
    if (code)
        return code;
    response_add(request, response, "set-cookie",
                 arena_printf(request->arena,
                              "%s=%" PRId64 ".%s; Path=/; Max-Age=%" PRId64
                              "; Secure; HttpOnly; SameSite=Lax",
                              cookie_name(share, name), expires_s, signature, cookie_lifetime_s));
    return ERR_NONE;
}

bool share_access_is_open(const struct share *share)
{
    return share->visibility == SHARE_PUBLIC || share->visibility == SHARE_UNLISTED;
}

const char *share_access_cache_control(const struct share *share)
{
    return share_access_is_open(share) ? "public, no-cache" : "private, no-cache";
}

void share_access_add_robots(struct request *request, struct response *response,
                             const struct share *share)
{
    if (share->visibility != SHARE_PUBLIC)
        response_add(request, response, "x-robots-tag", "noindex");
}
