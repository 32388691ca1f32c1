#include "store/maintain/repair.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/reachability.h"
#include "store/catalogue/retention.h"
#include "store/catalogue/writer.h"
#include "store/maintain/block_merge.h"
#include "store/maintain/compact.h"
#include "store/query/block_cache.h"

#include <inttypes.h>

enum { PART_MAX_BYTES = 1 << 30, ZSTD_LEVEL = 1 };

/* The current state of a block of the part. */
struct piece {
    bool is_whole;
    bool can_open; /* the block can be opened, so granules may be readable */
    uint64_t row_count;
};

struct repair {
    const struct maintenance_options *options;
    const struct catalogue_claim *claim;
    int64_t writer_id;
    struct arena *arena;
    struct piece *pieces; /* per place */
    uint32_t whole_count;
    uint32_t missing_count;
    struct err problem; /* the last failure */
    struct catalogue_remainder remainder;
    uint64_t *lengths;
    uint32_t *footer_crcs;
    struct buf bytes; /* the object of the remainder */
    struct err *err;
};

/* ---- the state of the blocks of a part ---- */

static enum err_code read_piece(struct repair *repair, uint32_t i, struct err *err)
{
    const struct catalogue_claim *claim = repair->claim;
    struct piece *piece = &repair->pieces[i];
    struct open_block opened;
    *err = (struct err){0};
    enum err_code code = block_cache_borrow(repair->options->blocks, claim->tenant_id,
                                            &claim->places[i], &opened, err);
    if (code)
        return code;
    piece->can_open = true;
    piece->row_count = block_footer(opened.block)->row_count;
    code = block_verify(opened.block, err);
    block_cache_return(&opened);
    return code;
}

/* True for damage to this part, false for an outage. */
static bool is_damaged_alone(const struct repair *repair, uint32_t i, enum err_code code,
                             const struct err *err)
{
    const struct reachability reachability = maintenance_options_reachability(repair->options);
    return code == ERR_CORRUPT || code == ERR_NOT_FOUND ||
           (code == ERR_IO &&
            reachability_is_alone(&reachability, repair->claim->places[i].object_key, err));
}

static enum err_code examine_piece(struct repair *repair, uint32_t i)
{
    const struct catalogue_claim *claim = repair->claim;
    struct block_cache *blocks = repair->options->blocks;
    struct piece *piece = &repair->pieces[i];
    struct err err;
    enum err_code code = read_piece(repair, i, &err);
    if (code == ERR_IO) /* the failure may be transient */
        code = read_piece(repair, i, &err);
    piece->is_whole = !code;
    repair->whole_count += !code;
    repair->missing_count += code == ERR_NOT_FOUND;
    if (!code)
        return ERR_NONE;
    block_cache_remove(blocks, claim->tenant_id, &claim->places[i]);
    repair->problem = err;
    if (is_damaged_alone(repair, i, code, &err))
        return ERR_NONE;
    *repair->err = err;
    return code;
}

/* Marks the part again, which doubles the time to its next retry. */
static enum err_code keep_marked(struct repair *repair)
{
    const struct maintenance_options *options = repair->options;
    const struct catalogue_claim *claim = repair->claim;
    if (options->report)
        options->report(options->report_context, "compaction", &repair->problem);
    return catalogue_mark_broken(
        options->jobs_database, repair->arena, repair->writer_id, claim, claim->ids[0],
        repair->missing_count ? CATALOGUE_MISSING : CATALOGUE_UNREADABLE, repair->err);
}

/* ---- the remainder: an object for the blocks that stay marked ---- */

static enum err_code copy_piece(struct repair *repair, uint32_t i)
{
    const struct catalogue_place *place = &repair->claim->places[i];
    buf_auto bytes;
    buf_init(&bytes, PART_MAX_BYTES);
    enum err_code code =
        object_read_range(repair->options->objects, place->object_key, place->offset,
                          (size_t)place->bytes, &bytes, repair->err);
    if (code)
        return code;
    buf_append_span(&repair->bytes, buf_span(&bytes));
    repair->footer_crcs[repair->remainder.count] = place->footer_crc;
    repair->lengths[repair->remainder.count++] = place->bytes;
    repair->remainder.reason = CATALOGUE_UNREADABLE;
    repair->remainder.is_rewritten = false;
    return ERR_NONE;
}

static enum err_code append_to_remainder(void *context, struct span bytes, struct err *err)
{
    buf_append_span(context, bytes);
    return buf_failed(context)
               ? err_set(err, ERR_TOO_LARGE, "a part of more than %d bytes", PART_MAX_BYTES)
               : ERR_NONE;
}

