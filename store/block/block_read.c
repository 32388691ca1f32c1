/* Reads the granules of an open block: their profiles, totals and rows. */
#include "store/block/block_internal.h"

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/bitpack.h"
#include "store/block/column.h"
#include "store/block/row_sums.h"

#include <assert.h>

/* A growing array that is reused. */
struct buffer {
    void *data;
    size_t bytes;
};

struct block_cursor {
    struct buf stored;
    struct column_reader columns;
    struct column_reader more_columns; /* for functions that need two columns at once */
    struct buffer stacks;
    struct buffer counts;
    struct buffer sums;
    struct buffer ordinals;
    struct buffer values;
    struct buffer label_sets;
    struct buffer timestamp_counts;
    struct buffer timestamps;
    struct buffer profiles;
    struct buffer column;
};

size_t block_granule_memory(const struct block_granule *granule, bool wants_rows)
{
    enum { PROFILE_BYTES = 60, ENTRY_BYTES = 20, ROW_BYTES = 35, TIMESTAMP_BYTES = 10 };
    size_t bytes = (size_t)granule->profile_count * PROFILE_BYTES;
    if (wants_rows)
        bytes += (size_t)granule->entry_count * ENTRY_BYTES +
                 (size_t)granule->row_count * ROW_BYTES +
                 (size_t)granule->timestamp_count * TIMESTAMP_BYTES;
    for (int extent = 0; extent < BLOCK_EXTENT_COUNT; extent++)
        bytes += granule->extent_bytes[extent];
    return bytes;
}

struct block_cursor *block_cursor_create(void)
{
    struct block_cursor *cursor = mem_new(struct block_cursor, 1);
    buf_init(&cursor->stored, (size_t)2 * BLOCK_SECTION_MAX_BYTES);
    column_reader_init(&cursor->columns);
    column_reader_init(&cursor->more_columns);
    return cursor;
}

void block_cursor_destroy(struct block_cursor *cursor)
{
    if (!cursor)
        return;
    buf_fini(&cursor->stored);
    column_reader_fini(&cursor->columns);
    column_reader_fini(&cursor->more_columns);
    struct buffer *const buffers[] = {
        &cursor->stacks, &cursor->counts,           &cursor->sums,       &cursor->ordinals,
        &cursor->values, &cursor->label_sets,       &cursor->timestamps, &cursor->profiles,
        &cursor->column, &cursor->timestamp_counts,
    };
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
        mem_free(buffers[i]->data);
    mem_free(cursor);
}

static void *reserve_buffer(struct buffer *buffer, size_t count, size_t size)
{
    if (count * size > buffer->bytes) {
        mem_free(buffer->data);
        buffer->bytes = count * size + count * size / 4;
        buffer->data = mem_alloc(buffer->bytes, 1);
    }
    return buffer->data;
}

static enum err_code fail_corrupt(const struct block *block, const struct block_granule *granule,
                                  const char *what, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "%s: the %s of granule %td are broken", block->source.name,
                   what, granule - block->granules);
}

static const char *const extent_names[BLOCK_EXTENT_COUNT] = {"profiles", "totals", "rows",
                                                             "details"};

static uint64_t find_extent(const struct block_granule *granule, enum block_extent extent)
{
    uint64_t offset = granule->offset;
    for (int i = 0; i < (int)extent; i++)
        offset += block_align(granule->extent_bytes[i]);
    return offset;
}

void block_read_ahead(const struct block *block, const struct block_granule *granule,
                      enum block_extent first, enum block_extent last)
{
    const uint64_t offset = find_extent(granule, first);
    block_announce_part(block, offset,
                        find_extent(granule, last) + granule->extent_bytes[last] - offset);
}

