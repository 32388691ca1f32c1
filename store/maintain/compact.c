#include "store/maintain/compact_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "store/block/oversized.h"
#include "store/catalogue/reachability.h"
#include "store/catalogue/retention.h"
#include "store/catalogue/writer.h"
#include "store/maintain/block_merge.h"

#include <inttypes.h>
#include <stdlib.h>

/* A merge makes an object for each day, one after the other, and each may need all names of the
 * inputs. DAYS_MAX limits the days of a single segment. Several inputs are merged together only if
 * they have at most DAYS_TOGETHER days, and if the memory of the open inputs times the number of
 * days is at most WORK_TOGETHER_GIB. */
enum {
    ZSTD_LEVEL = 1,
    DAY_HOURS = 24,
    DAYS_MAX = 4096,
    DAYS_TOGETHER = 256,
    WORK_TOGETHER_GIB = 4
};
#define DAY_NS (DAY_HOURS * 3600 * INT64_C(1000000000))

static enum err_code renew_while_matching(void *context, struct err *err)
{
    (void)err; /* the error is the compaction's */
    return compact_renew_lease(context);
}

/* ---- days ---- */

static int compare_days(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int32_t day_of_hour(int32_t hour)
{
    return hour / DAY_HOURS - (hour % DAY_HOURS < 0);
}

/* A run of blocks that are merged together. */
struct group {
    uint32_t first;
    uint32_t end;
};

/* The distinct days of all granules, ascending. */
static uint32_t list_days(const struct compaction *compaction, struct group group,
                          int32_t **ret_days)
{
    size_t most = 0, found = 0;
    for (uint32_t i = group.first; i < group.end; i++) {
        uint32_t count;
        block_granules(compaction->blocks[i], &count);
        most += count;
    }
    int32_t *days = arena_new(compaction->arena, int32_t, most);
    for (uint32_t i = group.first; i < group.end; i++) {
        uint32_t count;
        const struct block_granule *granules = block_granules(compaction->blocks[i], &count);
        for (uint32_t j = 0; j < count; j++) {
            const int32_t day = day_of_hour(granules[j].hour);
            if (!found || days[found - 1] != day)
                days[found++] = day;
        }
    }
    qsort(days, found, sizeof(*days), compare_days);
    uint32_t kept = 0;
    for (size_t i = 0; i < found; i++) {
        if (!kept || days[kept - 1] != days[i])
            days[kept++] = days[i];
    }
    *ret_days = days;
    return kept;
}

/* ---- outputs ---- */

struct output {
    struct compaction *compaction;
    struct object_writer *object;
};

static enum err_code append_to_object(void *context, struct span bytes, struct err *err)
{
    const struct output *output = context;
    if (!maintenance_options_has_space(output->compaction->options, true))
        return err_set(err, ERR_IO, "the disk has no space for a merge");
    enum err_code code = compact_renew_lease(output->compaction);
    return code ? code : object_writer_append(output->object, bytes, err);
}

/* The first and last day of the 64-bit range are incomplete, so their bounds are clamped. */
static int64_t begin_of_day(int32_t day)
{
    return day < INT64_MIN / DAY_NS ? INT64_MIN : day * DAY_NS;
}

static int64_t last_of_day(int32_t day)
{
    return day >= INT64_MAX / DAY_NS ? INT64_MAX : (day + INT64_C(1)) * DAY_NS - 1;
}

static enum err_code write_output(struct compaction *compaction, struct group group, int32_t day)
{
    char id[DIGEST_ID_BYTES];
    struct output output = {.compaction = compaction};
    struct block_summary summary;
    struct err *err = compaction->err;
    digest_random_id(id);
    const char *key =
        arena_printf(compaction->arena, "block/%" PRId64 "/%s", compaction->writer_id, id);
    compaction->may_have_put = true;
    enum err_code code = object_writer_open(compaction->options->objects, key, &output.object, err);
    if (code)
        return code;
    const struct block_merge_options options = {
        .tenant_id = compaction->claim->tenant_id,
        .level = ZSTD_LEVEL,
        .begin_ns = begin_of_day(day),
        .last_ns = last_of_day(day),
        .sink = {.append = append_to_object, .context = &output},
        .deleted = compaction->deleted,
        .deletions = compaction->deletions + group.first,
        .losses = compaction->plan->losses,
    };
    code = block_merge(compaction->blocks + group.first, group.end - group.first, &options,
                       &summary, err);
    if (code || !summary.granule_count) {
        object_writer_abort(output.object);
        return code;
    }
    code = object_writer_commit(output.object, err);
    if (code)
        return code;
    const bool is_expiry = compaction->claim->is_expiry;
    compaction->outputs[compaction->output_count++] = (struct catalogue_block){
        .object_key = key,
        .bytes = summary.bytes,
        .row_count = summary.row_count,
        .profile_count = summary.profile_count,
        .series_count = summary.series_count,
        .begin_ns = summary.begin_ns,
        .end_ns = summary.end_ns,
        .reach_ns = summary.reach_ns,
        .footer_crc = summary.footer_crc,
        .retention_key = is_expiry ? compaction->claim->retention_key : 0,
        .retention_due_ns = is_expiry ? compaction->due_ns : INT64_MAX,
        .deletions = compaction->plan->is_unmatched ? compaction->deletions[group.first]
                                                    : (struct deletion_set_ids){0},
    };
    return ERR_NONE;
}

/* Reserves space for one more output per day. */
static void reserve_outputs(struct compaction *compaction, uint32_t count)
{
    const struct catalogue_block *before = compaction->outputs;
    compaction->outputs = arena_new(compaction->arena, struct catalogue_block,
                                    compaction->output_count + (size_t)count);
    for (uint32_t i = 0; i < compaction->output_count; i++)
        compaction->outputs[i] = before[i];
}

static enum err_code merge_group(struct compaction *compaction, struct group group)
{
    int32_t *days;
    const uint32_t count = list_days(compaction, group, &days);
    const bool are_several = compaction->claim->id_count > 1;
    const uint64_t work = (uint64_t)count * compaction->open_bytes;
    if (count > (are_several ? DAYS_TOGETHER : DAYS_MAX) ||
        (are_several && count > 1 && work >> 30 >= WORK_TOGETHER_GIB))
        return err_set(compaction->err, ERR_TOO_LARGE, "profiles of %" PRIu32 " days at once",
                       count);
    reserve_outputs(compaction, count);
    for (uint32_t i = 0; i < count; i++) {
        enum err_code code = write_output(compaction, group, days[i]);
        if (code == ERR_CORRUPT || (code == ERR_IO && compaction->err->is_unreadable))
            return compact_mark_broken_input(compaction, code);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static void move_input(struct compaction *compaction, uint32_t from, uint32_t to)
{
    const struct block *block = compaction->blocks[from];
    const struct deletion_set_ids deletions = compaction->deletions[from];
    const uint32_t index = compaction->indexes[from];
    for (uint32_t i = from; i > to; i--) {
        compaction->blocks[i] = compaction->blocks[i - 1];
        compaction->deletions[i] = compaction->deletions[i - 1];
        compaction->indexes[i] = compaction->indexes[i - 1];
    }
    compaction->blocks[to] = block;
    compaction->deletions[to] = deletions;
    compaction->indexes[to] = index;
}

/* Moves oversized blocks to the end; returns how many others there are. */
static uint32_t move_oversized(struct compaction *compaction)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < compaction->count; i++) {
        if (!oversized_in_merge(compaction->blocks[i]))
            move_input(compaction, i, count++);
    }
    return count;
}

/* Oversized blocks are merged with each other only, up to OVERSIZED_MERGED_BYTES of strings:
 * queries can then leave them out without other profiles (store/block/oversized.h).
 * Example with strings of 30, 30, 30 and 100 MiB: the groups are 30 + 30, 30 and 100. */
static uint32_t group_inputs(struct compaction *compaction, struct group *groups)
{
    uint32_t count = 0, first = move_oversized(compaction);
    size_t bytes = 0;
    if (first)
        groups[count++] = (struct group){0, first};
    for (uint32_t i = first; i < compaction->count; i++) {
        bytes += block_dictionary(compaction->blocks[i])->string_bytes;
        if (i == first || bytes > OVERSIZED_MERGED_BYTES) {
            groups[count++] = (struct group){i, i};
            bytes = block_dictionary(compaction->blocks[i])->string_bytes;
        }
        groups[count - 1].end = i + 1;
    }
    return count;
}

/* Merges the current batch. */
static enum err_code merge_inputs(struct compaction *compaction)
{
    struct group *groups = arena_new(compaction->arena, struct group, compaction->count);
    const bool is_last_level = compaction->claim->level >= CATALOGUE_LEVELS;
    uint32_t count = 0;
    if (!compaction->plan->is_apart)
        count = group_inputs(compaction, groups);
    for (uint32_t i = 0; compaction->plan->is_apart && i < compaction->count; i++)
        groups[count++] = (struct group){i, i + 1};
    compaction->input_count += compaction->count;
    compaction->group_count += count;
    /* Blocks of the last level would be claimed again and again if no merge changed them. */
    if (is_last_level && !compaction->plan->is_apart &&
        compaction->next_index == compaction->claim->count && compaction->group_count > 1 &&
        compaction->group_count == compaction->input_count)
        return err_set(compaction->err, ERR_TOO_LARGE,
                       "blocks with oversized names are not merged with others");
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code; i++)
        code = merge_group(compaction, groups[i]);
    return code;
}

