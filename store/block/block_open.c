/* Opens a block: its footer and header, the dictionary, the series, the list of granules. */
#include "store/block/block_internal.h"

#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/dictionary_bytes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Hashes, computed at first use: most queries (values over time, series, lists) need none. */
struct late_hashes {
    pthread_mutex_t mutex;
    struct arena *arena; /* NULL: not computed */
    uint64_t seed;
    struct stack_hashes made;
    const struct stack_hashes *_Atomic ready;
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

enum err_code block_read_part(const struct block *block, uint64_t offset, uint64_t size,
                              struct buf *buffer, struct span *ret_bytes, struct err *err)
{
    if (offset > block->source.size || size > block->source.size - offset)
        return err_set(err, ERR_CORRUPT, "%s: a part lies beyond the end", block->source.name);
    return block->source.read(block->source.context, offset, (size_t)size, buffer, ret_bytes, err);
}

void block_announce_part(const struct block *block, uint64_t offset, uint64_t size)
{
    if (block->source.read_ahead)
        block->source.read_ahead(block->source.context, offset, size);
}

static enum err_code check_header(struct block *block, struct buf *buffer, struct err *err)
{
    struct block_header header;
    struct span bytes;
    enum err_code code = block_read_part(block, 0, sizeof(header), buffer, &bytes, err);
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
    enum err_code code = block_read_part(block, block->source.size - sizeof(*footer),
                                         sizeof(*footer), buffer, &bytes, err);
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
    enum err_code code = block_read_part(block, extent->offset, block_align(extent->stored_bytes),
                                         buffer, &bytes, err);
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
    block_announce_part(block, block->footer.sections[section].offset,
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
