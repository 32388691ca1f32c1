#include "store/maintain/claimed_work.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/block/oversized.h"
#include "store/catalogue/catalogue.h"
#include "store/maintain/compact.h"
#include "store/maintain/repair.h"
#include "store/query/block_cache.h"

#include <inttypes.h>

enum {
    /* Then the rest of a claim is released, so that other tenants wait only for seconds. */
    SLICE_S = 5,
    COSTLY_SEGMENTS = 8, /* a costly team's in one merge: each may become a block for each day */
    RETRY_S = 10,        /* when a claim that failed because of the bucket can be claimed again */
    LARGE_S = 3600       /* when blocks of the last level that cannot be open together can be */
};

/* ---- parts of a claim ---- */

static uint32_t first_index(const struct catalogue_claim *claim, uint32_t id)
{
    uint32_t index = 0;
    while (id < claim->id_count && index < claim->count && claim->owners[index] != claim->ids[id])
        index++;
    return id < claim->id_count ? index : claim->count;
}

/* The claim's segments or blocks first <= i < first + count. */
static struct catalogue_claim slice_claim(const struct catalogue_claim *claim, uint32_t first,
                                          uint32_t count)
{
    const uint32_t begin = first_index(claim, first), end = first_index(claim, first + count);
    struct catalogue_claim part = *claim;
    part.places += begin;
    part.owners += begin;
    part.count = end - begin;
    part.ids += first;
    part.id_count = count;
    return part;
}

/* Whether a run of `size` inputs may be halved. Two blocks of the last level without deletions may
 * not: a single one would be written again unchanged, and claimed again and again. */
static bool can_halve(const struct catalogue_claim *claim, uint32_t size)
{
    const bool can_be_alone = claim->level < CATALOGUE_LEVELS || claim->deletion_count;
    return size > 2 || (size == 2 && can_be_alone);
}

/* ---- inputs that are too large to be merged together ---- */

static void report_failure(const struct maintenance_options *options,
                           const struct catalogue_claim *claim, struct err *err)
{
    (void)err_add(err, "profiles of tenant %" PRId64, claim->tenant_id);
    if (options->report)
        options->report(options->report_context, "compaction", err);
}

/* Reports and marks a part that no merge can take. Queries still read it. */
static enum err_code mark_too_large(const struct maintenance_options *options, int64_t writer_id,
                                    const struct catalogue_claim *claim, struct err *err)
{
    arena_auto arena = arena_create();
    report_failure(options, claim, err);
    return catalogue_mark_broken(options->jobs_database, arena, writer_id, claim, claim->ids[0],
                                 CATALOGUE_TOO_LARGE, err);
}

/* Bytes of strings of a segment's part or block; 0 when it cannot be opened. *ret_is_oversized:
 * they are out of proportion. */
static size_t measure_strings(const struct maintenance_options *options,
                              const struct catalogue_claim *one, bool *ret_is_oversized)
{
    size_t bytes = 0;
    *ret_is_oversized = false;
    for (uint32_t i = 0; i < one->count; i++) {
        struct open_block opened;
        struct err err;
        if (block_cache_borrow(options->blocks, one->tenant_id, &one->places[i], &opened, &err))
            continue;
        bytes += block_dictionary(opened.block)->string_bytes;
        *ret_is_oversized |= oversized_in_merge(opened.block);
        block_cache_return(&opened);
    }
    return bytes;
}

/* Finds the input that keeps the others from being merged: the largest of the oversized inputs, or
 * the largest of all if none is oversized. */
static uint32_t find_obstacle(const struct maintenance_options *options,
                              const struct catalogue_claim *part)
{
    uint32_t found = 0;
    size_t most = 0;
    bool has_oversized = false;
    for (uint32_t i = 0; i < part->id_count; i++) {
        const struct catalogue_claim one = slice_claim(part, i, 1);
        bool is_oversized;
        const size_t bytes = measure_strings(options, &one, &is_oversized);
        if (is_oversized < has_oversized || (is_oversized == has_oversized && bytes <= most))
            continue;
        found = i;
        most = bytes;
        has_oversized = is_oversized;
    }
    return found;
}

/* Every batch of the claim would have one block, so a merge would write the same blocks again. */
static bool has_single_batches(const struct maintenance_options *options,
                               const struct catalogue_claim *claim)
{
    const size_t most = maintenance_options_open_bytes(options);
    bool is_single = true;
    for (uint32_t i = 0; i + 1 < claim->count && is_single; i++) {
        struct open_block opened;
        struct err err;
        if (block_cache_borrow(options->blocks, claim->tenant_id, &claim->places[i], &opened, &err))
            return false; /* the merge marks it */
        is_single = block_memory(opened.block) >= most;
        block_cache_return(&opened);
    }
    return is_single;
}

/* Whether a merge would change nothing: blocks of the last level without deletions are merged only
 * to be fewer, and these would not be. */
