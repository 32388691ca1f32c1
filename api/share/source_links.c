#include "api/share/source_links.h"

#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/tenant.h"
#include "api/share/profile_cache.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_symbolization.h"
#include "api/share/source_link_matcher.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"
#include "lib/profile/profile.h"

#include <inttypes.h>
#include <string.h>

enum {
    RULES_MAX = 100,
    PREFIX_MAX_BYTES = 1024,
    BUILD_ID_MAX_BYTES = 256,
    LABEL_MAX_BYTES = 1024,
    URL_MAX_BYTES = 2048,
    REVISION_MAX_BYTES = 256,
    AUDIENCE_MAX_BYTES = 16,
    BODY_MAX_BYTES = 16 << 10
};

static const char scheme[] = "https://";

/* ---- urls ---- */

static bool is_host_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == ':';
}

/* RFC 3986; braces are for placeholders. */
static bool is_url_byte(char byte)
{
    return byte > ' ' && byte < 0x7f && !strchr("\"<>\\^`|{}", byte);
}

static enum err_code check_placeholder(const char *brace, size_t *ret_size, struct err *err)
{
    static const char *const known[] = {"{path}", "{line}", "{revision}"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        *ret_size = strlen(known[i]);
        if (strncmp(brace, known[i], *ret_size) == 0)
            return ERR_NONE;
    }
    return err_set(
        err, ERR_INVALID,
        "url: braces are only for {path}, {line} and {revision}; write others as %%7B and %%7D");
}

enum err_code source_links_check_url(const char *url, struct err *err)
{
    bool has_path = false;
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return err_set(err, ERR_INVALID, "url must begin with https://");
    const char *at = url + strlen(scheme), *host = at;
    while (is_host_byte(*at))
        at++;
    if (at == host || *at != '/')
        return err_set(err, ERR_INVALID,
                       "url must have a host name and a path after https://, as in "
                       "https://example.com/shop/blob/{revision}/{path}#L{line}");
    for (size_t size = 1; *at; at += size, size = 1) {
        if (*at == '{') {
            enum err_code code = check_placeholder(at, &size, err);
            if (code)
                return code;
            has_path |= size == strlen("{path}") && at[1] == 'p';
        } else if (!is_url_byte(*at)) {
            return err_set(err, ERR_INVALID,
                           "url contains a character that must be written with %%, at byte %zu",
                           (size_t)(at - url));
        }
    }
    return has_path ? ERR_NONE
                    : err_set(err, ERR_INVALID,
                              "url must contain {path}, or all files would lead to one page");
}

/* ---- a team's rules ---- */

/* In order of precedence. */
#define RULE_SELECT                                                                                \
    "SELECT id, path_prefix, build_id, label, url, revision, audience, rfc3339(created_at)"        \
    " FROM source_link WHERE tenant_id = $1"
#define RULE_ORDER " ORDER BY (build_id = ''), (label = ''), length(path_prefix) DESC, id DESC"

static void write_rule(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", rows, row, 0);
    json_response_cell_text(json, "path_prefix", rows, row, 1);
    json_response_cell_text(json, "build_id", rows, row, 2);
    json_response_cell_text(json, "label", rows, row, 3);
    json_response_cell_text(json, "url", rows, row, 4);
    json_response_cell_text(json, "revision", rows, row, 5);
    json_response_cell_text(json, "audience", rows, row, 6);
    json_response_cell_text(json, "created_at", rows, row, 7);
    json_response_close(json, '}');
}

static enum err_code list_rules(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {NULL};
    const int64_t tenant_id = request->principal.tenant_id;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id, RULE_SELECT RULE_ORDER, request->arena, &rows,
                           err, PG_I64(tenant_id));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "links", '[');
    for (int row = 0; row < pg_row_count(rows); row++)
        write_rule(&json, rows, row);
    json_response_close(&json, ']');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

struct rule_input {
    const char *path_prefix;
    const char *build_id;
    const char *label;
    const char *url;
    const char *revision;
    const char *audience;
};

static const char *text_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

static enum err_code check_input(const struct rule_input *input, struct err *err)
{
    const char *equals = strchr(input->label, '=');
    if (*input->label && (!equals || equals == input->label || !equals[1]))
        return err_set(err, ERR_INVALID, "label must have the form key=value, as in service=shop");
    if (strcmp(input->audience, "team") != 0 && strcmp(input->audience, "everyone") != 0)
        return err_set(err, ERR_INVALID, "audience must be team or everyone");
    if (strstr(input->url, "{revision}") && !*input->revision)
        return err_set(
            err, ERR_INVALID,
            "revision is missing: the url contains {revision}, such as a branch, as in main");
    return source_links_check_url(input->url, err);
}

