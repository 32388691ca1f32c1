#include "api/share/share_admin.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/tenant.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_runtime.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/share_text.h"
#include "lib/io/pg.h"

#include <inttypes.h>

/* Open reports. Anybody may report, so they are limited like other texts of strangers. */
enum { MAX_OPEN_OF_SHARE = 20, MAX_OPEN = 5000, RETRY_S = 3600 };

static enum err_code read_reason(struct request *request, const char **ret_reason, struct err *err)
{
    static const char *const known[] = {"reason", NULL};
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "reason", 1, (size_t)4 * SHARE_REPORT_CHARACTERS, ret_reason, err);
    if (code)
        return code;
    return share_text_check("reason", span_text(*ret_reason), SHARE_REPORT_CHARACTERS, false, err);
}

enum err_code share_admin_report(struct request *request, struct response *response,
                                 struct err *err)
{
    struct share share;
    const char *reason;
    enum err_code code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    code = read_reason(request, &reason, err);
    if (code)
        return code;
    code = rate_limiter_take(request->server->limits->rate_limiter, LIMIT_REPORT_ADDRESS,
                             span_text(request->address), SHARE_REPORTS_PER_MINUTE,
                             SHARE_REPORTS_PER_MINUTE, err);
    pg_auto connection = NULL;
    struct pg_result *result;
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, share.tenant_id,
                           "SELECT abuse_report_add($1::bigint, $2::text, $3::text, $4::text,"
                           " $5::bigint, $6::bigint)",
                           request->arena, &result, err, PG_I64(share.tenant_id), PG_TEXT(share.id),
                           PG_TEXT(reason), PG_TEXT(request->address), PG_I64(MAX_OPEN_OF_SHARE),
                           PG_I64(MAX_OPEN));
    if (code)
        return code;
    if (pg_is_null(result, 0, 0)) {
        err_set(err, ERR_RATE_LIMITED,
                "this share, or the server, has the most open reports that it may have: the "
                "operator will look at them");
        err->retry_after_s = RETRY_S;
        return ERR_RATE_LIMITED;
    }
    char *json = arena_printf(request->arena, "{\"id\":%" PRId64 "}", pg_get_i64(result, 0, 0));
    response_bytes(response, 201, "application/json", span_text(json));
    return ERR_NONE;
}

static void append_report(struct request *request, const struct pg_result *result, int row,
                          struct buf *json)
{
    char time[CLOCK_TEXT_BYTES];
    buf_printf(json, "%s{\"id\":%" PRId64 ",\"share_id\":\"%s\",\"url\":", row ? "," : "",
               pg_get_i64(result, row, 0), pg_get_text(result, row, 1));
    buf_append_json(json, span_text(arena_printf(request->arena, "%s/p/%s",
                                                 request->server->settings->public_url,
                                                 pg_get_text(result, row, 1))));
    buf_printf(json, ",\"tenant_id\":%" PRId64 ",\"reason\":", pg_get_i64(result, row, 2));
    buf_append_json(json, span_text(pg_get_text(result, row, 3)));
    buf_append_text(json, ",\"address\":");
    buf_append_json(json, span_text(pg_get_text(result, row, 4)));
    buf_printf(json, ",\"created_at\":\"%s\",\"title\":",
               clock_format(pg_get_i64(result, row, 5) * CLOCK_NS_PER_MS, time));
    buf_append_json(json, span_text(pg_get_text(result, row, 6)));
    buf_append_text(json, ",\"visibility\":");
    buf_append_json(json, span_text(pg_get_text(result, row, 7)));
    buf_append_byte(json, '}');
}

enum err_code share_admin_list_reports(struct request *request, struct response *response,
                                       struct err *err)
{
    static const char *const known[] = {"cursor", "limit", NULL};
    int64_t after, limit;
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "cursor", 0, INT64_MAX, 0, &after, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, 200, 50, &limit, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT r.id, r.share_id, r.tenant_id, r.reason, r.address,"
        " (extract(epoch FROM r.created_at) * 1000)::bigint, s.title, s.visibility"
        " FROM abuse_report r JOIN share s ON s.id = r.share_id"
        " WHERE r.closed_at IS NULL AND r.id > $1::bigint ORDER BY r.id LIMIT $2::bigint",
        request->arena, &result, err, PG_I64(after), PG_I64(limit));
    if (code)
        return code;
    buf_auto json;
    buf_init(&json, 16 << 20);
    int row_count = pg_row_count(result);
    buf_append_text(&json, "{\"reports\":[");
    for (int row = 0; row < row_count; row++)
        append_report(request, result, row, &json);
    if (row_count == limit)
        buf_printf(&json, "],\"next_cursor\":\"%" PRId64 "\"}",
                   pg_get_i64(result, row_count - 1, 0));
    else
        buf_append_text(&json, "],\"next_cursor\":null}");
    response_add(request, response, "cache-control", "no-store");
    return response_buf(request, response, 200, "application/json", &json, err);
}

enum err_code share_admin_close_report(struct request *request, struct response *response,
                                       struct err *err)
{
    uint64_t id;
    pg_auto connection = NULL;
    struct pg_result *result;
    if (!span_parse_u64(request->path_params[0], &id) || id > INT64_MAX)
        return err_set(err, ERR_NOT_FOUND,
                       "a report's id is a number, as the list of reports shows it");
    enum err_code code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "UPDATE abuse_report SET closed_at = now()"
                           " WHERE id = $1::bigint AND closed_at IS NULL",
                           request->arena, &result, err, PG_I64((int64_t)id));
    if (code)
        return code;
    if (pg_affected(result) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no open report %" PRIu64 ": look at the list of open ones", id);
    response->status = 204;
    return ERR_NONE;
}

/* The audit log's target: id and reason, cut between characters. */
static const char *takedown_target(struct request *request, const struct share *share,
                                   const char *reason)
{
    size_t size = strlen(reason);
    if (size > 200)
        for (size = 200; size > 0 && ((uint8_t)reason[size] & 0xc0) == 0x80;)
            size--;
    return arena_printf(request->arena, "%s: %.*s", share->id, (int)size, reason);
}

static enum err_code take_down(struct request *request, const struct share *share,
                               const char *reason, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, share->tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, share->tenant_id,
                           "UPDATE share SET state = 'deleting', gone_reason = 'taken down',"
                           " gone_at = now() WHERE id = $1::text AND state = 'live'",
                           request->arena, &result, err, PG_TEXT(share->id));
    if (code)
        return code;
    code = pg_query_values(connection, share->tenant_id,
                           "UPDATE abuse_report SET closed_at = now()"
                           " WHERE share_id = $1::text AND closed_at IS NULL",
                           request->arena, &result, err, PG_TEXT(share->id));
    if (code)
        return code;
    code = audit_record_for(connection, request, share->tenant_id, "share.takedown",
                            takedown_target(request, share, reason), err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code share_admin_take_down(struct request *request, struct response *response,
                                    struct err *err)
{
    struct share share;
    const char *reason;
    enum err_code code =
        share_find(request->server, request->path_params[0], request->arena, &share, err);
    if (code)
        return code;
    code = read_reason(request, &reason, err);
    if (code)
        return code;
    code = take_down(request, &share, reason, err);
    if (code)
        return code;
    share_runtime_forget(request->server, share.id);
    response->status = 204;
    return ERR_NONE;
}