static enum err_code read_extent(const struct block *block, const struct block_granule *granule,
                                 enum block_extent extent, struct block_cursor *cursor,
                                 struct span *ret_bytes, struct err *err)
{
    const uint64_t offset = find_extent(granule, extent);
    const uint32_t size = granule->extent_bytes[extent];
    struct span bytes;
    enum err_code code =
        block_read_part(block, offset, block_align(size), &cursor->stored, &bytes, err);
    if (code)
        return code;
    if (crc32c(bytes) != granule->extent_crc[extent])
        return fail_corrupt(block, granule, extent_names[extent], err);
    *ret_bytes = span_of(bytes.data, size);
    return ERR_NONE;
}

enum err_code block_read_profiles(const struct block *block, const struct block_granule *granule,
                                  struct block_cursor *cursor,
                                  const struct block_profile **ret_profiles, struct err *err)
{
    const uint32_t count = granule->profile_count;
    struct span rest;
    enum err_code code = read_extent(block, granule, BLOCK_PROFILES, cursor, &rest, err);
    if (code)
        return code;
    if (!column_can_hold(rest, count))
        return fail_corrupt(block, granule, extent_names[BLOCK_PROFILES], err);
    struct block_profile *profiles = reserve_buffer(&cursor->profiles, count, sizeof(*profiles));
    uint64_t *column = reserve_buffer(&cursor->column, count, sizeof(*column));
    struct column_reader *columns = &cursor->columns;
    bool is_whole = column_take_u64(columns, &rest, column, count);
    uint64_t before = (uint64_t)granule->begin_ns;
    for (uint32_t i = 0; is_whole && i < count; i++)
        profiles[i].time_ns = (int64_t)(before += column[i]);
    is_whole = is_whole && column_take_u64(columns, &rest, column, count);
    before = 0;
    for (uint32_t i = 0; is_whole && i < count; i++)
        profiles[i].duration_ns = (int64_t)(before ^= column[i]);
    is_whole = is_whole && column_take_u64(columns, &rest, column, count);
    before = 0;
    for (uint32_t i = 0; is_whole && i < count; i++)
        profiles[i].period = (int64_t)(before ^= column[i]);
    is_whole = is_whole && column_take_u64(columns, &rest, column, count) && rest.size == 0;
    for (uint32_t i = 0; is_whole && i < count; i++)
        profiles[i].total = column_unzigzag(column[i]);
    if (!is_whole)
        return fail_corrupt(block, granule, extent_names[BLOCK_PROFILES], err);
    *ret_profiles = profiles;
    return ERR_NONE;
}

/* The value of `rows` rows together, from its stored form. */
static inline int64_t expand_value(const struct block_granule *granule, uint64_t stored,
                                   uint32_t rows)
{
    const uint64_t reduced =
        granule->flags & BLOCK_ARE_POSITIVE ? stored + rows : (uint64_t)column_unzigzag(stored);
    return (int64_t)(reduced * granule->divisor);
}

/* Reads stacks and counts of the entries, and sums unless NULL. */
static enum err_code read_entries(const struct block *block, const struct block_granule *granule,
                                  struct block_cursor *cursor, uint32_t **ret_stacks,
                                  uint32_t **ret_counts, uint64_t **ret_sums, struct err *err)
{
    const uint32_t count = granule->entry_count;
    struct span rest;
    assert(block->dictionary.stacks.stack_count); /* there is at least the empty stack */
    enum err_code code = read_extent(block, granule, BLOCK_TOTALS, cursor, &rest, err);
    if (code)
        return code;
    if (!column_can_hold(rest, count))
        return fail_corrupt(block, granule, extent_names[BLOCK_TOTALS], err);
    uint32_t *stacks = reserve_buffer(&cursor->stacks, count, sizeof(*stacks));
    uint32_t *counts = reserve_buffer(&cursor->counts, count, sizeof(*counts));
    if (!column_take_u32(&cursor->columns, &rest, stacks, count) ||
        !column_take_u32(&cursor->columns, &rest, counts, count))
        return fail_corrupt(block, granule, extent_names[BLOCK_TOTALS], err);
    uint64_t stack = 0, rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        stack += stacks[i];
        stacks[i] = (uint32_t)stack++;
        rows += ++counts[i];
    }
    if (rows != granule->row_count || stack > block->dictionary.stacks.stack_count)
        return fail_corrupt(block, granule, extent_names[BLOCK_TOTALS], err);
    if (ret_sums) {
        *ret_sums = reserve_buffer(&cursor->sums, count, sizeof(**ret_sums));
        if (!column_take_u64(&cursor->columns, &rest, *ret_sums, count) || rest.size)
            return fail_corrupt(block, granule, extent_names[BLOCK_TOTALS], err);
    }
    *ret_stacks = stacks;
    *ret_counts = counts;
    return ERR_NONE;
}

