#include "api/server/routes.h"

#include "api/debuginfo/debuginfo_routes.h"
#include "api/debuginfo/debuginfo_upstreams.h"
#include "api/identity/identity.h"
#include "api/ingest/otlp_receiver.h"
#include "api/ingest/profile_receiver.h"
#include "api/ingest/pyroscope_receiver.h"
#include "api/ingest/sources.h"
#include "api/ingest/usage.h"
#include "api/ops/scrub_routes.h"
#include "api/query/deletion.h"
#include "api/query/export.h"
#include "api/query/profile_list.h"
#include "api/query/query_diff.h"
#include "api/query/query_range.h"
#include "api/query/query_report.h"
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

/* In the order of matching: rows with narrower patterns precede the pages' /p/{id}. */
static const struct route_table *const tables[] = {
    &health_routes,
    &identity_routes,
    &identity_operator_routes,
    &share_routes,
    &query_share_routes,
    &upload_routes,
    &share_upload_routes,
    &share_report_routes,
    &query_diff_routes,
    &short_link_routes,
    &comment_routes,
    &badge_routes,
    &oembed_routes,
    &profile_receiver_routes,
    &query_report_routes,
    &export_routes,
    &series_routes,
    &profile_list_routes,
    &query_range_routes,
    &otlp_receiver_routes,
    &pyroscope_receiver_routes,
    &usage_routes,
    &sources_routes,
    &deletion_routes,
    &retention_routes,
    &source_links_routes,
    &debuginfo_upstreams_routes,
    &debuginfo_routes,
    &scrub_routes,
    &pages_routes,
};

const struct route_list routes_all = {.tables = tables,
                                      .table_count = sizeof(tables) / sizeof(*tables)};

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
                                             {ROUTE_PASSWORD, "password"},
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
    for (size_t table = 0; table < routes_all.table_count; table++) {
        for (size_t i = 0; i < tables[table]->route_count; i++)
            print_route(file, &tables[table]->routes[i]);
    }
}
