#include "api/identity/auth.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/request.h"
#include "api/http/route.h"
#include "api/identity/identity_parts.h"
#include "lib/base/arena.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/io/pg.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

enum { CACHE_WAYS = 4 };

struct cache_entry {
    uint8_t hash[DIGEST_BYTES];
    int64_t loaded_ns;       /* monotonic; 0: the entry is free */
    int64_t expires_wall_ns; /* of the token; 0: never */
    struct principal principal;
};

struct auth {
    pthread_mutex_t mutex;
    struct cache_entry *entries;
    uint32_t set_count;    /* of CACHE_WAYS entries */
    uint64_t forget_count; /* grows with each revocation: a look-up that began before one must not
                              be cached after it */
};

/* ---- names ---- */

static const char *const role_names[] = {
    [ROLE_NONE] = "none",
    [ROLE_VIEWER] = "viewer",
    [ROLE_MEMBER] = "member",
    [ROLE_OWNER] = "owner",
};

unsigned auth_role_scopes(enum role role)
{
    enum { MEMBER = SCOPE_INGEST | SCOPE_READ | SCOPE_SHARE | SCOPE_DEBUGINFO };
    switch (role) {
    case ROLE_NONE:
        return 0;
    case ROLE_VIEWER:
        return SCOPE_READ;
    case ROLE_MEMBER:
        return MEMBER;
    case ROLE_OWNER:
        return MEMBER | SCOPE_ADMIN;
    }
    return 0;
}

const char *auth_role_name(enum role role)
{
    return role_names[role];
}

enum role auth_role_parse(struct span name)
{
    for (enum role role = ROLE_VIEWER; role <= ROLE_OWNER; role++)
        if (span_equal_text(name, role_names[role]))
            return role;
    return ROLE_NONE;
}

void auth_csrf_token(struct span session_secret, char ret_token[DIGEST_HEX_BYTES])
{
    uint8_t hash[DIGEST_BYTES];
    digest_hmac_sha256(session_secret, SPAN_LITERAL("perfolio csrf token"), hash);
    digest_hex(span_of(hash, sizeof(hash)), ret_token);
}

/* ---- cache of tokens ---- */

struct auth *auth_create(uint32_t entry_count)
{
    struct auth *auth = mem_new(struct auth, 1);
    auth->set_count = entry_count / CACHE_WAYS ? entry_count / CACHE_WAYS : 1;
    auth->entries = mem_new(struct cache_entry, (size_t)auth->set_count * CACHE_WAYS);
    pthread_mutex_init(&auth->mutex, NULL);
    return auth;
}

void auth_destroy(struct auth *auth)
{
    if (!auth)
        return;
    pthread_mutex_destroy(&auth->mutex);
    mem_free(auth->entries);
    mem_free(auth);
}

static struct cache_entry *cache_set(struct auth *auth, const uint8_t hash[DIGEST_BYTES])
{
    uint32_t number;
    memcpy(&number, hash, sizeof(number));
    return &auth->entries[(size_t)(number % auth->set_count) * CACHE_WAYS];
}

static bool is_fresh(const struct cache_entry *entry, int64_t max_age_s)
{
    return entry->loaded_ns &&
           clock_monotonic_ns() - entry->loaded_ns < max_age_s * CLOCK_NS_PER_S &&
           (!entry->expires_wall_ns || clock_wall_ns() < entry->expires_wall_ns);
}

/* *ret_version is for cache_add, if the caller looks the token up because nothing was found. */
static bool cache_find(struct auth *auth, const uint8_t hash[DIGEST_BYTES], int64_t max_age_s,
                       struct principal *ret_principal, uint64_t *ret_version)
{
    bool is_found = false;
    pthread_mutex_lock(&auth->mutex);
    const struct cache_entry *set = cache_set(auth, hash);
    for (int i = 0; i < CACHE_WAYS && !is_found; i++) {
        if (memcmp(set[i].hash, hash, DIGEST_BYTES) != 0 || !is_fresh(&set[i], max_age_s))
            continue;
        *ret_principal = set[i].principal;
        is_found = true;
    }
    *ret_version = auth->forget_count;
    pthread_mutex_unlock(&auth->mutex);
    return is_found;
}

static void cache_add(struct auth *auth, const struct cache_entry *entry, uint64_t version)
{
    pthread_mutex_lock(&auth->mutex);
    struct cache_entry *set = cache_set(auth, entry->hash);
    struct cache_entry *oldest = &set[0];
    for (int i = 0; i < CACHE_WAYS; i++) {
        if (memcmp(set[i].hash, entry->hash, DIGEST_BYTES) == 0) {
            oldest = &set[i];
            break;
        }
        if (set[i].loaded_ns < oldest->loaded_ns)
            oldest = &set[i];
    }
    if (version == auth->forget_count)
        *oldest = *entry;
    pthread_mutex_unlock(&auth->mutex);
}

