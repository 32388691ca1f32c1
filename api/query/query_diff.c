#include "api/query/query_diff.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/identity/auth.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/report/report_body.h"
#include "api/report/report_write.h"
#include "api/report/symbolization_status.h"
#include "api/share/profile_cache.h"
#include "api/share/share_access.h"
#include "api/share/share_report.h"
#include "api/share/share_runtime.h"
#include "api/share/share_summary.h"
#include "api/share/view_counter.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/label_filter.h"
#include "store/store.h"

enum { SIDES = 2 };

static const char *const parameter_names[] = {"a",     "b",       "mode",    "a_query", "a_start",
                                              "a_end", "b_query", "b_start", "b_end",   NULL};

static const struct report_source_names source_names = {.single = parameter_names};

/* Two sides, each of which is a share or a query. */
struct query_diff {
    struct share_report pair;
    const struct store_query *queries[SIDES]; /* NULL: that side is a share */
};

static const char *const share_names[SIDES] = {"a", "b"};
static const struct query_parameters side_names[SIDES] = {{"a_query", "a_start", "a_end"},
                                                          {"b_query", "b_start", "b_end"}};

static bool has_parameter(const struct request *request, const char *name)
{
    struct span text;
    return request_query(request, name, &text);
}

static enum err_code read_share(struct request *request, size_t side, struct query_diff *diff,
                                struct err *err)
{
    const struct query_parameters *names = &side_names[side];
    const char *name = share_names[side];
    struct span id;
    for (int i = 0; i < 2; i++) {
        const char *window = i ? names->end : names->start;
        if (has_parameter(request, window))
            return err_set(err, ERR_INVALID, "%s is only for %s: a share has no window", window,
                           names->query);
    }
    if (!request_query(request, name, &id) || id.size == 0)
        return err_set(err, ERR_INVALID, "%s is missing: the id of a share, or a query in %s", name,
                       names->query);
    enum err_code code = share_report_read_side(request, id, side, &diff->pair, err);
    return code ? err_add(err, "%s", name) : ERR_NONE;
}

/* For two queries the store applies the rules about labels. Beside a share the report applies them,
 * to both sides, so the query's samples need the labels. */
static enum err_code read_samples(struct request *request, const struct report *report,
                                  bool is_beside_share, struct store_query *query, struct err *err)
{
    struct span *names = arena_new(request->arena, struct span, LABEL_RULES_MAX + 1);
    enum err_code code = query_read_labels(request, query, err);
    if (code)
        return code;
    query_prepare_report(request, report, query);
    if (!is_beside_share || !query->label_filter)
        return ERR_NONE;
    size_t count = label_filter_keys(query->label_filter, names);
    bool is_there = !query->label_name_count;
    for (size_t i = 0; i < count && !is_there; i++)
        is_there = span_equal(names[i], query->label_names[0]);
    if (!is_there)
        names[count++] = query->label_names[0];
    query->label_filter = NULL;
    query->label_names = names;
    query->label_name_count = count;
    return ERR_NONE;
}

static enum err_code read_query(struct request *request, size_t side, struct query_diff *diff,
                                struct err *err)
{
    struct report *report = &diff->pair.report;
    const char *name = share_names[side];
    struct store_query *query = arena_new(request->arena, struct store_query, 1);
    const struct query_parameters *other = &side_names[1 - side];
    if (has_parameter(request, name))
        return err_set(err, ERR_INVALID, "%s and %s exclude each other: use one of them", name,
                       side_names[side].query);
    enum err_code code = auth_check_scopes(request, SCOPE_READ, err);
    if (!code)
        code = query_read(request, &side_names[side],
                          has_parameter(request, other->query) ? other : NULL, query, err);
    if (!code)
        code = read_samples(request, report, !has_parameter(request, other->query), query, err);
    diff->queries[side] = query;
    report->is_stored = true;
    if (code)
        return code;
    query_limit_report(query, report);
    return ERR_NONE;
}

static enum err_code read_sides(struct request *request, struct query_diff *diff, struct err *err)
{
    enum err_code code = report_read_mode(request, &diff->pair.report, err);
    diff->pair.report.side_count = SIDES;
    for (size_t i = 0; i < SIDES && !code; i++)
        code = has_parameter(request, side_names[i].query) ? read_query(request, i, diff, err)
                                                           : read_share(request, i, diff, err);
    if (diff->queries[0] && diff->queries[1])
        report_drop_label_rules(&diff->pair.report);
    request->has_found = code == ERR_NONE;
    return code;
}

