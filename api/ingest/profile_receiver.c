#include "api/ingest/profile_receiver.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/form_body.h"
#include "api/ingest/ingest_body.h"
#include "api/ingest/ingest_request.h"
#include "api/ingest/sources.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "store/store.h"

#include <inttypes.h>

enum { BODY_MAX_BYTES = 8 << 20, LABELS_MAX = 64 };

struct incoming {
    struct batch_text_label labels[LABELS_MAX];
    struct batch_source source;
    struct memory_gate_slot gate_slot;
    struct ingest_request *ingest_request;
};

static enum err_code read_labels(const struct request *request, struct incoming *incoming,
                                 struct err *err)
{
    struct span text;
    for (size_t i = 0; request_query_nth(request, "label", i, &text); i++) {
        struct batch_text_label *label = &incoming->labels[i];
        if (i == LABELS_MAX)
            return err_set(err, ERR_INVALID, "label: at most %d are allowed", LABELS_MAX);
        if (!span_split(text, '=', &label->name, &label->value))
            return err_set(err, ERR_INVALID, "label: '%.*s' must have the form name=value",
                           SPAN_PRINT(text));
        incoming->source.label_count = i + 1;
    }
    incoming->source.labels = incoming->labels;
    return ERR_NONE;
}

static enum err_code read_parameters(struct request *request, struct incoming *incoming,
                                     struct err *err)
{
    static const char *const single[] = {"name", "time", NULL};
    static const char *const repeatable[] = {"label", NULL};
    struct span time;
    enum err_code code = request_check_parameters(request, single, repeatable, err);
    if (!code)
        code = read_labels(request, incoming, err);
    sources_name_service(request, incoming->labels, incoming->source.label_count, SPAN_LITERAL(""));
    if (code)
        return code;
    request_query(request, "name", &incoming->source.name);
    if (!request_query(request, "time", &time))
        return ERR_NONE;
    code = time_parse(time, clock_wall_ns(), &incoming->source.time_ns, err);
    return code ? err_add(err, "time") : ERR_NONE;
}

static enum err_code append_profile(struct request *request, struct incoming *incoming,
                                    struct store_receipt *ret_receipt, struct err *err)
{
    struct batch_source *source = &incoming->source;
    if (source->time_ns)
        source->profile->time_ns = source->time_ns;
    const struct ingest_body_profile profile = {
        .source = source,
        .time_ns = source->time_ns ? source->time_ns : batch_own_time_ns(source->profile),
        .content = request->body};
    enum err_code code = ingest_body_put(request, &profile, incoming->ingest_request, err);
    memory_gate_leave(request->server->memory_gate, request->principal.tenant_id,
                      incoming->gate_slot.held_bytes);
    return code ? code : ingest_request_commit(incoming->ingest_request, ret_receipt, err);
}

void profile_receiver_write_receipt(const struct store_receipt *receipt, struct buf *json)
{
    buf_printf(json, "{\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"duplicate\":%s}\n",
               receipt->row_count, receipt->bytes, receipt->is_duplicate ? "true" : "false");
}

static enum err_code decode_profile(const struct request *request, struct incoming *incoming,
                                    struct err *err)
{
    struct memory_gate *gate = request->server->memory_gate;
    struct profile_limits limits = memory_gate_profile_limits(gate, request->server->settings);
    enum format format;
    ingest_request_set_limits(incoming->ingest_request, &limits);
    enum err_code code =
        memory_gate_decode(gate, request->principal.tenant_id, request->body, &limits, &format,
                           &incoming->source.profile, &incoming->gate_slot, err);
    return ingest_request_explain(incoming->ingest_request, &limits, code, err);
}

/* The parameters, and whether the body can be decoded. */
static enum err_code read_request(struct request *request, struct incoming *incoming,
                                  struct err *err)
{
    enum err_code code = read_parameters(request, incoming, err);
    if (code)
        return code;
    code = ingest_body_check_encoding(request, err);
    if (code)
        return code;
    if (!request->body.size)
        return err_set(err, ERR_INVALID, "the body is empty: send a profile");
    return form_body_check(request, false, err);
}

/* The caller closes incoming->ingest_request. */
static enum err_code receive_profile(struct request *request, struct incoming *incoming,
                                     struct store_receipt *ret_receipt, struct err *err)
{
    enum err_code code = ingest_request_open(request, &incoming->ingest_request, err);
    if (code)
        return code;
    code = form_body_explain(request, decode_profile(request, incoming, err), err);
    return code ? code : append_profile(request, incoming, ret_receipt, err);
}

static enum err_code post_profile(struct request *request, struct response *response,
                                  struct err *err)
{
    struct incoming *incoming = arena_new(request->arena, struct incoming, 1);
    struct store_receipt receipt;
    enum err_code code = read_request(request, incoming, err);
    if (code)
        return code;
    code = receive_profile(request, incoming, &receipt, err);
    ingest_request_close(incoming->ingest_request);
    if (code)
        return code;
    ingest_body_add_warning(request, response);
    buf_auto json;
    buf_init(&json, 1024);
    profile_receiver_write_receipt(&receipt, &json);
    return response_buf(request, response, 200, "application/json", &json, err);
}

static const struct route routes[] = {
    {HTTP_POST, "/api/v1/profiles", ACCESS_SCOPES, SCOPE_INGEST, ROUTE_AGENT, BODY_MAX_BYTES,
     post_profile},
};

const struct route_table profile_receiver_routes = {routes, sizeof(routes) / sizeof(*routes)};
