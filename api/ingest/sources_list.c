#include "api/core/server.h"
#include "api/http/json_response.h"
#include "api/http/route.h"
#include "api/ingest/sources.h"
#include "lib/base/arena.h"
#include "lib/io/pg.h"

/* "name/1.2.3 (more)": the version of the sending program; NULL if there is none. */
static const char *version_of(struct arena *arena, const char *agent)
{
    struct span product, comment, name, version;
    span_split(span_text(agent), ' ', &product, &comment);
    if (!span_split(product, '/', &name, &version) || version.size == 0)
        return NULL;
    return arena_strndup(arena, version.data, version.size);
}

static void write_source(struct request *request, struct json_response *json,
                         const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_text(json, "service", rows, row, 0);
    json_response_cell_i64(json, "token_id", rows, row, 1);
    json_response_cell_text(json, "token_name", rows, row, 2);
    json_response_cell_text(json, "user", rows, row, 3);
    json_response_cell_text(json, "agent", rows, row, 4);
    json_response_text(json, "version", version_of(request->arena, pg_get_text(rows, row, 4)));
    json_response_cell_text(json, "protocol", rows, row, 5);
    json_response_cell_text(json, "address", rows, row, 6);
    json_response_cell_text(json, "first_seen_at", rows, row, 7);
    json_response_cell_text(json, "last_seen_at", rows, row, 8);
    json_response_cell_i64(json, "batches", rows, row, 9);
    json_response_cell_i64(json, "profiles", rows, row, 10);
    json_response_cell_i64(json, "samples", rows, row, 11);
    json_response_cell_i64(json, "cut_strings", rows, row, 12);
    json_response_cell_i64(json, "errors", rows, row, 13);
    json_response_cell_text(json, "last_error", rows, row, 14);
    json_response_cell_text(json, "last_error_at", rows, row, 15);
    json_response_close(json, '}');
}

static enum err_code read_sources(struct request *request, struct pg_result **ret_rows,
                                  struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    return code ? code
                : pg_query_values(
                      connection, request->principal.tenant_id,
                      "SELECT s.service, s.token_id, k.name, u.email, s.agent, s.protocol,"
                      " s.address, rfc3339(s.first_seen_at), rfc3339(s.last_seen_at), s.batches,"
                      " s.profiles, s.samples, s.cut_strings, s.errors, s.last_error, "
                      "rfc3339(s.last_error_at)"
                      " FROM source s LEFT JOIN token k ON k.id = s.token_id"
                      " LEFT JOIN app_user u ON u.id = s.user_id"
                      " ORDER BY s.last_seen_at DESC, s.key LIMIT $1",
                      request->arena, ret_rows, err, PG_I64(SOURCES_TENANT_MAX));
}

/* Responds with an object that has one member of this name, the list of sources. */
static enum err_code respond_sources(struct request *request, struct response *response,
                                     const char *member, struct err *err)
{
    static const char *const known[] = {NULL};
    struct pg_result *rows;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = sources_write(request->server, request->principal.tenant_id, err);
    if (code)
        return code;
    code = read_sources(request, &rows, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, member, '[');
    for (int row = 0; row < pg_row_count(rows); row++)
        write_source(request, &json, rows, row);
    json_response_close(&json, ']');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

static enum err_code get_sources(struct request *request, struct response *response,
                                 struct err *err)
{
    return respond_sources(request, response, "sources", err);
}

/* The old name of the list, for clients that still use it. */
static enum err_code get_senders(struct request *request, struct response *response,
                                 struct err *err)
{
    return respond_sources(request, response, "senders", err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/sources", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_sources},
    {HTTP_GET, "/api/v1/senders", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_senders},
};

const struct route_table sources_routes = {routes, sizeof(routes) / sizeof(*routes)};