static enum err_code merge_batch(struct compaction *compaction, bool *ret_is_early)
{
    enum err_code code = compact_open_batch(compaction);
    if (code)
        return code;
    if (!compaction->plan->is_unmatched)
        code = compact_find_expired(compaction);
    if (code)
        return code;
    *ret_is_early = compaction->claim->is_expiry && !compaction->deleted;
    return *ret_is_early ? ERR_NONE : merge_inputs(compaction);
}

/*
 * Merges the claim in batches. The inputs of a batch are open together, and a block may take a
 * thousand times its stored bytes: names that share a prefix are stored as what is new in each.
 * *ret_is_early: nothing of a claim for expiry, which has one block, has expired.
 */
static enum err_code merge_batches(struct compaction *compaction, bool *ret_is_early)
{
    const struct catalogue_claim *claim = compaction->claim;
    *ret_is_early = false;
    compaction->due_ns = INT64_MAX;
    enum err_code code =
        retention_create(compaction->arena, &claim->rules, &compaction->retention, compaction->err);
    if (code)
        return code;
    retention_set_budget(compaction->retention, &compaction->matching);
    compact_create_batch(compaction);
    while (!code && !*ret_is_early && compaction->next_index < claim->count) {
        code = merge_batch(compaction, ret_is_early);
        compact_return_batch(compaction);
    }
    return code;
}

