#include "api/share/short_link.h"

#include "api/core/server.h"
#include "api/core/server_key.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_charge.h"
#include "api/share/viewer_path.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

enum { ID_HASH_BYTES = 16, ID_ATTEMPTS = 4 };

struct link {
    struct span path;
    struct share share; /* in a comparison, the share that is compared with the base */
    const char *base_id;
    char id[SHORT_LINK_LENGTH + 1];
};

static enum err_code find_shares(struct request *request, const struct viewer_path *path,
                                 struct link *link, struct err *err)
{
    struct share base;
    enum err_code code =
        share_access_find(request, path->ids[path->id_count - 1], &link->share, err);
    if (!code && path->id_count == 2) {
        code = share_access_find(request, path->ids[0], &base, err);
        link->base_id = code ? NULL : base.id;
    }
    return code;
}

static enum err_code read_link(struct request *request, struct link *link, struct err *err)
{
    static const char *const known[] = {"path", NULL};
    struct json_body *body;
    struct viewer_path path;
    const char *text;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "path", 1, SHORT_LINK_PATH_BYTES, &text, err);
    if (code)
        return code;
    code = viewer_path_parse(span_text(text), &path, err);
    if (code)
        return code;
    code = find_shares(request, &path, link, err);
    if (code)
        return code;
    link->path = span_text(text);
    return ERR_NONE;
}

/* Each attempt gives another id, in case two paths have the same id. */
static enum err_code make_id(struct request *request, int attempt, struct link *link,
                             struct err *err)
{
    uint8_t signature[DIGEST_BYTES];
    const char *message =
        arena_printf(request->arena, "short link %d %.*s", attempt, SPAN_PRINT(link->path));
    enum err_code code = server_key_sign(request->server, span_text(message), signature, err);
    if (code)
        return code;
    digest_base62(span_of(signature, ID_HASH_BYTES), SHORT_LINK_LENGTH, link->id);
    return ERR_NONE;
}

static enum err_code find_path(struct request *request, struct pg_connection *connection,
                               struct span id, struct pg_result **ret_row, struct err *err)
{
    return pg_query_values(connection, PG_NO_TENANT, "SELECT * FROM short_link_find($1::text)",
                           request->arena, ret_row, err, PG_SPAN(id));
}

static enum err_code take_rate(const struct request *request, struct err *err)
{
    struct rate_limiter *rate_limiter = request->server->limits->rate_limiter;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return rate_limiter_take(rate_limiter, LIMIT_LINK_ADDRESS, span_text(request->address),
                                 SHORT_LINK_ADDRESS_MINUTE, SHORT_LINK_ADDRESS_MINUTE, err);
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, request->principal.tenant_id);
    return rate_limiter_take(rate_limiter, LIMIT_LINK_TENANT, span_text(key),
                             SHORT_LINK_TENANT_MINUTE, SHORT_LINK_TENANT_MINUTE, err);
}

/* Writes nothing if the id exists or the share has as many links as it may have. The path counts
 * towards the quota of the share's tenant. */
static enum err_code insert_link(struct request *request, struct pg_connection *connection,
                                 const struct link *link, struct err *err)
{
    const struct share *share = &link->share;
    int64_t part = share_access_is_editor(request, share) ? 1 : 2;
    struct pg_result *result;
    enum err_code code = tenant_begin(connection, share->tenant_id, request->arena, err);
    if (!code)
        code = share_charge_lock(request, connection, share, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, share->tenant_id,
        "INSERT INTO short_link (id, tenant_id, share_id, base_id, path)"
        " SELECT $1::text, $2::bigint, $3::text, $4::text, $5::text"
        " FROM (SELECT count(*) AS n, coalesce(sum(octet_length(path)), 0) AS bytes"
        "  FROM short_link WHERE share_id = $3::text) AS there"
        " WHERE n < $6::bigint AND bytes < $7::bigint ON CONFLICT (id) DO NOTHING",
        request->arena, &result, err, PG_TEXT(link->id), PG_I64(share->tenant_id),
        PG_TEXT(share->id), link->base_id ? PG_TEXT(link->base_id) : PG_NULL, PG_SPAN(link->path),
        PG_I64(SHORT_LINK_MAX_PER_SHARE / part), PG_I64(SHORT_LINK_MAX_BYTES_PER_SHARE / part));
    if (code == ERR_CONFLICT)
        return err_set(err, ERR_GONE,
                       "this share has just been deleted: ask its creator for another link");
    if (!code && pg_affected(result))
        code = share_charge_change(request, connection, share, (int64_t)link->path.size, err);
    if (code)
        return code;
    return quota_refuse(request, share->tenant_id, pg_commit(connection, err), err);
}

