#include "api/query/deletion.h"

#include "api/core/disk.h"
#include "api/core/server.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"
#include "lib/io/pg.h"
#include "store/store.h"

#include <inttypes.h>

enum { LIST_DEFAULT_LIMIT = 100, LIST_MAX_LIMIT = 1000, DELETE_TRIES = 5 };

struct deletion_input {
    struct span selector;
    int64_t start_ns;
    int64_t end_ns;
};

static enum err_code read_time(const struct request *request, const char *name, int64_t *time_ns,
                               struct err *err)
{
    struct span text;
    if (!request_query(request, name, &text) || !text.size)
        return ERR_NONE;
    enum err_code code = time_parse(text, clock_wall_ns(), time_ns, err);
    return code ? err_add(err, "%s", name) : ERR_NONE;
}

/* Without start it begins with the first profile, without end it includes the last. */
static enum err_code read_input(const struct request *request, struct deletion_input *input,
                                struct err *err)
{
    static const char *const known[] = {"query", "start", "end", NULL};
    *input = (struct deletion_input){.start_ns = INT64_MIN, .end_ns = INT64_MAX};
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    if (!request_query(request, "query", &input->selector) || !input->selector.size)
        code = err_set(err, ERR_INVALID,
                       "query is missing: a profile type and labels, as in "
                       "{service_name=\"api\"}; {__profile_type__=~\".*\"} selects everything");
    if (code)
        return code;
    code = read_time(request, "start", &input->start_ns, err);
    if (code)
        return code;
    code = read_time(request, "end", &input->end_ns, err);
    if (code)
        return code;
    if (input->start_ns >= input->end_ns)
        code = err_set(err, ERR_INVALID, "start must be before end");
    return code;
}

#define DELETION_SELECT                                                                            \
    "SELECT id, selector, nullif(begin_ns, -9223372036854775808),"                                 \
    " nullif(end_ns, 9223372036854775807), rfc3339(requested_at), rfc3339(done_at)"                \
    " FROM store_deletion"

static void write_deletion(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", rows, row, 0);
    json_response_cell_text(json, "query", rows, row, 1);
    json_response_cell_i64(json, "start_ns", rows, row, 2);
    json_response_cell_i64(json, "end_ns", rows, row, 3);
    json_response_cell_text(json, "requested_at", rows, row, 4);
    json_response_cell_text(json, "done_at", rows, row, 5);
    json_response_close(json, '}');
}

static const char *describe_deletion(struct request *request, const struct deletion_input *input)
{
    return arena_printf(request->arena, "%.*s from %" PRId64 " to %" PRId64,
                        (int)(input->selector.size < 500 ? input->selector.size : 500),
                        (const char *)input->selector.data, input->start_ns, input->end_ns);
}

static enum err_code add_deletion(struct request *request, const struct deletion_input *input,
                                  struct pg_result **ret_row, struct err *err)
{
    int64_t id = 0;
    const int64_t tenant_id = request->principal.tenant_id;
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, tenant_id, request->arena, err);
    if (code)
        return code;
    code = store_delete(connection, request->arena, tenant_id, input->selector, input->start_ns,
                        input->end_ns, &id, err);
    if (code)
        return code;
    code = audit_record(connection, request, "profiles.delete", describe_deletion(request, input),
                        err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id, DELETION_SELECT " WHERE id = $1", request->arena,
                           ret_row, err, PG_I64(id));
    if (code)
        return code;
    return pg_commit(connection, err);
}

/* Deletions free space, but each takes a row and space in PostgreSQL's log first: below the reserve
 * of the disk a team may make a few. */
static enum err_code check_disk(struct request *request, struct err *err)
{
    enum { FULL_MAX = 20 };
    struct pg_result *result;
    struct err ignored;
    pg_auto connection = NULL;
    if (disk_check(request->server->disk, err) == ERR_NONE)
        return ERR_NONE;
    enum err_code code = pg_take(request->server->database, &connection, &ignored);
    if (!code)
        code = pg_query_values(connection, request->principal.tenant_id,
                               "SELECT count(*) FROM store_deletion"
                               " WHERE requested_at > now() - interval '1 hour'",
                               request->arena, &result, &ignored);
    return !code && pg_get_i64(result, 0, 0) < FULL_MAX ? ERR_NONE : err->code;
}

/* The statement locks all segments and blocks of the team, so it may deadlock with transactions
 * that lock some of them in another order. */
static enum err_code delete_profiles(struct request *request, struct response *response,
                                     struct err *err)
{
    struct deletion_input input;
    struct pg_result *row;
    enum err_code code = read_input(request, &input, err);
    if (!code)
        code = check_disk(request, err);
    if (!code)
        code = add_deletion(request, &input, &row, err);
    for (int i = 1; i < DELETE_TRIES && code && err->is_rolled_back; i++)
        code = add_deletion(request, &input, &row, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    write_deletion(&json, row, 0);
    return json_response_send(&json, request, response, 202, err);
}

static enum err_code list_deletions(struct request *request, struct response *response,
                                    struct err *err)
{
    static const char *const known[] = {"cursor", "limit", NULL};
    int64_t cursor = 0, limit = 0;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "cursor", 1, INT64_MAX, INT64_MAX, &cursor, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, LIST_MAX_LIMIT, LIST_DEFAULT_LIMIT, &limit, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, request->principal.tenant_id,
                           DELETION_SELECT " WHERE id < $1 ORDER BY id DESC LIMIT $2",
                           request->arena, &rows, err, PG_I64(cursor), PG_I64(limit + 1));
    if (code)
        return code;
    const bool has_more = pg_row_count(rows) > limit;
    const int count = has_more ? (int)limit : pg_row_count(rows);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "deletions", '[');
    for (int row = 0; row < count; row++)
        write_deletion(&json, rows, row);
    json_response_close(&json, ']');
    json_response_text(&json, "next_cursor", has_more ? pg_get_text(rows, count - 1, 0) : NULL);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

static const struct route routes[] = {
    {HTTP_DELETE, "/api/v1/profiles", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, delete_profiles},
    {HTTP_GET, "/api/v1/deletions", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, list_deletions},
};

const struct route_table deletion_routes = {routes, sizeof(routes) / sizeof(*routes)};
