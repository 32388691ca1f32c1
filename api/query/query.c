#include "api/query/query.h"

#include "api/core/object_store_setup.h"
#include "api/core/query_memory.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/identity/tenant_limits.h"
#include "api/report/report.h"
#include "api/report/symbol_resolver.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/parallel.h"
#include "lib/input/time_parse.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/label_filter.h"
#include "store/store.h"

#include <inttypes.h>
#include <unistd.h>

enum { WINDOW_DEFAULT_S = 3600, MATCHES_MAX = 64 };

const struct query_parameters query_parameters = {"query", "start", "end"};
const char *const query_id_parameters[] = {"span_selector", "trace_id_selector", NULL};

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
