#include "api/ops/scrub_routes.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_response.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

enum { SHOWN_PROBLEMS = 1000 };

static void write_pass(struct json_response *json, const struct pg_result *rows)
{
    json_response_text(json, "state",
                       pg_get_bool(rows, 0, 0)  ? "paused"
                       : pg_is_null(rows, 0, 1) ? "waiting"
                                                : "running");
    json_response_cell_text(json, "next_pass_at", rows, 0, 2);
    if (pg_is_null(rows, 0, 1)) {
        json_response_null(json, "pass");
    } else {
        json_response_open(json, "pass", '{');
        json_response_cell_text(json, "started_at", rows, 0, 1);
        json_response_cell_text(json, "kind", rows, 0, 3);
        json_response_cell_i64(json, "objects", rows, 0, 4);
        json_response_cell_i64(json, "bytes", rows, 0, 5);
        json_response_cell_i64(json, "total_bytes", rows, 0, 6);
        json_response_close(json, '}');
    }
    if (pg_is_null(rows, 0, 8)) {
        json_response_null(json, "last_pass");
    } else {
        json_response_open(json, "last_pass", '{');
        json_response_cell_text(json, "started_at", rows, 0, 7);
        json_response_cell_text(json, "ended_at", rows, 0, 8);
        json_response_cell_i64(json, "objects", rows, 0, 9);
        json_response_cell_i64(json, "bytes", rows, 0, 10);
        json_response_cell_i64(json, "problems", rows, 0, 11);
        json_response_close(json, '}');
    }
    json_response_cell_i64(json, "problem_count", rows, 0, 12);
}

static void write_problems(struct json_response *json, const struct pg_result *rows)
{
    json_response_open(json, "problems", '[');
    for (int row = 0; row < pg_row_count(rows); row++) {
        json_response_open(json, NULL, '{');
        json_response_cell_text(json, "problem", rows, row, 0);
        json_response_cell_text(json, "kind", rows, row, 1);
        json_response_cell_text(json, "object", rows, row, 2);
        json_response_cell_i64(json, "tenant_id", rows, row, 3);
        json_response_cell_text(json, "detail", rows, row, 4);
        json_response_cell_text(json, "found_at", rows, row, 5);
        json_response_cell_text(json, "seen_at", rows, row, 6);
        json_response_close(json, '}');
    }
    json_response_close(json, ']');
}

static enum err_code respond_scrub(struct request *request, struct response *response,
                                   struct pg_connection *connection, struct err *err)
{
    struct pg_result *state, *problems;
    enum err_code code = pg_query(
        connection, PG_NO_TENANT,
        "SELECT is_paused, rfc3339(started_at), rfc3339(next_pass_at), kind, objects, bytes,"
        " total_bytes, rfc3339(last_started_at), rfc3339(last_ended_at), last_objects,"
        " last_bytes, last_problems, (SELECT count(*) FROM object_problem) FROM scrub",
        NULL, 0, request->arena, &state, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT problem, kind, object_key, tenant, detail, rfc3339(found_at),"
                           " rfc3339(seen_at) FROM object_problem"
                           " ORDER BY found_at, object_key LIMIT $1",
                           request->arena, &problems, err, PG_I64(SHOWN_PROBLEMS));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    write_pass(&json, state);
    json_response_i64(&json, "period_s", request->server->settings->scrub_period_s);
    write_problems(&json, problems);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

static enum err_code show_scrub(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {NULL};
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    return respond_scrub(request, response, connection, err);
}

/* pause also ends the lease, so the server that holds it stops at its next page. */
static const struct action {
    const char *name;
    const char *sql;
} actions[] = {
    {"start", "UPDATE scrub SET next_pass_at = least(next_pass_at, now())"},
    {"pause", "UPDATE scrub SET is_paused = true, leased_by = '', leased_until = '-infinity'"},
    {"resume", "UPDATE scrub SET is_paused = false"},
};

static enum err_code find_action(struct request *request, const struct action **ret_action,
                                 struct err *err)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (span_equal_text(request->path_params[0], actions[i].name)) {
            *ret_action = &actions[i];
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "the scrub has no such action: send start, pause or resume");
}

static enum err_code control_scrub(struct request *request, struct response *response,
                                   struct err *err)
{
    const struct action *action = NULL;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = find_action(request, &action, err);
    if (code)
        return code;
    if (request->server->settings->scrub_period_s == 0)
        code =
            err_set(err, ERR_CONFLICT,
                    "the scrub is disabled: start the server with a --scrub-period that is not 0");
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT, action->sql, NULL, 0, request->arena, &rows, err);
    if (code)
        return code;
    return respond_scrub(request, response, connection, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/admin/scrub", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 0, show_scrub},
    {HTTP_POST, "/api/v1/admin/scrub/{action}", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 4096,
     control_scrub},
};

const struct route_table scrub_routes = {routes, sizeof(routes) / sizeof(*routes)};