static bool is_useless(const struct maintenance_options *options,
                       const struct catalogue_claim *claim)
{
    return claim->level >= CATALOGUE_LEVELS && claim->count > 1 && !claim->deletion_count &&
           !claim->is_expiry && has_single_batches(options, claim);
}

/* ---- merging in runs ---- */

static enum err_code merge_part(const struct maintenance_options *options, int64_t writer_id,
                                const struct catalogue_claim *part, bool is_costly, struct err *err)
{
    static const struct compact_plan together = {0}, apart = {.is_apart = true};
    const struct compact_plan unmatched = {.is_apart = part->deletion_count > 0,
                                           .is_unmatched = true};
    const bool is_segment = part->level == 0;
    if (is_segment && is_costly)
        return compact_merge(options, writer_id, part, &unmatched, err);
    enum err_code code = compact_merge(options, writer_id, part, &together, err);
    if (code == ERR_TOO_LARGE && part->id_count == 1 && part->count > 1)
        code = compact_merge(options, writer_id, part, &apart, err);
    if (code == ERR_INVALID && is_segment) {
        report_failure(options, part, err);
        code = compact_merge(options, writer_id, part, &unmatched, err);
    }
    return code;
}

/*
 * Merges a claim in runs of its inputs. A run that is too large is halved; after a run that
 * succeeds, the next one is twice as long. A run that cannot be halved loses its obstacle: that
 * input is marked, and the inputs before it are merged.
 *
 * Example: 8 segments, 0 to 7, of which number 5 is too large by itself. 0-7 fails, 0-3 is merged,
 * 4-7 fails (a run is at most what is left), 4-5 fails, 4 is merged, 5-6 fails, 5 is marked, 6-7 is
 * merged: three merges and one mark instead of eight segments that stay.
 *
 * After SLICE_S the inputs that are left are released, so that the next claim may be of another
 * tenant.
 */
static enum err_code merge_claim(const struct maintenance_options *options, int64_t writer_id,
                                 const struct catalogue_claim *claim, bool is_costly,
                                 struct err *err)
{
    const int64_t end_ns = clock_monotonic_ns() + SLICE_S * CLOCK_NS_PER_S;
    const uint32_t most = is_costly && !claim->level ? COSTLY_SEGMENTS : claim->id_count;
    uint32_t size = claim->id_count < most ? claim->id_count : most;
    enum err_code code = ERR_NONE;
    for (uint32_t first = 0; first < claim->id_count && !code;) {
        const struct catalogue_claim remainder = slice_claim(claim, first, claim->id_count - first);
        if (first && clock_monotonic_ns() > end_ns)
            return catalogue_release(options->jobs_database, writer_id, &remainder, 0, err);
        const struct catalogue_claim part = slice_claim(claim, first, size);
        if (size < claim->id_count)
            code = catalogue_renew(options->jobs_database, writer_id, &remainder, err);
        if (!code)
            code = is_useless(options, &part)
                       ? catalogue_leave(options->jobs_database, writer_id, &part, LARGE_S, err)
                       : merge_part(options, writer_id, &part, is_costly, err);
        if (code == ERR_TOO_LARGE && can_halve(claim, size)) {
            size = (size + 1) / 2;
            code = ERR_NONE;
            continue;
        }
        if (code == ERR_TOO_LARGE) {
            const uint32_t obstacle = size > 1 ? find_obstacle(options, &part) : 0;
            const struct catalogue_claim one = slice_claim(claim, first + obstacle, 1);
            const struct catalogue_claim before = slice_claim(claim, first, obstacle);
            code = mark_too_large(options, writer_id, &one, err);
            if (!code && obstacle)
                code = merge_part(options, writer_id, &before, is_costly, err);
            size = obstacle + 1;
        }
        first += size;
        const uint32_t left = claim->id_count - first;
        size = 2 * size < most ? 2 * size : most;
        size = size < left ? size : left;
    }
    return code;
}

enum err_code claimed_work_do(const struct maintenance_options *options, int64_t writer_id,
                              const struct catalogue_claim *claim, bool is_costly, struct err *err)
{
    enum err_code code = claim->mark.reason
                             ? repair_claim(options, writer_id, claim, err)
                             : merge_claim(options, writer_id, claim, is_costly, err);
    if (compact_is_caused_by_claim(code)) {
        report_failure(options, claim, err);
        /* A part that was marked has no lease any more; its mark has the time of the next retry. */
        return catalogue_defer(options->jobs_database, writer_id, claim, err);
    }
    /* RETRY_S gives a bucket time to recover. If the database fails too, the lease expires. */
    if (code) {
        struct err ignored;
        const bool is_free = code == ERR_CONFLICT || err->is_rolled_back;
        (void)!catalogue_release(options->jobs_database, writer_id, claim, is_free ? 0 : RETRY_S,
                                 &ignored);
    }
    return code;
}
