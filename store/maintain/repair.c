#include "store/maintain/repair.h"

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"
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

/* A block of the part, as it is found now. */
struct piece {
    bool is_whole;
    bool can_open; /* some of it may be read */
    uint64_t row_count;
};

struct mending {
    const struct maintenance_options *options;
    const struct catalogue_claim *claim;
    int64_t writer_id;
    struct arena *arena;
    struct piece *pieces; /* of each place */
    uint32_t whole_count;
    uint32_t missing_count;
    struct err problem; /* the last that was found */
    struct catalogue_remainder rest;
    uint64_t *lengths;
    struct buf bytes; /* of the rest */
    struct err *err;
};

/* ---- what is there ---- */

static enum err_code read_piece(struct mending *mending, uint32_t i, struct err *err)
{
    const struct catalogue_claim *claim = mending->claim;
    struct piece *piece = &mending->pieces[i];
    struct open_block opened;
    *err = (struct err){0};
    enum err_code code = block_cache_borrow(mending->options->blocks, claim->tenant_id,
                                            &claim->places[i], &opened, err);
    if (code)
        return code;
    piece->can_open = true;
    piece->row_count = block_footer(opened.block)->row_count;
    code = block_verify(opened.block, err);
    block_cache_return(&opened);
    return code;
}

/* Is it the part's own, and not the disk's? */
static bool is_of_piece(const struct mending *mending, uint32_t i, enum err_code code,
                        const struct err *err)
{
    const struct reachability reachability = maintenance_reachability(mending->options);
    return code == ERR_CORRUPT || code == ERR_NOT_FOUND ||
           (code == ERR_IO &&
            reachability_is_alone(&reachability, mending->claim->places[i].object_key, err));
}

static enum err_code examine(struct mending *mending, uint32_t i)
{
    const struct catalogue_claim *claim = mending->claim;
    struct block_cache *blocks = mending->options->blocks;
    struct piece *piece = &mending->pieces[i];
    struct err err;
    enum err_code code = read_piece(mending, i, &err);
    if (code == ERR_IO) /* perhaps for a moment only */
        code = read_piece(mending, i, &err);
    piece->is_whole = !code;
    mending->whole_count += !code;
    mending->missing_count += code == ERR_NOT_FOUND;
    if (!code)
        return ERR_NONE;
    block_cache_remove(blocks, claim->tenant_id, &claim->places[i]);
    mending->problem = err;
    if (is_of_piece(mending, i, code, &err))
        return ERR_NONE;
    *mending->err = err;
    return code;
}

/* It is still as it was: later, then. */
static enum err_code leave(struct mending *mending)
{
    const struct maintenance_options *options = mending->options;
    const struct catalogue_claim *claim = mending->claim;
    if (options->report)
        options->report(options->report_context, "compaction", &mending->problem);
    return catalogue_mark_broken(
        options->jobs_database, mending->arena, mending->writer_id, claim, claim->ids[0],
        mending->missing_count ? CATALOGUE_MISSING : CATALOGUE_UNREADABLE, mending->err);
}

/* ---- an object of its own for what stays marked ---- */

static enum err_code copy_piece(struct mending *mending, uint32_t i)
{
    const struct catalogue_place *place = &mending->claim->places[i];
    buf_auto bytes;
    buf_init(&bytes, PART_MAX_BYTES);
    enum err_code code =
        object_read_range(mending->options->objects, place->object_key, place->offset,
                          (size_t)place->bytes, &bytes, mending->err);
    if (code)
        return code;
    buf_append_span(&mending->bytes, buf_span(&bytes));
    mending->lengths[mending->rest.count++] = place->bytes;
    mending->rest.why = CATALOGUE_UNREADABLE;
    mending->rest.is_rewritten = false;
    return ERR_NONE;
}

static enum err_code append_to_rest(void *context, struct span bytes, struct err *err)
{
    buf_append_span(context, bytes);
    return buf_failed(context)
               ? err_set(err, ERR_TOO_LARGE, "a part of more than %d bytes", PART_MAX_BYTES)
               : ERR_NONE;
}

