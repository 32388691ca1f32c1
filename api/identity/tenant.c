#include "api/identity/tenant.h"

#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/identity_parts.h"
#include "api/identity/quota.h"
#include "api/identity/team_etag.h"
#include "api/identity/tenant_limits.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

/* The longest list of labels in a request, before sample_labels_read converts it to the shorter
 * stored form. */
enum { LABELS_TEXT_BYTES = 4096 };

enum err_code tenant_begin(struct pg_connection *connection, int64_t tenant_id, struct arena *arena,
                           struct err *err)
{
    enum err_code code = pg_begin(connection, tenant_id, err);
    return code ? code
                : pg_queue_values(connection, tenant_id,
                                  "SELECT 1 FROM tenant WHERE id = $1 FOR KEY SHARE", arena, err,
                                  PG_I64(tenant_id));
}

static enum err_code respond_with_tenant(struct request *request, struct response *response,
                                         struct pg_connection *connection, struct err *err)
{
    struct quota quota;
    struct pg_result *row;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        team_etag_add(request, response, connection, tenant_id, tenant_id, TEAM_SETTINGS, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, tenant_id,
        "SELECT id, name, rfc3339(created_at), limits::text, sample_labels FROM tenant"
        " WHERE id = $1",
        request->arena, &row, err, PG_I64(tenant_id));
    if (code)
        return code;
    code = quota_read(request->server, connection, tenant_id, request->arena, &quota, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_cell_i64(&json, "id", row, 0, 0);
    json_response_cell_text(&json, "name", row, 0, 1);
    json_response_cell_text(&json, "created_at", row, 0, 2);
    json_response_text(&json, "sample_labels",
                       pg_is_null(row, 0, 4)
                           ? tenant_limits_default_labels(request->server->identity->tenant_limits)
                           : pg_get_text(row, 0, 4));
    json_response_open(&json, "usage", '{');
    json_response_i64(&json, "bytes_stored", quota.bytes_stored);
    json_response_close(&json, '}');
    json_response_open(&json, "quotas", '{');
    json_response_i64(&json, "max_bytes_stored", quota.max_bytes_stored);
    json_response_i64(&json, "uploads_per_minute", quota.uploads_per_minute);
    json_response_i64(&json, "max_upload_bytes", quota.max_upload_bytes);
    json_response_i64(&json, "profile_retention_s", quota.profile_retention_s);
    tenant_limits_write(&json, request->server->settings, pg_get_text(row, 0, 3));
    json_response_close(&json, '}');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

enum err_code tenant_get(struct request *request, struct response *response, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    return code ? code : respond_with_tenant(request, response, connection, err);
}

static enum err_code rename_tenant(struct request *request, struct pg_connection *connection,
                                   const char *name, struct err *err)
{
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        pg_query_values(connection, tenant_id, "UPDATE tenant SET name = $2 WHERE id = $1",
                        request->arena, NULL, err, PG_I64(tenant_id), PG_TEXT(name));
    if (code == ERR_CONFLICT)
        return err_set(err, ERR_CONFLICT, "Another tenant has that name: choose a different one");
    return code ? code : audit_record(connection, request, "tenant.rename", name, err);
}

/* labels: NULL for the server's default. */
static enum err_code set_sample_labels(struct request *request, struct pg_connection *connection,
                                       const char *labels, struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = pg_query_values(
        connection, tenant_id, "UPDATE tenant SET sample_labels = $2 WHERE id = $1", request->arena,
        NULL, err, PG_I64(tenant_id), labels ? PG_TEXT(labels) : PG_NULL);
    return code ? code
                : audit_record(connection, request, "tenant.sample_labels",
                               labels ? labels : "the server's default", err);
}

enum err_code tenant_read_labels(const struct json_body *body, struct arena *arena,
                                 const char **ret_labels, struct err *err)
{
    const char *labels = NULL;
    enum err_code code = json_body_text(body, "sample_labels", 0, LABELS_TEXT_BYTES, &labels, err);
    if (code || !labels)
        return code;
    char *list = arena_new(arena, char, SAMPLE_LABELS_BYTES);
    code = sample_labels_read(labels, list, err);
    if (code)
        return err_add(err, "sample_labels");
    *ret_labels = list;
    return ERR_NONE;
}

struct input {
    const char *name; /* NULL: unchanged */
    bool has_labels;
    const char *labels; /* in stored form; NULL: the server's default */
};

static enum err_code read_input(struct request *request, struct input *input, struct err *err)
{
    static const char *const known[] = {"name", "sample_labels", NULL};
    struct json_body *body = NULL;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    input->has_labels = json_body_has(body, "sample_labels");
    /* The name may be absent if the labels are present. */
    if (!input->has_labels || json_body_has(body, "name"))
        code = json_body_text(body, "name", 1, TENANT_MAX_NAME_BYTES, &input->name, err);
    return code ? code : tenant_read_labels(body, request->arena, &input->labels, err);
}

static enum err_code change_tenant(struct request *request, struct pg_connection *connection,
                                   const struct input *input, struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = tenant_begin(connection, tenant_id, request->arena, err);
    if (code)
        return code;
    code = team_etag_check(request, connection, tenant_id, tenant_id, TEAM_SETTINGS, err);
    if (code)
        return code;
    if (input->name)
        code = rename_tenant(request, connection, input->name, err);
    if (code)
        return code;
    if (input->has_labels)
        code = set_sample_labels(request, connection, input->labels, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code tenant_patch(struct request *request, struct response *response, struct err *err)
{
    struct input input = {0};
    pg_auto connection = NULL;
    enum err_code code = read_input(request, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = change_tenant(request, connection, &input, err);
    if (code)
        return code;
    tenant_limits_forget(request->server->identity->tenant_limits, request->principal.tenant_id);
    return respond_with_tenant(request, response, connection, err);
}

/* ---- the audit log, newest first; the cursor is the last id that was shown ---- */

enum { AUDIT_DEFAULT_LIMIT = 100, AUDIT_MAX_LIMIT = 1000 };

static void write_entry(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", rows, row, 0);
    json_response_cell_text(json, "at", rows, row, 1);
    json_response_cell_text(json, "actor_kind", rows, row, 2);
    json_response_cell_text(json, "actor", rows, row, 3);
    json_response_cell_i64(json, "user_id", rows, row, 4);
    json_response_cell_i64(json, "token_id", rows, row, 5);
    json_response_cell_text(json, "action", rows, row, 6);
    json_response_cell_text(json, "target", rows, row, 7);
    json_response_cell_text(json, "address", rows, row, 8);
    json_response_cell_text(json, "request_id", rows, row, 9);
    json_response_close(json, '}');
}

enum err_code tenant_get_audit(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"cursor", "limit", NULL};
    int64_t cursor = 0, limit = 0;
    struct pg_result *rows;
    pg_auto connection = NULL;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "cursor", 1, INT64_MAX, INT64_MAX, &cursor, err);
    if (code)
        return code;
    code =
        request_query_i64(request, "limit", 1, AUDIT_MAX_LIMIT, AUDIT_DEFAULT_LIMIT, &limit, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT id, rfc3339(at), actor_kind, actor, user_id, token_id,"
                           " action, target, address, request_id FROM audit_log"
                           " WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
                           request->arena, &rows, err, PG_I64(tenant_id), PG_I64(cursor),
                           PG_I64(limit + 1));
    if (code)
        return code;
    bool has_more = pg_row_count(rows) > limit;
    int count = has_more ? (int)limit : pg_row_count(rows);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "entries", '[');
    for (int row = 0; row < count; row++)
        write_entry(&json, rows, row);
    json_response_close(&json, ']');
    json_response_text(&json, "next_cursor", has_more ? pg_get_text(rows, count - 1, 0) : NULL);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}
