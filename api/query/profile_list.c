#include "api/query/profile_list.h"

#include "api/core/server.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/store_json.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <inttypes.h>

enum { ROWS_DEFAULT = 100 };

static enum err_code read_after(const struct request *request, struct store_profile_query *query,
                                struct err *err)
{
    struct store_profile_id *after = arena_new(request->arena, struct store_profile_id, 1);
    struct span text;
    if (!request_query(request, "after", &text))
        return ERR_NONE;
    if (!store_json_parse_profile_id(text, after))
        return err_set(err, ERR_INVALID,
                       "after is not a profile id: use next of the previous page");
    query->after = after;
    return ERR_NONE;
}

static enum err_code read_request(struct request *request, struct store_profile_query *query,
                                  struct err *err)
{
    static const char *const known[] = {"query", "start", "end", "limit", "after", NULL};
    int64_t limit = ROWS_DEFAULT;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = query_read(request, &query_parameters, NULL, &query->query, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, STORE_PROFILES_MAX, ROWS_DEFAULT, &limit, err);
    if (code)
        return code;
    query->max_profiles = (uint32_t)limit;
    return read_after(request, query, err);
}

static void append_profile(const struct store_profile_list *list,
                           const struct store_profile_entry *entry, struct buf *json)
{
    const struct store_series *series = &list->series[entry->series];
    char time[CLOCK_TEXT_BYTES];
    buf_append_text(json, "{\"id\":\"");
    store_json_append_profile_id(json, &entry->id);
    buf_printf(json,
               "\",\"time\":\"%s\",\"time_ns\":\"%" PRId64 "\",\"duration_ns\":%" PRId64
               ",\"total\":%" PRId64 ",\"unit\":",
               clock_format(entry->id.time_ns, time), entry->id.time_ns, entry->duration_ns,
               entry->total);
    buf_append_json(json, list->types[series->type].parts[STORE_TYPE_SAMPLE_UNIT]);
    buf_append_text(json, ",\"labels\":{\"__profile_type__\":");
    buf_append_json(json, span_text(list->types[series->type].name));
    buf_append_text(json, series->label_count ? "," : "");
    store_json_append_labels(json, series->labels, series->label_count);
    buf_append_text(json, "}}");
}

static void append_list(const struct store_profile_list *list, struct buf *json)
{
    buf_append_text(json, "{\"data\":[");
    for (uint32_t i = 0; i < list->profile_count; i++) {
        buf_append_text(json, i ? "," : "");
        append_profile(list, &list->profiles[i], json);
    }
    buf_append_text(json, "],\"next\":");
    if (list->has_more) {
        buf_append_byte(json, '"');
        store_json_append_profile_id(json, &list->profiles[list->profile_count - 1].id);
        buf_append_text(json, "\"}\n");
    } else {
        buf_append_text(json, "null}\n");
    }
}

static enum err_code get_profiles(struct request *request, struct response *response,
                                  struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct store_profile_query query = {0};
    struct store_profile_list list;
    enum err_code code = read_request(request, &query, err);
    if (code)
        return code;
    code = store_list_profiles(request->server->store, request->arena, &query, &list, err);
    if (code)
        return code;
    buf_auto json;
    buf_init(&json, STORE_JSON_MAX_BYTES);
    append_list(&list, &json);
    query_fields_add_statistics(request, response, &list.statistics, begin_ns);
    return store_json_respond(request, response, &json, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/profiles", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_profiles},
};

const struct route_table profile_list_routes = {routes, sizeof(routes) / sizeof(*routes)};