/* The profiles of both sides while the report is computed. */
struct sides {
    int64_t left_out[VIEW_SIDE_COUNT];
    struct flight_entry *entries[SIDES]; /* for shares */
    struct store_result merged[SIDES];   /* for queries */
    const struct profile *profiles[SIDES];
};

static enum err_code merge_side(struct request *request, const struct query_diff *diff, size_t side,
                                struct sides *sides, const char **missing, struct err *err)
{
    struct store_result *result = &sides->merged[side];
    enum err_code code = query_merge(request, diff->queries[side], result, err);
    if (code)
        return err_add(err, "%s", share_names[side]);
    sides->profiles[side] = result->profile;
    sides->left_out[side == 0 ? VIEW_SIDE_A : VIEW_SIDE_B] = result->left_out;
    missing[side] = query_fields_describe_missing(request->arena, &result->statistics);
    if (!*result->type)
        return err_set(err, ERR_INVALID,
                       "%s: the query finds no profile in its window, so there is nothing to "
                       "compare: select other labels or another time%s%s",
                       share_names[side], missing[side] ? "; " : "",
                       missing[side] ? missing[side] : "");
    return ERR_NONE;
}

static void add_warning(struct request *request, struct response *response,
                        const char *const missing[SIDES])
{
    if (!missing[0] && !missing[1])
        return;
    const char *text = missing[0] && missing[1]
                           ? arena_printf(request->arena, "a: %s; b: %s", missing[0], missing[1])
                           : arena_printf(request->arena, "%s: %s", missing[0] ? "a" : "b",
                                          missing[0] ? missing[0] : missing[1]);
    response_add(request, response, "perfolio-warning", text);
}

static bool is_incomplete(const struct sides *sides)
{
    bool lacks_names = false;
    for (size_t i = 0; i < SIDES; i++)
        lacks_names |= sides->merged[i].statistics.names.is_incomplete ||
                       (sides->entries[i] && profile_cache_is_incomplete(sides->entries[i]));
    return lacks_names;
}

/* The names that both sides still lack; NULL if that cannot be determined now. */
static const char *describe_names(struct request *request, const struct query_diff *diff,
                                  const struct sides *sides)
{
    struct symbolization_status status = {0};
    struct err ignored;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < SIDES && !code; i++) {
        if (diff->queries[i]) {
            code = symbolization_status_add_profile(request, diff->queries[i]->tenant_id,
                                                    sides->profiles[i], &status, &ignored);
            continue;
        }
        uint32_t count;
        const struct symbolize_binary *binaries = profile_cache_binaries(sides->entries[i], &count);
        code = symbolization_status_add(request, diff->pair.shares[i].tenant_id, binaries, count,
                                        &status, &ignored);
    }
    if (is_incomplete(sides))
        symbolization_status_note_incomplete(&status);
    return code ? NULL : symbolization_status_write(request, &status);
}

/* Takes the share's profile, and the memory for its part of the report. If profile or report needs
 * more memory than the run has, sets needs_names or wanted_bytes of memory and leaves
 * sides->profiles unchanged. */
static enum err_code ref_share(const struct query_diff *diff, struct profile_cache_memory *memory,
                               struct sides *sides, struct err *err)
{
    const struct report *report = &diff->pair.report;
    const size_t side = diff->queries[0] ? 1 : 0;
    if (diff->queries[side])
        return ERR_NONE; /* both sides are queries */
    enum err_code code =
        profile_cache_ref_named(report->server, &diff->pair.shares[side], report->names,
                                memory->names_bytes, &sides->entries[side], err);
    if (code)
        return code;
    memory->needs_names = !sides->entries[side];
    if (memory->needs_names)
        return ERR_NONE;
    const struct profile *profile = profile_cache_get(sides->entries[side]);
    if (profile_cache_take(memory, report_memory(report, profile)))
        sides->profiles[side] = profile;
    return ERR_NONE;
}

struct writing {
    struct request *request;
    struct response *response;
    const struct query_diff *diff;
    struct report_body *body;
    bool is_incomplete; /* set by write_report: names were left out */
};

static enum err_code write_report(struct writing *writing, struct sides *sides, struct err *err)
{
    struct request *request = writing->request;
    const struct query_diff *diff = writing->diff;
    const char *missing[SIDES] = {NULL, NULL};
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < SIDES && !code; i++) {
        if (diff->queries[i])
            code = merge_side(request, diff, i, sides, missing, err);
    }
    struct report counted = diff->pair.report;
    memcpy(counted.left_out, sides->left_out, sizeof(counted.left_out));
    writing->is_incomplete = is_incomplete(sides);
    if (!code)
        counted.symbolization = describe_names(request, diff, sides);
    if (!code)
        code = report_body_write(writing->body, &counted, sides->profiles, err);
    for (size_t i = 0; i < SIDES; i++)
        code = diff->queries[i] ? query_explain_report_limit(diff->queries[i], code, err) : code;
    if (!code)
        add_warning(request, writing->response, missing);
    return code;
}

