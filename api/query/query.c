#include "api/query/query.h"

#include "api/core/object_store_setup.h"
#include "api/core/query_memory.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/identity/tenant_limits.h"
#include "api/query/report_cache.h"
#include "api/query/store_json.h"
#include "api/report/report_write.h"
#include "api/report/symbol_resolver.h"
#include "api/report/symbolization_status.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/parallel.h"
#include "lib/base/time_parse.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/call_graph.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/label_filter.h"
#include "store/store.h"

#include <inttypes.h>
#include <unistd.h>

enum { WINDOW_DEFAULT_S = 3600, MATCHES_MAX = 64 };

const struct query_parameters query_parameters = {"query", "start", "end"};
const char *const query_id_parameters[] = {"span_selector", "trace_id_selector", NULL};

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

static enum err_code read_time(const struct request *request, const char *name, int64_t now_ns,
                               int64_t fallback_ns, int64_t *ret_ns, struct err *err)
{
    struct span text;
    *ret_ns = fallback_ns;
    if (!request_query(request, name, &text) || !text.size)
        return ERR_NONE;
    enum err_code code = time_parse(text, now_ns, ret_ns, err);
    return code ? err_add(err, "%s", name) : ERR_NONE;
}

static int64_t hour_before(int64_t end_ns)
{
    const int64_t hour_ns = WINDOW_DEFAULT_S * CLOCK_NS_PER_S;
    return end_ns < INT64_MIN + hour_ns ? INT64_MIN : end_ns - hour_ns;
}

static bool has_window(const struct request *request, const struct query_parameters *names)
{
    struct span text;
    return request_query(request, names->start, &text) || request_query(request, names->end, &text);
}

static enum err_code read_window(const struct request *request,
                                 const struct query_parameters *names, struct store_query *query,
                                 struct err *err)
{
    const int64_t now_ns = clock_wall_ns();
    enum err_code code = read_time(request, names->end, now_ns, now_ns, &query->end_ns, err);
    if (code)
        return code;
    code =
        read_time(request, names->start, now_ns, hour_before(query->end_ns), &query->start_ns, err);
    if (code)
        return code;
    if (query->start_ns >= query->end_ns)
        return err_set(err, ERR_INVALID, "%s must be before %s", names->start, names->end);
    int64_t window_ns; /* so that computations with it do not overflow */
    if (__builtin_sub_overflow(query->end_ns, query->start_ns, &window_ns))
        return err_set(err, ERR_INVALID, "from %s to %s are more than 292 years", names->start,
                       names->end);
    return ERR_NONE;
}

static const char *describe_limit(const struct request *request, const struct tenant_limits *limits,
                                  enum tenant_limit limit)
{
    char text[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(limits, limit, text);
    return arena_strdup(request->arena, text);
}

/* A tenant's queries use at most half of the workers, so that many of them delay each other but
 * neither other tenants nor other requests. Unless queries wait for a bucket, at most one runs per
 * processor: more would not end sooner, and each would hold memory meanwhile. */
static int max_queries(const struct settings *settings)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int useful = processors > 2 ? (int)processors : 2;
    int most = settings->worker_threads / 2;
    if (!object_store_setup_are_in_s3(settings) && most > useful)
        most = useful;
    return most > 1 ? most : 1;
}

/* Requests other than GET are not put aside: without a slot they get 503. */
static enum err_code take_slot(struct request *request, struct err *err)
{
    /* The request is handled again, or has a slot for a share or a list already. */
    if (request->concurrency_slot.key)
        return report_take_slot(request, request->concurrency_slot.key, err);
    request->concurrency_slot.most = max_queries(request->server->settings);
    const char *key = arena_printf(request->arena, "tenant %" PRId64, request->principal.tenant_id);
    return report_take_slot(request, key, err);
}

