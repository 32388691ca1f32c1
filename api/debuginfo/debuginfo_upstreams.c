#include "api/debuginfo/debuginfo_upstreams.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/core/version.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <ctype.h>
#include <string.h>

enum {
    BODY_MAX_BYTES = 192 << 10,
    URL_MAX_BYTES = 2048,
    AUTH_MAX_BYTES = 8192,
    MODE_MAX_BYTES = 16,
    AUDIT_BYTES = 500,
    ALLOWED_MAX = 64
};

/* ---- the operator's settings ---- */

/* The words of a text, separated by commas or spaces, at most max of them. */
static size_t split_words(struct arena *arena, const char *text, const char **ret_words, size_t max)
{
    size_t count = 0;
    for (const char *at = text; *at && count < max;) {
        size_t size = strcspn(at, ", \t\n");
        if (size)
            ret_words[count++] = arena_strndup(arena, at, size);
        at += size + (at[size] != '\0');
    }
    return count;
}

static enum err_code check_urls(const struct settings *settings,
                                const struct debuginfod_client *client, struct err *err)
{
    arena_auto arena = arena_create();
    const char *urls[DEBUGINFOD_MAX_URLS + 1];
    size_t count =
        !settings_uses_debuginfod(settings)
            ? 0
            : split_words(arena, settings->debuginfod_urls, urls, DEBUGINFOD_MAX_URLS + 1);
    if (count > DEBUGINFOD_MAX_URLS)
        return err_set(err, ERR_INVALID, "--debuginfod-urls names more than %d servers",
                       DEBUGINFOD_MAX_URLS);
    for (size_t i = 0; i < count; i++) {
        const struct debuginfod_upstream upstream = {.url = urls[i]};
        enum err_code code = debuginfod_check_upstream(client, &upstream, err);
        if (code)
            return err_add(err, "--debuginfod-urls, %s", urls[i]);
    }
    return ERR_NONE;
}

