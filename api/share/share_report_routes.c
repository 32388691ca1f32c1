#include "api/report/report_write.h"
#include "api/share/share.h"
#include "api/share/share_merge.h"
#include "api/share/share_report.h"
#include "api/share/share_symbolization.h"
#include "lib/base/arena.h"
#include "lib/profile/report/call_graph.h"
#include "lib/profile/report/flame.h"

/* Files of a share or of a comparison: all accept the parameters of a page, too. */
enum {
    STACK_PARAMETERS = REPORT_TAKES_VIEW | REPORT_TAKES_PAGE | REPORT_IS_FILE,
    GRAPH_PARAMETERS = STACK_PARAMETERS | REPORT_TAKES_LIMIT, /* and pictures of a fixed size */
    TREE_PARAMETERS = GRAPH_PARAMETERS | REPORT_TAKES_DEPTH
};

static enum err_code respond(struct request *request, struct response *response,
                             const struct report_kind *kind, unsigned parameters,
                             int64_t default_limit, struct err *err)
{
    struct share_report *share_report = arena_new(request->arena, struct share_report, 1);
    enum err_code code =
        share_report_read(request, kind, parameters, default_limit, 1, share_report, err);
    return code ? code : share_report_respond(request, response, share_report, err);
}

static enum err_code respond_pair(struct request *request, struct response *response,
                                  const struct report_kind *kind, unsigned parameters,
                                  struct err *err)
{
    struct share_report *share_report = arena_new(request->arena, struct share_report, 1);
    enum err_code code = share_report_read(request, kind, parameters | REPORT_TAKES_MODE,
                                           FLAME_NODES_DEFAULT, 2, share_report, err);
    return code ? code : share_report_respond(request, response, share_report, err);
}

static enum err_code get_flame(struct request *request, struct response *response, struct err *err)
{
    unsigned parameters;
    const struct report_kind *kind = report_choose_flame(request, response, &parameters);
    return respond(request, response, kind, parameters, FLAME_NODES_DEFAULT, err);
}

static enum err_code get_top(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_top, REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT,
                   REPORT_TOP_ROWS_DEFAULT, err);
}

static enum err_code get_callers(struct request *request, struct response *response,
                                 struct err *err)
{
    return respond(request, response, &report_callers,
                   REPORT_TAKES_VIEW | REPORT_TAKES_LIMIT | REPORT_TAKES_FUNCTION,
                   REPORT_TOP_ROWS_DEFAULT, err);
}

static enum err_code get_labels(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_labels,
                   REPORT_TAKES_FILTER | REPORT_TAKES_LIMIT | REPORT_TAKES_KEY,
                   REPORT_LABEL_VALUES_DEFAULT, err);
}

static void add_attachment(struct request *request, struct response *response, const char *ending)
{
    response_add(request, response, "content-disposition",
                 share_attachment(request->arena,
                                  arena_printf(request->arena, "%.*s%s",
                                               SPAN_PRINT(request->path_params[0]), ending)));
}

static enum err_code get_pprof(struct request *request, struct response *response, struct err *err)
{
    enum err_code code = respond(request, response, &report_pprof, REPORT_IS_FILE, 0, err);
    if (code)
        return code;
    add_attachment(request, response, ".pb.gz");
    return ERR_NONE;
}

static enum err_code get_folded(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_folded, STACK_PARAMETERS, 0, err);
}

static enum err_code get_dot(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_call_graph, GRAPH_PARAMETERS,
                   CALL_GRAPH_NODES_DEFAULT, err);
}

static enum err_code get_json(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_flame_json, TREE_PARAMETERS, FLAME_NODES_DEFAULT,
                   err);
}

static enum err_code get_svg(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_svg, TREE_PARAMETERS, FLAME_NODES_DEFAULT, err);
}

static enum err_code get_png(struct request *request, struct response *response, struct err *err)
{
    return respond(request, response, &report_png, GRAPH_PARAMETERS, FLAME_NODES_DEFAULT, err);
}

static enum err_code get_pair_svg(struct request *request, struct response *response,
                                  struct err *err)
{
    return respond_pair(request, response, &report_svg, TREE_PARAMETERS, err);
}

static enum err_code get_pair_png(struct request *request, struct response *response,
                                  struct err *err)
{
    return respond_pair(request, response, &report_png, GRAPH_PARAMETERS, err);
}

static enum err_code get_pair_json(struct request *request, struct response *response,
                                   struct err *err)
{
    return respond_pair(request, response, &report_flame_json, TREE_PARAMETERS, err);
}

enum {
    READ_FLAGS = ROUTE_LIMIT_404 | ROUTE_CORS,
    FILE_FLAGS = ROUTE_LIMIT_404 | ROUTE_CORS_IF_OPEN,
    MERGE_BODY_BYTES = 16384,
};

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/shares/{id}/flame", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_flame},
    {HTTP_GET, "/api/v1/shares/{id}/top", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_top},
    {HTTP_GET, "/api/v1/shares/{id}/callers", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_callers},
    {HTTP_GET, "/api/v1/shares/{id}/labels", ACCESS_PUBLIC, 0, READ_FLAGS, 0, get_labels},
    {HTTP_GET, "/api/v1/shares/{id}/symbolization", ACCESS_PUBLIC, 0, READ_FLAGS, 0,
     share_symbolization_handle},
    {HTTP_POST, "/api/v1/merge", ACCESS_ANONYMOUS, SCOPE_SHARE, ROUTE_LIMIT_404, MERGE_BODY_BYTES,
     share_merge_handle},
    {HTTP_GET, "/p/{id}.pb.gz", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_pprof},
    {HTTP_GET, "/p/{id}.folded", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_folded},
    {HTTP_GET, "/p/{id}.dot", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_dot},
    {HTTP_GET, "/p/{id}.json", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_json},
    {HTTP_GET, "/p/{id}.svg", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_svg},
    {HTTP_GET, "/p/{id}.png", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_png},
    {HTTP_GET, "/p/{id}/og.png", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_png},
    {HTTP_GET, "/d/{a}..{b}.json", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_pair_json},
    {HTTP_GET, "/d/{a}..{b}.svg", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_pair_svg},
    {HTTP_GET, "/d/{a}..{b}.png", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_pair_png},
    {HTTP_GET, "/d/{a}..{b}/og.png", ACCESS_PUBLIC, 0, FILE_FLAGS, 0, get_pair_png},
};

const struct route_table share_report_routes = {routes, sizeof(routes) / sizeof(*routes)};