enum err_code query_read_window(struct request *request, const struct query_parameters *names,
                                struct store_query *ret_query, struct err *err)
{
    struct tenant_limits limits;
    *ret_query = (struct store_query){.tenant_id = request->principal.tenant_id,
                                      .wait_limit.is_cancelled = request->is_cancelled};
    enum err_code code = take_slot(request, err);
    if (code)
        return code;
    code = read_window(request, names, ret_query, err);
    if (code)
        return code;
    code = tenant_limits_get(request, &limits, err);
    if (code)
        return code;
    const int64_t *values = limits.values;
    ret_query->cpu_deadline_ns =
        parallel_cpu_ns() + values[TENANT_LIMIT_QUERY_CPU_S] * CLOCK_NS_PER_S;
    ret_query->wait_limit.deadline_ns =
        clock_monotonic_ns() + values[TENANT_LIMIT_QUERY_TIME_S] * CLOCK_NS_PER_S;
    ret_query->max_memory = (size_t)values[TENANT_LIMIT_QUERY_MEMORY_BYTES];
    ret_query->max_read_bytes = (uint64_t)values[TENANT_LIMIT_QUERY_READ_BYTES];
    ret_query->texts.cpu = describe_limit(request, &limits, TENANT_LIMIT_QUERY_CPU_S);
    ret_query->texts.time = describe_limit(request, &limits, TENANT_LIMIT_QUERY_TIME_S);
    ret_query->texts.memory = describe_limit(request, &limits, TENANT_LIMIT_QUERY_MEMORY_BYTES);
    ret_query->texts.read = describe_limit(request, &limits, TENANT_LIMIT_QUERY_READ_BYTES);
    query_memory_enter(request->server->query_memory, request->arena, &request->query_slots,
                       ret_query);
    return ERR_NONE;
}

enum err_code query_read(struct request *request, const struct query_parameters *names,
                         const struct query_parameters *others, struct store_query *ret_query,
                         struct err *err)
{
    struct span *selector = arena_new(request->arena, struct span, 1);
    if (!request_query(request, names->query, selector) || !selector->size)
        return err_set(err, ERR_INVALID,
                       "%s is missing: a profile type and labels, as in "
                       "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\"}",
                       names->query);
    enum err_code code = query_read_window(
        request, others && !has_window(request, names) ? others : names, ret_query, err);
    ret_query->selectors = selector;
    ret_query->selector_count = 1;
    return code;
}

enum err_code query_read_matches(const struct request *request, struct store_query *query,
                                 struct err *err)
{
    struct span *selectors = arena_new(request->arena, struct span, MATCHES_MAX);
    struct span text;
    size_t count = 0;
    for (; request_query_nth(request, "match[]", count, &text); count++) {
        if (count == MATCHES_MAX)
            return err_set(err, ERR_INVALID, "match[] is given more than %d times", MATCHES_MAX);
        selectors[count] = text;
    }
    query->selectors = selectors;
    query->selector_count = count;
    query->selectors_name = "match[]";
    return ERR_NONE;
}

/* ---- labels of samples ---- */

struct label_rules {
    struct span texts[LABEL_RULES_MAX];
    size_t count;
};

static enum err_code add_rule(struct label_rules *rules, struct span text, struct err *err)
{
    if (rules->count == LABEL_RULES_MAX)
        return err_set(err, ERR_INVALID, "there are more than %d of label, %s and %s",
                       LABEL_RULES_MAX, query_id_parameters[0], query_id_parameters[1]);
    rules->texts[rules->count++] = text;
    return ERR_NONE;
}

/* Ids of spans have 8 bytes, those of traces 16. */
static enum err_code read_ids(const struct request *request, const char *name, const char *label,
                              size_t bytes, struct label_rules *rules, struct err *err)
{
    uint8_t id[16];
    char hex[2 * sizeof(id) + 1];
    struct span text;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && request_query_nth(request, name, i, &text); i++) {
        if (!digest_parse_hex(text, id, bytes))
            return err_set(err, ERR_INVALID, "%s must be an id of %zu hexadecimal digits", name,
                           2 * bytes);
        digest_hex(span_of(id, bytes), hex);
        code = add_rule(rules, span_text(arena_printf(request->arena, "%s=%s", label, hex)), err);
    }
    return code;
}

enum err_code query_read_labels(const struct request *request, struct store_query *query,
                                struct err *err)
{
    struct label_rules rules = {.count = 0};
    struct span text;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && request_query_nth(request, "label", i, &text); i++) {
        if (text.size)
            code = add_rule(&rules, text, err);
    }
    if (code)
        return code;
    code = read_ids(request, query_id_parameters[0], "span_id", 8, &rules, err);
    if (code)
        return code;
    code = read_ids(request, query_id_parameters[1], "trace_id", 16, &rules, err);
    if (code)
        return code;
    code = label_filter_create(request->arena, rules.texts, rules.count, &query->label_filter, err);
    return code ? err_add(err, "label") : ERR_NONE;
}

