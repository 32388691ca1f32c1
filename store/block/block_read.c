#include "store/block/block_read.h"

#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/bitpack.h"
#include "store/block/column.h"
#include "store/block/dictionary_bytes.h"
#include "store/block/row_sums.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

/* Hashes, computed at first use: most queries (values over time, series, lists) need none. */
struct late_hashes {
    pthread_mutex_t mutex;
    struct arena *arena; /* NULL: not computed */
    uint64_t seed;
    struct stack_hashes made;
    const struct stack_hashes *_Atomic ready;
};

struct block {
    struct block_source source;
    void (*release)(void *context); /* of the block that lends the source; NULL: it is its own */
    void *lender;
    struct arena *arena;
    struct block_footer footer;
    struct dictionary dictionary;
    struct late_hashes *hashes;
    const struct block_granule *granules; /* series totals follow the others */
    uint64_t opening_bytes;
};

static enum err_code read_from_memory(void *context, uint64_t offset, size_t size,
                                      struct buf *buffer, struct span *ret_bytes, struct err *err)
{
    (void)buffer;
    (void)err;
    const struct span *bytes = context;
    *ret_bytes = span_of(bytes->data + offset, size);
    return ERR_NONE;
}

struct block_source block_source_memory(const struct span *bytes, const char *name)
{
    return (struct block_source){
        .read = read_from_memory,
        .context = (void *)(uintptr_t)bytes, /* only read from */
        .size = bytes->size,
        .name = name,
    };
}

/* ---- opening ---- */

static enum err_code read_part(const struct block *block, uint64_t offset, uint64_t size,
                               struct buf *buffer, struct span *ret_bytes, struct err *err)
{
    if (offset > block->source.size || size > block->source.size - offset)
        return err_set(err, ERR_CORRUPT, "%s: a part lies beyond the end", block->source.name);
    return block->source.read(block->source.context, offset, (size_t)size, buffer, ret_bytes, err);
}

static void read_ahead(const struct block *block, uint64_t offset, uint64_t size)
{
    if (block->source.read_ahead)
        block->source.read_ahead(block->source.context, offset, size);
}

static enum err_code check_header(struct block *block, struct buf *buffer, struct err *err)
{
    struct block_header header;
    struct span bytes;
    enum err_code code = read_part(block, 0, sizeof(header), buffer, &bytes, err);
    if (code)
        return code;
    memcpy(&header, bytes.data, sizeof(header));
    const uint32_t crc = header.crc;
    header.crc = 0;
    if (memcmp(header.magic, BLOCK_MAGIC, sizeof(header.magic)) != 0 ||
        crc32c(span_of(&header, sizeof(header))) != crc ||
        memcmp(header.id, block->footer.id, sizeof(header.id)) != 0)
        return err_set(err, ERR_CORRUPT, "%s: the header is broken", block->source.name);
    return ERR_NONE;
}

static enum err_code read_footer(struct block *block, int64_t tenant_id, struct buf *buffer,
                                 struct err *err)
{
    struct block_footer *footer = &block->footer;
    struct span bytes;
    if (block->source.size < sizeof(struct block_header) + sizeof(*footer))
        return err_set(err, ERR_CORRUPT, "%s: %" PRIu64 " bytes are no block", block->source.name,
                       block->source.size);
    enum err_code code = read_part(block, block->source.size - sizeof(*footer), sizeof(*footer),
                                   buffer, &bytes, err);
    if (code)
        return code;
    memcpy(footer, bytes.data, sizeof(*footer));
    const uint32_t crc = footer->crc;
    footer->crc = 0;
    if (memcmp(footer->magic, BLOCK_END_MAGIC, sizeof(footer->magic)) != 0 ||
        crc32c(span_of(footer, sizeof(*footer))) != crc ||
        footer->block_bytes != block->source.size)
        return err_set(err, ERR_CORRUPT, "%s: the footer is broken", block->source.name);
    if (block->source.footer_crc && crc != block->source.footer_crc)
        return err_set(err, ERR_CORRUPT, "%s: another block", block->source.name);
    if (footer->version != BLOCK_VERSION)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s: block version %u is not supported; this server supports version %d",
                       block->source.name, footer->version, BLOCK_VERSION);
    if (footer->tenant_id != tenant_id)
        return err_set(err, ERR_CORRUPT, "%s: a block of another tenant", block->source.name);
    return check_header(block, buffer, err);
}