/* The share is decoded first: if it needs more memory, the queries need not run twice. */
static enum err_code write_sides(void *context, struct profile_cache_memory *memory,
                                 struct err *err)
{
    struct writing *writing = context;
    struct sides sides = {0};
    enum err_code code = ref_share(writing->diff, memory, &sides, err);
    if (!code && !memory->needs_names && !memory->wanted_bytes)
        code = write_report(writing, &sides, err);
    for (size_t i = 0; i < SIDES; i++) {
        store_result_fini(&sides.merged[i]);
        if (sides.entries[i])
            profile_cache_unref(sides.entries[i]);
    }
    return code;
}

/* The checks for sides that are shares, as for every report of a share. */
static enum err_code begin_shares(struct request *request, const struct query_diff *diff,
                                  struct err *err)
{
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < SIDES && !code; i++) {
        const char *id = diff->pair.shares[i].id;
        if (diff->queries[i])
            continue;
        view_counter_count(request->server->shares->views, span_text(id), request->address,
                           request->start_ns);
        code = report_take_slot(request, id, err);
    }
    return code;
}

static uint64_t memory_needed(const struct query_diff *diff, uint64_t *ret_view_bytes,
                              size_t *ret_share_count)
{
    const struct share *shares[SIDES];
    size_t count = 0;
    for (size_t i = 0; i < SIDES; i++) {
        if (!diff->queries[i])
            shares[count++] = &diff->pair.shares[i];
    }
    *ret_share_count = count;
    *ret_view_bytes = share_report_view_memory(&diff->pair.report, shares, count);
    return share_report_memory(&diff->pair.report, shares, count);
}

/* A report of a query is neither cached nor shared. */
static enum err_code respond_with_query(struct request *request, struct response *response,
                                        const struct query_diff *diff, struct err *err)
{
    const struct report *report = &diff->pair.report;
    size_t share_count;
    uint64_t view_bytes;
    const uint64_t gate_bytes = memory_needed(diff, &view_bytes, &share_count);
    struct writing writing = {.request = request,
                              .response = response,
                              .diff = diff,
                              .body = report_body_create(request->arena, report)};
    enum err_code code = begin_shares(request, diff, err);
    if (code)
        return code;
    code = profile_cache_with_names(request->server, request->principal.tenant_id, gate_bytes,
                                    view_bytes, share_count, write_sides, &writing, err);
    if (code)
        return code;
    response_add(request, response, "cache-control",
                 writing.is_incomplete ? "no-store" : "private, no-cache");
    report_body_send(writing.body, report->kind, request, response);
    return ERR_NONE;
}

static enum err_code respond_diff(struct request *request, struct response *response,
                                  const struct report_kind *kind, unsigned parameters,
                                  int64_t default_limit, struct err *err)
{
    struct query_diff *diff = arena_new(request->arena, struct query_diff, 1);
    enum err_code code = report_read(request, kind, parameters, default_limit, &source_names,
                                     &diff->pair.report, err);
    if (code)
        return code;
    code = read_sides(request, diff, err);
    if (code)
        return code;
    return diff->queries[0] || diff->queries[1]
               ? respond_with_query(request, response, diff, err)
               : share_report_respond(request, response, &diff->pair, err);
}

static enum err_code get_diff(struct request *request, struct response *response, struct err *err)
{
    unsigned parameters;
    const struct report_kind *kind = report_choose_flame(request, response, &parameters);
    return respond_diff(request, response, kind, parameters, FLAME_NODES_DEFAULT, err);
}

static enum err_code get_top(struct request *request, struct response *response, struct err *err)
{
    return respond_diff(request, response, &report_diff_top, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT,
                        REPORT_TOP_ROWS_DEFAULT, err);
}

static enum err_code get_labels(struct request *request, struct response *response, struct err *err)
{
    return respond_diff(request, response, &report_diff_labels,
                        REPORT_TAKES_FILTER | REPORT_TAKES_LIMIT | REPORT_TAKES_KEY,
                        REPORT_LABEL_VALUES_DEFAULT, err);
}

enum { READ_FLAGS = ROUTE_LIMIT_404 | ROUTE_CORS };

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/diff", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_diff},
    {HTTP_GET, "/api/v1/diff/top", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_top},
    {HTTP_GET, "/api/v1/diff/labels", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_labels},
};

const struct route_table query_diff_routes = {routes, sizeof(routes) / sizeof(*routes)};
