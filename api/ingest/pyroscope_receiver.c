#include "api/ingest/pyroscope_receiver.h"

#include "api/http/form_body.h"
#include "api/ingest/ingest_body.h"
#include "api/ingest/ingest_request.h"
#include "api/ingest/profile_receiver.h"
#include "api/ingest/sources.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/profile.h"
#include "lib/profile/pyroscope/pyroscope_ingest.h"
#include "lib/profile/pyroscope/pyroscope_push.h"
#include "store/store.h"

enum { PUSH_PROFILES_MAX = 1000, RECEIPT_MAX_BYTES = 1024 };

/* ---- push ---- */

struct push {
    enum connect_encoding encoding;
    struct ingest_request *ingest_request;
};

/* The SDKs for Python, Ruby and Rust align their windows to ten seconds of the clock, so that all
 * processes have them in common. */
static bool is_ambiguous(struct span session, struct span id, int64_t time_ns)
{
    enum { WINDOW_S = 10 };
    return session.size == 0 && id.size == 0 && time_ns % (WINDOW_S * CLOCK_NS_PER_S) == 0;
}

static enum err_code put_pushed(struct request *request, const struct pyroscope_push *pushed,
                                uint32_t number, const struct profile_limits *limits,
                                struct ingest_request *ingest_request, struct err *err)
{
    const struct pyroscope_push_profile *sent = &pushed->profiles[number];
    const struct pyroscope_push_series *series = &pushed->series[sent->series];
    struct batch_source source = {.name = series->name,
                                  .labels = series->labels,
                                  .label_count = series->label_count,
                                  .session = series->session,
                                  .is_ready = series->is_ready};
    enum format format;
    enum err_code code = format_decode(sent->bytes, limits, &format, &source.profile, err);
    if (code)
        return code;
    const int64_t time_ns = batch_own_time_ns(source.profile);
    const struct ingest_body_profile profile = {
        .source = &source,
        .time_ns = time_ns,
        .is_ambiguous = is_ambiguous(series->session, sent->id, time_ns),
        .content = sent->bytes,
        .sender_id = sent->id,
        .number = number};
    return ingest_body_put(request, &profile, ingest_request, err);
}

static enum err_code read_push(struct request *request, void *context, struct span body,
                               const struct profile_limits *limits, struct err *err)
{
    static const struct batch_limits batch_limits = {.profiles = PUSH_PROFILES_MAX,
                                                     .series = PUSH_PROFILES_MAX};
    struct push *push = context;
    const struct pyroscope_push *pushed;
    enum err_code code = pyroscope_push_parse(request->arena, body, push->encoding, &batch_limits,
                                              limits, &pushed, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < pushed->profile_count && !code; i++) {
        code = put_pushed(request, pushed, i, limits, push->ingest_request, err);
        if (code)
            return err_add(err, "profile %u of %u", i + 1, pushed->profile_count);
    }
    return code;
}

static enum err_code post_push(struct request *request, struct response *response, struct err *err)
{
    struct push push = {0};
    struct store_receipt receipt;
    if (!connect_find_encoding(request_field(request, "content-type"), &push.encoding))
        return err_set(err, ERR_UNSUPPORTED,
                       "Content-Type must be application/proto or application/json");
    enum err_code code = ingest_request_open(request, &push.ingest_request, err);
    if (!code)
        code = ingest_body_read(request, push.ingest_request, read_push, &push, err);
    if (!code)
        code = ingest_request_commit(push.ingest_request, &receipt, err);
    ingest_request_close(push.ingest_request);
    if (code)
        return code;
    ingest_body_add_warning(request, response);
    buf_auto body;
    buf_init(&body, RECEIPT_MAX_BYTES);
    connect_write_empty(push.encoding, &body);
    return response_buf(request, response, 200, connect_content_type(push.encoding), &body, err);
}

/* ---- ingest ---- */

struct ingest {
    struct pyroscope_ingest_query query;
    bool has_time; /* in the address */
    struct ingest_request *ingest_request;
};

static enum err_code read_ingest(struct request *request, void *context, struct span body,
                                 const struct profile_limits *limits, struct err *err)
{
    struct ingest *ingest = context;
    struct batch_source source;
    enum err_code code =
        pyroscope_ingest_decode(request->arena, &ingest->query,
                                request_field(request, "content-type"), body, limits, &source, err);
    if (code || !source.profile)
        return code;
    source.session = ingest->query.session;
    const int64_t time_ns =
        ingest->has_time ? ingest->query.from_ns : batch_own_time_ns(source.profile);
    const struct ingest_body_profile profile = {
        .source = &source,
        .time_ns = time_ns,
        .is_ambiguous = is_ambiguous(source.session, SPAN_LITERAL(""), time_ns),
        .end_ns = ingest->has_time ? ingest->query.until_ns : 0,
        .content = body};
    return ingest_body_put(request, &profile, ingest->ingest_request, err);
}

static enum err_code post_ingest(struct request *request, struct response *response,
                                 struct err *err)
{
    struct ingest ingest = {0};
    struct store_receipt receipt;
    const int64_t now_ns = clock_wall_ns();
    enum err_code code =
        pyroscope_ingest_parse_query(request->arena, request->query, now_ns, &ingest.query, err);
    if (code)
        return code;
    code = form_body_check(request, true, err);
    if (code)
        return code;
    ingest.has_time = ingest.query.from_ns != now_ns;
    sources_name_service(request, ingest.query.labels, ingest.query.label_count,
                         pyroscope_ingest_service(&ingest.query));
    code = ingest_request_open(request, &ingest.ingest_request, err);
    if (!code)
        code = ingest_body_read(request, ingest.ingest_request, read_ingest, &ingest, err);
    if (!code)
        code = ingest_request_commit(ingest.ingest_request, &receipt, err);
    ingest_request_close(ingest.ingest_request);
    if (code)
        return code;
    ingest_body_add_warning(request, response);
    buf_auto json;
    buf_init(&json, RECEIPT_MAX_BYTES);
    profile_receiver_write_receipt(&receipt, &json);
    return response_buf(request, response, 200, "application/json", &json, err);
}

static const struct route routes[] = {
    {HTTP_POST, "/push.v1.PusherService/Push", ACCESS_SCOPES, SCOPE_INGEST,
     ROUTE_AGENT | ROUTE_CONNECT, INGEST_BODY_MAX_BYTES, post_push},
    {HTTP_POST, "/pyroscope/push.v1.PusherService/Push", ACCESS_SCOPES, SCOPE_INGEST,
     ROUTE_AGENT | ROUTE_CONNECT, INGEST_BODY_MAX_BYTES, post_push},
    {HTTP_POST, "/ingest", ACCESS_SCOPES, SCOPE_INGEST, ROUTE_AGENT | ROUTE_PYROSCOPE,
     INGEST_BODY_MAX_BYTES, post_ingest},
    {HTTP_POST, "/pyroscope/ingest", ACCESS_SCOPES, SCOPE_INGEST, ROUTE_AGENT | ROUTE_PYROSCOPE,
     INGEST_BODY_MAX_BYTES, post_ingest},
};

const struct route_table pyroscope_receiver_routes = {routes, sizeof(routes) / sizeof(*routes)};
