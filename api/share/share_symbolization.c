#include "api/share/share_symbolization.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/report/report.h"
#include "api/report/symbolization_status.h"
#include "api/share/profile_cache.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_runtime.h"
#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/symbolize.h"

#include <inttypes.h>
#include <string.h>

enum err_code share_symbolization_describe(struct request *request, const struct share *shares,
                                           size_t count, bool lacks_names, uint64_t *ret_generation,
                                           const char **ret_json, struct err *err)
{
    struct symbolization_status states = {0};
    *ret_generation = 0;
    for (size_t i = 0; i < count; i++) {
        const struct share *share = &shares[i];
        const struct symbolize_binary *binaries;
        uint32_t binary_count, unlisted;
        if (share_summary_has_build_ids(share->summary))
            *ret_generation += symbol_tables_generation(request->server, share->tenant_id);
        share_summary_read_unnamed(share->summary, request->arena, &binaries, &binary_count,
                                   &unlisted);
        states.unlisted_count += unlisted;
        enum err_code code = symbolization_status_add(request, share->tenant_id, binaries,
                                                      binary_count, &states, err);
        if (code)
            return code;
    }
    if (lacks_names)
        symbolization_status_note_incomplete(&states);
    *ret_json = symbolization_status_write(request, &states);
    return ERR_NONE;
}

/* ---- for a page that waits ---- */

enum err_code share_symbolization_ref_profile(struct request *request, const struct share *share,
                                              struct flight_entry **ret_entry, struct err *err)
{
    struct memory_gate *gate = request->server->memory_gate;
    const struct share_cost cost = profile_cache_cost(share);
    const uint64_t gate_bytes = cost.decode_bytes > MEMORY_GATE_LIGHT_PEAK ? cost.decode_bytes : 0;
    enum err_code code = report_take_slot(request, share->id, err);
    if (code)
        return code;
    code = memory_gate_enter(gate, request->principal.tenant_id, gate_bytes, "this profile", err);
    if (code)
        return code;
    code = profile_cache_ref(request->server, share, ret_entry, err);
    memory_gate_leave(gate, request->principal.tenant_id, gate_bytes);
    return code;
}

static const char *etag_of(struct arena *arena, struct span body)
{
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    digest_sha256(body, hash);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    return arena_printf(arena, "W/\"%.32s\"", hex);
}

enum err_code share_symbolization_handle(struct request *request, struct response *response,
                                         struct err *err)
{
    static const char *const known[] = {NULL};
    struct share share;
    uint64_t generation;
    const char *json;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    code = share_symbolization_describe(request, &share, 1, false, &generation, &json, err);
    if (code)
        return code;
    if (!json)
        return err_set(err, ERR_TOO_LARGE, "too many binaries lack names to list them");
    const char *body =
        arena_printf(request->arena, "{\"generation\":%" PRIu64 ",%s", generation, json + 1);
    share_access_add_robots(request, response, &share);
    response->is_open_to_sites = share_access_is_open(&share);
    if (response_is_cached(request, response, etag_of(request->arena, span_text(body)),
                           share_access_cache_control(&share)))
        return ERR_NONE;
    response_bytes(response, 200, "application/json", span_text(body));
    return ERR_NONE;
}
