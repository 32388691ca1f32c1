#include "store/block/block_write.h"

#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/block_format.h"
#include "store/block/column.h"
#include "store/block/dictionary.h"
#include "store/block/dictionary_bytes.h"

#include <assert.h>

/* Series totals are read in place of the totals of the granules. In a block of a day they add a
 * hundredth to the bytes, and a query reads a twentieth of the totals. */
enum { SINK_PIECE_BYTES = 1 << 20, EXTENT_MAX_BYTES = 1 << 30, SERIES_TOTALS_GRANULES_MIN = 4 };

/* The totals of the current series so far, by stack. */
struct series_sums {
    struct block_granule granule; /* of all its granules */
    uint32_t granule_count;
    bool are_too_many; /* too many for one granule */
    uint64_t divisor;
    uint64_t *are_there; /* a bit per stack */
    uint32_t *row_counts;
    int64_t *sums;
    uint32_t capacity; /* of stacks, a multiple of 64 */
};

struct block_writer {
    struct block_sink sink;
    struct column_writer columns;
    struct column_writer totals; /* and of profiles: not compressed */
    struct buf pending;          /* not yet passed to the sink */
    struct buf granules;
    struct buf series_totals; /* their granules */
    struct series_sums series;
    struct arena *scratch; /* of one granule; NULL between granules */
    struct block_footer footer;
    uint64_t offset; /* offset of the next part */
    uint64_t profile_count;
    int64_t reach_ns; /* of all granules */
    int level;
};

/* A block that lives for seconds is not worth more effort. */
static enum bitpack_effort effort_of(int level)
{
    return level ? BITPACK_SMALL : BITPACK_QUICK;
}

struct block_writer *block_writer_create(int64_t tenant_id, int level, struct block_sink sink)
{
    struct block_writer *writer = mem_new(struct block_writer, 1);
    writer->sink = sink;
    writer->level = level;
    writer->reach_ns = INT64_MIN;
    writer->footer = (struct block_footer){
        .tenant_id = tenant_id,
        .begin_ns = INT64_MAX,
        .end_ns = INT64_MIN,
        .version = BLOCK_VERSION,
    };
    digest_random(writer->footer.id, sizeof(writer->footer.id));
    column_writer_init(&writer->columns, level, effort_of(level));
    column_writer_init(&writer->totals, 0, effort_of(level));
    buf_init(&writer->pending, (size_t)2 * BLOCK_SECTION_MAX_BYTES);
    buf_init(&writer->granules, BLOCK_SECTION_MAX_BYTES);
    buf_init(&writer->series_totals, BLOCK_SECTION_MAX_BYTES);
    struct block_header header = {.version = BLOCK_VERSION, .tenant_id = tenant_id};
    memcpy(header.magic, BLOCK_MAGIC, sizeof(header.magic));
    memcpy(header.id, writer->footer.id, sizeof(header.id));
    header.crc = crc32c(span_of(&header, sizeof(header)));
    buf_append(&writer->pending, &header, sizeof(header));
    writer->offset = sizeof(header);
    return writer;
}

struct block_writer *block_writer_create_in(int64_t tenant_id, int level, struct buf *output,
                                            size_t expected_bytes)
{
    assert(output->size == 0);
    struct block_writer *writer = block_writer_create(tenant_id, level, (struct block_sink){0});
    const struct buf begun = writer->pending;
    writer->pending = *output;
    *output = (struct buf){.max_size = output->max_size};
    buf_reserve(&writer->pending,
                expected_bytes < writer->pending.max_size ? expected_bytes : begun.size);
    buf_append_span(&writer->pending, buf_span(&begun));
    mem_free_buffer(begun.data, begun.capacity);
    return writer;
}

void block_writer_take(struct block_writer *writer, struct buf *output)
{
    assert(!writer->sink.append);
    *output = writer->pending;
    writer->pending = (struct buf){0};
}

void block_writer_destroy(struct block_writer *writer)
{
    if (!writer)
        return;
    column_writer_fini(&writer->columns);
    column_writer_fini(&writer->totals);
    buf_fini(&writer->pending);
    buf_fini(&writer->granules);
    buf_fini(&writer->series_totals);
    mem_free(writer->series.are_there);
    mem_free(writer->series.row_counts);
    mem_free(writer->series.sums);
    mem_free(writer);
}