static void cache_remove(struct auth *auth, const uint8_t hash[DIGEST_BYTES])
{
    pthread_mutex_lock(&auth->mutex);
    struct cache_entry *set = cache_set(auth, hash);
    for (int i = 0; i < CACHE_WAYS; i++)
        if (memcmp(set[i].hash, hash, DIGEST_BYTES) == 0)
            set[i] = (struct cache_entry){0};
    pthread_mutex_unlock(&auth->mutex);
}

static void cache_forget(struct auth *auth, int64_t token_id, int64_t tenant_id)
{
    pthread_mutex_lock(&auth->mutex);
    auth->forget_count++;
    for (size_t i = 0; i < (size_t)auth->set_count * CACHE_WAYS; i++) {
        const struct principal *principal = &auth->entries[i].principal;
        if (principal->token_id == token_id || principal->tenant_id == tenant_id)
            auth->entries[i] = (struct cache_entry){0};
    }
    pthread_mutex_unlock(&auth->mutex);
}

void auth_forget_token(struct auth *auth, int64_t token_id)
{
    cache_forget(auth, token_id, -1);
}

void auth_forget_tenant(struct auth *auth, int64_t tenant_id)
{
    cache_forget(auth, -1, tenant_id);
}

/* ---- credentials ---- */

/* Losing the time of the last use in a crash is harmless, so these commits wait for no disk. */
#define WITHOUT_WAITING " AND set_config('synchronous_commit', 'off', true) IS NOT NULL"

static const char touch_token_sql[] =
    "UPDATE token SET last_used_at = now() WHERE id = $1 AND (last_used_at IS NULL OR"
    " last_used_at < now() - interval '1 minute')" WITHOUT_WAITING;
static const char touch_session_sql[] =
    "UPDATE session SET last_used_at = now() WHERE id = $1 AND"
    " last_used_at < now() - interval '1 minute'" WITHOUT_WAITING;

static enum err_code take_connection(const struct request *request,
                                     struct pg_connection **ret_connection, struct err *err)
{
    const enum err_code code = pg_take(request->server->database, ret_connection, err);
    if (code)
        return code;
    pg_limit_until(*ret_connection, request->deadline_ns);
    return ERR_NONE;
}

static enum err_code load_token(struct request *request, struct cache_entry *entry, struct err *err)
{
    struct pg_result *row;
    pg_auto connection = NULL;
    enum err_code code = take_connection(request, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT id, tenant_id, scopes, creator_role, expires_ms, needs_touch"
                           " FROM token_find($1)",
                           request->arena, &row, err,
                           PG_BYTES(span_of(entry->hash, sizeof(entry->hash))));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "The token is not valid: it is unknown, expired or revoked; make a new one "
                       "under Settings, or ask an owner of your team");
    struct principal *principal = &entry->principal;
    *principal = (struct principal){.kind = PRINCIPAL_TOKEN,
                                    .tenant_id = pg_get_i64(row, 0, 1),
                                    .token_id = pg_get_i64(row, 0, 0),
                                    .scopes = (unsigned)pg_get_i64(row, 0, 2)};
    if (!pg_is_null(row, 0, 3))
        principal->scopes &= auth_role_scopes(auth_role_parse(span_text(pg_get_text(row, 0, 3))));
    entry->expires_wall_ns = pg_get_i64(row, 0, 4) * CLOCK_NS_PER_MS;
    entry->loaded_ns = clock_monotonic_ns();
    if (!pg_get_bool(row, 0, 5))
        return ERR_NONE;
    return pg_query_values(connection, principal->tenant_id, touch_token_sql, request->arena, NULL,
                           err, PG_I64(principal->token_id));
}

static enum err_code identify_token(struct request *request, struct span token, struct err *err)
{
    struct cache_entry entry = {0};
    uint64_t version;
    struct span secret =
        token.size > 3 ? span_of(token.data + 3, token.size - 3) : (struct span){0};
    if (!span_starts_with(token, "pf_") || !digest_is_secret(secret))
        return err_set(err, ERR_UNAUTHENTICATED,
                       "The token is malformed: it should be pf_ and %d letters and digits",
                       DIGEST_SECRET_LENGTH);
    digest_sha256(token, entry.hash);
    if (cache_find(request->server->identity->auth, entry.hash, AUTH_CACHE_S, &request->principal,
                   &version))
        return ERR_NONE;
    enum err_code code = load_token(request, &entry, err);
    if (code == ERR_UNAUTHENTICATED)
        cache_remove(request->server->identity->auth, entry.hash);
    if (code)
        return code;
    cache_add(request->server->identity->auth, &entry, version);
    request->principal = entry.principal;
    return ERR_NONE;
}

