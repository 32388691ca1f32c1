#include "api/query/query_report.h"

#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/report_cache.h"
#include "api/query/store_json.h"
#include "api/report/report_write.h"
#include "api/report/symbolization_status.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/report/call_graph.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/label_filter.h"
#include "store/store.h"

/* The parameters of a window and of one profile, besides the report's own. */
static const char *const label_names[] = {"label", "span_selector", "trace_id_selector", NULL};
static const char *const window_parameters[] = {"query", "start", "end", "report", NULL};
static const char *const profile_parameters[] = {"report", NULL};
static const struct report_source_names window_names = {window_parameters, label_names};
static const struct report_source_names profile_names = {profile_parameters, label_names};

/* A report by its name in the parameter `report`. */
struct named_report {
    const char *name;
    const struct report_kind *kind;
    unsigned parameters;
    int64_t default_limit;
};

static const struct named_report named_reports[] = {
    {"flame", &report_flame_binary, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_ROOT,
     FLAME_NODES_DEFAULT},
    {"top", &report_top, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT, REPORT_TOP_ROWS_DEFAULT},
    {"callers", &report_callers, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_FUNCTION,
     REPORT_TOP_ROWS_DEFAULT},
    {"callgraph", &report_call_graph, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT,
     CALL_GRAPH_NODES_DEFAULT},
    {"json", &report_flame_json, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_DEPTH,
     FLAME_NODES_DEFAULT},
    {"folded", &report_folded, REPORT_TAKES_VIEW, 0},
    {"labels", &report_labels, REPORT_TAKES_FILTER | REPORT_TAKES_LIMIT | REPORT_TAKES_KEY,
     REPORT_LABEL_VALUES_DEFAULT},
    {"pprof", &report_pprof, REPORT_TAKES_GROUP, 0},
    {"svg", &report_svg, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_DEPTH,
     FLAME_NODES_DEFAULT},
};

static enum err_code find_report(const struct request *request, const struct named_report **ret,
                                 struct err *err)
{
    struct span name = SPAN_LITERAL("flame");
    request_query(request, "report", &name);
    for (size_t i = 0; i < sizeof(named_reports) / sizeof(named_reports[0]); i++) {
        if (span_equal_text(name, named_reports[i].name)) {
            *ret = &named_reports[i];
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID,
                   "report must be one of flame, top, callers, callgraph, labels, json, folded, "
                   "pprof and svg");
}

static enum err_code read_report(struct request *request, const struct report_source_names *source,
                                 struct report **ret_report, struct err *err)
{
    const struct named_report *named = named_reports;
    *ret_report = arena_new(request->arena, struct report, 1);
    enum err_code code = find_report(request, &named, err);
    if (!code)
        code = report_read(request, named->kind, named->parameters, named->default_limit, source,
                           *ret_report, err);
    (*ret_report)->is_stored = true;
    request->has_found = code == ERR_NONE;
    return code;
}

static enum err_code respond_report(struct report_cache_request *report_request,
                                    struct response *response, const struct store_query *query,
                                    const struct store_result *result, int64_t begin_ns,
                                    struct err *err)
{
    enum err_code code = report_cache_respond(report_request, response, result, begin_ns, err);
    return query_explain_report_limit(query, code, err);
}

/* The query for a report's samples. */
static enum err_code read_samples(struct request *request, struct report *report,
                                  struct store_query *query, struct err *err)
{
    struct span label;
    if (report->kind == &report_pprof && report->group_by.size &&
        !view_find_label(report->group_by, &label))
        return err_set(err, ERR_INVALID, "group_by of pprof must be a label");
    enum err_code code = query_read_labels(request, query, err);
    query_prepare_report(request, report, query);
    report_drop_label_rules(report);
    return code;
}

static enum err_code merge_report(struct request *request, struct report *report,
                                  struct store_query *query,
                                  struct report_cache_request **ret_report_request,
                                  struct store_result *ret_result, struct err *err)
{
    enum err_code code = read_samples(request, report, query, err);
    query_limit_report(query, report);
    *ret_report_request = report_cache_create_request(request, report);
    report_cache_watch(*ret_report_request, query);
    if (code)
        return code;
    code = query_merge(request, query, ret_result, err);
    if (code)
        return code;
    report->left_out[VIEW_SIDE_B] = ret_result->left_out;
    report->is_label_known = !ret_result->absent_label;
    if (report->is_label_known)
        return ERR_NONE;
    query_fields_refuse_label(request->arena, report->label_key.size ? "key" : "group_by",
                              ret_result, err);
    store_result_fini(ret_result);
    return ERR_INVALID;
}

static enum err_code get_query(struct request *request, struct response *response, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct report *report;
    struct store_query query;
    struct store_result result;
    struct report_cache_request *report_request;
    enum err_code code = read_report(request, &window_names, &report, err);
    if (code)
        return code;
    code = query_read(request, &query_parameters, NULL, &query, err);
    if (code)
        return code;
    code = merge_report(request, report, &query, &report_request, &result, err);
    if (code)
        return code;
    code = respond_report(report_request, response, &query, &result, begin_ns, err);
    if (!code && !*result.type)
        query_fields_explain_labels(request, response, &query,
                                    report_cache_statistics(report_request));
    store_result_fini(&result);
    return code;
}

/* The data of one series at one time: a query with the window of that time only. */
static enum err_code get_profile(struct request *request, struct response *response,
                                 struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct report *report;
    struct store_profile_id id;
    struct store_query query;
    struct store_result result;
    struct report_cache_request *report_request;
    enum err_code code = read_report(request, &profile_names, &report, err);
    if (code)
        return code;
    if (!store_json_parse_profile_id(request->path_params[0], &id))
        code = err_set(err, ERR_NOT_FOUND, "no such profile");
    if (code)
        return code;
    code = query_read_window(request, &query_parameters, &query, err);
    if (code)
        return code;
    query.profile = &id;
    query.start_ns = id.time_ns;
    query.end_ns = id.time_ns + 1;
    code = merge_report(request, report, &query, &report_request, &result, err);
    if (code)
        return code;
    if (result.is_known || result.statistics.profile_count)
        code = respond_report(report_request, response, &query, &result, begin_ns, err);
    else
        code = err_set(err, ERR_NOT_FOUND, "no such profile");
    store_result_fini(&result);
    return code;
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/query", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_query},
    {HTTP_GET, "/api/v1/profiles/{id}", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_profile},
    {HTTP_GET, "/api/v1/symbolization", ACCESS_SCOPES, SCOPE_READ, 0, 0,
     symbolization_status_handle},
};

const struct route_table query_report_routes = {routes, sizeof(routes) / sizeof(*routes)};