static size_t report_bytes(const void *context, const struct profile *profile)
{
    return report_memory(context, profile);
}

void query_prepare_report(const struct request *request, const struct report *report,
                          struct store_query *query)
{
    query->result_use_bytes = report_bytes;
    query->result_use_context = report;
    struct span *label = arena_new(request->arena, struct span, 1);
    *label = report->label_key;
    query->resolver = symbol_resolver_resolver(request->server->symbol_resolver, report->names);
    query->wants_all_labels = report->kind->counts_labels && !label->size;
    if (!label->size && !view_find_label(report->group_by, label))
        return;
    query->label_names = label;
    query->label_name_count = 1;
}

enum err_code query_merge(const struct request *request, const struct store_query *query,
                          struct store_result *ret_result, struct err *err)
{
    return store_merge(request->server->store, request->arena, query, ret_result, err);
}

static const char *describe_broken(struct arena *arena, const struct store_statistics *read)
{
    if (!read->broken_count)
        return "";
    return arena_printf(
        arena,
        "%" PRIu32 " of the parts to be read %s broken and left out of the result; the first: %s",
        read->broken_count, read->broken_count == 1 ? "is" : "are", read->broken_message);
}

static const char *describe_oversized(struct arena *arena, const struct store_statistics *read)
{
    if (!read->oversized_count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s left out: names take too much of the query's memory "
                        "there; the largest takes %s",
                        read->oversized_count,
                        read->oversized_count == 1 ? "block is" : "blocks are",
                        read->oversized_message);
}

static const char *describe_hours(struct arena *arena, uint32_t count)
{
    return arena_printf(arena, "%" PRIu32 " %s, counted by series and block,", count,
                        count == 1 ? "hour" : "hours");
}

static const char *describe_totals(struct arena *arena, const struct store_statistics *read)
{
    const char *cut = "", *unlabelled = "";
    if (read->cut_count)
        cut = arena_printf(arena,
                           "%s %s left out: only totals are kept there; let windows and steps "
                           "begin and end at full hours",
                           describe_hours(arena, read->cut_count),
                           read->cut_count == 1 ? "is" : "are");
    const uint32_t unlabelled_count = read->unlabelled_count + read->unmatched_count;
    if (unlabelled_count)
        unlabelled = arena_printf(arena, "%sof %s labels of samples are not kept any more",
                                  *cut ? "; " : "", describe_hours(arena, unlabelled_count));
    return arena_printf(arena, "%s%s", cut, unlabelled);
}

/* Snapshots of two processes in one series look like restarts. */
static const char *describe_restarts(struct arena *arena, uint32_t count)
{
    if (!count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s in more than a quarter of the snapshots: if several "
                        "processes send the same labels, give each a label of its own, such as "
                        "instance",
                        count, count == 1 ? "counter restarts" : "counters restart");
}

/* A gauge shows one of them at a time, not their sum. */
static const char *describe_interleaved(struct arena *arena, uint32_t count)
{
    if (!count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s the snapshots of several processes in turn, not their sum: "
                        "give each process a label of its own, such as instance",
                        count, count == 1 ? "gauge shows" : "gauges show");
}

/* Where labels of samples are lost, the hours are named instead. */
static const char *describe_absent(struct arena *arena, const struct store_statistics *read)
{
    if (!read->absent_filter_label || !read->profile_count || read->unlabelled_count)
        return "";
    return arena_printf(arena, "label: %s", read->absent_filter_label);
}

const char *query_describe_missing(struct arena *arena, const struct store_statistics *read)
{
    const char *parts[] = {describe_broken(arena, read),
                           describe_oversized(arena, read),
                           describe_totals(arena, read),
                           describe_absent(arena, read),
                           describe_restarts(arena, read->restarting_count),
                           describe_interleaved(arena, read->interleaved_count)};
    char *text = arena_strdup(arena, "");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        text = arena_printf(arena, "%s%s%s", text, *text && *parts[i] ? "; " : "", parts[i]);
    for (char *at = text; *at; at++)
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    return *text ? text : NULL;
}