static enum err_code read_section(struct block *block, enum block_section section,
                                  struct arena *scratch, struct buf *buffer, struct span *ret_flat,
                                  struct err *err)
{
    static const char *const names[BLOCK_SECTION_COUNT] = {"strings",    "tables", "stacks",
                                                           "label sets", "series", "granules"};
    const struct block_section_extent *extent = &block->footer.sections[section];
    struct span bytes;
    if (extent->stored_bytes > BLOCK_SECTION_MAX_BYTES ||
        extent->flat_bytes > BLOCK_SECTION_MAX_BYTES)
        return err_set(err, ERR_CORRUPT, "%s: the %s are too large", block->source.name,
                       names[section]);
    enum err_code code =
        read_part(block, extent->offset, block_align(extent->stored_bytes), buffer, &bytes, err);
    if (code)
        return code;
    if (crc32c(bytes) != extent->crc)
        return err_set(err, ERR_CORRUPT, "%s: the %s are broken", block->source.name,
                       names[section]);
    const struct span stored = span_of(bytes.data, (size_t)extent->stored_bytes);
    const size_t flat_bytes = (size_t)extent->flat_bytes;
    if (stored.size == flat_bytes && bytes.data != buffer->data) { /* in memory already */
        *ret_flat = stored;
        return ERR_NONE;
    }
    if (stored.size == flat_bytes) {
        uint8_t *copy = arena_alloc_raw(scratch, flat_bytes, 1);
        memcpy(copy, stored.data, stored.size);
        *ret_flat = span_of(copy, flat_bytes);
        return ERR_NONE;
    }
    uint8_t *flat =
        compress_can_expand_to(stored, flat_bytes) ? arena_alloc_raw(scratch, flat_bytes, 1) : NULL;
    if (!flat || !compress_expand_exact(stored, flat, flat_bytes))
        return err_set(err, ERR_CORRUPT, "%s: the %s do not expand", block->source.name,
                       names[section]);
    *ret_flat = span_of(flat, flat_bytes);
    return ERR_NONE;
}

/* Timestamps are in the details, which must exist where any are counted: callers rely on it. */
static bool has_sound_timestamps(const struct block_granule *granule)
{
    return granule->flags & BLOCK_HAS_TIMESTAMPS ? granule->extent_bytes[BLOCK_DETAILS] > 0
                                                 : granule->timestamp_count == 0;
}

static bool is_sound(const struct block *block, const struct block_granule *granule)
{
    uint64_t bytes = 0;
    for (int i = 0; i < BLOCK_EXTENT_COUNT; i++)
        bytes += block_align(granule->extent_bytes[i]);
    return granule->series < block->dictionary.series_count && granule->profile_count &&
           granule->entry_count <= granule->row_count && granule->divisor &&
           granule->divisor <= INT64_MAX && granule->magnitude < INT64_MAX &&
           granule->offset % BLOCK_ALIGNMENT == 0 && bytes <= block->source.size &&
           granule->offset <= block->source.size - bytes && has_sound_timestamps(granule);
}

/* Series totals must agree with the sums of their granules' fields. */
static bool are_series_totals_sound(const struct block *block)
{
    const struct block_granule *granules = block->granules;
    const uint32_t count = block->footer.granule_count;
    uint32_t at = 0;
    for (uint32_t i = 1; i < count && block->footer.series_totals_count; i++) {
        if (granules[i].series < granules[i - 1].series)
            return false;
    }
    for (uint32_t i = 0; i < block->footer.series_totals_count; i++) {
        const struct block_granule *all = &granules[count + i];
        uint64_t rows = 0, profiles = 0, total = 0, magnitude = 0, flags = 0;
        if (i && all->series <= all[-1].series)
            return false;
        while (at < count && granules[at].series < all->series)
            at++;
        for (; at < count && granules[at].series == all->series; at++) {
            rows += granules[at].row_count;
            profiles += granules[at].profile_count;
            total += (uint64_t)granules[at].total;
            magnitude += granules[at].magnitude;
            flags |= granules[at].flags;
        }
        if (rows != all->row_count || profiles != all->profile_count ||
            total != (uint64_t)all->total || magnitude != all->magnitude ||
            (flags & ~all->flags & BLOCK_HAS_LABEL_SETS))
            return false;
    }
    return true;
}