/* The token that is the password in the credentials of HTTP Basic (RFC 7617), whatever the user
 * name is. Empty if they are malformed. */
static struct span basic_token(const struct request *request, struct span credentials)
{
    struct span user, token = {0};
    size_t size;
    uint8_t *text = arena_alloc_raw(request->arena, base64_max_bytes(credentials.size), 1);
    if (base64_decode(credentials, text, &size))
        span_split(span_of(text, size), ':', &user, &token);
    return token;
}

/* If text begins with the scheme, the rest of it. */
static bool take_scheme(struct span text, const char *scheme, struct span *ret_credentials)
{
    const size_t size = strlen(scheme);
    if (text.size < size || strncasecmp((const char *)text.data, scheme, size) != 0)
        return false;
    *ret_credentials = span_trim(span_of(text.data + size, text.size - size));
    return true;
}

static enum err_code identify_authorization(struct request *request, struct span authorization,
                                            struct err *err)
{
    struct span credentials;
    const bool is_agent = request->route && request->route->flags & ROUTE_AGENT;
    if (take_scheme(authorization, "bearer ", &credentials))
        return identify_token(request, credentials, err);
    if (is_agent && take_scheme(authorization, "basic ", &credentials))
        return identify_token(request, basic_token(request, credentials), err);
    return err_set(err, ERR_UNAUTHENTICATED,
                   is_agent ? "Credentials must be sent as \"Authorization: Bearer pf_…\", or as "
                              "HTTP Basic with the token as the password"
                            : "Credentials must be sent as \"Authorization: Bearer pf_…\"");
}

static enum err_code identify_session(struct request *request, struct span secret, struct err *err)
{
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *row;
    pg_auto connection = NULL;
    digest_sha256(secret, hash);
    enum err_code code = take_connection(request, &connection, err);
    if (!code)
        code = pg_query_values(connection, PG_NO_TENANT,
                               "SELECT id, tenant_id, user_id, role, is_operator, needs_touch"
                               " FROM session_find($1)",
                               request->arena, &row, err, PG_BYTES(span_of(hash, sizeof(hash))));
    if (code || pg_row_count(row) == 0)
        return code;
    enum role role = auth_role_parse(span_text(pg_get_text(row, 0, 3)));
    request->principal = (struct principal){
        .kind = PRINCIPAL_USER,
        .tenant_id = pg_get_i64(row, 0, 1),
        .user_id = pg_get_i64(row, 0, 2),
        .role = role,
        .scopes = auth_role_scopes(role) | (pg_get_bool(row, 0, 4) ? (unsigned)SCOPE_OPERATOR : 0),
    };
    if (!pg_get_bool(row, 0, 5))
        return ERR_NONE;
    return pg_query_values(connection, request->principal.tenant_id, touch_session_sql,
                           request->arena, NULL, err, PG_I64(pg_get_i64(row, 0, 0)));
}

bool auth_has_credentials(const struct request *request)
{
    return request_field(request, "authorization").size > 0 ||
           digest_is_secret(request_cookie(request, AUTH_COOKIE));
}

enum err_code auth_identify(struct request *request, struct err *err)
{
    request->principal =
        (struct principal){.kind = PRINCIPAL_ANONYMOUS, .tenant_id = TENANT_ANONYMOUS};
    struct span authorization = request_field(request, "authorization");
    struct span secret = request_cookie(request, AUTH_COOKIE);
    if (authorization.size)
        return identify_authorization(request, authorization, err);
    return digest_is_secret(secret) ? identify_session(request, secret, err) : ERR_NONE;
}

bool auth_recall(struct request *request)
{
    uint8_t hash[DIGEST_BYTES];
    uint64_t version;
    struct span token;
    if (!take_scheme(request_field(request, "authorization"), "bearer ", &token))
        return false;
    digest_sha256(token, hash);
    return cache_find(request->server->identity->auth, hash, AUTH_RECALL_S, &request->principal,
                      &version);
}

/* ---- requirements of the route ---- */

static bool is_unsafe(enum http_method method)
{
    return method != HTTP_GET && method != HTTP_HEAD && method != HTTP_OPTIONS;
}

/* Whether Origin names this server, by its public URL or by the host that the request names. */
static bool is_own_origin(const struct request *request, struct span origin)
{
    struct span url = span_text(request->server->settings->public_url);
    struct span host = request_field(request, "host");
    if (span_equal(origin, url))
        return true;
    if (url.size > origin.size && memcmp(url.data, origin.data, origin.size) == 0 &&
        url.data[origin.size] == '/')
        return true;
    static const char scheme[] = "https://";
    size_t size = sizeof(scheme) - 1;
    return host.size && span_starts_with(origin, scheme) &&
           span_equal(span_of(origin.data + size, origin.size - size), host);
}