/* ---- parts ---- */

static enum err_code write_output(struct block_writer *writer, struct err *err)
{
    if (buf_failed(&writer->pending) && !writer->sink.append)
        return err_set(err, ERR_TOO_LARGE, "a block of more than %zu bytes",
                       writer->pending.max_size);
    if (buf_failed(&writer->pending))
        return err_set(err, ERR_TOO_LARGE, "a part of a block would be more than %d bytes",
                       BLOCK_SECTION_MAX_BYTES);
    if (!writer->sink.append)
        return ERR_NONE;
    enum err_code code = writer->sink.append(writer->sink.context, buf_span(&writer->pending), err);
    buf_clear(&writer->pending);
    return code;
}

/* Ends the part that begins at `begin` of pending: pads it with zeros and returns the CRC of all of
 * it. */
static uint32_t end_part(struct block_writer *writer, size_t begin)
{
    static const uint8_t zeros[BLOCK_ALIGNMENT];
    struct buf *pending = &writer->pending;
    const size_t size = pending->size - begin;
    buf_append(pending, zeros, (size_t)(block_align(size) - size));
    writer->offset += pending->size - begin;
    return crc32c(span_of(pending->data + begin, pending->size - begin));
}

/* ---- the totals of a series ---- */

enum { WORD_BITS = 64 };

/* Grows by itself instead of with lib/base/vec.h, because the capacity must be a multiple of
 * WORD_BITS: are_there has one bit for each element of the other two arrays. */
static void reserve_rows(struct series_sums *series, uint32_t stack)
{
    if (stack < series->capacity)
        return;
    const uint32_t before = series->capacity;
    uint64_t capacity = before ? before : 1024;
    while (capacity <= stack)
        capacity *= 2;
    series->capacity = (uint32_t)capacity; /* stacks are fewer than 2^31 */
    series->are_there =
        mem_resize(series->are_there, capacity / WORD_BITS, sizeof(*series->are_there));
    series->row_counts = mem_resize(series->row_counts, capacity, sizeof(*series->row_counts));
    series->sums = mem_resize(series->sums, capacity, sizeof(*series->sums));
    memset(series->are_there + before / WORD_BITS, 0,
           (capacity - before) / WORD_BITS * sizeof(*series->are_there));
}

static void add_to_series(struct series_sums *series, uint32_t stack, uint32_t row_count,
                          int64_t sum)
{
    reserve_rows(series, stack);
    uint64_t *word = &series->are_there[stack / WORD_BITS];
    const uint64_t bit = UINT64_C(1) << stack % WORD_BITS;
    if (!(*word & bit)) {
        *word |= bit;
        series->row_counts[stack] = 0;
        series->sums[stack] = 0;
    }
    series->row_counts[stack] += row_count;
    series->sums[stack] = (int64_t)((uint64_t)series->sums[stack] + (uint64_t)sum);
}

