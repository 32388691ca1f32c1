#include "api/server/protocol_error.h"

#include "api/http/problem.h"
#include "api/http/route.h"
#include "api/ingest/ingest_body.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/pyroscope/connect.h"
#include "lib/profile/pyroscope/pyroscope_ingest.h"

enum { BODY_MAX_BYTES = 16384, RETRY_S = 5 };

/* ---- OTLP ---- */

static int otlp_status(enum err_code code)
{
    if (code == ERR_IO)
        return 503;
    return code == ERR_TIMEOUT ? 504 : problem_status(code);
}

static bool otlp_is_repeated(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void respond_otlp(struct request *request, struct response *response, const struct err *err)
{
    enum connect_encoding encoding;
    const bool is_protobuf =
        connect_find_encoding(request_field(request, "content-type"), &encoding) &&
        encoding == CONNECT_PROTOBUF;
    const int status = otlp_status(err->code);
    struct err shown = *err;
    if (otlp_is_repeated(status) && shown.retry_after_s == 0)
        shown.retry_after_s = RETRY_S;
    buf_auto body;
    buf_init(&body, BODY_MAX_BYTES);
    otlp_write_status(is_protobuf ? OTLP_PROTOBUF : OTLP_JSON, err->code, problem_text(err), &body);
    problem_respond_as(request, response, status, &shown,
                       is_protobuf ? "application/x-protobuf" : "application/json",
                       buf_span(&body));
}

/* ---- Connect, and Pyroscope's older protocol ---- */

static void respond_json(struct request *request, struct response *response, int status,
                         const char *code, const struct err *err)
{
    buf_auto body;
    buf_init(&body, BODY_MAX_BYTES);
    buf_printf(&body, "{\"code\":\"%s\",\"message\":", code);
    buf_append_json(&body, span_text(problem_text(err)));
    buf_append_text(&body, "}");
    problem_respond_as(request, response, status, err, "application/json", buf_span(&body));
}

static void respond_connect(struct request *request, struct response *response,
                            const struct err *err)
{
    enum connect_encoding encoding;
    const bool knows_type =
        connect_find_encoding(request_field(request, "content-type"), &encoding);
    if (err->code == ERR_UNSUPPORTED && !knows_type) {
        respond_json(request, response, 415, "unimplemented", err);
        response_add(request, response, "accept-post", "application/proto, application/json");
    } else if (err->code == ERR_UNSUPPORTED && !ingest_body_knows_encoding(request)) {
        respond_json(request, response, 501, "unimplemented", err);
        response_add(request, response, "accept-encoding", "gzip, zstd");
    } else {
        respond_json(request, response, connect_status(err->code), connect_code(err->code), err);
    }
}

static bool is_right_address(struct request *request)
{
    struct pyroscope_ingest_query query;
    struct err err;
    return pyroscope_ingest_parse_query(request->arena, request->query, clock_wall_ns(), &query,
                                        &err) == ERR_NONE;
}

static void respond_pyroscope(struct request *request, struct response *response,
                              const struct err *err)
{
    int status = problem_status(err->code);
    if (err->code == ERR_INVALID || err->code == ERR_UNSUPPORTED)
        status = is_right_address(request) ? 422 : 400;
    respond_json(request, response, status, connect_code(err->code), err);
}

bool protocol_error_respond(struct request *request, struct response *response,
                            const struct err *err)
{
    const unsigned flags = request->route ? request->route->flags : 0;
    if (flags & ROUTE_OTLP)
        respond_otlp(request, response, err);
    else if (flags & ROUTE_CONNECT)
        respond_connect(request, response, err);
    else if (flags & ROUTE_PYROSCOPE)
        respond_pyroscope(request, response, err);
    return (flags & (ROUTE_OTLP | ROUTE_CONNECT | ROUTE_PYROSCOPE)) != 0;
}