static enum err_code rewrite_piece(struct mending *mending, uint32_t i,
                                   struct deletion_set *deleted)
{
    const struct catalogue_claim *claim = mending->claim;
    const struct catalogue_place *place = &claim->places[i];
    struct open_block opened;
    struct block_summary summary;
    const struct block_merge_options options = {
        .tenant_id = claim->tenant_id,
        .level = ZSTD_LEVEL,
        .begin_ns = INT64_MIN,
        .last_ns = INT64_MAX,
        .sink = {.append = append_to_rest, .context = &mending->bytes},
        .deleted = deleted,
        .deletions = &place->deletions,
    };
    enum err_code code = block_cache_borrow(mending->options->blocks, claim->tenant_id, place,
                                            &opened, mending->err);
    if (code)
        return code;
    const struct block *block = opened.block;
    code = block_merge(&block, 1, &options, &summary, mending->err);
    block_cache_return(&opened);
    if (code || !summary.granule_count)
        return code;
    struct catalogue_remainder *rest = &mending->rest;
    mending->lengths[rest->count++] = summary.bytes;
    rest->row_count += summary.row_count;
    rest->begin_ns = summary.begin_ns < rest->begin_ns ? summary.begin_ns : rest->begin_ns;
    rest->end_ns = summary.end_ns > rest->end_ns ? summary.end_ns : rest->end_ns;
    return ERR_NONE;
}

/* Of what cannot be read only the whole part's numbers are known. */
static void describe_rest(struct mending *mending)
{
    const struct catalogue_mark *mark = &mending->claim->mark;
    uint64_t whole_rows = 0;
    if (mending->rest.is_rewritten)
        return;
    for (uint32_t i = 0; i < mending->claim->count; i++)
        whole_rows += mending->pieces[i].is_whole ? mending->pieces[i].row_count : 0;
    mending->rest.begin_ns = mark->begin_ns;
    mending->rest.end_ns = mark->end_ns;
    mending->rest.row_count += mark->row_count > whole_rows ? mark->row_count - whole_rows : 0;
}

static enum err_code gather_rest(struct mending *mending, bool is_too_large)
{
    const struct catalogue_claim *claim = mending->claim;
    struct retention *retention;
    struct deletion_set *deleted;
    mending->rest = (struct catalogue_remainder){.why = CATALOGUE_TOO_LARGE,
                                                 .is_rewritten = true,
                                                 .begin_ns = INT64_MAX,
                                                 .end_ns = INT64_MIN};
    mending->lengths = arena_new(mending->arena, uint64_t, claim->count);
    enum err_code code = retention_create(mending->arena, &claim->rules, &retention, mending->err);
    if (!code)
        code = deletion_set_create(mending->arena, claim->deletions, claim->deletion_count,
                                   retention, &deleted, mending->err);
    for (uint32_t i = 0; i < claim->count && !code; i++) {
        if (!mending->pieces[i].is_whole)
            code = copy_piece(mending, i);
        else if (is_too_large)
            code = rewrite_piece(mending, i, deleted);
    }
    describe_rest(mending);
    mending->rest.lengths = mending->lengths;
    return code;
}

static enum err_code put_rest(struct mending *mending)
{
    char id[DIGEST_ID_BYTES];
    struct catalogue_remainder *rest = &mending->rest;
    if (!rest->count)
        return ERR_NONE;
    if (buf_failed(&mending->bytes))
        return err_set(mending->err, ERR_TOO_LARGE, "a part of more than %d bytes", PART_MAX_BYTES);
    digest_random_id(id);
    rest->object_key =
        arena_printf(mending->arena, "segment/%" PRId64 "/%s", mending->writer_id, id);
    rest->bytes = mending->bytes.size;
    enum err_code code = object_put(mending->options->objects, rest->object_key,
                                    buf_span(&mending->bytes), mending->err);
    if (code) /* it may be there all the same */
        writer_end(mending->options->writer, mending->writer_id);
    return code;
}

/* ---- swaps ---- */