static void begin_series(struct series_sums *series, uint32_t number)
{
    if (series->capacity)
        memset(series->are_there, 0, series->capacity / WORD_BITS * sizeof(*series->are_there));
    series->granule = (struct block_granule){
        .series = number,
        .flags = BLOCK_ARE_POSITIVE,
        .begin_ns = INT64_MAX,
        .end_ns = INT64_MIN,
    };
    series->granule_count = 0;
    series->are_too_many = false;
    series->divisor = 0;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void add_granule_to_series(struct series_sums *series, const struct block_granule *granule)
{
    struct block_granule *all = &series->granule;
    if (!series->granule_count++)
        all->hour = granule->hour;
    if (__builtin_add_overflow(all->profile_count, granule->profile_count, &all->profile_count) ||
        __builtin_add_overflow(all->row_count, granule->row_count, &all->row_count))
        series->are_too_many = true;
    all->flags &= granule->flags | ~(uint32_t)BLOCK_ARE_POSITIVE;
    all->flags |= granule->flags & BLOCK_HAS_LABEL_SETS;
    all->begin_ns = granule->begin_ns < all->begin_ns ? granule->begin_ns : all->begin_ns;
    all->end_ns = granule->end_ns > all->end_ns ? granule->end_ns : all->end_ns;
    all->magnitude += granule->magnitude; /* both are below 2^63, so the sum does not wrap */
    if (all->magnitude >= INT64_MAX) {
        series->are_too_many = true;
        all->magnitude = 0;
    }
    all->total = (int64_t)((uint64_t)all->total + (uint64_t)granule->total);
    series->divisor = greatest_divisor(granule->divisor, series->divisor);
}

static void write_series_totals(struct block_writer *writer)
{
    struct series_sums *series = &writer->series;
    struct block_granule *all = &series->granule;
    const bool are_positive = all->flags & BLOCK_ARE_POSITIVE;
    uint32_t count = 0, next_stack = 0;
    for (uint32_t i = 0; i < series->capacity / WORD_BITS; i++)
        count += (uint32_t)__builtin_popcountll(series->are_there[i]);
    arena_auto scratch = arena_create();
    uint32_t *stacks = arena_new_raw(scratch, uint32_t, count);
    uint32_t *counts = arena_new_raw(scratch, uint32_t, count);
    uint64_t *sums = arena_new_raw(scratch, uint64_t, count);
    all->divisor = series->divisor;
    for (uint32_t i = 0; i < series->capacity / WORD_BITS; i++) {
        for (uint64_t word = series->are_there[i]; word; word &= word - 1) {
            const uint32_t stack = i * WORD_BITS + (uint32_t)__builtin_ctzll(word);
            const int64_t sum = series->sums[stack] / (int64_t)all->divisor;
            stacks[all->entry_count] = stack - next_stack;
            next_stack = stack + 1;
            counts[all->entry_count] = series->row_counts[stack] - 1;
            sums[all->entry_count++] =
                are_positive ? (uint64_t)sum - series->row_counts[stack] : column_zigzag(sum);
        }
    }
    const size_t begin = writer->pending.size;
    all->offset = writer->offset;
    column_append_u32(&writer->totals, &writer->pending, stacks, count);
    column_append_u32(&writer->totals, &writer->pending, counts, count);
    column_append_u64(&writer->totals, &writer->pending, sums, count);
    all->extent_bytes[BLOCK_TOTALS] = (uint32_t)(writer->pending.size - begin);
    all->extent_crc[BLOCK_TOTALS] = end_part(writer, begin);
    buf_append(&writer->series_totals, all, sizeof(*all));
    writer->footer.series_totals_count++;
}

static void end_series(struct block_writer *writer)
{
    const struct series_sums *series = &writer->series;
    if (series->granule_count >= SERIES_TOTALS_GRANULES_MIN && !series->are_too_many)
        write_series_totals(writer);
}

/* ---- one granule ---- */

static uint64_t magnitude_of(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static void choose_value_layout(const struct block_rows *rows, struct block_granule *granule)
{
    bool are_positive = true, are_distinct = true;
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const int64_t value = rows->values[i];
        const uint64_t magnitude = magnitude_of(value);
        are_positive = are_positive && value > 0;
        if (divisor != 1)
            divisor = greatest_divisor(magnitude, divisor);
        granule->magnitude += magnitude;
        granule->total += value;
        rows->profiles[rows->ordinals[i]].total += value;
        if (i && rows->stacks[i] == rows->stacks[i - 1] &&
            rows->ordinals[i] == rows->ordinals[i - 1])
            are_distinct = false;
    }
    assert(granule->magnitude < INT64_MAX || rows->row_count == 0);
    granule->divisor = divisor ? divisor : 1;
    granule->flags |= (are_positive ? BLOCK_ARE_POSITIVE : 0u);
    granule->flags |= (are_distinct ? BLOCK_ARE_DISTINCT : 0u);
}

static void append_profiles(struct block_writer *writer, const struct block_rows *rows,
                            const struct block_granule *granule)
{
    const uint32_t count = rows->profile_count;
    uint64_t *column = arena_new_raw(writer->scratch, uint64_t, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] = (uint64_t)rows->profiles[i].time_ns -
                    (uint64_t)(i ? rows->profiles[i - 1].time_ns : granule->begin_ns);
    column_append_u64(&writer->totals, &writer->pending, column, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] = (uint64_t)rows->profiles[i].duration_ns ^
                    (i ? (uint64_t)rows->profiles[i - 1].duration_ns : 0);
    column_append_u64(&writer->totals, &writer->pending, column, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] =
            (uint64_t)rows->profiles[i].period ^ (i ? (uint64_t)rows->profiles[i - 1].period : 0);
    column_append_u64(&writer->totals, &writer->pending, column, count);
    for (uint32_t i = 0; i < count; i++)
        column[i] = column_zigzag(rows->profiles[i].total);
    column_append_u64(&writer->totals, &writer->pending, column, count);
}

/* A value in its stored form. */
static uint64_t reduce(const struct block_granule *granule, int64_t value)
{
    const int64_t reduced = value / (int64_t)granule->divisor;
    return granule->flags & BLOCK_ARE_POSITIVE ? (uint64_t)reduced - 1 : column_zigzag(reduced);
}

static void append_totals(struct block_writer *writer, const struct block_rows *rows,
                          struct block_granule *granule)
{
    uint32_t *stacks = arena_new_raw(writer->scratch, uint32_t, rows->row_count);
    uint32_t *counts = arena_new_raw(writer->scratch, uint32_t, rows->row_count);
    uint64_t *sums = arena_new_raw(writer->scratch, uint64_t, rows->row_count);
    uint32_t count = 0;
    uint32_t next_stack = 0;
    for (uint32_t i = 0; i < rows->row_count;) {
        const uint32_t begin = i, stack = rows->stacks[i];
        int64_t sum = 0;
        for (; i < rows->row_count && rows->stacks[i] == stack; i++)
            sum += rows->values[i];
        if (writer->level)
            add_to_series(&writer->series, stack, i - begin, sum);
        sum /= (int64_t)granule->divisor;
        stacks[count] = stack - next_stack;
        next_stack = stack + 1;
        counts[count] = i - begin - 1;
        sums[count++] =
            granule->flags & BLOCK_ARE_POSITIVE ? (uint64_t)sum - (i - begin) : column_zigzag(sum);
    }
    granule->entry_count = count;
    column_append_u32(&writer->totals, &writer->pending, stacks, count);
    column_append_u32(&writer->totals, &writer->pending, counts, count);
    column_append_u64(&writer->totals, &writer->pending, sums, count);
}

static void append_rows(struct block_writer *writer, const struct block_rows *rows,
                        const struct block_granule *granule)
{
    const uint32_t step = granule->flags & BLOCK_ARE_DISTINCT ? 1 : 0;
    uint32_t *ordinals = arena_new_raw(writer->scratch, uint32_t, rows->row_count);
    uint64_t *values = arena_new_raw(writer->scratch, uint64_t, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const bool is_first = i == 0 || rows->stacks[i] != rows->stacks[i - 1];
        ordinals[i] =
            is_first ? rows->ordinals[i] : rows->ordinals[i] - rows->ordinals[i - 1] - step;
        values[i] = reduce(granule, rows->values[i]);
    }
    column_append_u32(&writer->columns, &writer->pending, ordinals, rows->row_count);
    column_append_u64(&writer->columns, &writer->pending, values, rows->row_count);
}

static void append_timestamps(struct block_writer *writer, const struct block_rows *rows,
                              const struct block_granule *granule)
{
    uint64_t *steps = arena_new_raw(writer->scratch, uint64_t, granule->timestamp_count);
    uint64_t at = 0;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        int64_t before = rows->profiles[rows->ordinals[i]].time_ns;
        for (uint32_t j = 0; j < rows->timestamp_counts[i]; j++, at++) {
            const int64_t time_ns = rows->timestamps[at];
            steps[at] = column_zigzag((int64_t)((uint64_t)time_ns - (uint64_t)before));
            before = time_ns;
        }
    }
    column_append_u32(&writer->columns, &writer->pending, rows->timestamp_counts, rows->row_count);
    column_append_u64(&writer->columns, &writer->pending, steps, granule->timestamp_count);
}

