/* The inputs of a merge: opens them in batches, marks those that are damaged, and finds their
 * expired profiles. */
#include "store/maintain/compact_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/catalogue/reachability.h"
#include "store/catalogue/retention.h"

enum { RENEW_S = 15 };

enum err_code compact_renew_lease(struct compaction *compaction)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns - compaction->renewed_ns < RENEW_S * CLOCK_NS_PER_S)
        return ERR_NONE;
    compaction->renewed_ns = now_ns;
    return catalogue_renew(compaction->options->jobs_database, compaction->writer_id,
                           compaction->claim, compaction->err);
}

static enum err_code mark_broken(struct compaction *compaction, uint32_t index,
                                 enum catalogue_mark_reason reason)
{
    struct err err;
    const struct catalogue_claim *claim = compaction->claim;
    block_cache_remove(compaction->options->blocks, claim->tenant_id, &claim->places[index]);
    (void)!catalogue_mark_broken(compaction->options->jobs_database, compaction->arena,
                                 compaction->writer_id, claim, claim->owners[index], reason, &err);
    return ERR_CORRUPT;
}

/* Reads the input again, because the first failure may have been transient. If it still fails and
 * no other object can be read either, the disk or bucket is unreachable, and nothing is marked. */
static bool is_unreadable(const struct compaction *compaction, uint32_t index,
                          const struct err *failure)
{
    const struct catalogue_claim *claim = compaction->claim;
    const struct reachability reachability = maintenance_options_reachability(compaction->options);
    struct open_block opened;
    struct err err = {0};
    if (!failure->is_unreadable)
        return false;
    enum err_code code = block_cache_borrow(compaction->options->blocks, claim->tenant_id,
                                            &claim->places[index], &opened, &err);
    if (!code) {
        code = block_verify(opened.block, &err);
        block_cache_return(&opened);
    }
    return code == ERR_IO &&
           reachability_is_alone(&reachability, claim->places[index].object_key, &err);
}

void compact_create_batch(struct compaction *compaction)
{
    const uint32_t count = compaction->claim->count;
    compaction->opened = arena_new(compaction->arena, struct open_block, count);
    compaction->indexes = arena_new(compaction->arena, uint32_t, count);
    compaction->blocks = arena_new(compaction->arena, const struct block *, count);
    compaction->deletions = arena_new(compaction->arena, struct deletion_set_ids, count);
}

static enum err_code open_input(struct compaction *compaction, uint32_t index)
{
    const struct catalogue_claim *claim = compaction->claim;
    struct open_block *opened = &compaction->opened[compaction->count];
    enum err_code code = compact_renew_lease(compaction);
    if (code)
        return code;
    code = block_cache_borrow(compaction->options->blocks, claim->tenant_id, &claim->places[index],
                              opened, compaction->err);
    if (code == ERR_CORRUPT || code == ERR_NOT_FOUND)
        return mark_broken(compaction, index,
                           code == ERR_CORRUPT ? CATALOGUE_UNREADABLE : CATALOGUE_MISSING);
    if (code == ERR_IO && is_unreadable(compaction, index, compaction->err))
        return mark_broken(compaction, index, CATALOGUE_UNREADABLE);
    if (code)
        return code;
    compaction->indexes[compaction->count] = index;
    compaction->deletions[compaction->count] = claim->places[index].deletions;
    compaction->blocks[compaction->count++] = opened->block;
    compaction->open_bytes += block_memory(opened->block);
    return ERR_NONE;
}

enum err_code compact_open_batch(struct compaction *compaction)
{
    const struct compact_plan *plan = compaction->plan;
    const size_t most = maintenance_options_open_bytes(compaction->options);
    enum err_code code = ERR_NONE;
    while (!code && compaction->next_index < compaction->claim->count &&
           compaction->open_bytes < most) {
        const uint32_t index = compaction->next_index++;
        if (!plan->is_left_out || !plan->is_left_out[index])
            code = open_input(compaction, index);
    }
    return code;
}

void compact_return_batch(struct compaction *compaction)
{
    for (uint32_t i = 0; i < compaction->count; i++)
        block_cache_return(&compaction->opened[i]);
    compaction->count = 0;
    compaction->open_bytes = 0;
}

/* ---- expired profiles ---- */

/* Notes when the next rule is due on a series. In a block that was claimed for expiry, a rule is
 * due when the newest profile of the block is too old for the rule, so that each rule is due once.
 * Other merges leave out all profiles that have expired. */
static enum err_code note_series_due(struct compaction *compaction, const struct block *block,
                                     const struct block_granule *granules, uint32_t count)
{
    const int64_t end_ns = block_footer(block)->end_ns;
    const bool is_expiry = compaction->claim->is_expiry;
    const int64_t age_ns = is_expiry ? end_ns : granules[0].begin_ns;
    struct retention_times times;
    bool are_totals = true;
    for (uint32_t i = 0; i < count; i++)
        are_totals = are_totals && granules[i].flags & BLOCK_ARE_TOTALS;
    enum err_code code = retention_find(compaction->retention, block_dictionary(block),
                                        granules[0].series, &times, compaction->err);
    if (code)
        return code;
    const bool is_past = age_ns < times.gone_before_ns;
    const bool is_reduced = !are_totals && age_ns < times.totals_before_ns;
    compaction->is_due |= is_past || is_reduced;
    const int64_t due_ns = retention_next_due(&times, are_totals || is_reduced, end_ns);
    if (!is_past && due_ns < compaction->due_ns)
        compaction->due_ns = due_ns;
    return ERR_NONE;
}

/* An expiry always looks at the series, since the block is claimed again at due_ns: a rule with
 * totals is due up to an hour later than the claim, when the whole hour is old enough. */
static enum err_code note_block_due(struct compaction *compaction, const struct block *block)
{
    uint32_t count;
    enum err_code code = ERR_NONE;
    const struct block_granule *granules = block_granules(block, &count);
    if (!compaction->claim->is_expiry &&
        block_footer(block)->begin_ns >= retention_latest_cutoff(compaction->retention))
        return ERR_NONE;
    for (uint32_t i = 0; i < count && !code;) {
        uint32_t end = i;
        while (end < count && granules[end].series == granules[i].series)
            end++;
        code = note_series_due(compaction, block, &granules[i], end - i);
        i = end;
    }
    return code;
}

/* Merges that are no expiry match series with rules only in blocks with profiles that are old
 * enough for some rule. */
enum err_code compact_find_expired(struct compaction *compaction)
{
    const struct catalogue_claim *claim = compaction->claim;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < compaction->count && !code; i++)
        code = note_block_due(compaction, compaction->blocks[i]);
    if (!code && !compaction->deleted && (compaction->is_due || claim->deletion_count))
        code = deletion_set_create(compaction->arena, claim->deletions, claim->deletion_count,
                                   compaction->retention, &compaction->deleted, compaction->err);
    if (!code && compaction->deleted)
        deletion_set_set_budget(compaction->deleted, &compaction->matching);
    return code;
}

enum err_code compact_mark_broken_input(struct compaction *compaction, enum err_code reason)
{
    for (uint32_t i = 0; i < compaction->count; i++) {
        struct err err;
        enum err_code code = block_verify(compaction->blocks[i], &err);
        if (code == ERR_CORRUPT ||
            (code == ERR_IO && is_unreadable(compaction, compaction->indexes[i], &err))) {
            *compaction->err = err;
            return mark_broken(compaction, compaction->indexes[i], CATALOGUE_UNREADABLE);
        }
    }
    return reason;
}