enum err_code block_read_totals(const struct block *block, const struct block_granule *granule,
                                struct block_cursor *cursor, struct block_totals *ret_totals,
                                struct err *err)
{
    uint32_t *stacks, *counts;
    uint64_t *stored;
    enum err_code code = read_entries(block, granule, cursor, &stacks, &counts, &stored, err);
    if (code)
        return code;
    int64_t *sums = reserve_buffer(&cursor->values, granule->entry_count, sizeof(*sums));
    for (uint32_t i = 0; i < granule->entry_count; i++)
        sums[i] = expand_value(granule, stored[i], counts[i]);
    *ret_totals = (struct block_totals){
        .stacks = stacks, .counts = counts, .sums = sums, .count = granule->entry_count};
    return ERR_NONE;
}

enum err_code block_add_totals(const struct block *block, const struct block_granule *granule,
                               struct block_cursor *cursor, int64_t *sums, struct err *err)
{
    uint32_t *stacks, *counts;
    uint64_t *stored;
    enum err_code code = read_entries(block, granule, cursor, &stacks, &counts, &stored, err);
    if (code)
        return code;
    /* The count may wrap in a corrupt granule; magnitudes are checked elsewhere. */
    for (uint32_t i = 0; i < granule->entry_count; i++) {
        const uint64_t value = (uint64_t)expand_value(granule, stored[i], counts[i]);
        sums[stacks[i]] = (int64_t)((uint64_t)sums[stacks[i]] + value);
    }
    return ERR_NONE;
}

/* The packed columns of the rows; valid until the cursor's next read. */
static enum err_code read_packed_rows(const struct block *block,
                                      const struct block_granule *granule,
                                      struct block_cursor *cursor, struct span *ret_ordinals,
                                      struct span *ret_values, struct err *err)
{
    struct span rest;
    enum err_code code = read_extent(block, granule, BLOCK_ROWS, cursor, &rest, err);
    if (code)
        return code;
    if (!column_can_hold(rest, granule->row_count) ||
        !column_take_bytes(&cursor->columns, &rest, ret_ordinals) ||
        !column_take_bytes(&cursor->more_columns, &rest, ret_values) || rest.size)
        return fail_corrupt(block, granule, extent_names[BLOCK_ROWS], err);
    return ERR_NONE;
}

enum err_code block_add_range(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, uint32_t first, uint32_t end,
                              int64_t *sums, struct err *err)
{
    uint32_t *stacks, *counts;
    struct row_sums rows = {
        .row_count = granule->row_count,
        .are_distinct = granule->flags & BLOCK_ARE_DISTINCT,
        .are_positive = granule->flags & BLOCK_ARE_POSITIVE,
        .divisor = (int64_t)granule->divisor,
        .first = first,
        .end = end,
    };
    enum err_code code = read_entries(block, granule, cursor, &stacks, &counts, NULL, err);
    if (!code)
        code = read_packed_rows(block, granule, cursor, &rows.ordinals, &rows.values, err);
    if (code)
        return code;
    rows.stacks = stacks;
    rows.counts = counts;
    return row_sums_add(&rows, sums) ? ERR_NONE
                                     : fail_corrupt(block, granule, extent_names[BLOCK_ROWS], err);
}

