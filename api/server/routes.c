#include "api/server/routes.h"

#include "api/debuginfo/routes.h"
#include "api/debuginfo/upstreams.h"
#include "api/identity/identity.h"
#include "api/ingest/otlp_receiver.h"
#include "api/ingest/profile_receiver.h"
#include "api/ingest/pyroscope_receiver.h"
#include "api/ingest/sources.h"
#include "api/ingest/usage.h"
#include "api/ops/scrub.h"
#include "api/query/deletion.h"
#include "api/query/export.h"
#include "api/query/profile_list.h"
#include "api/query/query.h"
#include "api/query/query_diff.h"
#include "api/query/query_range.h"
#include "api/query/query_share.h"
#include "api/query/retention.h"
#include "api/query/series.h"
#include "api/server/health.h"
#include "api/server/pages.h"
#include "api/share/badge.h"
#include "api/share/comment.h"
#include "api/share/oembed.h"
#include "api/share/share.h"
#include "api/share/share_report.h"
#include "api/share/share_upload.h"
#include "api/share/short_link.h"
#include "api/share/source_links.h"
#include "api/upload/upload.h"
#include "lib/base/err.h"

#include <string.h>

/* In the order of matching: rows with narrower patterns precede the pages' /p/{id}. */
static const struct route_table *const joined[] = {
    &health_routes,       &identity_routes,      &operator_routes,
    &share_routes,        &query_share_routes,   &upload_routes,
    &share_upload_routes, &share_report_routes,  &query_diff_routes,
    &short_link_routes,   &comment_routes,       &badge_routes,
    &oembed_routes,       &profile_routes,       &query_routes,
    &export_routes,       &series_routes,        &profile_list_routes,
    &query_range_routes,  &otlp_receiver_routes, &pyroscope_receiver_routes,
    &usage_routes,        &sources_routes,       &deletion_routes,
    &retention_routes,    &source_link_routes,   &debuginfo_upstream_routes,
    &debuginfo_routes,    &scrub_routes,         &page_routes,
};

enum { TABLE_COUNT = sizeof(joined) / sizeof(*joined), METHOD_COUNT = HTTP_OPTIONS + 1 };

/* The position of literal in text: at its end if must_end, otherwise the first one after one byte.
 */
static const uint8_t *find_literal(struct span text, const char *literal, size_t literal_size,
                                   bool must_end)
{
    if (text.size <= literal_size)
        return NULL;
    if (must_end) {
        const uint8_t *at = text.data + text.size - literal_size;
        return literal_size == 0 || memcmp(at, literal, literal_size) == 0 ? at : NULL;
    }
    return memmem(text.data + 1, text.size - 1, literal, literal_size);
}

static size_t segment_size(const uint8_t *text, size_t size)
{
    const uint8_t *slash = memchr(text, '/', size);
    return slash ? (size_t)(slash - text) : size;
}

/* Matches one {…} at *pattern with the start of *path; advances both. */
static bool match_param(const char **pattern, struct span *path, struct span *ret_param)
{
    const char *literal = strchr(*pattern, '}') + 1;
    size_t literal_size = strcspn(literal, "{/");
    struct span segment = span_of(path->data, segment_size(path->data, path->size));
    const uint8_t *end = find_literal(segment, literal, literal_size, literal[literal_size] != '{');
    if (!end)
        return false;
    *ret_param = span_of(path->data, (size_t)(end - path->data));
    size_t used = ret_param->size + literal_size;
    *path = span_of(path->data + used, path->size - used);
    *pattern = literal + literal_size;
    return true;
}

static bool match_pattern(const char *pattern, struct span path,
                          struct span params[REQUEST_MAX_PATH_PARAMS])
{
    size_t param_count = 0;
    while (*pattern) {
        if (*pattern == '{') {
            if (param_count == REQUEST_MAX_PATH_PARAMS || path.size == 0 ||
                !match_param(&pattern, &path, &params[param_count]))
                return false;
            param_count++;
        } else {
            if (path.size == 0 || path.data[0] != (uint8_t)*pattern)
                return false;
            pattern++;
            path = span_of(path.data + 1, path.size - 1);
        }
    }
    for (; param_count < REQUEST_MAX_PATH_PARAMS && path.size == 0; param_count++)
        params[param_count] = (struct span){0};
    return path.size == 0;
}

