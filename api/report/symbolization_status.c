#include "api/report/symbolization_status.h"

#include "api/debuginfo/build_id.h"
#include "api/debuginfo/symbol_status.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/report/symbol_resolver.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/symbolize.h"

#include <inttypes.h>
#include <string.h>

enum { STATUS_MAX_BYTES = 8 << 20, REQUESTED_MAX = 256 };

static bool is_listed(const struct symbolization_status *status, const struct symbol_status *one)
{
    for (uint32_t i = 0; i < status->count; i++) {
        const struct symbol_status *other = &status->states[i];
        if (other->state == one->state && strcmp(other->build_id, one->build_id) == 0 &&
            strcmp(other->file, one->file) == 0)
            return true;
    }
    return false;
}

enum err_code symbolization_status_add(struct request *request, int64_t tenant_id,
                                       const struct symbolize_binary *binaries, uint32_t count,
                                       struct symbolization_status *status, struct err *err)
{
    const struct symbol_status *found;
    const uint32_t all = count;
    enum err_code code = symbol_resolver_find_states(request->server, tenant_id, binaries, count,
                                                     request->arena, &found, &count, err);
    if (code || !count)
        return code;
    struct symbol_status *states =
        arena_new(request->arena, struct symbol_status, status->count + count);
    if (status->count)
        memcpy(states, status->states, status->count * sizeof(*states));
    struct symbolization_status joined = {.states = states, .count = status->count};
    joined.unlisted_count = status->unlisted_count + (all - count);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_listed(status, &found[i])) /* one profile lists no binary twice */
            states[joined.count++] = found[i];
    }
    *status = joined;
    return ERR_NONE;
}

enum err_code symbolization_status_add_profile(struct request *request, int64_t tenant_id,
                                               const struct profile *profile,
                                               struct symbolization_status *status, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct symbolize_binary *binaries;
    uint32_t count = symbolize_find_binaries(profile, scratch, &binaries);
    return symbolization_status_add(request, tenant_id, binaries, count, status, err);
}

void symbolization_status_note_incomplete(struct symbolization_status *status)
{
    bool is_complete = !status->unlisted_count;
    for (uint32_t i = 0; i < status->count; i++)
        is_complete &= status->states[i].state == SYMBOL_STATUS_READY;
    status->unlisted_count += is_complete;
}

const char *symbolization_status_write(struct request *request,
                                       const struct symbolization_status *status)
{
    buf_auto json;
    buf_init(&json, STATUS_MAX_BYTES);
    symbol_status_write(status->states, status->count, status->unlisted_count, &json);
    return buf_failed(&json) ? NULL : arena_strndup(request->arena, json.data, json.size);
}

static enum err_code read_build_ids(const struct request *request,
                                    const struct symbolize_binary **ret_binaries,
                                    uint32_t *ret_count, struct err *err)
{
    struct symbolize_binary *binaries =
        arena_new(request->arena, struct symbolize_binary, REQUESTED_MAX);
    struct span text;
    uint32_t count = 0;
    for (; request_query_nth(request, "build_id", count, &text); count++) {
        if (count == REQUESTED_MAX)
            return err_set(err, ERR_INVALID, "build_id: there are more than %d", REQUESTED_MAX);
        char id[BUILD_ID_BYTES];
        if (!build_id_normalize(text, id))
            return err_set(err, ERR_INVALID, "build_id is empty or too long: leave it out");
        binaries[count].build_id = text;
    }
    if (!count)
        return err_set(err, ERR_INVALID, "build_id is missing: the build ids of some binaries");
    *ret_binaries = binaries;
    *ret_count = count;
    return ERR_NONE;
}

enum err_code symbolization_status_handle(struct request *request, struct response *response,
                                          struct err *err)
{
    static const char *const none[] = {NULL}, *const repeatable[] = {"build_id", NULL};
    const int64_t tenant_id = request->principal.tenant_id;
    const struct symbolize_binary *binaries = NULL;
    uint32_t count = 0;
    struct symbolization_status status = {0};
    enum err_code code = request_check_parameters(request, none, repeatable, err);
    if (code)
        return code;
    code = read_build_ids(request, &binaries, &count, err);
    if (code)
        return code;
    /* Before the states: a change between the two is then reported the next time. */
    const uint64_t generation = symbol_tables_generation(request->server, tenant_id);
    code = symbolization_status_add(request, tenant_id, binaries, count, &status, err);
    if (code)
        return code;
    const char *json = symbolization_status_write(request, &status);
    if (!json)
        return err_set(err, ERR_TOO_LARGE, "too many binaries lack names to list them");
    response_add(request, response, "cache-control", "private, no-cache");
    response_bytes(response, 200, "application/json",
                   span_text(arena_printf(request->arena, "{\"generation\":%" PRIu64 ",%s",
                                          generation, json + 1)));
    return ERR_NONE;
}