static enum err_code read_input(struct request *request, struct rule_input *input, struct err *err)
{
    static const char *const known[] = {"path_prefix", "build_id", "label", "url",
                                        "revision",    "audience", NULL};
    struct json_body *body = NULL;
    *input = (struct rule_input){0};
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "path_prefix", 0, PREFIX_MAX_BYTES, &input->path_prefix, err);
    if (code)
        return code;
    code = json_body_text(body, "build_id", 0, BUILD_ID_MAX_BYTES, &input->build_id, err);
    if (code)
        return code;
    code = json_body_text(body, "label", 0, LABEL_MAX_BYTES, &input->label, err);
    if (code)
        return code;
    code = json_body_text(body, "url", 1, URL_MAX_BYTES, &input->url, err);
    if (code)
        return code;
    code = json_body_text(body, "revision", 0, REVISION_MAX_BYTES, &input->revision, err);
    if (code)
        return code;
    code = json_body_text(body, "audience", 0, AUDIENCE_MAX_BYTES, &input->audience, err);
    if (code)
        return code;
    input->path_prefix = text_or(input->path_prefix, "");
    input->build_id = text_or(input->build_id, "");
    input->label = text_or(input->label, "");
    input->revision = text_or(input->revision, "");
    input->audience = text_or(input->audience, "team");
    return check_input(input, err);
}

static enum err_code insert_rule(struct pg_connection *connection, struct request *request,
                                 const struct rule_input *input, struct pg_result **ret_rows,
                                 struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    return pg_query_values(
        connection, tenant_id,
        "INSERT INTO source_link (tenant_id, path_prefix, build_id, label, url, revision, audience)"
        " SELECT $1, $2, $3, $4, $5, $6, $7"
        " WHERE (SELECT count(*) FROM source_link WHERE tenant_id = $1) < $8"
        " RETURNING id, path_prefix, build_id, label, url, revision, audience, rfc3339(created_at)",
        request->arena, ret_rows, err, PG_I64(tenant_id), PG_TEXT(input->path_prefix),
        PG_TEXT(input->build_id), PG_TEXT(input->label), PG_TEXT(input->url),
        PG_TEXT(input->revision), PG_TEXT(input->audience), PG_I64(RULES_MAX));
}

