#include "api/profiles.h"

#include "api/decode_gate.h"
#include "api/server.h"
#include "api/settings.h"
#include "api/share_memory.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/when.h"
#include "lib/profile/batch_from_profile.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BODY_MAX_BYTES = 8 << 20, LABELS_MAX = 64, BATCH_ID_MAX_BYTES = 200 };

struct incoming {
    struct batch_text_label labels[LABELS_MAX];
    struct batch_source source;
    struct decode_place place;
};

static enum err_code read_labels(const struct request *request, struct incoming *incoming,
                                 struct err *err)
{
    struct span text;
    for (size_t i = 0; request_query_nth(request, "label", i, &text); i++) {
        struct batch_text_label *label = &incoming->labels[i];
        if (i == LABELS_MAX)
            return err_set(err, ERR_INVALID, "label: there are more than %d", LABELS_MAX);
        if (!span_split(text, '=', &label->name, &label->value))
            return err_set(err, ERR_INVALID, "label: '%.*s' is no name=value", SPAN_PRINT(text));
        incoming->source.label_count = i + 1;
    }
    incoming->source.labels = incoming->labels;
    return ERR_NONE;
}

static enum err_code read_parameters(const struct request *request, struct incoming *incoming,
                                     struct err *err)
{
    static const char *const single[] = {"name", "time", NULL};
    static const char *const repeatable[] = {"label", NULL};
    struct span time;
    enum err_code code = request_check_parameters(request, single, repeatable, err);
    if (!code)
        code = read_labels(request, incoming, err);
    if (code)
        return code;
    request_query(request, "name", &incoming->source.name);
    if (!request_query(request, "time", &time))
        return ERR_NONE;
    code = when_parse(time, clock_wall_ns(), &incoming->source.time_ns, err);
    return code ? err_add(err, "time") : ERR_NONE;
}

static int compare_labels(const void *a, const void *b)
{
    const struct batch_text_label *x = a, *y = b;
    const int order = span_compare(x->name, y->name);
    return order ? order : span_compare(x->value, y->value);
}

static void append_sized(struct digest_stream *stream, struct span bytes)
{
    const uint64_t size = bytes.size;
    digest_stream_append(stream, span_of(&size, sizeof(size)));
    digest_stream_append(stream, bytes);
}

/* What tells this batch from others, or false where it cannot be told from one more like it. */
static enum err_code find_batch_id(const struct request *request, struct incoming *incoming,
                                   uint8_t batch_id[STORE_BATCH_ID_BYTES], bool *ret_has_id,
                                   struct err *err)
{
    const struct span given = request_field(request, "perfolio-batch-id");
    const int64_t time_ns =
        incoming->source.time_ns ? incoming->source.time_ns : incoming->source.profile->time_ns;
    *ret_has_id = given.size || time_ns;
    if (given.size > BATCH_ID_MAX_BYTES)
        return err_set(err, ERR_INVALID, "Perfolio-Batch-Id is longer than %d bytes",
                       BATCH_ID_MAX_BYTES);
    struct digest_stream *stream = digest_stream_create();
    append_sized(stream, given);
    if (!given.size) {
        qsort(incoming->labels, incoming->source.label_count, sizeof(incoming->labels[0]),
              compare_labels);
        for (size_t i = 0; i < incoming->source.label_count; i++) {
            append_sized(stream, incoming->labels[i].name);
            append_sized(stream, incoming->labels[i].value);
        }
        append_sized(stream, incoming->source.name);
        append_sized(stream, span_of(&time_ns, sizeof(time_ns)));
        append_sized(stream, request->body);
    }
    digest_stream_finish(stream, batch_id);
    digest_stream_destroy(stream);
    return ERR_NONE;
}

static enum err_code append_profile(struct request *request, struct incoming *incoming,
                                    struct store_receipt *ret_receipt, struct err *err)
{
    uint8_t batch_id[STORE_BATCH_ID_BYTES];
    bool has_id;
    enum err_code code = find_batch_id(request, incoming, batch_id, &has_id, err);
    if (code)
        return code;
    if (incoming->source.time_ns)
        incoming->source.profile->time_ns = incoming->source.time_ns;
    else
        incoming->source.time_ns = clock_wall_ns(); /* for a profile without one */
    struct batch *batch;
    code = batch_from_profile(&incoming->source, NULL, &batch, err);
    if (code)
        return code;
    incoming->source.profile = NULL;
    if (batch->profile_count == 0)
        *ret_receipt = (struct store_receipt){0};
    else
        code = store_append(request->server->store, request->principal.tenant_id, batch,
                            has_id ? batch_id : NULL, ret_receipt, err);
    batch_destroy(batch);
    return code;
}

static enum err_code post_profile(struct request *request, struct response *response,
                                  struct err *err)
{
    struct incoming *incoming = arena_new(request->arena, struct incoming, 1);
    struct decode_gate *gate = request->server->shares->gate;
    const struct profile_limits limits =
        share_memory_limits(request->server->settings, decode_gate_max_bytes(gate));
    enum format format;
    struct store_receipt receipt;
    enum err_code code = read_parameters(request, incoming, err);
    if (!code && !request->body.size)
        code = err_set(err, ERR_INVALID, "the body is empty: send a profile");
    if (!code)
        code = decode_gate_decode(gate, request->body, &limits, &format, &incoming->source.profile,
                                  &incoming->place, err);
    if (code)
        return code;
    code = append_profile(request, incoming, &receipt, err);
    profile_destroy(incoming->source.profile);
    decode_gate_leave(gate, incoming->place.held_bytes);
    if (code)
        return code;
    buf_auto json;
    buf_init(&json, 1024);
    buf_printf(&json, "{\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"duplicate\":%s}\n",
               receipt.row_count, receipt.bytes, receipt.is_duplicate ? "true" : "false");
    return response_buf(request, response, 200, "application/json", &json, err);
}

static const struct route routes[] = {
    {HTTP_POST, "/api/v1/profiles", ACCESS_SCOPES, SCOPE_INGEST, 0, BODY_MAX_BYTES, post_profile},
};

const struct route_table profile_routes = {routes, sizeof(routes) / sizeof(*routes)};
