#include "api/query/series.h"

#include "api/core/server.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/store_json.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"

#include <inttypes.h>

enum { ROWS_DEFAULT = 1000, ROWS_MAX = 10000 };

/* A list that is returned in pages: texts in order, and the JSON to write for each. */
struct rows {
    const struct store_series_list *list;
    const struct span *texts;
    uint32_t count;
    void (*append)(const struct rows *rows, uint32_t row, struct buf *json);
};

/* Fills rows except the list. */
typedef void (*make_rows)(struct request *request, struct rows *rows);

static void append_text(const struct rows *rows, uint32_t row, struct buf *json)
{
    buf_append_json(json, rows->texts[row]);
}

static void append_type(const struct rows *rows, uint32_t row, struct buf *json)
{
    static const char *const names[STORE_TYPE_PARTS] = {"name", "sample_type", "sample_unit",
                                                        "period_type", "period_unit"};
    const struct store_type *type = &rows->list->types[row];
    buf_append_text(json, "{\"type\":");
    buf_append_json(json, span_text(type->name));
    for (int i = 0; i < STORE_TYPE_PARTS; i++) {
        buf_printf(json, ",\"%s\":", names[i]);
        buf_append_json(json, type->parts[i]);
    }
    buf_printf(json, ",\"delta\":%s,\"rule\":\"%s\"}",
               type->kind == BATCH_KIND_DELTA ? "true" : "false",
               store_aggregation_name(type->aggregation));
}

static void append_series(const struct rows *rows, uint32_t row, struct buf *json)
{
    const struct store_series *series = &rows->list->series[row];
    buf_append_text(json, "{\"__profile_type__\":");
    buf_append_json(json, span_text(rows->list->types[series->type].name));
    buf_append_text(json, series->label_count ? "," : "");
    store_json_append_labels(json, series->labels, series->label_count);
    buf_append_byte(json, '}');
}

static void make_names(struct request *request, struct rows *rows)
{
    store_list_label_names(request->arena, rows->list, &rows->texts, &rows->count);
    rows->append = append_text;
}

static void make_values(struct request *request, struct rows *rows)
{
    store_list_label_values(request->arena, rows->list, request->path_params[0], &rows->texts,
                            &rows->count);
    rows->append = append_text;
}

static void make_types(struct request *request, struct rows *rows)
{
    struct span *texts = arena_new(request->arena, struct span, rows->list->type_count);
    rows->count = rows->list->type_count;
    for (uint32_t i = 0; i < rows->count; i++)
        texts[i] = span_text(rows->list->types[i].name);
    rows->texts = texts;
    rows->append = append_type;
}

static void make_series(struct request *request, struct rows *rows)
{
    struct span *texts = arena_new(request->arena, struct span, rows->list->series_count);
    rows->count = rows->list->series_count;
    for (uint32_t i = 0; i < rows->count; i++)
        texts[i] = span_text(rows->list->texts[i]);
    rows->texts = texts;
    rows->append = append_series;
}

static void append_page(const struct request *request, const struct rows *rows, int64_t limit,
                        struct buf *json)
{
    struct span after;
    uint32_t row = 0, shown = 0;
    if (request_query(request, "after", &after)) {
        while (row < rows->count && span_compare(rows->texts[row], after) <= 0)
            row++;
    }
    buf_append_text(json, "{\"data\":[");
    for (; row < rows->count && shown < limit; row++, shown++) {
        buf_append_text(json, shown ? "," : "");
        rows->append(rows, row, json);
    }
    buf_append_text(json, "],\"next\":");
    if (row < rows->count)
        buf_append_json(json, rows->texts[row - 1]);
    else
        buf_append_text(json, "null");
    buf_append_text(json, "}\n");
}

/* A slot of its own, not one of the team's queries: completing a selector while it is typed costs
 * little and should not wait for them. */
static void name_slot(struct request *request)
{
    if (!request->concurrency_slot.key)
        request->concurrency_slot.key =
            arena_printf(request->arena, "lists of tenant %" PRId64, request->principal.tenant_id);
}

static enum err_code respond_list(struct request *request, struct response *response,
                                  make_rows make, struct err *err)
{
    static const char *const single[] = {"start", "end", "limit", "after", NULL};
    static const char *const repeatable[] = {"match[]", NULL};
    const int64_t begin_ns = clock_monotonic_ns();
    struct store_query query;
    struct store_series_list list;
    int64_t limit;
    enum err_code code = request_check_parameters(request, single, repeatable, err);
    name_slot(request);
    if (code)
        return code;
    code = query_read_window(request, &query_parameters, &query, err);
    if (code)
        return code;
    code = query_read_matches(request, &query, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, ROWS_MAX, ROWS_DEFAULT, &limit, err);
    if (code)
        return code;
    code = store_list_series(request->server->store, request->arena, &query, &list, err);
    if (code)
        return code;
    struct rows rows = {.list = &list};
    make(request, &rows);
    buf_auto json;
    buf_init(&json, STORE_JSON_MAX_BYTES);
    append_page(request, &rows, limit, &json);
    query_fields_add_statistics(request, response, &list.statistics, begin_ns);
    return store_json_respond(request, response, &json, err);
}

static enum err_code get_labels(struct request *request, struct response *response, struct err *err)
{
    return respond_list(request, response, make_names, err);
}

static enum err_code get_label_values(struct request *request, struct response *response,
                                      struct err *err)
{
    return respond_list(request, response, make_values, err);
}

static enum err_code get_series(struct request *request, struct response *response, struct err *err)
{
    return respond_list(request, response, make_series, err);
}

static enum err_code get_types(struct request *request, struct response *response, struct err *err)
{
    return respond_list(request, response, make_types, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/labels", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_labels},
    {HTTP_GET, "/api/v1/label/{name}/values", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_label_values},
    {HTTP_GET, "/api/v1/series", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_series},
    {HTTP_GET, "/api/v1/profile_types", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_types},
};

const struct route_table series_routes = {routes, sizeof(routes) / sizeof(*routes)};