static enum err_code read_granules(struct block *block, struct span bytes, struct err *err)
{
    const uint64_t count =
        (uint64_t)block->footer.granule_count + block->footer.series_totals_count;
    if (count > UINT32_MAX || bytes.size != count * sizeof(struct block_granule))
        return err_set(err, ERR_CORRUPT, "%s: granules are missing", block->source.name);
    struct block_granule *granules = arena_new_raw(block->arena, struct block_granule, count);
    memcpy(granules, bytes.data, bytes.size);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_sound(block, &granules[i]))
            return err_set(err, ERR_CORRUPT, "%s: granule %u is impossible", block->source.name, i);
    }
    block->granules = granules;
    if (!are_series_totals_sound(block))
        return err_set(err, ERR_CORRUPT, "%s: totals of series are not those of their granules",
                       block->source.name);
    return ERR_NONE;
}

static void read_section_ahead(const struct block *block, enum block_section section)
{
    read_ahead(block, block->footer.sections[section].offset,
               block->footer.sections[section].stored_bytes);
}

/* Reads the wanted sections; the others stay empty. */
static enum err_code read_sections(struct block *block, const enum block_section *wanted,
                                   size_t wanted_count, struct arena *scratch,
                                   struct span sections[BLOCK_SECTION_COUNT], struct err *err)
{
    buf_auto buffer;
    buf_init(&buffer, (size_t)2 * BLOCK_SECTION_MAX_BYTES);
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < wanted_count; i++)
        read_section_ahead(block, wanted[i]);
    for (size_t i = 0; i < wanted_count && !code; i++) {
        code = read_section(block, wanted[i], scratch, &buffer, &sections[wanted[i]], err);
        block->opening_bytes += block_align(block->footer.sections[wanted[i]].stored_bytes);
    }
    return code;
}

static enum err_code read_series(struct block *block, struct err *err)
{
    static const enum block_section wanted[] = {BLOCK_STRINGS, BLOCK_LABEL_SETS, BLOCK_SERIES,
                                                BLOCK_GRANULES};
    arena_auto scratch = arena_create();
    struct span sections[BLOCK_SECTION_COUNT] = {0};
    enum err_code code =
        read_sections(block, wanted, sizeof(wanted) / sizeof(wanted[0]), scratch, sections, err);
    if (code)
        return code;
    code = dictionary_read_series(block->arena, sections, block->footer.row_count,
                                  &block->dictionary, err);
    if (code)
        return err_add(err, "%s", block->source.name);
    return read_granules(block, sections[BLOCK_GRANULES], err);
}

static enum err_code read_stacks(struct block *block, struct err *err)
{
    static const enum block_section wanted[] = {BLOCK_STRINGS, BLOCK_TABLES, BLOCK_STACKS};
    const size_t first = block->dictionary.has_few_strings ? 0 : 1;
    arena_auto scratch = arena_create();
    struct span sections[BLOCK_SECTION_COUNT] = {0};
    enum err_code code = read_sections(
        block, wanted + first, sizeof(wanted) / sizeof(wanted[0]) - first, scratch, sections, err);
    if (code)
        return code;
    code = dictionary_read_stacks(block->arena, sections, &block->dictionary, err);
    return code ? err_add(err, "%s", block->source.name) : ERR_NONE;
}

static struct block *create_block(uint64_t seed)
{
    struct block *block = mem_new(struct block, 1);
    block->arena = arena_create();
    block->hashes = arena_new(block->arena, struct late_hashes, 1);
    block->hashes->seed = seed;
    pthread_mutex_init(&block->hashes->mutex, NULL);
    return block;
}

static enum err_code finish_opening(struct block *block, enum err_code code,
                                    struct block **ret_block)
{
    if (code)
        block_close(block);
    else
        *ret_block = block;
    return code;
}

static enum err_code begin_opening(struct block *block, struct block_source source,
                                   int64_t tenant_id, struct err *err)
{
    buf_auto buffer;
    buf_init(&buffer, BLOCK_SECTION_MAX_BYTES);
    block->source = source;
    block->opening_bytes = sizeof(struct block_header) + sizeof(struct block_footer);
    enum err_code code = read_footer(block, tenant_id, &buffer, err);
    return code ? code : read_series(block, err);
}