static enum err_code rewrite_piece(struct repair *repair, uint32_t i, struct deletion_set *deleted)
{
    const struct catalogue_claim *claim = repair->claim;
    const struct catalogue_place *place = &claim->places[i];
    struct open_block opened;
    struct block_summary summary;
    const struct block_merge_options options = {
        .tenant_id = claim->tenant_id,
        .level = ZSTD_LEVEL,
        .begin_ns = INT64_MIN,
        .last_ns = INT64_MAX,
        .sink = {.append = append_to_remainder, .context = &repair->bytes},
        .deleted = deleted,
        .deletions = &place->deletions,
    };
    enum err_code code =
        block_cache_borrow(repair->options->blocks, claim->tenant_id, place, &opened, repair->err);
    if (code)
        return code;
    const struct block *block = opened.block;
    code = block_merge(&block, 1, &options, &summary, repair->err);
    block_cache_return(&opened);
    if (code || !summary.granule_count)
        return code;
    struct catalogue_remainder *remainder = &repair->remainder;
    repair->footer_crcs[remainder->count] = summary.footer_crc;
    repair->lengths[remainder->count++] = summary.bytes;
    remainder->row_count += summary.row_count;
    remainder->begin_ns =
        summary.begin_ns < remainder->begin_ns ? summary.begin_ns : remainder->begin_ns;
    remainder->end_ns = summary.end_ns > remainder->end_ns ? summary.end_ns : remainder->end_ns;
    return ERR_NONE;
}

/* For unreadable blocks only the numbers of the whole part are known. */
static void describe_remainder(struct repair *repair)
{
    const struct catalogue_mark *mark = &repair->claim->mark;
    uint64_t whole_rows = 0;
    if (repair->remainder.is_rewritten)
        return;
    for (uint32_t i = 0; i < repair->claim->count; i++)
        whole_rows += repair->pieces[i].is_whole ? repair->pieces[i].row_count : 0;
    repair->remainder.begin_ns = mark->begin_ns;
    repair->remainder.end_ns = mark->end_ns;
    repair->remainder.row_count += mark->row_count > whole_rows ? mark->row_count - whole_rows : 0;
}

static enum err_code build_remainder(struct repair *repair, bool is_too_large)
{
    const struct catalogue_claim *claim = repair->claim;
    struct retention *retention;
    struct deletion_set *deleted;
    repair->remainder = (struct catalogue_remainder){.reason = CATALOGUE_TOO_LARGE,
                                                     .is_rewritten = true,
                                                     .begin_ns = INT64_MAX,
                                                     .end_ns = INT64_MIN};
    repair->lengths = arena_new(repair->arena, uint64_t, claim->count);
    repair->footer_crcs = arena_new(repair->arena, uint32_t, claim->count);
    enum err_code code = retention_create(repair->arena, &claim->rules, &retention, repair->err);
    if (!code)
        code = deletion_set_create(repair->arena, claim->deletions, claim->deletion_count,
                                   retention, &deleted, repair->err);
    for (uint32_t i = 0; i < claim->count && !code; i++) {
        if (!repair->pieces[i].is_whole)
            code = copy_piece(repair, i);
        else if (is_too_large)
            code = rewrite_piece(repair, i, deleted);
    }
    describe_remainder(repair);
    repair->remainder.lengths = repair->lengths;
    repair->remainder.footer_crcs = repair->footer_crcs;
    return code;
}

static enum err_code put_remainder(struct repair *repair)
{
    char id[DIGEST_ID_BYTES];
    struct catalogue_remainder *remainder = &repair->remainder;
    if (!remainder->count)
        return ERR_NONE;
    if (buf_failed(&repair->bytes))
        return err_set(repair->err, ERR_TOO_LARGE, "a part of more than %d bytes", PART_MAX_BYTES);
    digest_random_id(id);
    remainder->object_key =
        arena_printf(repair->arena, "segment/%" PRId64 "/%s", repair->writer_id, id);
    remainder->bytes = repair->bytes.size;
    enum err_code code = object_put(repair->options->objects, remainder->object_key,
                                    buf_span(&repair->bytes), repair->err);
    if (code) /* the object may exist nevertheless */
        writer_doubt(repair->options->writer, repair->writer_id);
    return code;
}

/* ---- swaps ---- */

static enum err_code merge_whole_blocks(struct repair *repair, struct compact_plan *plan)
{
    enum err_code code =
        compact_merge(repair->options, repair->writer_id, repair->claim, plan, repair->err);
    if (code != ERR_TOO_LARGE || plan->remainder)
        return code;
    plan->is_apart = true;
    if (plan->losses)
        *plan->losses = (struct block_losses){0};
    return compact_merge(repair->options, repair->writer_id, repair->claim, plan, repair->err);
}

/*
 * Merges intact blocks, unless they are too large, and moves the others to an object of their own.
 */