static void append_details(struct block_writer *writer, const struct block_rows *rows,
                           const struct block_granule *granule)
{
    if (granule->flags & BLOCK_HAS_LABEL_SETS)
        column_append_u32(&writer->columns, &writer->pending, rows->label_sets, rows->row_count);
    if (granule->flags & BLOCK_HAS_TIMESTAMPS)
        append_timestamps(writer, rows, granule);
}

static void find_details(const struct block_rows *rows, struct block_granule *granule)
{
    for (uint32_t i = 0; rows->label_sets && i < rows->row_count; i++) {
        if (rows->label_sets[i])
            granule->flags |= BLOCK_HAS_LABEL_SETS;
    }
    for (uint32_t i = 0; rows->timestamp_counts && i < rows->row_count; i++)
        granule->timestamp_count += rows->timestamp_counts[i];
    if (granule->timestamp_count)
        granule->flags |= BLOCK_HAS_TIMESTAMPS;
    if (rows->are_totals)
        granule->flags |= BLOCK_ARE_TOTALS;
}

/* Values over time spread a profile's value over its duration (store/values/spread.h); for a
 * granule within one step they need only these fields. */
static void note_durations(const struct block_rows *rows, struct block_granule *granule)
{
    bool is_gapless = true, has_open_ends = false;
    granule->reach_ns = granule->begin_ns;
    for (uint32_t i = 0; i < rows->profile_count; i++) {
        const struct block_profile *profile = &rows->profiles[i];
        const int64_t duration_ns = profile->duration_ns > 0 ? profile->duration_ns : 0;
        int64_t end_ns;
        if (__builtin_add_overflow(profile->time_ns, duration_ns, &end_ns))
            end_ns = INT64_MAX;
        has_open_ends |= !duration_ns;
        /* reach_ns is at or after the granule's start, so the difference fits. */
        is_gapless = is_gapless && duration_ns &&
                     profile->time_ns - granule->reach_ns <= duration_ns / BLOCK_SLACK_PART;
        granule->reach_ns = end_ns > granule->reach_ns ? end_ns : granule->reach_ns;
        granule->longest_ns = duration_ns > granule->longest_ns ? duration_ns : granule->longest_ns;
    }
    granule->flags |=
        (is_gapless ? BLOCK_IS_GAPLESS : 0u) | (has_open_ends ? BLOCK_HAS_OPEN_ENDS : 0u);
}