enum err_code block_open_series(struct block_source source, int64_t tenant_id, uint64_t seed,
                                struct block **ret_block, struct err *err)
{
    struct block *block = create_block(seed);
    return finish_opening(block, begin_opening(block, source, tenant_id, err), ret_block);
}

enum err_code block_open_stacks(const struct block *series, void (*release)(void *context),
                                void *context, struct block **ret_block, struct err *err)
{
    struct block *block = create_block(series->hashes->seed);
    block->source = series->source;
    block->release = release;
    block->lender = context;
    block->footer = series->footer;
    block->dictionary = series->dictionary;
    block->granules = series->granules;
    return finish_opening(block, read_stacks(block, err), ret_block);
}

enum err_code block_open(struct block_source source, int64_t tenant_id, uint64_t seed,
                         struct block **ret_block, struct err *err)
{
    struct block *block = create_block(seed);
    enum err_code code = begin_opening(block, source, tenant_id, err);
    if (!code)
        code = read_stacks(block, err);
    return finish_opening(block, code, ret_block);
}

void block_close(struct block *block)
{
    if (!block)
        return;
    if (block->release)
        block->release(block->lender);
    else if (block->source.close)
        block->source.close(block->source.context);
    pthread_mutex_destroy(&block->hashes->mutex);
    arena_destroy(block->hashes->arena);
    arena_destroy(block->arena);
    mem_free(block);
}

const struct dictionary *block_dictionary(const struct block *block)
{
    return &block->dictionary;
}

const struct stack_hashes *block_hashes(const struct block *block)
{
    struct late_hashes *hashes = block->hashes;
    const struct stack_hashes *ready = atomic_load_explicit(&hashes->ready, memory_order_acquire);
    if (ready)
        return ready;
    pthread_mutex_lock(&hashes->mutex);
    if (!hashes->arena) {
        hashes->arena = arena_create();
        stack_hashes_create(hashes->arena, &block->dictionary, hashes->seed, &hashes->made);
        atomic_store_explicit(&hashes->ready, &hashes->made, memory_order_release);
    }
    pthread_mutex_unlock(&hashes->mutex);
    return &hashes->made;
}

const struct block_granule *block_granules(const struct block *block, uint32_t *ret_count)
{
    *ret_count = block->footer.granule_count;
    return block->granules;
}

const struct block_granule *block_series_totals(const struct block *block, uint32_t series)
{
    const struct block_granule *all = block->granules + block->footer.granule_count;
    uint32_t low = 0, high = block->footer.series_totals_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (all[middle].series < series)
            low = middle + 1;
        else
            high = middle;
    }
    return low < block->footer.series_totals_count && all[low].series == series ? &all[low] : NULL;
}

const struct block_footer *block_footer(const struct block *block)
{
    return &block->footer;
}

const char *block_name(const struct block *block)
{
    return block->source.name;
}

uint64_t block_opening_bytes(const struct block *block)
{
    return block->opening_bytes;
}

size_t block_memory(const struct block *block)
{
    const size_t hash_count =
        (size_t)block->dictionary.stacks.stack_count + block->dictionary.tables->location_count;
    return sizeof(*block) + arena_bytes(block->arena) + hash_count * sizeof(struct stack_hash);
}

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

/* ---- granules ---- */

/* A growing array that is reused. */
struct buffer {
    void *data;
    size_t bytes;
};

struct block_cursor {
    struct buf stored;
    struct column_reader columns;
    struct column_reader more_columns; /* for callers that need two at once */
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
    read_ahead(block, offset, find_extent(granule, last) + granule->extent_bytes[last] - offset);
}

static enum err_code read_extent(const struct block *block, const struct block_granule *granule,
                                 enum block_extent extent, struct block_cursor *cursor,
                                 struct span *ret_bytes, struct err *err)
{
    const uint64_t offset = find_extent(granule, extent);
    const uint32_t size = granule->extent_bytes[extent];
    struct span bytes;
    enum err_code code = read_part(block, offset, block_align(size), &cursor->stored, &bytes, err);
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