void query_add_statistics(struct request *request, struct response *response,
                          const struct store_statistics *read, int64_t begin_ns)
{
    response_add(request, response, "perfolio-statistics",
                 arena_printf(request->arena,
                              "blocks=%" PRIu32 ", granules=%" PRIu32 ", series=%" PRIu32
                              ", profiles=%" PRIu64 ", rows=%" PRIu64 ", bytes=%" PRIu64
                              ", unnamed=%" PRIu32 ", totals=%" PRIu32 ", cut=%" PRIu32
                              ", us=%" PRId64,
                              read->block_count, read->granule_count, read->series_count,
                              read->profile_count, read->row_count, read->bytes_read,
                              read->names.unknown_count, read->totals_count, read->cut_count,
                              (clock_monotonic_ns() - begin_ns) / 1000));
    const char *missing = query_describe_missing(request->arena, read);
    if (missing)
        response_add(request, response, "perfolio-warning", missing);
}

/* Texts from profiles are escaped. */
void query_add_fields(struct request *request, struct response *response,
                      const struct store_result *result, int64_t begin_ns)
{
    buf_auto type;
    buf_init(&type, 1 << 16);
    buf_append_url(&type, span_text(result->type));
    response_add(request, response, "perfolio-profile-type",
                 arena_strndup(request->arena, type.data, type.size));
    response_add(request, response, "perfolio-rule", store_aggregation_name(result->aggregation));
    query_add_statistics(request, response, &result->statistics, begin_ns);
}

void query_limit_report(const struct store_query *query, struct report *report)
{
    report->cpu_deadline_ns = query->cpu_deadline_ns;
    report->wait_limit = query->wait_limit;
}

enum err_code query_explain_report_limit(const struct store_query *query, enum err_code code,
                                         struct err *err)
{
    const bool is_late = wait_limit_is_late(&query->wait_limit);
    if (code != ERR_TOO_LARGE || (parallel_cpu_ns() < query->cpu_deadline_ns && !is_late))
        return code;
    return err_set(err, ERR_LIMIT,
                   "the report of this query exceeds its time limit: narrow it with focus or "
                   "ignore, or select fewer series or a shorter time (%s)",
                   is_late ? query->texts.time : query->texts.cpu);
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

static enum err_code respond_report(struct report_request *report_request,
                                    struct response *response, const struct store_query *query,
                                    const struct store_result *result, int64_t begin_ns,
                                    struct err *err)
{
    enum err_code code = report_request_respond(report_request, response, result, begin_ns, err);
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

enum err_code query_refuse_label(struct arena *arena, const char *parameter,
                                 const struct store_result *result, struct err *err)
{
    const char *missing = query_describe_missing(arena, &result->statistics);
    return err_set(err, ERR_INVALID, "%s: %s%s%s", parameter, result->absent_label,
                   missing ? "; " : "", missing ? missing : "");
}

static enum err_code merge_report(struct request *request, struct report *report,
                                  struct store_query *query,
                                  struct report_request **ret_report_request,
                                  struct store_result *ret_result, struct err *err)
{
    enum err_code code = read_samples(request, report, query, err);
    query_limit_report(query, report);
    *ret_report_request = report_request_create(request, report);
    report_request_watch(*ret_report_request, query);
    if (code)
        return code;
    code = query_merge(request, query, ret_result, err);
    if (code)
        return code;
    report->left_out[VIEW_SIDE_B] = ret_result->left_out;
    report->is_label_known = !ret_result->absent_label;
    if (report->is_label_known)
        return ERR_NONE;
    query_refuse_label(request->arena, report->label_key.size ? "key" : "group_by", ret_result,
                       err);
    store_result_fini(ret_result);
    return ERR_INVALID;
}

void query_explain_labels(struct request *request, struct response *response,
                          const struct store_query *query, const struct store_statistics *read)
{
    struct span name;
    struct err ignored;
    if (read->profile_count || query_describe_missing(request->arena, read))
        return;
    if (store_find_absent_label(request->server->store, request->arena, query, &name, &ignored) ||
        !name.size)
        return;
    response_add(request, response, "perfolio-warning",
                 arena_printf(request->arena,
                              "no series and no sample of this window has the label %.*s",
                              SPAN_PRINT(name)));
}

static enum err_code get_query(struct request *request, struct response *response, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct report *report;
    struct store_query query;
    struct store_result result;
    struct report_request *report_request;
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
        query_explain_labels(request, response, &query, report_request_statistics(report_request));
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
    struct report_request *report_request;
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

const struct route_table query_routes = {routes, sizeof(routes) / sizeof(*routes)};