static enum err_code check_same_site(const struct request *request, struct err *err)
{
    struct span site = request_field(request, "sec-fetch-site");
    struct span origin = request_field(request, "origin");
    bool is_same =
        !site.size || span_equal_text(site, "same-origin") || span_equal_text(site, "none");
    if (is_same && (!origin.size || is_own_origin(request, origin)))
        return ERR_NONE;
    return err_set(
        err, ERR_FORBIDDEN,
        "The request comes from a page of another site; use this server's own pages, or a token");
}

static enum err_code check_csrf_token(const struct request *request, struct err *err)
{
    char expected[DIGEST_HEX_BYTES];
    auth_csrf_token(request_cookie(request, AUTH_COOKIE), expected);
    if (digest_equal(request_field(request, "x-csrf-token"), span_text(expected)))
        return ERR_NONE;
    return err_set(err, ERR_FORBIDDEN,
                   "The header X-CSRF-Token is missing or not this session's; reload the page");
}

static enum err_code check_forgery(const struct request *request, struct err *err)
{
    if (!is_unsafe(request->method) || request->principal.kind == PRINCIPAL_TOKEN)
        return ERR_NONE;
    bool is_exempt = request->route->flags & ROUTE_NO_CSRF;
    bool is_user = request->principal.kind == PRINCIPAL_USER;
    if (is_user || is_exempt) {
        enum err_code code = check_same_site(request, err);
        if (code)
            return code;
    }
    if (is_exempt)
        return ERR_NONE;
    if (is_user)
        return check_csrf_token(request, err);
    /* A page that assumes that its user is signed in must not share anonymously without a notice.
     */
    if (request_cookie(request, AUTH_COOKIE).size)
        return err_set(err, ERR_UNAUTHENTICATED, "Your session has ended; sign in again");
    return ERR_NONE;
}

static enum err_code refuse_anonymous(struct err *err)
{
    return err_set(err, ERR_UNAUTHENTICATED,
                   "Sign in, or send a token as \"Authorization: Bearer pf_…\"");
}

enum err_code auth_check_scopes(const struct request *request, unsigned scopes, struct err *err)
{
    bool is_token = request->principal.kind == PRINCIPAL_TOKEN;
    unsigned missing = scopes & ~request->principal.scopes;
    if (missing && request->principal.kind == PRINCIPAL_ANONYMOUS)
        return refuse_anonymous(err);
    const char *name = principal_first_scope(missing);
    return name ? err_set(err, ERR_FORBIDDEN, "%s lacks the scope \"%s\" that this needs: %s",
                          is_token ? "The token" : "Your role", name,
                          is_token ? "send one that has it" : "ask an owner of your team")
                : ERR_NONE;
}

/* Clients of Pyroscope name their tenant beside their credentials. The token identifies it, so
 * another name can only be a mistake. */
static enum err_code check_named_tenant(struct request *request, struct err *err)
{
    const struct span named = span_trim(request_field(request, "x-scope-orgid"));
    const int64_t tenant_id = request->principal.tenant_id;
    uint64_t number;
    struct pg_result *row;
    if (request->principal.kind != PRINCIPAL_TOKEN || named.size == 0 ||
        (span_parse_u64(named, &number) && number == (uint64_t)tenant_id))
        return ERR_NONE;
    pg_auto connection = NULL;
    enum err_code code = take_connection(request, &connection, err);
    if (!code)
        code = pg_query_values(
            connection, tenant_id, "SELECT lower(name) = lower($2), name FROM tenant WHERE id = $1",
            request->arena, &row, err, PG_I64(tenant_id),
            PG_TEXT(span_is_utf8(named) ? arena_strndup(request->arena, named.data, named.size)
                                        : ""));
    if (code || (pg_row_count(row) == 1 && pg_get_bool(row, 0, 0)))
        return code;
    return err_set(err, ERR_FORBIDDEN,
                   "X-Scope-OrgID names another team than the token, which is of \"%s\" (%lld): "
                   "leave the field out, or send a token of the team that it names",
                   pg_row_count(row) == 1 ? pg_get_text(row, 0, 1) : "", (long long)tenant_id);
}

enum err_code auth_check_access(struct request *request, struct err *err)
{
    const struct route *route = request->route;
    bool is_anonymous = request->principal.kind == PRINCIPAL_ANONYMOUS;
    bool may_anonymous =
        route->access == ACCESS_PUBLIC ||
        (route->access == ACCESS_ANONYMOUS && request->server->settings->anonymous_sharing);
    enum err_code code = check_forgery(request, err);
    if (code)
        return code;
    if (is_anonymous)
        return may_anonymous ? ERR_NONE : refuse_anonymous(err);
    if (route->access == ACCESS_PUBLIC || route->access == ACCESS_SIGNED_IN)
        return ERR_NONE;
    code = auth_check_scopes(request, route->scopes, err);
    return code ? code : check_named_tenant(request, err);
}
