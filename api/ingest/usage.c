#include "api/ingest/usage.h"

#include "api/core/server.h"
#include "api/http/json_response.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/input/time_parse.h"
#include "lib/io/pg.h"

enum { DAYS_DEFAULT = 30, DAYS_MAX = 1100 };
#define DAY_NS (24 * 3600 * CLOCK_NS_PER_S)

/* Days since 1970, both inclusive. */
struct window {
    int64_t first;
    int64_t last;
};

static int64_t day_of(int64_t time_ns)
{
    return time_ns / DAY_NS - (time_ns % DAY_NS < 0);
}

static enum err_code read_day(const struct request *request, const char *name, int64_t now_ns,
                              int64_t fallback, int64_t *ret_day, struct err *err)
{
    struct span text;
    int64_t time_ns;
    *ret_day = fallback;
    if (!request_query(request, name, &text) || !text.size)
        return ERR_NONE;
    enum err_code code = time_parse(text, now_ns, &time_ns, err);
    if (code)
        return err_add(err, "%s", name);
    *ret_day = day_of(time_ns);
    return ERR_NONE;
}

static enum err_code read_window(const struct request *request, struct window *window,
                                 struct err *err)
{
    static const char *const known[] = {"start", "end", NULL};
    const int64_t now_ns = clock_wall_ns();
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = read_day(request, "end", now_ns, day_of(now_ns), &window->last, err);
    if (code)
        return code;
    code = read_day(request, "start", now_ns, window->last - DAYS_DEFAULT + 1, &window->first, err);
    if (code)
        return code;
    if (window->first > window->last)
        return err_set(err, ERR_INVALID, "start must not be after end");
    if (window->last - window->first >= DAYS_MAX)
        return err_set(err, ERR_INVALID, "at most %d days at once: select a shorter time",
                       DAYS_MAX);
    return ERR_NONE;
}

/* The last row is the sum of all days. */
static enum err_code read_days(const struct request *request, struct pg_connection *connection,
                               const struct window *window, struct pg_result **ret_rows,
                               struct err *err)
{
    return pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT to_char(day, 'YYYY-MM-DD'), coalesce(sum(batches), 0)::bigint,"
        " coalesce(sum(profiles), 0)::bigint, coalesce(sum(samples), 0)::bigint,"
        " coalesce(sum(bytes), 0)::bigint, coalesce(sum(cut_strings), 0)::bigint,"
        " coalesce(sum(series), 0)::bigint FROM ingest_usage"
        " WHERE day BETWEEN DATE '1970-01-01' + $1::integer AND DATE '1970-01-01' + $2::integer"
        " GROUP BY ROLLUP (day) ORDER BY day",
        request->arena, ret_rows, err, PG_I64(window->first), PG_I64(window->last));
}

/* The present stored amount, after compaction. */
static enum err_code read_stored(const struct request *request, struct pg_connection *connection,
                                 struct pg_result **ret_row, struct err *err)
{
    return pg_query(connection, request->principal.tenant_id,
                    "SELECT (SELECT coalesce(sum(bytes), 0) FROM block WHERE swapped_at IS NULL)"
                    " + (SELECT coalesce(sum(length), 0) FROM segment_tenant,"
                    " unnest(lengths) AS length WHERE NOT is_swapped)",
                    NULL, 0, request->arena, ret_row, err);
}

static void write_sums(struct json_response *json, const struct pg_result *rows, int row)
{
    static const char *const names[] = {"batches", "profiles", "samples", "bytes", "cut_strings"};
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
        json_response_i64(json, names[i], pg_get_i64(rows, row, i + 1));
}

static void write_usage(struct json_response *json, const struct pg_result *rows,
                        const struct pg_result *stored)
{
    const int days = pg_row_count(rows) - 1;
    json_response_open(json, NULL, '{');
    json_response_open(json, "days", '[');
    for (int row = 0; row < days; row++) {
        json_response_open(json, NULL, '{');
        json_response_cell_text(json, "day", rows, row, 0);
        write_sums(json, rows, row);
        json_response_cell_i64(json, "series", rows, row, 6);
        json_response_close(json, '}');
    }
    json_response_close(json, ']');
    json_response_open(json, "total", '{');
    write_sums(json, rows, days);
    json_response_close(json, '}');
    json_response_cell_i64(json, "bytes_stored", stored, 0, 0);
    json_response_close(json, '}');
}

static enum err_code get_usage(struct request *request, struct response *response, struct err *err)
{
    struct window window;
    struct pg_result *rows, *stored;
    pg_auto connection = NULL;
    enum err_code code = read_window(request, &window, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = read_days(request, connection, &window, &rows, err);
    if (code)
        return code;
    code = read_stored(request, connection, &stored, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    write_usage(&json, rows, stored);
    return json_response_send(&json, request, response, 200, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/usage", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_usage},
};

const struct route_table usage_routes = {routes, sizeof(routes) / sizeof(*routes)};
