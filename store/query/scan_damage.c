/*
 * Damage that a scan meets: which failures leave out a block or granule, and which end the query.
 *
 * Example: the granule of one object fails with a bad sector (ERR_IO with is_unreadable). The first
 * such failure of a query reads another object. If that works, the disk is reachable, so the
 * granule is left out and counted in broken_count of the statistics, with a broken_message. If no
 * other object can be read either, the query fails, since its result would lack everything.
 */
#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/reachability.h"
#include "store/query/block_cache.h"

/* One readable object proves that the store is reachable, for the rest of the query. From then on a
 * failing object counts as damaged without another probe. */
static bool is_damaged_alone(struct scan *scan, const char *object_key)
{
    struct scan_state *state = scan->state;
    const struct reachability reachability = {.database = state->source->database,
                                              .tenant_id = scan->query->tenant_id,
                                              .objects = block_cache_objects(state->source->blocks),
                                              .wait_limit = &scan->query->wait_limit};
    if (scan->err->is_unreadable && !state->is_reachable)
        state->is_reachable = reachability_is_alone(&reachability, object_key, scan->err);
    return scan->err->is_unreadable && state->is_reachable;
}

/* True for damage to this object, false for an outage and for all other errors. */
static bool is_broken(struct scan *scan, const char *object_key, enum err_code code)
{
    return code == ERR_CORRUPT || (code == ERR_IO && is_damaged_alone(scan, object_key));
}

static void report_damage(const struct scan *scan, const char *object_key)
{
    const struct scan_source *source = scan->state->source;
    const struct store_damage damage = {.tenant_id = scan->query->tenant_id,
                                        .object_key = object_key,
                                        .code = scan->err->code,
                                        .message = scan->err->message};
    if (source->damaged)
        source->damaged(source->damaged_context, &damage);
}

/* Counts and leaves out damaged data; any other failure ends the query. */
enum err_code scan_skip_broken(struct scan *scan, const char *object_key, enum err_code code)
{
    if (!is_broken(scan, object_key, code))
        return code;
    report_damage(scan, object_key);
    if (scan->statistics.broken_count++ == 0)
        scan->statistics.broken_message = arena_strdup(scan->arena, scan->err->message);
    return ERR_NONE;
}

enum err_code scan_note_read(struct scan *scan, struct scan_task *task, uint64_t row_count,
                             uint64_t bytes, enum err_code code)
{
    const char *object_key = scan->state->places[task->block_index]->object_key;
    struct store_statistics *statistics = &scan->statistics;
    if (!code) {
        statistics->granule_count++;
        statistics->row_count += row_count;
        statistics->bytes_read += bytes;
    } else if (is_broken(scan, object_key, code)) {
        task->is_broken = true;
        statistics->profile_count -= scan_profile_count(task);
    }
    return scan_skip_broken(scan, object_key, code);
}