enum err_code debuginfo_upstreams_open(const struct settings *settings,
                                       struct debuginfod_client **ret_client, struct err *err)
{
    arena_auto arena = arena_create();
    const char *allowed[ALLOWED_MAX];
    char *hosts = arena_strdup(arena, settings->debuginfod_allow_host);
    for (char *at = hosts; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    const struct debuginfod_client_settings client_settings = {
        .allowed_hosts = allowed,
        .allowed_host_count = split_words(arena, hosts, allowed, ALLOWED_MAX),
        .ca_file = *settings->debuginfod_ca_file ? settings->debuginfod_ca_file : NULL,
        .user_agent = VERSION_USER_AGENT,
        .folder = arena_printf(arena, "%s/objects", settings->data_dir),
    };
    struct debuginfod_client *client = NULL;
    *ret_client = NULL;
    if (!settings_uses_debuginfod(settings))
        return ERR_NONE;
    enum err_code code = debuginfod_client_create(&client_settings, &client, err);
    if (!code)
        code = check_urls(settings, client, err);
    if (code)
        debuginfod_client_destroy(client);
    else
        *ret_client = client;
    return code;
}

/* ---- for background work ---- */

static void take_public(const struct server *server, struct arena *arena,
                        struct debuginfo_upstreams *upstreams)
{
    const char *urls[DEBUGINFOD_MAX_URLS];
    size_t count = split_words(arena, server->settings->debuginfod_urls, urls, DEBUGINFOD_MAX_URLS);
    struct debuginfod_upstream *list = arena_new(arena, struct debuginfod_upstream, count);
    for (size_t i = 0; i < count; i++)
        list[i].url = urls[i];
    *upstreams = (struct debuginfo_upstreams){.is_public = true, .upstreams = list, .count = count};
}

enum err_code debuginfo_upstreams_of(const struct server *server, struct pg_connection *connection,
                                     int64_t tenant_id, struct arena *arena,
                                     struct debuginfo_upstreams *ret_upstreams, struct err *err)
{
    struct pg_result *rows;
    *ret_upstreams = (struct debuginfo_upstreams){0};
    if (!settings_uses_debuginfod(server->settings))
        return ERR_NONE;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT coalesce(p.mode, 'public'), u.url, u.auth FROM (SELECT $1::bigint AS id) t"
        " LEFT JOIN debuginfo_policy p ON p.tenant_id = t.id"
        " LEFT JOIN debuginfo_upstream u ON u.tenant_id = t.id AND p.mode = 'custom'"
        " ORDER BY u.position",
        arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    const char *mode = pg_get_text(rows, 0, 0);
    if (strcmp(mode, "public") == 0)
        take_public(server, arena, ret_upstreams);
    if (strcmp(mode, "custom") != 0 || pg_is_null(rows, 0, 1))
        return ERR_NONE;
    size_t count = (size_t)pg_row_count(rows);
    struct debuginfod_upstream *list = arena_new(arena, struct debuginfod_upstream, count);
    for (size_t i = 0; i < count; i++) {
        list[i].url = arena_strdup(arena, pg_get_text(rows, (int)i, 1));
        if (!pg_is_null(rows, (int)i, 2))
            list[i].auth = arena_strdup(arena, pg_get_text(rows, (int)i, 2));
    }
    *ret_upstreams =
        (struct debuginfo_upstreams){.owner = tenant_id, .upstreams = list, .count = count};
    return ERR_NONE;
}

/* ---- reading ---- */

static void write_urls(struct json_response *json, const struct pg_result *rows)
{
    json_response_open(json, "upstreams", '[');
    for (int row = 0; row < pg_row_count(rows); row++) {
        json_response_open(json, NULL, '{');
        json_response_cell_text(json, "url", rows, row, 0);
        json_response_bool(json, "has_auth", pg_get_bool(rows, row, 1));
        json_response_close(json, '}');
    }
    json_response_close(json, ']');
}

static void write_public(struct json_response *json, const struct request *request)
{
    const char *urls[DEBUGINFOD_MAX_URLS];
    const struct settings *settings = request->server->settings;
    size_t count =
        !settings_uses_debuginfod(settings)
            ? 0
            : split_words(request->arena, settings->debuginfod_urls, urls, DEBUGINFOD_MAX_URLS);
    json_response_open(json, "public", '[');
    for (size_t i = 0; i < count; i++)
        json_response_text(json, NULL, urls[i]);
    json_response_close(json, ']');
}

/* Also ends the transaction. */
static enum err_code send_policy(struct pg_connection *connection, struct request *request,
                                 struct response *response, struct err *err)
{
    struct pg_result *policy, *rows;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        pg_query_values(connection, tenant_id,
                        "SELECT coalesce((SELECT mode FROM debuginfo_policy WHERE tenant_id = $1),"
                        " 'public')",
                        request->arena, &policy, err, PG_I64(tenant_id));
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT url, has_auth FROM debuginfo_upstream WHERE tenant_id = $1"
                           " ORDER BY position",
                           request->arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_cell_text(&json, "mode", policy, 0, 0);
    json_response_bool(&json, "is_available",
                       !!settings_uses_debuginfod(request->server->settings));
    write_urls(&json, rows);
    write_public(&json, request);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

static enum err_code get_upstreams(struct request *request, struct response *response,
                                   struct err *err)
{
    static const char *const known[] = {NULL};
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    return send_policy(connection, request, response, err);
}

/* ---- changing ---- */

struct upstream_input {
    const char *url;
    const char *auth;
    bool keeps_auth; /* keep the stored one of the same URL */
};

struct policy_input {
    const char *mode;
    struct upstream_input upstreams[DEBUGINFOD_MAX_URLS];
    size_t count;
};

static enum err_code read_upstream(const struct request *request, const struct json_body *item,
                                   struct upstream_input *ret_upstream, struct err *err)
{
    const struct server *server = request->server;
    ret_upstream->keeps_auth = !json_body_has(item, "auth");
    enum err_code code = json_body_text(item, "url", 1, URL_MAX_BYTES, &ret_upstream->url, err);
    if (code)
        return code;
    code = json_body_text(item, "auth", 0, AUTH_MAX_BYTES, &ret_upstream->auth, err);
    if (code)
        return code;
    if (!server->debuginfo->client)
        return err_set(err, ERR_CONFLICT, "The operator has disabled debuginfod servers");
    const struct debuginfod_upstream upstream = {.url = ret_upstream->url,
                                                 .auth = ret_upstream->auth};
    code = debuginfod_check_upstream(server->debuginfo->client, &upstream, err);
    return code ? err_add(err, "The server %.200s", ret_upstream->url) : ERR_NONE;
}

static enum err_code check_distinct(const struct policy_input *input, struct err *err)
{
    for (size_t i = 0; i < input->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(input->upstreams[i].url, input->upstreams[j].url) == 0)
                return err_set(err, ERR_INVALID, "The server %.200s is listed twice",
                               input->upstreams[i].url);
    return ERR_NONE;
}

static enum err_code read_input(struct request *request, struct policy_input *input,
                                struct err *err)
{
    static const char *const known[] = {"mode", "upstreams", NULL};
    static const char *const known_of_item[] = {"url", "auth", NULL};
    struct json_body *body = NULL;
    struct json_body *const *items = NULL;
    *input = (struct policy_input){0};
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "mode", 1, MODE_MAX_BYTES, &input->mode, err);
    if (code)
        return code;
    if (strcmp(input->mode, "public") != 0 && strcmp(input->mode, "custom") != 0 &&
        strcmp(input->mode, "off") != 0)
        code = err_set(err, ERR_INVALID, "The field \"mode\" is public, custom or off");
    if (code)
        return code;
    code = json_body_objects(body, "upstreams", DEBUGINFOD_MAX_URLS, known_of_item, &items,
                             &input->count, err);
    if (code)
        return code;
    for (size_t i = 0; !code && i < input->count; i++)
        code = read_upstream(request, items[i], &input->upstreams[i], err);
    if (code)
        return code;
    if ((strcmp(input->mode, "custom") == 0) != (input->count > 0))
        code = err_set(err, ERR_INVALID,
                       "Servers are only for the mode custom, which needs at least one");
    if (code)
        return code;
    return check_distinct(input, err);
}

/* Deletes the servers that are no longer listed, with their headers; of the others a header is kept
 * unless it is replaced. */
static enum err_code put_upstreams(struct pg_connection *connection, struct request *request,
                                   const struct policy_input *input, struct err *err)
{
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = pg_queue_values(
        connection, tenant_id, "UPDATE debuginfo_upstream SET position = -1 WHERE tenant_id = $1",
        request->arena, err, PG_I64(tenant_id));
    if (code)
        return code;
    for (size_t i = 0; i < input->count; i++) {
        const struct upstream_input *upstream = &input->upstreams[i];
        code = pg_queue_values(connection, tenant_id,
                               "INSERT INTO debuginfo_upstream (tenant_id, url, position)"
                               " VALUES ($1, $2, $3) ON CONFLICT (tenant_id, url)"
                               " DO UPDATE SET position = excluded.position",
                               request->arena, err, PG_I64(tenant_id), PG_TEXT(upstream->url),
                               PG_I64((int64_t)i));
        if (code)
            return code;
        /* A separate statement: "excluded.auth" would have to be readable. */
        if (!upstream->keeps_auth)
            code = pg_queue_values(
                connection, tenant_id,
                "UPDATE debuginfo_upstream SET auth = $3 WHERE tenant_id = $1 AND url = $2",
                request->arena, err, PG_I64(tenant_id), PG_TEXT(upstream->url),
                upstream->auth ? PG_TEXT(upstream->auth) : PG_NULL);
        if (code)
            return code;
    }
    return pg_queue_values(connection, tenant_id,
                           "DELETE FROM debuginfo_upstream"
                           " WHERE tenant_id = $1 AND position = -1",
                           request->arena, err, PG_I64(tenant_id));
}

/* The new servers may have files that the old ones did not. */
static enum err_code retry_needs(struct pg_connection *connection, struct request *request,
                                 const char *build_id, struct pg_result **ret_rows, struct err *err)
{
    int64_t tenant_id = request->principal.tenant_id;
    return pg_query_values(connection, tenant_id,
                           "UPDATE symbol_need SET next_try_at = now(), try_count = 0"
                           " WHERE tenant_id = $1 AND ($2::text = '' OR build_id = $2)"
                           " RETURNING build_id",
                           request->arena, ret_rows, err, PG_I64(tenant_id), PG_TEXT(build_id));
}

static const char *audit_text(struct request *request, const struct policy_input *input)
{
    const char *text = input->mode;
    for (size_t i = 0; i < input->count; i++)
        text = arena_printf(request->arena, "%s %s%s", text, input->upstreams[i].url,
                            input->upstreams[i].auth ? " (new header)" : "");
    return arena_printf(request->arena, "%.*s", AUDIT_BYTES, text);
}

static enum err_code put_policy(struct pg_connection *connection, struct request *request,
                                const struct policy_input *input, struct err *err)
{
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = pg_queue_values(
        connection, tenant_id,
        "SELECT pg_advisory_xact_lock(hashtextextended('debuginfo ' || $1::text, 0))",
        request->arena, err, PG_I64(tenant_id));
    if (code)
        return code;
    code = pg_queue_values(connection, tenant_id,
                           "INSERT INTO debuginfo_policy (tenant_id, mode) VALUES ($1, $2)"
                           " ON CONFLICT (tenant_id) DO UPDATE"
                           " SET mode = excluded.mode, changed_at = now()",
                           request->arena, err, PG_I64(tenant_id), PG_TEXT(input->mode));
    if (code)
        return code;
    return put_upstreams(connection, request, input, err);
}

static enum err_code put_upstreams_route(struct request *request, struct response *response,
                                         struct err *err)
{
    struct policy_input input;
    struct pg_result *needs;
    pg_auto connection = NULL;
    enum err_code code = read_input(request, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = put_policy(connection, request, &input, err);
    if (code)
        return code;
    code = retry_needs(connection, request, "", &needs, err);
    if (code)
        return code;
    code =
        audit_record(connection, request, "debuginfo.upstreams", audit_text(request, &input), err);
    if (code)
        return code;
    return send_policy(connection, request, response, err);
}

/* ---- retrying now ---- */

static enum err_code retry_missing(struct request *request, struct response *response,
                                   struct err *err)
{
    static const char *const known[] = {"build_id", NULL};
    char id[BUILD_ID_BYTES] = "";
    const char *text = NULL;
    struct json_body *body = NULL;
    struct pg_result *needs;
    pg_auto connection = NULL;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "build_id", 0, BUILD_ID_BYTES, &text, err);
    if (code)
        return code;
    if (text && !build_id_normalize(span_text(text), id))
        code = err_set(err, ERR_INVALID, "The field \"build_id\" is not a build id");
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = retry_needs(connection, request, id, &needs, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    if (text && pg_row_count(needs) == 0)
        return err_set(err, ERR_NOT_FOUND, "No names of the build id %.80s are missing", text);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_i64(&json, "count", pg_row_count(needs));
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 202, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/debuginfo/upstreams", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, get_upstreams},
    {HTTP_PUT, "/api/v1/debuginfo/upstreams", ACCESS_SCOPES, SCOPE_ADMIN, 0, BODY_MAX_BYTES,
     put_upstreams_route},
    {HTTP_POST, "/api/v1/debuginfo/retry", ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 4 << 10,
     retry_missing},
};

const struct route_table debuginfo_upstreams_routes = {routes, sizeof(routes) / sizeof(*routes)};