static enum err_code merge(struct mending *mending, struct compact_plan *plan)
{
    enum err_code code =
        compact_merge(mending->options, mending->writer_id, mending->claim, plan, mending->err);
    if (code != ERR_TOO_LARGE || plan->rest)
        return code;
    plan->is_apart = true;
    if (plan->losses)
        *plan->losses = (struct block_losses){0};
    return compact_merge(mending->options, mending->writer_id, mending->claim, plan, mending->err);
}

/* Blocks that are whole are merged, unless they are too large; the others stay, by themselves. */
static enum err_code set_apart(struct mending *mending, bool is_too_large)
{
    const uint32_t count = mending->claim->count;
    bool *is_left_out = arena_new(mending->arena, bool, count);
    for (uint32_t i = 0; i < count; i++)
        is_left_out[i] = is_too_large || !mending->pieces[i].is_whole;
    buf_init(&mending->bytes, PART_MAX_BYTES);
    enum err_code code = gather_rest(mending, is_too_large);
    if (!code)
        code = put_rest(mending);
    struct compact_plan plan = {.is_left_out = is_left_out,
                                .is_apart = true,
                                .rest = mending->rest.count ? &mending->rest : NULL};
    const bool is_unreadable = code == ERR_IO && mending->err->is_unreadable;
    if (code == ERR_CORRUPT || code == ERR_NOT_FOUND || is_unreadable) {
        mending->problem = *mending->err;
        code = leave(mending);
    } else if (!code) {
        code = merge(mending, &plan);
    }
    buf_fini(&mending->bytes);
    return code;
}

static void report_loss(struct mending *mending, const struct block_losses *losses)
{
    const struct maintenance_options *options = mending->options;
    const struct catalogue_claim *claim = mending->claim;
    const struct catalogue_mark *mark = &claim->mark;
    uint64_t opened = 0;
    struct err err;
    for (uint32_t i = 0; i < claim->count; i++)
        opened += mending->pieces[i].row_count;
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

/* The deletion is more than what could not be read for long. */
static enum err_code give_up(struct mending *mending)
{
    bool *is_left_out = arena_new(mending->arena, bool, mending->claim->count);
    for (uint32_t i = 0; i < mending->claim->count; i++)
        is_left_out[i] = !mending->pieces[i].can_open;
    struct block_losses losses = {0};
    struct compact_plan plan = {.is_left_out = is_left_out, .losses = &losses};
    enum err_code code = merge(mending, &plan);
    if (!code)
        report_loss(mending, &losses);
    return code;
}

static enum err_code decide(struct mending *mending)
{
    const struct catalogue_claim *claim = mending->claim;
    const struct catalogue_mark *mark = &claim->mark;
    const bool is_too_large = mark->why == CATALOGUE_TOO_LARGE && !claim->level;
    if (mending->whole_count == claim->count && !is_too_large)
        return catalogue_unmark(mending->options->jobs_database, mending->arena, mending->writer_id,
                                claim, mending->err);
    if (mark->may_go && mending->whole_count < claim->count)
        return give_up(mending);
    const bool can_part = mending->whole_count || mark->is_shared;
    if (claim->level || mending->missing_count || !can_part)
        return leave(mending);
    return set_apart(mending, is_too_large);
}

enum err_code repair_claim(const struct maintenance_options *options, int64_t writer_id,
                           const struct catalogue_claim *claim, struct err *err)
{
    arena_auto arena = arena_create();
    struct mending mending = {.options = options,
                              .claim = claim,
                              .writer_id = writer_id,
                              .arena = arena,
                              .pieces = arena_new(arena, struct piece, claim->count),
                              .err = err};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < claim->count && !code; i++)
        code = examine(&mending, i);
    if (!code)
        code = catalogue_renew(options->jobs_database, writer_id, claim, err);
    if (!code)
        code = decide(&mending);
    if (code != ERR_TOO_LARGE)
        return code;
    if (options->report)
        options->report(options->report_context, "compaction", err);
    return catalogue_mark_broken(options->jobs_database, arena, writer_id, claim, claim->ids[0],
                                 CATALOGUE_TOO_LARGE, err);
}