static void append_extents(struct block_writer *writer, const struct block_rows *rows,
                           struct block_granule *granule)
{
    granule->offset = writer->offset;
    for (int extent = 0; extent < BLOCK_EXTENT_COUNT; extent++) {
        const size_t begin = writer->pending.size;
        switch ((enum block_extent)extent) {
        case BLOCK_PROFILES:
            append_profiles(writer, rows, granule);
            break;
        case BLOCK_TOTALS:
            append_totals(writer, rows, granule);
            break;
        case BLOCK_ROWS:
            append_rows(writer, rows, granule);
            break;
        case BLOCK_DETAILS:
            append_details(writer, rows, granule);
            break;
        case BLOCK_EXTENT_COUNT:
            break;
        }
        granule->extent_bytes[extent] = (uint32_t)(writer->pending.size - begin);
        granule->extent_crc[extent] = end_part(writer, begin);
    }
}

enum err_code block_writer_append(struct block_writer *writer, const struct block_rows *rows,
                                  struct err *err)
{
    assert(rows->profile_count);
    const struct series_sums *series = &writer->series;
    if (writer->level && (!series->granule_count || series->granule.series != rows->series)) {
        end_series(writer);
        begin_series(&writer->series, rows->series);
    }
    arena_auto scratch = arena_create();
    writer->scratch = scratch;
    struct block_granule granule = {
        .series = rows->series,
        .hour = rows->hour,
        .profile_count = rows->profile_count,
        .row_count = rows->row_count,
        .begin_ns = rows->profiles[0].time_ns,
        .end_ns = rows->profiles[rows->profile_count - 1].time_ns,
    };
    for (uint32_t i = 0; i < rows->profile_count; i++)
        rows->profiles[i].total = 0;
    choose_value_layout(rows, &granule);
    note_durations(rows, &granule);
    find_details(rows, &granule);
    append_extents(writer, rows, &granule);
    if (writer->level) /* a segment has no hours to sum */
        add_granule_to_series(&writer->series, &granule);
    writer->scratch = NULL;
    buf_append(&writer->granules, &granule, sizeof(granule));
    struct block_footer *footer = &writer->footer;
    footer->granule_count++;
    footer->row_count += granule.row_count;
    writer->profile_count += granule.profile_count;
    if (granule.begin_ns < footer->begin_ns)
        footer->begin_ns = granule.begin_ns;
    if (granule.end_ns > footer->end_ns)
        footer->end_ns = granule.end_ns;
    if (granule.reach_ns > writer->reach_ns)
        writer->reach_ns = granule.reach_ns;
    return writer->pending.size >= SINK_PIECE_BYTES ? write_output(writer, err) : ERR_NONE;
}

