#include "api/share/share_merge.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/identity/idempotency.h"
#include "api/identity/quota.h"
#include "api/share/profile_cache.h"
#include "api/share/share_access.h"
#include "api/share/share_settings.h"
#include "api/share/share_summary.h"
#include "api/upload/upload_slot.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/low_priority.h"
#include "lib/profile/merge.h"
#include "lib/profile/pprof/pprof.h"

/* The profiles to merge, borrowed from the cache until release. */
struct merge_input {
    struct flight_entry *entries[SHARE_MERGE_SHARES];
    const struct profile *profiles[SHARE_MERGE_SHARES];
    size_t count; /* borrowed */
    struct share shares[SHARE_MERGE_SHARES];
    size_t share_count;
};

static void release_inputs(struct merge_input *input)
{
    for (size_t i = 0; i < input->count; i++)
        profile_cache_unref(input->entries[i]);
    input->count = 0;
}

/* Finds the shares and adds up the memory for decoding, merging and encoding them. */
static enum err_code find_shares(struct request *request, const char *const *ids,
                                 struct merge_input *input, uint64_t *ret_gate_bytes,
                                 struct err *err)
{
    uint64_t decoded_bytes = 0, decode_bytes = 0;
    for (size_t i = 0; i < input->share_count; i++) {
        enum err_code code = share_access_find(request, span_text(ids[i]), &input->shares[i], err);
        if (code)
            return err_add(err, "shares");
        struct share_cost cost = profile_cache_cost(&input->shares[i]);
        decoded_bytes += cost.decoded_bytes;
        if (cost.decode_bytes > MEMORY_GATE_LIGHT_PEAK && cost.decode_bytes > decode_bytes)
            decode_bytes = cost.decode_bytes;
    }
    if (decoded_bytes > SHARE_MERGE_BYTES)
        return err_set(
            err, ERR_TOO_LARGE,
            "shares: these profiles have more than %d MiB together when decoded: merge fewer",
            SHARE_MERGE_BYTES >> 20);
    uint64_t gate_bytes = 3 * decoded_bytes + decode_bytes;
    *ret_gate_bytes = gate_bytes <= MEMORY_GATE_LIGHT_WORK ? 0 : gate_bytes;
    return ERR_NONE;
}

static enum err_code borrow_all(struct request *request, struct merge_input *input, struct err *err)
{
    enum err_code code = ERR_NONE;
    while (!code && input->count < input->share_count) {
        size_t i = input->count;
        code = profile_cache_ref(request->server, &input->shares[i], &input->entries[i], err);
        if (code)
            return err_add(err, "shares");
        input->profiles[i] = profile_cache_get(input->entries[i]);
        input->count++;
    }
    return code;
}

static enum err_code merge_borrowed(struct request *request, struct merge_input *input,
                                    struct buf *message, struct err *err)
{
    const struct server *server = request->server;
    struct profile_limits limits =
        memory_gate_profile_limits(server->memory_gate, server->settings);
    struct profile *merged;
    enum err_code code = borrow_all(request, input, err);
    if (!code)
        code = merge_profiles(input->profiles, input->count, &limits, &merged, err);
    if (!code) {
        code = pprof_encode(merged, message, err);
        profile_destroy(merged);
    }
    release_inputs(input);
    return code;
}

static enum err_code merge_shares(struct request *request, const char *const *ids, size_t id_count,
                                  struct buf *packed, struct err *err)
{
    struct memory_gate *gate = request->server->memory_gate;
    struct merge_input *input = arena_new(request->arena, struct merge_input, 1);
    uint64_t gate_bytes = 0;
    input->share_count = id_count;
    enum err_code code = find_shares(request, ids, input, &gate_bytes, err);
    if (code)
        return code;
    code = memory_gate_enter(gate, request->principal.tenant_id, gate_bytes, "this merge", err);
    if (code)
        return code;
    buf_auto message;
    buf_init(&message, 1 << 30);
    code = merge_borrowed(request, input, &message, err);
    if (!code)
        code = compress_gzip(buf_span(&message), COMPRESS_GZIP_DEFAULT, packed, err);
    memory_gate_leave(gate, request->principal.tenant_id, gate_bytes);
    return code;
}

struct merging {
    struct request *request;
    const char *const *ids;
    size_t id_count;
    struct buf *packed;
    enum err_code code;
    struct err *err;
};

static void run_merging(void *context)
{
    struct merging *merging = context;
    merging->code = merge_shares(merging->request, merging->ids, merging->id_count, merging->packed,
                                 merging->err);
}

/* Without credentials, merges run at low priority, as uploads do. */
static enum err_code merge_at_priority(struct request *request, const char *const *ids,
                                       size_t id_count, struct buf *packed, struct err *err)
{
    struct merging merging = {
        .request = request, .ids = ids, .id_count = id_count, .packed = packed, .err = err};
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        low_priority_call(LOW_PRIORITY_NICE, run_merging, &merging);
    else
        run_merging(&merging);
    return merging.code;
}

static enum err_code read_ids(struct request *request, const char *const **ret_ids,
                              size_t *ret_count, struct err *err)
{
    static const char *const known[] = {"shares", NULL};
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_texts(body, "shares", SHARE_MERGE_SHARES, ret_ids, ret_count, err);
    if (code)
        return code;
    if (*ret_count == 0)
        return err_set(err, ERR_INVALID, "shares is missing: the ids of the profiles to merge");
    return ERR_NONE;
}

static enum err_code merge_and_share(struct request *request, struct share_settings *settings,
                                     struct idempotency *idempotency, struct response *response,
                                     struct err *err)
{
    const char *const *ids;
    size_t id_count;
    buf_auto packed;
    buf_init(&packed, 1 << 30);
    enum err_code code = read_ids(request, &ids, &id_count, err);
    if (code)
        return code;
    /* The rate limit comes first: a merge costs the same whether its result is refused or not. */
    code = quota_take_completion(request, err);
    if (code)
        return code;
    code = merge_at_priority(request, ids, id_count, &packed, err);
    if (code)
        return code;
    code = quota_check_size(request, packed.size, err);
    if (code)
        return code;
    if (!*settings->filename)
        settings->filename = "merged.pb.gz";
    return share_create_once(request, settings, buf_span(&packed), idempotency, response, err);
}

enum err_code share_merge_handle(struct request *request, struct response *response,
                                 struct err *err)
{
    struct share_settings settings;
    struct idempotency idempotency;
    enum err_code code = share_settings_read(request, &settings, err);
    if (code)
        return code;
    code = idempotency_find(request, &idempotency, err);
    if (code)
        return code;
    if (idempotency.is_known)
        return share_create_respond_again(request, idempotency.id, idempotency.secret, response,
                                          err);
    code = upload_slot_take(request, err);
    if (code)
        return code;
    return merge_and_share(request, &settings, &idempotency, response, err);
}