static enum err_code split_off_damaged(struct repair *repair, bool is_too_large)
{
    const uint32_t count = repair->claim->count;
    bool *is_left_out = arena_new(repair->arena, bool, count);
    for (uint32_t i = 0; i < count; i++)
        is_left_out[i] = is_too_large || !repair->pieces[i].is_whole;
    buf_init(&repair->bytes, PART_MAX_BYTES);
    enum err_code code = build_remainder(repair, is_too_large);
    if (!code)
        code = put_remainder(repair);
    struct compact_plan plan = {.is_left_out = is_left_out,
                                .is_apart = true,
                                .remainder = repair->remainder.count ? &repair->remainder : NULL};
    const bool is_unreadable = code == ERR_IO && repair->err->is_unreadable;
    if (code == ERR_CORRUPT || code == ERR_NOT_FOUND || is_unreadable) {
        repair->problem = *repair->err;
        code = keep_marked(repair);
    } else if (!code) {
        code = merge_whole_blocks(repair, &plan);
    }
    buf_fini(&repair->bytes);
    return code;
}

static void report_loss(struct repair *repair, const struct block_losses *losses)
{
    const struct maintenance_options *options = repair->options;
    const struct catalogue_claim *claim = repair->claim;
    const struct catalogue_mark *mark = &claim->mark;
    uint64_t opened = 0;
    struct err err;
    for (uint32_t i = 0; i < claim->count; i++)
        opened += repair->pieces[i].row_count;
    const uint64_t lost =
        losses->row_count + (mark->row_count > opened ? mark->row_count - opened : 0);
    err_set(&err, ERR_CORRUPT,
            "%s: %" PRIu64 " samples of tenant %" PRId64 ", of %" PRId64 " to %" PRId64
            ", could not be read for %d days and are given up, as a deletion waits for them",
            claim->places[0].object_key, lost, claim->tenant_id, mark->begin_ns, mark->end_ns,
            CATALOGUE_LOSS_DAYS);
    if (lost && options->report)
        options->report(options->report_context, "deletion", &err);
}

/*
 * The deletion outweighs granules that were unreadable for CATALOGUE_LOSS_DAYS: they are dropped.
 */
static enum err_code drop_unreadable(struct repair *repair)
{
    bool *is_left_out = arena_new(repair->arena, bool, repair->claim->count);
    for (uint32_t i = 0; i < repair->claim->count; i++)
        is_left_out[i] = !repair->pieces[i].can_open;
    struct block_losses losses = {0};
    struct compact_plan plan = {.is_left_out = is_left_out, .losses = &losses};
    enum err_code code = merge_whole_blocks(repair, &plan);
    if (!code)
        report_loss(repair, &losses);
    return code;
}

/*
 * Chooses what to do with a marked part:
 *
 *   intact, not too large                      remove the mark; it is merged as usual
 *   a deletion waits, marked for 7 days        merge the readable granules, give up the others
 *   a block of level >= 1, or missing data     stay marked
 *   a segment's part, all damaged, not shared  stay marked: nothing to split
 *   a segment's part that is too large         move all its blocks, without deleted profiles
 *   a segment's part, otherwise                merge intact blocks, move damaged ones
 *
 * The rows are tried in this order.
 */
static enum err_code choose_repair(struct repair *repair)
{
    const struct catalogue_claim *claim = repair->claim;
    const struct catalogue_mark *mark = &claim->mark;
    const bool is_too_large = mark->reason == CATALOGUE_TOO_LARGE && !claim->level;
    if (repair->whole_count == claim->count && !is_too_large)
        return catalogue_unmark(repair->options->jobs_database, repair->arena, repair->writer_id,
                                claim, repair->err);
    if (mark->can_drop && repair->whole_count < claim->count)
        return drop_unreadable(repair);
    const bool can_part = repair->whole_count || mark->is_shared;
    if (claim->level || repair->missing_count || !can_part)
        return keep_marked(repair);
    return split_off_damaged(repair, is_too_large);
}

enum err_code repair_claim(const struct maintenance_options *options, int64_t writer_id,
                           const struct catalogue_claim *claim, struct err *err)
{
    arena_auto arena = arena_create();
    struct repair repair = {.options = options,
                            .claim = claim,
                            .writer_id = writer_id,
                            .arena = arena,
                            .pieces = arena_new(arena, struct piece, claim->count),
                            .err = err};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < claim->count && !code; i++)
        code = examine_piece(&repair, i);
    if (!code)
        code = catalogue_renew(options->jobs_database, writer_id, claim, err);
    if (!code)
        code = choose_repair(&repair);
    if (code != ERR_TOO_LARGE)
        return code;
    if (options->report)
        options->report(options->report_context, "compaction", err);
    return catalogue_mark_broken(options->jobs_database, arena, writer_id, claim, claim->ids[0],
                                 CATALOGUE_TOO_LARGE, err);
}