enum err_code routes_match(enum http_method method, struct span path,
                           struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                           const struct route **ret_route, struct err *err)
{
    bool is_known_path = false;
    if (method == HTTP_HEAD)
        method = HTTP_GET;
    for (size_t table = 0; table < TABLE_COUNT; table++) {
        for (size_t i = 0; i < joined[table]->route_count; i++) {
            const struct route *route = &joined[table]->routes[i];
            struct span params[REQUEST_MAX_PATH_PARAMS];
            if (!match_pattern(route->pattern, path, params))
                continue;
            is_known_path = true;
            if (route->method != method)
                continue;
            memcpy(ret_params, params, sizeof(params));
            *ret_route = route;
            return ERR_NONE;
        }
    }
    if (is_known_path)
        return err_set(err, ERR_UNSUPPORTED,
                       "this address does not support the method %s; use one of those in the "
                       "field Allow of this response",
                       http_method_name(method));
    return err_set(err, ERR_NOT_FOUND,
                   "there is nothing at this address; /api/openapi.yaml lists what there is");
}

void routes_allow(struct span path, struct buf *buf)
{
    bool is_allowed[METHOD_COUNT] = {false};
    struct span params[REQUEST_MAX_PATH_PARAMS];
    for (size_t table = 0; table < TABLE_COUNT; table++) {
        for (size_t i = 0; i < joined[table]->route_count; i++) {
            const struct route *route = &joined[table]->routes[i];
            if (match_pattern(route->pattern, path, params))
                is_allowed[route->method] = true;
        }
    }
    is_allowed[HTTP_HEAD] |= is_allowed[HTTP_GET];
    const char *separator = "";
    for (int method = 0; method < METHOD_COUNT; method++) {
        if (!is_allowed[method])
            continue;
        buf_printf(buf, "%s%s", separator, http_method_name((enum http_method)method));
        separator = ", ";
    }
}

const struct route_table *const *routes_all(size_t *ret_table_count)
{
    *ret_table_count = TABLE_COUNT;
    return joined;
}

struct bit_name {
    unsigned bit;
    const char *name;
};

static const struct bit_name scope_names[] = {{SCOPE_INGEST, "ingest"},
                                              {SCOPE_READ, "read"},
                                              {SCOPE_SHARE, "share"},
                                              {SCOPE_DEBUGINFO, "debuginfo"},
                                              {SCOPE_ADMIN, "admin"},
                                              {SCOPE_OPERATOR, "operator"},
                                              {0, NULL}};

static const struct bit_name flag_names[] = {{ROUTE_INLINE, "inline"},
                                             {ROUTE_LIMIT_404, "limit_404"},
                                             {ROUTE_NO_CSRF, "no_csrf"},
                                             {ROUTE_CORS, "cors"},
                                             {ROUTE_CORS_IF_OPEN, "cors_if_open"},
                                             {ROUTE_PROBE, "probe"},
                                             {ROUTE_AGENT, "agent"},
                                             {ROUTE_OTLP, "otlp"},
                                             {ROUTE_CONNECT, "connect"},
                                             {ROUTE_PYROSCOPE, "pyroscope"},
                                             {ROUTE_SIGN_IN, "sign_in"},
                                             {ROUTE_STORES, "stores"},
                                             {ROUTE_NO_IDENTITY, "no_identity"},
                                             {ROUTE_DOWNLOAD, "download"},
                                             {ROUTE_SECURITY, "security"},
                                             {ROUTE_NEEDS_NO_SPACE, "needs_no_space"},
                                             {0, NULL}};

static void print_bits(FILE *file, const struct bit_name *names, unsigned bits)
{
    const char *separator = "";
    for (; names->name; names++) {
        if (bits & names->bit) {
            fprintf(file, "%s\"%s\"", separator, names->name);
            separator = ",";
        }
    }
}

static void print_route(FILE *file, const struct route *route)
{
    static const char *const access_names[] = {[ACCESS_PUBLIC] = "public",
                                               [ACCESS_ANONYMOUS] = "anonymous",
                                               [ACCESS_SIGNED_IN] = "signed_in",
                                               [ACCESS_SCOPES] = "scopes"};
    fprintf(file, "{\"method\":\"%s\",\"pattern\":\"%s\",\"access\":\"%s\",\"scopes\":[",
            http_method_name(route->method), route->pattern, access_names[route->access]);
    print_bits(file, scope_names, route->scopes);
    fprintf(file, "],\"flags\":[");
    print_bits(file, flag_names, route->flags);
    fprintf(file, "],\"max_body_bytes\":%zu}\n", route->max_body_bytes);
}

void routes_print(FILE *file)
{
    for (size_t table = 0; table < TABLE_COUNT; table++) {
        for (size_t i = 0; i < joined[table]->route_count; i++)
            print_route(file, &joined[table]->routes[i]);
    }
}
