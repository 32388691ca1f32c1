#include "api/ingest/otlp_receiver.h"

#include "api/ingest/batch_id.h"
#include "api/ingest/ingest_body.h"
#include "api/ingest/ingest_request.h"
#include "api/ingest/sources.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/pyroscope/connect.h"

enum { JSON_RESPONSE_MAX_BYTES = 16384 };

struct export
{
    enum otlp_encoding encoding;
    struct ingest_request *ingest_request;
    struct otlp_result result;
};

/* The time of the first profile that has one of its own; 0 if none has. One is enough: a request
 * with the same content and that time was received before, whatever the others lack. */
static int64_t time_of(const struct batch *batch, int64_t now_ns)
{
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        if (batch->profiles[i].time_ns != now_ns)
            return batch->profiles[i].time_ns;
    }
    return 0;
}

static enum err_code put_batch(const struct request *request, struct export *export,
                               struct batch *batch, struct span body, int64_t now_ns,
                               struct err *err)
{
    if (batch->profile_count == 0)
        return ERR_NONE;
    const struct batch_id_source source = {.time_ns = time_of(batch, now_ns), .content = body};
    uint8_t id[STORE_BATCH_ID_BYTES];
    bool has_id;
    enum err_code code = batch_id_find(request, &source, id, &has_id, err);
    return code ? code
                : ingest_request_put_allowed(export->ingest_request, batch, has_id ? id : NULL,
                                             &export->result, err);
}

static enum err_code read_export(struct request *request, void *context, struct span body,
                                 const struct profile_limits *limits, struct err *err)
{
    struct export *export = context;
    struct span names[SAMPLE_LABELS_MAX];
    const struct otlp_options options = {
        .series_attributes = names,
        .series_attribute_count = ingest_request_series_labels(export->ingest_request, names),
        .limits = limits,
        .now_ns = clock_wall_ns(),
        .is_raw_kept = true, /* the batch is destroyed before the body */
    };
    struct batch *batch;
    enum err_code code =
        otlp_decode(body, export->encoding, &options, &batch, &export->result, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < export->result.rejected_service_count; i++) {
        const struct otlp_rejected_service *service = &export->result.rejected_services[i];
        sources_note_problem(request, span_text(service->name), service->reason);
    }
    code = put_batch(request, export, batch, body, options.now_ns, err);
    batch_destroy(batch);
    return code;
}

static enum err_code find_encoding(const struct request *request, enum otlp_encoding *ret_encoding,
                                   struct err *err)
{
    enum connect_encoding encoding;
    if (!connect_find_encoding(request_field(request, "content-type"), &encoding))
        return err_set(err, ERR_UNSUPPORTED,
                       "Content-Type must be application/x-protobuf or application/json");
    *ret_encoding = encoding == CONNECT_JSON ? OTLP_JSON : OTLP_PROTOBUF;
    return ERR_NONE;
}

static enum err_code post_export(struct request *request, struct response *response,
                                 struct err *err)
{
    struct export export = {0};
    struct store_receipt receipt;
    enum err_code code = find_encoding(request, &export.encoding, err);
    if (!code)
        code = ingest_request_open(request, &export.ingest_request, err);
    if (!code)
        code = ingest_body_read(request, export.ingest_request, read_export, &export, err);
    if (!code)
        code = ingest_request_commit(export.ingest_request, &receipt, err);
    ingest_request_close(export.ingest_request);
    if (code)
        return code;
    if (export.result.message[0])
        request->partial_error = arena_strdup(request->arena, export.result.message);
    ingest_body_add_age_warning(request, response);
    buf_auto body;
    buf_init(&body, JSON_RESPONSE_MAX_BYTES);
    otlp_write_response(export.encoding, &export.result, &body);
    return response_buf(
        request, response, 200,
        export.encoding == OTLP_JSON ? "application/json" : "application/x-protobuf", &body, err);
}

static const struct route routes[] = {
    {HTTP_POST, "/v1development/profiles", ACCESS_SCOPES, SCOPE_INGEST, ROUTE_AGENT | ROUTE_OTLP,
     INGEST_BODY_MAX_BYTES, post_export},
};

const struct route_table otlp_receiver_routes = {routes, sizeof(routes) / sizeof(*routes)};