/* Whether the link exists; *ret_is_ours: it is the one for our path. */
static enum err_code look_up_link(struct request *request, struct pg_connection *connection,
                                  const struct link *link, bool *ret_exists, bool *ret_is_ours,
                                  struct err *err)
{
    struct pg_result *row;
    enum err_code code = find_path(request, connection, span_text(link->id), &row, err);
    if (code)
        return code;
    *ret_exists = pg_row_count(row) > 0;
    *ret_is_ours = *ret_exists && span_equal_text(link->path, pg_get_text(row, 0, 0));
    return ERR_NONE;
}

static enum err_code store_link(struct request *request, struct link *link, struct err *err)
{
    pg_auto connection = NULL;
    bool exists = true, is_ours = false;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    for (int attempt = 0; exists && !is_ours && attempt < ID_ATTEMPTS; attempt++) {
        code = make_id(request, attempt, link, err);
        if (code)
            return code;
        code = look_up_link(request, connection, link, &exists, &is_ours, err);
        if (code)
            return code;
    }
    if (is_ours)
        return ERR_NONE;
    code = take_rate(request, err);
    if (code)
        return code;
    code = insert_link(request, connection, link, err);
    if (code)
        return code;
    code = look_up_link(request, connection, link, &exists, &is_ours, err);
    if (code || is_ours)
        return code;
    return err_set(err, ERR_QUOTA,
                   "this share has the maximal number of short links: use the long one");
}

static enum err_code create_link(struct request *request, struct response *response,
                                 struct err *err)
{
    struct link *link = arena_new(request->arena, struct link, 1);
    enum err_code code = read_link(request, link, err);
    if (code)
        return code;
    code = store_link(request, link, err);
    if (code)
        return code;
    const char *path = arena_printf(request->arena, "/s/%s", link->id);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_text(&json, "id", link->id);
    json_response_text(
        &json, "url",
        arena_printf(request->arena, "%s%s", request->server->settings->public_url, path));
    json_response_close(&json, '}');
    response_add(request, response, "location", path);
    return json_response_send(&json, request, response, 201, err);
}

static bool has_id_form(struct span id)
{
    for (size_t i = 0; i < id.size; i++) {
        uint8_t c = id.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return false;
    }
    return id.size == SHORT_LINK_LENGTH;
}

static enum err_code refuse_unknown_link(struct err *err)
{
    return err_set(
        err, ERR_NOT_FOUND,
        "there is no such short link: check that it is complete; a link is deleted with its share");
}

/* The path is checked again: a path that was changed in the database must not lead to another site
 * either. */
enum err_code short_link_find(struct request *request, struct span id, const char **ret_path,
                              bool *ret_is_public, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *row;
    struct viewer_path path;
    if (!has_id_form(id))
        return refuse_unknown_link(err);
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = find_path(request, connection, id, &row, err);
    if (code)
        return code;
    if (pg_row_count(row) == 0 || viewer_path_parse(span_text(pg_get_text(row, 0, 0)), &path, err))
        return refuse_unknown_link(err);
    *ret_path = pg_get_text(row, 0, 0);
    if (ret_is_public)
        *ret_is_public = strcmp(pg_get_text(row, 0, 1), "public") == 0;
    return ERR_NONE;
}

static enum err_code follow_link(struct request *request, struct response *response,
                                 struct err *err)
{
    const char *path;
    bool is_public;
    enum err_code code = short_link_find(request, request->path_params[0], &path, &is_public, err);
    if (code)
        return code;
    if (!is_public)
        response_add(request, response, "x-robots-tag", "noindex");
    response_add(request, response, "cache-control", "no-cache");
    response_add(request, response, "location", path);
    response->status = 302;
    return ERR_NONE;
}

enum { LINK_BODY_BYTES = 8 * SHORT_LINK_PATH_BYTES }; /* JSON may escape each byte */

static const struct route routes[] = {
    {HTTP_POST, "/api/v1/links", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404, LINK_BODY_BYTES, create_link},
    {HTTP_GET, "/s/{id}", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404, 0, follow_link},
};

const struct route_table short_link_routes = {routes, sizeof(routes) / sizeof(*routes)};