/* ---- whole rows ---- */

static enum err_code read_timestamps(const struct block *block, const struct block_granule *granule,
                                     struct block_cursor *cursor, struct span *rest,
                                     struct block_rows *rows, struct err *err)
{
    uint32_t *counts =
        reserve_buffer(&cursor->timestamp_counts, granule->row_count, sizeof(*counts));
    if (!column_take_u32(&cursor->columns, rest, counts, granule->row_count) ||
        !column_can_hold(*rest, (size_t)granule->timestamp_count))
        return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
    uint64_t *steps =
        reserve_buffer(&cursor->timestamps, (size_t)granule->timestamp_count, sizeof(*steps));
    if (!column_take_u64(&cursor->columns, rest, steps, (size_t)granule->timestamp_count))
        return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
    uint64_t at = 0;
    for (uint32_t i = 0; i < granule->row_count; i++) {
        if (counts[i] > granule->timestamp_count - at)
            return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
        uint64_t time_ns = (uint64_t)rows->profiles[rows->ordinals[i]].time_ns;
        for (uint32_t j = 0; j < counts[i]; j++, at++)
            steps[at] = time_ns += (uint64_t)column_unzigzag(steps[at]);
    }
    rows->timestamp_counts = counts;
    rows->timestamps = (const int64_t *)steps;
    return ERR_NONE;
}

static enum err_code read_details(const struct block *block, const struct block_granule *granule,
                                  struct block_cursor *cursor, struct block_rows *rows,
                                  struct err *err)
{
    struct span rest;
    enum err_code code = read_extent(block, granule, BLOCK_DETAILS, cursor, &rest, err);
    if (code)
        return code;
    if (granule->flags & BLOCK_HAS_LABEL_SETS) {
        uint32_t *sets = reserve_buffer(&cursor->label_sets, granule->row_count, sizeof(*sets));
        if (!column_take_u32(&cursor->columns, &rest, sets, granule->row_count))
            return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
        for (uint32_t i = 0; i < granule->row_count; i++) {
            if (sets[i] >= block->dictionary.label_set_count)
                return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
        }
        rows->label_sets = sets;
    }
    if (granule->flags & BLOCK_HAS_TIMESTAMPS)
        code = read_timestamps(block, granule, cursor, &rest, rows, err);
    if (!code && rest.size)
        return fail_corrupt(block, granule, extent_names[BLOCK_DETAILS], err);
    return code;
}

static enum err_code read_stored_rows(const struct block *block,
                                      const struct block_granule *granule,
                                      struct block_cursor *cursor, uint32_t **ret_ordinals,
                                      uint64_t **ret_values, struct err *err)
{
    struct span ordinals, values;
    const uint32_t count = granule->row_count;
    enum err_code code = read_packed_rows(block, granule, cursor, &ordinals, &values, err);
    if (code)
        return code;
    *ret_ordinals = reserve_buffer(&cursor->ordinals, count, sizeof(**ret_ordinals));
    *ret_values = reserve_buffer(&cursor->values, count, sizeof(**ret_values));
    if (!bitpack_take_u32(&ordinals, *ret_ordinals, count) || ordinals.size ||
        !bitpack_take_u64(&values, *ret_values, count) || values.size)
        return fail_corrupt(block, granule, extent_names[BLOCK_ROWS], err);
    return ERR_NONE;
}

/* Expands entries and stored columns to one stack, ordinal and value per row. */
static bool expand_rows(const struct block_granule *granule, const uint32_t *stacks,
                        const uint32_t *counts, uint32_t *ordinals, uint64_t *values,
                        uint32_t *ret_stacks)
{
    const uint32_t step = granule->flags & BLOCK_ARE_DISTINCT ? 1 : 0;
    uint32_t row = 0;
    for (uint32_t i = 0; i < granule->entry_count; i++) {
        uint64_t ordinal = 0;
        for (uint32_t j = 0; j < counts[i]; j++, row++) {
            ordinal += ordinals[row] + (j ? step : 0);
            if (ordinal >= granule->profile_count)
                return false;
            ordinals[row] = (uint32_t)ordinal;
            values[row] = (uint64_t)expand_value(granule, values[row], 1);
            ret_stacks[row] = stacks[i];
        }
    }
    return true;
}