/* Checks that granules may be given up: they were unreadable for a week, but if the store has
 * become unreachable, the last failure says nothing about them. */
static enum err_code check_losses(const struct compaction *compaction)
{
    const struct block_losses *losses = compaction->plan->losses;
    const struct reachability reachability = maintenance_options_reachability(compaction->options);
    if (!losses || !losses->failure.is_unreadable ||
        reachability_is_alone(&reachability, compaction->claim->places[0].object_key,
                              &losses->failure))
        return ERR_NONE;
    *compaction->err = losses->failure;
    return ERR_IO;
}

static uint32_t next_level(const struct catalogue_claim *claim)
{
    if (claim->is_rewrite && claim->level)
        return claim->level;
    return claim->level < CATALOGUE_LEVELS ? claim->level + 1 : CATALOGUE_LEVELS;
}

/* Puts unused outputs into object_trash, so the writer is not in doubt. */
static enum err_code discard_outputs(struct compaction *compaction, enum err_code reason)
{
    struct err err;
    const char **keys = arena_new(compaction->arena, const char *, compaction->output_count);
    for (uint32_t i = 0; i < compaction->output_count; i++)
        keys[i] = compaction->outputs[i].object_key;
    enum err_code code =
        catalogue_discard_unknown(compaction->options->jobs_database, compaction->arena, keys,
                                  compaction->output_count, &err);
    compaction->may_have_put = code != ERR_NONE;
    if (code)
        *compaction->err = err;
    return code ? code : reason;
}

bool compact_is_caused_by_claim(enum err_code code)
{
    return code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE ||
           code == ERR_INTERNAL || code == ERR_CORRUPT;
}

static enum err_code write_outputs(struct compaction *compaction, bool *ret_is_early)
{
    enum err_code code = merge_batches(compaction, ret_is_early);
    if (!code && !*ret_is_early)
        code = check_losses(compaction);
    return compact_is_caused_by_claim(code) ? discard_outputs(compaction, code) : code;
}

static enum err_code swap_inputs(struct compaction *compaction)
{
    const struct catalogue_claim *claim = compaction->claim;
    const struct maintenance_options *options = compaction->options;
    enum err_code code =
        catalogue_swap(options->jobs_database, compaction->arena, compaction->writer_id, claim,
                       next_level(claim), compaction->outputs, compaction->output_count,
                       compaction->plan->remainder, compaction->err);
    for (uint32_t i = 0; i < claim->count && !code; i++)
        block_cache_remove(options->blocks, claim->tenant_id, &claim->places[i]);
    return code;
}

/* Discards the outputs of a merge that failed, or leaves them to the search for orphans. */
static enum err_code settle_outputs(struct compaction *compaction, enum err_code code)
{
    struct writer *writer = compaction->options->writer;
    if (!code) {
        if (compaction->output_count)
            writer_confirm(writer, compaction->writer_id);
        return ERR_NONE;
    }
    if (code == ERR_CONFLICT || compaction->err->is_rolled_back) /* no row will name them */
        code = discard_outputs(compaction, code);
    if (compaction->may_have_put || compaction->plan->remainder)
        writer_doubt(writer, compaction->writer_id);
    return code;
}

enum err_code compact_merge(const struct maintenance_options *options, int64_t writer_id,
                            const struct catalogue_claim *claim, const struct compact_plan *plan,
                            struct err *err)
{
    arena_auto arena = arena_create();
    struct compaction compaction = {.options = options,
                                    .claim = claim,
                                    .plan = plan,
                                    .writer_id = writer_id,
                                    .arena = arena,
                                    .renewed_ns = clock_monotonic_ns(),
                                    .err = err};
    compaction.matching = (struct match_budget){
        .left_ns = MATCH_BUDGET_NS, .renew = renew_while_matching, .context = &compaction};
    if (claim->level && claim->count == 1 && !claim->deletion_count && !claim->is_expiry &&
        !claim->mark.reason)
        return catalogue_promote(options->jobs_database, arena, writer_id, claim, next_level(claim),
                                 err);
    bool is_early;
    enum err_code code = write_outputs(&compaction, &is_early);
    if (!code && is_early)
        return catalogue_postpone(options->jobs_database, arena, writer_id, claim,
                                  compaction.due_ns, err);
    if (!code)
        code = swap_inputs(&compaction);
    return settle_outputs(&compaction, code);
}