/* ---- the end ---- */

/* Appends the section whose bytes are in flat. */
static void append_section(struct block_writer *writer, enum block_section section,
                           const struct buf *flat)
{
    struct block_section_extent *extent = &writer->footer.sections[section];
    const size_t begin = writer->pending.size;
    extent->offset = writer->offset;
    extent->flat_bytes = flat->size;
    struct err err;
    if (!writer->level || flat->size == 0 ||
        compress_zstd_with(writer->columns.zstd, buf_span(flat), writer->level, &writer->pending,
                           &err) ||
        writer->pending.size - begin >= flat->size) {
        writer->pending.size = begin;
        buf_append_span(&writer->pending, buf_span(flat));
    }
    extent->stored_bytes = writer->pending.size - begin;
    extent->crc = end_part(writer, begin);
}

/* An uncompressed section is written in place. */
static void append_plain_section(struct block_writer *writer, const struct dictionary *dictionary,
                                 enum block_section section)
{
    struct block_section_extent *extent = &writer->footer.sections[section];
    const size_t begin = writer->pending.size;
    extent->offset = writer->offset;
    dictionary_write_section(dictionary, section, effort_of(writer->level), &writer->pending);
    extent->stored_bytes = extent->flat_bytes = writer->pending.size - begin;
    extent->crc = end_part(writer, begin);
}

enum err_code block_writer_finish(struct block_writer *writer, const struct dictionary *dictionary,
                                  struct block_summary *ret_summary, struct err *err)
{
    struct block_footer *footer = &writer->footer;
    if (!dictionary_is_readable(dictionary))
        return err_set(err, ERR_TOO_LARGE,
                       "the names, labels and stacks of a block would be more than %d bytes or "
                       "%d entries",
                       BLOCK_SECTION_MAX_BYTES, BLOCK_COUNT_MAX);
    end_series(writer);
    buf_auto flat;
    buf_init(&flat, BLOCK_SECTION_MAX_BYTES);
    for (int section = 0; section < BLOCK_GRANULES; section++) {
        if (!writer->level) {
            append_plain_section(writer, dictionary, (enum block_section)section);
            continue;
        }
        buf_clear(&flat);
        dictionary_write_section(dictionary, (enum block_section)section, effort_of(writer->level),
                                 &flat);
        if (buf_failed(&flat))
            return err_set(err, ERR_TOO_LARGE, "a part of a block would be more than %d bytes",
                           BLOCK_SECTION_MAX_BYTES);
        append_section(writer, (enum block_section)section, &flat);
    }
    buf_append_span(&writer->granules, buf_span(&writer->series_totals));
    if (buf_failed(&writer->granules) || buf_failed(&writer->series_totals))
        return err_set(err, ERR_TOO_LARGE, "a block of more than %d bytes of granules",
                       BLOCK_SECTION_MAX_BYTES);
    append_section(writer, BLOCK_GRANULES, &writer->granules);
    footer->series_count = dictionary->series_count;
    footer->block_bytes = writer->offset + sizeof(*footer);
    memcpy(footer->magic, BLOCK_END_MAGIC, sizeof(footer->magic));
    footer->crc = crc32c(span_of(footer, sizeof(*footer)));
    buf_append(&writer->pending, footer, sizeof(*footer));
    enum err_code code = write_output(writer, err);
    if (code)
        return code;
    *ret_summary = (struct block_summary){
        .bytes = footer->block_bytes,
        .row_count = footer->row_count,
        .profile_count = writer->profile_count,
        .granule_count = footer->granule_count,
        .series_count = footer->series_count,
        .begin_ns = footer->begin_ns,
        .end_ns = footer->end_ns,
        .reach_ns = writer->reach_ns,
        .footer_crc = footer->crc,
    };
    return ERR_NONE;
}