enum err_code block_read_rows(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, bool wants_details,
                              struct block_rows *ret_rows, struct err *err)
{
    const struct block_profile *profiles;
    uint32_t *stacks, *counts, *ordinals;
    uint64_t *values;
    enum err_code code = block_read_profiles(block, granule, cursor, &profiles, err);
    if (!code)
        code = read_entries(block, granule, cursor, &stacks, &counts, NULL, err);
    if (!code)
        code = read_stored_rows(block, granule, cursor, &ordinals, &values, err);
    if (code)
        return code;
    uint32_t *stacks_of_rows =
        reserve_buffer(&cursor->sums, granule->row_count, sizeof(*stacks_of_rows));
    if (!expand_rows(granule, stacks, counts, ordinals, values, stacks_of_rows))
        return fail_corrupt(block, granule, extent_names[BLOCK_ROWS], err);
    struct block_rows rows = {
        .series = granule->series,
        .hour = granule->hour,
        .profile_count = granule->profile_count,
        .row_count = granule->row_count,
        .profiles = cursor->profiles.data,
        .stacks = stacks_of_rows,
        .ordinals = ordinals,
        .values = (const int64_t *)values,
    };
    if (wants_details && granule->extent_bytes[BLOCK_DETAILS])
        code = read_details(block, granule, cursor, &rows, err);
    if (!code)
        *ret_rows = rows;
    return code;
}

/* Subtracts the granules from the series totals, stack by stack: any remainder means that they
 * differ. */
enum err_code block_verify_series_totals(const struct block *block, struct err *err)
{
    const uint32_t stack_count = block->dictionary.stacks.stack_count;
    const struct block_granule *granule = block->granules;
    const struct block_granule *end = granule + block->footer.granule_count;
    struct block_cursor *cursor = block_cursor_create();
    int64_t *sums = mem_new(int64_t, stack_count);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < block->footer.series_totals_count && !code; i++) {
        const struct block_granule *all = &end[i];
        struct block_totals totals = {0};
        for (; granule < end && granule->series < all->series; granule++)
            ;
        for (; granule < end && granule->series == all->series && !code; granule++)
            code = block_add_totals(block, granule, cursor, sums, err);
        if (!code)
            code = block_read_totals(block, all, cursor, &totals, err);
        for (uint32_t j = 0; !code && j < totals.count; j++) {
            if (sums[totals.stacks[j]] != totals.sums[j])
                code = fail_corrupt(block, all, extent_names[BLOCK_TOTALS], err);
            sums[totals.stacks[j]] = 0;
        }
    }
    for (uint32_t i = 0; !code && i < stack_count; i++) {
        if (sums[i])
            code = err_set(err, ERR_CORRUPT, "%s: totals of a series leave stacks out",
                           block->source.name);
    }
    mem_free(sums);
    block_cursor_destroy(cursor);
    return code;
}

enum err_code block_verify(const struct block *block, struct err *err)
{
    struct block_cursor *cursor = block_cursor_create();
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < block->footer.granule_count && !code; i++) {
        struct block_rows rows;
        struct block_totals totals;
        struct span details;
        const struct block_granule *granule = &block->granules[i];
        code = block_read_rows(block, granule, cursor, true, &rows, err);
        if (!code)
            code = block_read_totals(block, granule, cursor, &totals, err);
        if (!code)
            code = read_extent(block, granule, BLOCK_DETAILS, cursor, &details, err);
    }
    block_cursor_destroy(cursor);
    return code;
}