static enum err_code begin_change(struct request *request, struct pg_connection **connection,
                                  struct err *err)
{
    enum err_code code = pg_take(request->server->database, connection, err);
    if (code)
        return code;
    code = tenant_begin(*connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    return pg_queue_values(
        *connection, request->principal.tenant_id,
        "SELECT pg_advisory_xact_lock(hashtextextended('source link ' || $1::text, 0))",
        request->arena, err, PG_I64(request->principal.tenant_id));
}

static enum err_code add_rule(struct request *request, struct response *response, struct err *err)
{
    struct rule_input input;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = read_input(request, &input, err);
    if (code)
        return code;
    code = begin_change(request, &connection, err);
    if (code)
        return code;
    code = insert_rule(connection, request, &input, &rows, err);
    if (code)
        return code;
    if (pg_row_count(rows) == 0)
        code = err_set(
            err, ERR_INVALID,
            "A team has at most %d source links: remove one, or use a shorter prefix for several",
            RULES_MAX);
    if (code)
        return code;
    code = audit_record(
        connection, request, "source_link.add",
        arena_printf(request->arena, "%.200s -> %.250s", input.path_prefix, input.url), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    write_rule(&json, rows, 0);
    return json_response_send(&json, request, response, 200, err);
}

static enum err_code remove_rule(struct request *request, struct response *response,
                                 struct err *err)
{
    int64_t id;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = begin_change(request, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, request->principal.tenant_id,
                           "DELETE FROM source_link WHERE tenant_id = $1 AND id = $2"
                           " RETURNING url",
                           request->arena, &rows, err, PG_I64(request->principal.tenant_id),
                           PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(rows) == 0)
        code = err_set(err, ERR_NOT_FOUND, "There is no source link %" PRId64, id);
    if (code)
        return code;
    code = audit_record(connection, request, "source_link.remove",
                        arena_printf(request->arena, "%.400s", pg_get_text(rows, 0, 0)), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

/* ---- of a share ---- */

/* Viewers outside of the share's team see only the rules for everyone. */
static bool is_of_team(const struct request *request, const struct share *share)
{
    return request->principal.kind != PRINCIPAL_ANONYMOUS &&
           request->principal.tenant_id == share->tenant_id &&
           principal_has(&request->principal, SCOPE_READ);
}

static enum err_code find_rules(struct request *request, const struct share *share,
                                struct pg_result **ret_rows, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    return code ? code
                : pg_query_values(connection, share->tenant_id,
                                  RULE_SELECT " AND ($2 OR audience = 'everyone')" RULE_ORDER,
                                  request->arena, ret_rows, err, PG_I64(share->tenant_id),
                                  PG_BOOL(is_of_team(request, share)));
}

/* Writes the selected files. Files that the response has no space for are skipped, and sending it
 * then fails. */
static void write_files(struct arena *arena, struct json_response *json,
                        struct source_link_matcher *matcher)
{
    struct span file;
    json_response_open(json, "binaries", '[');
    while (!buf_failed(&json->json) && source_link_matcher_next_file(matcher, &file))
        json_response_text(json, NULL, arena_strndup(arena, file.data, file.size));
    json_response_close(json, ']');
}

/* A revision is one part of a path or more: everything else is escaped. */
static const char *fill_in_revision(struct arena *arena, const char *url, const char *revision)
{
    static const char placeholder[] = "{revision}";
    buf_auto text;
    buf_init(&text, URL_MAX_BYTES * (3 * REVISION_MAX_BYTES));
    for (const char *found; (found = strstr(url, placeholder)); url = found + strlen(placeholder)) {
        buf_append(&text, url, (size_t)(found - url));
        for (const char *at = revision; *at; at++) {
            const unsigned char byte = (unsigned char)*at;
            const bool is_plain = (is_host_byte(*at) && byte != ':') || strchr("/_~", byte);
            buf_printf(&text, is_plain ? "%c" : "%%%02X", byte);
        }
    }
    buf_append_text(&text, url);
    return arena_strndup(arena, text.data, text.size);
}

static void write_link(struct request *request, struct json_response *json,
                       const struct pg_result *rows, int row, struct source_link_matcher *matcher)
{
    json_response_open(json, NULL, '{');
    if (*pg_get_text(rows, row, 2))
        write_files(request->arena, json, matcher);
    else
        json_response_null(json, "binaries");
    json_response_cell_text(json, "path_prefix", rows, row, 1);
    json_response_text(
        json, "url",
        fill_in_revision(request->arena, pg_get_text(rows, row, 4), pg_get_text(rows, row, 5)));
    json_response_close(json, '}');
}

/* Sets has[row] for the rows whose label the profile has; a row without a label applies to any. */
static enum err_code find_labels(struct request *request, struct source_link_matcher *matcher,
                                 const struct pg_result *rows, bool *has, struct err *err)
{
    const uint32_t count = (uint32_t)pg_row_count(rows);
    struct span *labels = arena_new(request->arena, struct span, count);
    bool has_any = false;
    for (uint32_t row = 0; row < count; row++) {
        labels[row] = span_text(pg_get_text(rows, (int)row, 3));
        has_any |= labels[row].size > 0;
    }
    enum err_code code =
        has_any ? source_link_matcher_find_labels(matcher, labels, count, has, err) : ERR_NONE;
    for (uint32_t row = 0; row < count; row++)
        has[row] |= labels[row].size == 0;
    return code;
}

/* profile NULL: no rule needs it. */
static enum err_code write_links(struct request *request, struct json_response *json,
                                 const struct pg_result *rows, const struct profile *profile,
                                 struct err *err)
{
    const int row_count = pg_row_count(rows);
    bool *applies = arena_new(request->arena, bool, (size_t)row_count);
    struct source_link_matcher *matcher = source_link_matcher_create(
        request->arena, profile, SOURCE_LINK_MATCHER_MAX_STEPS, request->is_cancelled);
    enum err_code code = find_labels(request, matcher, rows, applies, err);
    json_response_open(json, NULL, '{');
    json_response_open(json, "links", '[');
    for (int row = 0; !code && row < row_count; row++) {
        const struct span build_id = span_text(pg_get_text(rows, row, 2));
        if (applies[row] && build_id.size)
            code = source_link_matcher_find_files(matcher, build_id, &applies[row], err);
        if (!code && applies[row])
            write_link(request, json, rows, row, matcher);
    }
    json_response_close(json, ']');
    json_response_close(json, '}');
    return code;
}

static bool needs_profile(const struct pg_result *rows)
{
    for (int row = 0; row < pg_row_count(rows); row++)
        if (*pg_get_text(rows, row, 2) || *pg_get_text(rows, row, 3))
            return true;
    return false;
}

static enum err_code list_of_share(struct request *request, struct response *response,
                                   struct err *err)
{
    static const char *const known[] = {NULL};
    struct share share;
    struct pg_result *rows;
    profile_cache_auto entry = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    code = find_rules(request, &share, &rows, err);
    if (code)
        return code;
    if (needs_profile(rows))
        code = share_symbolization_ref_profile(request, &share, &entry, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    code = write_links(request, &json, rows, entry ? profile_cache_get(entry) : NULL, err);
    if (code)
        return code;
    share_access_add_robots(request, response, &share);
    return json_response_send(&json, request, response, 200, err);
}

#define SOURCE_LINKS "/api/v1/source-links"

static const struct route routes[] = {
    {HTTP_GET, SOURCE_LINKS, ACCESS_SCOPES, SCOPE_READ, 0, 0, list_rules},
    {HTTP_POST, SOURCE_LINKS, ACCESS_SCOPES, SCOPE_ADMIN, 0, BODY_MAX_BYTES, add_rule},
    {HTTP_DELETE, SOURCE_LINKS "/{id}", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, remove_rule},
    {HTTP_GET, "/api/v1/shares/{id}/source-links", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404, 0,
     list_of_share},
};

const struct route_table source_links_routes = {routes, sizeof(routes) / sizeof(*routes)};
