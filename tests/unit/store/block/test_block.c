#include "lib/base/err.h"
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/crc32c.h"
#include "store/block/dictionary_bytes.h"
#include "store/catalogue/catalogue.h"
#include "store/maintain/block_merge.h"

enum { TENANT = 7 };
#define ROUNDS test_rounds(60)

/* ---- rows as text ---- */

static void add_line(struct lines *lines, struct buf *text, const struct profile *tables,
                     int64_t time_ns, int64_t duration_ns, int64_t period, int64_t value,
                     const int64_t *timestamps, uint32_t timestamp_count)
{
    (void)tables;
    buf_printf(text, " %" PRId64 " %" PRId64 " %" PRId64 " = %" PRId64, time_ns, duration_ns,
               period, value);
    for (uint32_t i = 0; i < timestamp_count; i++)
        buf_printf(text, " t%" PRId64, timestamps[i]);
    lines_add(lines, text);
}

static void lines_of_batch(struct lines *lines, const struct batch *batch)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const struct batch_profile *profile = &batch->profiles[i];
        for (uint32_t j = 0; j < profile->sample_count; j++) {
            const uint32_t at = profile->first_sample + j;
            const struct batch_sample *sample = &batch->samples[at];
            text_series(&text, batch->tables, &batch->series[profile->series],
                        batch->series_labels);
            for (uint64_t k = batch->stack_start[sample->stack];
                 k < batch->stack_start[sample->stack + 1]; k++)
                text_location(&text, batch->tables, batch->stack[k]);
            text_label_set(&text, batch->tables, &batch->label_sets[sample->label_set],
                           batch->sample_labels);
            const uint64_t first = batch->timestamp_start ? batch->timestamp_start[at] : 0;
            const uint64_t end = batch->timestamp_start ? batch->timestamp_start[at + 1] : 0;
            add_line(lines, &text, batch->tables, profile->time_ns, profile->duration_ns,
                     profile->period, sample->value,
                     batch->timestamps ? batch->timestamps + first : NULL, (uint32_t)(end - first));
        }
    }
    lines_sort(lines);
}

static void text_stack(struct buf *text, const struct dictionary *dictionary, uint32_t stack)
{
    const struct stacks *stacks = &dictionary->stacks;
    for (struct stack_position position = stacks->ends[stack]; position.node != STACKS_ROOT;
         position = stacks_caller(stacks, position))
        text_location(text, dictionary->tables, stacks->frames[position.node]);
}

static void lines_of_granule(struct lines *lines, const struct dictionary *dictionary,
                             const struct block_rows *rows)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    uint64_t at = 0;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const struct block_profile *profile = &rows->profiles[rows->ordinals[i]];
        const uint32_t set = rows->label_sets ? rows->label_sets[i] : 0;
        const uint32_t timestamp_count = rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
        assert_int_equal(block_hour(profile->time_ns), rows->hour);
        text_series(&text, dictionary->tables, &dictionary->series[rows->series],
                    dictionary->series_labels);
        text_stack(&text, dictionary, rows->stacks[i]);
        text_label_set(&text, dictionary->tables, &dictionary->label_sets[set],
                       dictionary->sample_labels);
        add_line(lines, &text, dictionary->tables, profile->time_ns, profile->duration_ns,
                 profile->period, rows->values[i], rows->timestamps ? rows->timestamps + at : NULL,
                 timestamp_count);
        at += timestamp_count;
    }
}

static void lines_of_block(struct lines *lines, const struct block *block)
{
    struct block_cursor *cursor = block_cursor_create();
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct block_rows rows;
        struct err err;
        assert_int_equal(block_read_rows(block, &granules[i], cursor, true, &rows, &err), 0);
        lines_of_granule(lines, block_dictionary(block), &rows);
    }
    block_cursor_destroy(cursor);
    lines_sort(lines);
}

static void assert_same_lines(const struct lines *a, const struct lines *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_string_equal(a->lines[i], b->lines[i]);
}

/* ---- a block in memory ---- */

struct written {
    struct buf bytes;
    struct span span;
    struct block_summary summary;
};

static void write_block(struct written *written, const struct batch *batch, int level)
{
    struct err err = {0};
    buf_init(&written->bytes, 1u << 30);
    if (block_write_batch(batch, TENANT, level, &written->bytes, &written->summary, &err))
        fail_msg("%s", err.message);
    written->span = buf_span(&written->bytes);
    assert_int_equal(written->summary.bytes, written->span.size);
}

static enum err_code open_block(const struct written *written, struct block **ret_block)
{
    struct err err = {0};
    enum err_code code =
        block_open(block_source_memory(&written->span, "test"), TENANT, 1, ret_block, &err);
    assert_true(code == ERR_NONE || code == ERR_CORRUPT);
    return code;
}

static void a_block_of_another_version_is_refused(void **state)
{
    (void)state;
    uint64_t seed = 4;
    struct random_shape shape = random_shape(&seed);
    struct batch *batch = random_batch(&seed, &shape);
    struct written written;
    write_block(&written, batch, 1);
    uint8_t *at = written.bytes.data + written.bytes.size - sizeof(struct block_footer);
    for (uint32_t version = 0; version <= BLOCK_VERSION + 1; version += BLOCK_VERSION + 1) {
        struct err err = {0};
        struct block *block;
        struct block_footer footer;
        memcpy(&footer, at, sizeof(footer));
        footer.version = version;
        footer.crc = 0;
        footer.crc = crc32c(span_of(&footer, sizeof(footer)));
        memcpy(at, &footer, sizeof(footer));
        assert_int_equal(
            block_open(block_source_memory(&written.span, "test"), TENANT, 1, &block, &err),
            ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "is not supported; this server supports version 1"));
    }
    buf_fini(&written.bytes);
    batch_destroy(batch);
}

static void a_block_contains_what_the_batch_contained(void **state)
{
    (void)state;
    uint64_t seed = 20261122;
    for (int round = 0; round < ROUNDS; round++) {
        const struct random_shape shape = random_shape(&seed);
        struct batch *batch = random_batch(&seed, &shape);
        struct written written;
        struct block *block;
        struct lines sent = {0}, read = {0};
        write_block(&written, batch, round % 2);
        assert_int_equal(open_block(&written, &block), ERR_NONE);
        assert_int_equal(written.summary.row_count, batch->sample_count);
        assert_int_equal(written.summary.profile_count, batch->profile_count);
        lines_of_batch(&sent, batch);
        lines_of_block(&read, block);
        assert_same_lines(&sent, &read);
        struct err err;
        assert_int_equal(block_verify(block, &err), ERR_NONE);
        lines_fini(&sent);
        lines_fini(&read);
        block_close(block);
        buf_fini(&written.bytes);
        batch_destroy(batch);
    }
}

/* Sums per stack of the rows whose ordinal is in the range, row by row. */
static void add_plainly(const struct block_rows *rows, uint32_t first, uint32_t end, int64_t *sums)
{
    for (uint32_t i = 0; i < rows->row_count; i++) {
        if (rows->ordinals[i] >= first && rows->ordinals[i] < end)
            sums[rows->stacks[i]] += rows->values[i];
    }
}

static void check_sums(const struct block *block, const struct block_granule *granule,
                       uint64_t *seed)
{
    const uint32_t stacks = block_dictionary(block)->stacks.stack_count;
    const uint32_t first = random_below(seed, granule->profile_count + 1);
    const uint32_t end = first + random_below(seed, granule->profile_count - first + 1);
    int64_t *plain = mem_new(int64_t, stacks), *some = mem_new(int64_t, stacks);
    int64_t *plain_all = mem_new(int64_t, stacks), *all = mem_new(int64_t, stacks);
    struct block_cursor *cursor = block_cursor_create();
    struct block_rows rows;
    struct err err;
    assert_int_equal(block_read_rows(block, granule, cursor, false, &rows, &err), 0);
    add_plainly(&rows, first, end, plain);
    add_plainly(&rows, 0, granule->profile_count, plain_all);
    int64_t total = 0;
    for (uint32_t i = 0; i < granule->profile_count; i++)
        total += rows.profiles[i].total;
    assert_int_equal(total, granule->total);
    assert_int_equal(block_add_range(block, granule, cursor, first, end, some, &err), 0);
    assert_int_equal(block_add_totals(block, granule, cursor, all, &err), 0);
    assert_memory_equal(plain, some, stacks * sizeof(*plain));
    assert_memory_equal(plain_all, all, stacks * sizeof(*plain));
    block_cursor_destroy(cursor);
    mem_free(plain);
    mem_free(some);
    mem_free(plain_all);
    mem_free(all);
}

static void totals_and_ranges_are_the_sums_of_their_rows(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    for (int round = 0; round < ROUNDS; round++) {
        const struct random_shape shape = random_shape(&seed);
        struct batch *batch = random_batch(&seed, &shape);
        struct written written;
        struct block *block;
        uint32_t count;
        write_block(&written, batch, 1);
        assert_int_equal(open_block(&written, &block), ERR_NONE);
        const struct block_granule *granules = block_granules(block, &count);
        for (uint32_t i = 0; i < count; i++)
            check_sums(block, &granules[i], &seed);
        block_close(block);
        buf_fini(&written.bytes);
        batch_destroy(batch);
    }
}

/* Appends the sums per stack of one granule to those in sums. */
static void add_sums(const struct block *block, const struct block_granule *granule, int64_t *sums)
{
    struct block_cursor *cursor = block_cursor_create();
    struct err err;
    assert_int_equal(block_add_totals(block, granule, cursor, sums, &err), ERR_NONE);
    block_cursor_destroy(cursor);
}

/* Series totals exist for each series with enough hours, and for no other. */
static uint32_t check_series_totals(const struct block *block)
{
    enum { GRANULES_MIN = 4 };
    const struct dictionary *dictionary = block_dictionary(block);
    const uint32_t stack_count = dictionary->stacks.stack_count;
    uint32_t count, found = 0;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t series = 0; series < dictionary->series_count; series++) {
        const struct block_granule *all = block_series_totals(block, series);
        int64_t *wanted = mem_new(int64_t, stack_count), *sums = mem_new(int64_t, stack_count);
        uint64_t profiles = 0, rows = 0;
        uint32_t hours = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (granules[i].series != series)
                continue;
            add_sums(block, &granules[i], wanted);
            profiles += granules[i].profile_count;
            rows += granules[i].row_count;
            hours++;
        }
        assert_int_equal(all != NULL, hours >= GRANULES_MIN);
        if (all) {
            add_sums(block, all, sums);
            assert_memory_equal(sums, wanted, stack_count * sizeof(*sums));
            assert_int_equal(all->profile_count, profiles);
            assert_int_equal(all->row_count, rows);
            found++;
        }
        mem_free(wanted);
        mem_free(sums);
    }
    return found;
}

/* The caller closes it and frees the bytes. */
static struct block *open_block_of_hours(uint64_t *seed, struct written *written)
{
    struct random_shape shape = random_shape(seed);
    struct block *block;
    shape.span_ns = INT64_C(9) * 3600000000000;
    shape.profile_count = 50;
    struct batch *batch = random_batch(seed, &shape);
    write_block(written, batch, 1);
    batch_destroy(batch);
    assert_int_equal(open_block(written, &block), ERR_NONE);
    return block;
}

static void series_have_totals_of_their_hours(void **state)
{
    (void)state;
    uint64_t seed = 2024;
    uint32_t found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct written written;
        struct err err;
        struct block *block = open_block_of_hours(&seed, &written);
        const uint32_t series_count = check_series_totals(block);
        found += series_count;
        assert_int_equal(block_footer(block)->series_totals_count, series_count);
        assert_int_equal(block_verify(block, &err), ERR_NONE);
        assert_int_equal(block_verify_series_totals(block, &err), ERR_NONE);
        block_close(block);
        buf_fini(&written.bytes);
    }
    assert_in_range(found, ROUNDS, UINT32_MAX);
}

/* The totals of the granules are intact. */
static void broken_series_totals_are_reported(void **state)
{
    (void)state;
    uint64_t seed = 31;
    for (int round = 0; round < ROUNDS; round++) {
        struct written written;
        struct err err;
        struct block *block = open_block_of_hours(&seed, &written);
        for (uint32_t i = 0; i < block_dictionary(block)->series_count; i++) {
            const struct block_granule *all = block_series_totals(block, i);
            if (!all)
                continue;
            uint8_t *byte = written.bytes.data + all->offset +
                            random_below(&seed, all->extent_bytes[BLOCK_TOTALS]);
            *byte ^= 1;
            assert_int_equal(block_verify(block, &err), ERR_NONE);
            assert_int_equal(block_verify_series_totals(block, &err), ERR_CORRUPT);
            *byte ^= 1;
        }
        assert_int_equal(block_verify(block, &err), ERR_NONE);
        block_close(block);
        buf_fini(&written.bytes);
    }
}

static void every_changed_byte_is_detected(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (int round = 0; round < 4; round++) {
        struct random_shape shape = random_shape(&seed);
        shape.sample_count = 60;
        shape.stack_count = 10;
        shape.location_count = 10;
        shape.has_timestamps = round % 2;
        struct batch *batch = random_batch(&seed, &shape);
        struct written written;
        write_block(&written, batch, round / 2);
        for (size_t at = 0; at < written.bytes.size; at++) {
            const uint8_t bit = (uint8_t)(1 << random_below(&seed, 8));
            struct block *block;
            struct err err = {0};
            written.bytes.data[at] ^= bit;
            if (!open_block(&written, &block)) {
                if (block_verify(block, &err) != ERR_CORRUPT &&
                    block_verify_series_totals(block, &err) != ERR_CORRUPT)
                    fail_msg("byte %zu of %zu may change", at, written.bytes.size);
                block_close(block);
            }
            written.bytes.data[at] ^= bit;
        }
        buf_fini(&written.bytes);
        batch_destroy(batch);
    }
}

/* An attacker who can write objects can compute checksums, so every number is checked as well. */
static void invalid_numbers_with_valid_checksums_are_refused(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 400; round++) {
        struct random_shape shape = random_shape(&seed);
        shape.sample_count = 40;
        struct batch *batch = random_batch(&seed, &shape);
        struct written written;
        write_block(&written, batch, 0);
        struct block_footer footer;
        uint8_t *end = written.bytes.data + written.bytes.size - sizeof(footer);
        memcpy(&footer, end, sizeof(footer));
        struct block_section_extent *position =
            &footer.sections[random_below(&seed, BLOCK_SECTION_COUNT)];
        for (int changes = 0; position->stored_bytes && changes < 3; changes++)
            written.bytes
                .data[position->offset + random_below(&seed, (uint32_t)position->stored_bytes)] =
                (uint8_t)random_next(&seed);
        position->crc = crc32c(span_of(written.bytes.data + position->offset,
                                       (size_t)block_align(position->stored_bytes)));
        footer.crc = 0;
        footer.crc = crc32c(span_of(&footer, sizeof(footer)));
        memcpy(end, &footer, sizeof(footer));
        struct block *block;
        struct err err;
        if (!open_block(&written, &block)) {
            (void)!block_verify(block, &err);
            block_close(block);
        }
        buf_fini(&written.bytes);
        batch_destroy(batch);
    }
}

/* The first granule, changed by change, with valid checksums. */
static enum err_code open_with_changed_granule(const struct batch *batch,
                                               void (*change)(struct block_granule *granule))
{
    struct written written;
    write_block(&written, batch, 0);
    struct block_footer footer;
    uint8_t *end = written.bytes.data + written.bytes.size - sizeof(footer);
    memcpy(&footer, end, sizeof(footer));
    struct block_section_extent *position = &footer.sections[BLOCK_GRANULES];
    assert_int_equal(position->stored_bytes, position->flat_bytes);
    struct block_granule granule;
    memcpy(&granule, written.bytes.data + position->offset, sizeof(granule));
    change(&granule);
    memcpy(written.bytes.data + position->offset, &granule, sizeof(granule));
    position->crc = crc32c(span_of(written.bytes.data + position->offset,
                                   (size_t)block_align(position->stored_bytes)));
    footer.crc = 0;
    footer.crc = crc32c(span_of(&footer, sizeof(footer)));
    memcpy(end, &footer, sizeof(footer));
    struct block *block;
    const enum err_code code = open_block(&written, &block);
    if (!code)
        block_close(block);
    buf_fini(&written.bytes);
    return code;
}

static void leave_it(struct block_granule *granule)
{
    (void)granule;
}

static void claim_timestamps(struct block_granule *granule)
{
    granule->timestamp_count = UINT64_C(1) << 40;
}

static void claim_timestamps_without_details(struct block_granule *granule)
{
    granule->flags |= BLOCK_HAS_TIMESTAMPS;
    granule->timestamp_count = UINT64_C(1) << 40;
}

/* The end of the section wraps around to the start of the block. */
static void lie_beyond_everything(struct block_granule *granule)
{
    granule->offset = UINT64_MAX - (BLOCK_ALIGNMENT - 1);
}

static void granules_that_claim_too_much_are_refused(void **state)
{
    (void)state;
    uint64_t seed = 6;
    struct random_shape shape = random_shape(&seed);
    shape.sample_count = 40;
    shape.label_set_count = 1;
    shape.has_timestamps = false;
    struct batch *batch = random_batch(&seed, &shape);
    assert_int_equal(open_with_changed_granule(batch, leave_it), ERR_NONE);
    assert_int_equal(open_with_changed_granule(batch, claim_timestamps), ERR_CORRUPT);
    assert_int_equal(open_with_changed_granule(batch, claim_timestamps_without_details),
                     ERR_CORRUPT);
    assert_int_equal(open_with_changed_granule(batch, lie_beyond_everything), ERR_CORRUPT);
    batch_destroy(batch);
}

static void addresses_of_files_are_kept_as_offsets(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct random_shape shape = random_shape(&seed);
    shape.sample_count = 1;
    struct batch *batch = random_batch(&seed, &shape);
    struct profile *tables = (struct profile *)(uintptr_t)batch->tables;
    struct profile_mapping mappings[] = {
        {.start = 0x7f0000400000, .limit = 0x7f0000500000, .offset = 0x2000, .filename = 1},
        {.start = 0xffffffff81000000, .limit = 0xffffffff82000000, .filename = 2},
    };
    struct profile_location locations[] = {{.address = 0x7f0000400123, .mapping = 0},
                                           {.address = 0xffffffff81000456, .mapping = 1}};
    struct span strings[] = {{0}, SPAN_LITERAL("/bin/x"), SPAN_LITERAL("[kernel.kallsyms]")};
    for (uint32_t i = 0; i < 3; i++)
        ((struct span *)(uintptr_t)tables->strings)[i] = strings[i];
    tables->mappings = mappings;
    tables->mapping_count = 2;
    tables->locations = locations;
    tables->location_count = 2;
    const uint64_t starts[] = {0, 0, 2};
    const uint32_t stack[] = {0, 1};
    batch->stack_start = starts;
    batch->stack = stack;
    batch->stack_count = 2;
    ((struct batch_sample *)(uintptr_t)batch->samples)[0].stack = 1;
    struct written written;
    struct block *block;
    write_block(&written, batch, 0);
    assert_int_equal(open_block(&written, &block), ERR_NONE);
    const struct profile *read = block_dictionary(block)->tables;
    assert_int_equal(read->location_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct profile_mapping *mapping = &read->mappings[read->locations[i].mapping];
        const bool is_kernel = span_starts_with(read->strings[mapping->filename], "[");
        assert_int_equal(read->locations[i].address, is_kernel ? 0xffffffff81000456 : 0x2123);
        assert_int_equal(mapping->start, is_kernel ? 0xffffffff81000000 : 0x2000);
        assert_int_equal(mapping->limit, is_kernel ? 0xffffffff82000000 : 0x102000);
    }
    block_close(block);
    buf_fini(&written.bytes);
    batch_destroy(batch);
}

static enum err_code append_to_buf(void *context, struct span bytes, struct err *err)
{
    (void)err;
    buf_append_span(context, bytes);
    return ERR_NONE;
}

/* Each name in the block is used by one of its rows, or by a series that has a profile. */
static void check_names(const struct block *block, const struct lines *lines)
{
    const struct dictionary *dictionary = block_dictionary(block);
    const struct profile *tables = dictionary->tables;
    uint32_t granule_count;
    const struct block_granule *granules = block_granules(block, &granule_count);
    buf_auto all;
    buf_init(&all, 1u << 30);
    for (size_t i = 0; i < lines->count; i++)
        buf_append_text(&all, lines->lines[i]);
    for (uint32_t i = 0; i < granule_count; i++)
        text_series(&all, tables, &dictionary->series[granules[i].series],
                    dictionary->series_labels);
    for (uint32_t i = 0; i < tables->string_count; i++)
        assert_true(tables->strings[i].size == 0 ||
                    memmem(all.data, all.size, tables->strings[i].data, tables->strings[i].size));
}

/* Merges five blocks into one with all profiles before a time and one with all others, and then
 * these two into one. */
static void merged_blocks_contain_what_all_contained(void **state)
{
    (void)state;
    enum { INPUTS = 5 };
    uint64_t seed = 777;
    for (int round = 0; round < ROUNDS / 2; round++) {
        struct random_shape shape = random_shape(&seed);
        struct written written[INPUTS], merged[2] = {0};
        struct block *blocks[INPUTS], *both[2], *all;
        struct lines sent = {0}, read = {0};
        struct batch *batches[INPUTS];
        struct err err = {0};
        for (int i = 0; i < INPUTS; i++) {
            shape.sample_count = random_below(&seed, 500);
            shape.label_set_count = 1 + random_below(&seed, 5) * (uint32_t)(round % 2);
            shape.has_timestamps = random_below(&seed, 2);
            batches[i] = random_batch(&seed, &shape);
            write_block(&written[i], batches[i], 0);
            assert_int_equal(open_block(&written[i], &blocks[i]), ERR_NONE);
            lines_of_batch(&sent, batches[i]);
        }
        const int64_t cut_ns = shape.begin_ns + (int64_t)(random_next(&seed) >> 1) % shape.span_ns;
        for (int i = 0; i < 2; i++) {
            const struct block_merge_options options = {
                .tenant_id = TENANT,
                .level = i,
                .begin_ns = i ? cut_ns : INT64_MIN,
                .last_ns = i ? INT64_MAX : cut_ns - 1,
                .sink = {.append = append_to_buf, .context = &merged[i].bytes},
            };
            buf_init(&merged[i].bytes, 1u << 30);
            assert_int_equal(block_merge((const struct block *const *)blocks, INPUTS, &options,
                                         &merged[i].summary, &err),
                             0);
            merged[i].span = buf_span(&merged[i].bytes);
            both[i] = NULL;
            if (merged[i].span.size)
                assert_int_equal(open_block(&merged[i], &both[i]), ERR_NONE);
        }
        for (int i = 0; i < 2; i++) {
            if (!both[i])
                continue;
            struct lines part = {0};
            lines_of_block(&part, both[i]);
            check_names(both[i], &part);
            lines_fini(&part);
            lines_of_block(&read, both[i]);
            assert_int_equal(block_verify(both[i], &err), ERR_NONE);
        }
        lines_sort(&sent);
        lines_sort(&read);
        assert_same_lines(&sent, &read);
        if (both[0] && both[1]) {
            struct written again = {0};
            const struct block_merge_options options = {
                .tenant_id = TENANT,
                .level = 1,
                .begin_ns = INT64_MIN,
                .last_ns = INT64_MAX,
                .sink = {.append = append_to_buf, .context = &again.bytes},
            };
            buf_init(&again.bytes, 1u << 30);
            lines_fini(&read);
            assert_int_equal(
                block_merge((const struct block *const *)both, 2, &options, &again.summary, &err),
                0);
            again.span = buf_span(&again.bytes);
            assert_int_equal(open_block(&again, &all), ERR_NONE);
            lines_of_block(&read, all);
            assert_same_lines(&sent, &read);
            block_close(all);
            buf_fini(&again.bytes);
        }
        for (int i = 0; i < 2; i++) {
            block_close(both[i]);
            buf_fini(&merged[i].bytes);
        }
        for (int i = 0; i < INPUTS; i++) {
            block_close(blocks[i]);
            buf_fini(&written[i].bytes);
            batch_destroy(batches[i]);
        }
        lines_fini(&sent);
        lines_fini(&read);
    }
}

/* The lines of all granules of a block except the one with number left_out. */
static void lines_without(struct lines *lines, const struct block *block, uint32_t left_out)
{
    struct block_cursor *cursor = block_cursor_create();
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct block_rows rows;
        struct err err;
        if (i == left_out)
            continue;
        assert_int_equal(block_read_rows(block, &granules[i], cursor, true, &rows, &err), 0);
        lines_of_granule(lines, block_dictionary(block), &rows);
    }
    block_cursor_destroy(cursor);
    lines_sort(lines);
}

static void only_an_unreadable_granule_is_lost(void **state)
{
    (void)state;
    uint64_t seed = 1914;
    for (int round = 0; round < ROUNDS; round++) {
        struct random_shape shape = random_shape(&seed);
        shape.sample_count = 300 + random_below(&seed, 300);
        shape.label_set_count = 1 + random_below(&seed, 5) * (uint32_t)(round % 2);
        shape.has_timestamps = round % 3 == 0;
        struct batch *batch = random_batch(&seed, &shape);
        struct written written, merged = {0};
        struct block *block, *kept;
        struct lines wanted = {0}, read = {0};
        struct block_losses losses = {0};
        struct err err = {0};
        uint32_t count;
        write_block(&written, batch, 0);
        assert_int_equal(open_block(&written, &block), ERR_NONE);
        const struct block_granule *granules = block_granules(block, &count);
        const uint32_t lost = random_below(&seed, count);
        lines_without(&wanted, block, lost);
        uint64_t at = granules[lost].offset;
        for (uint32_t i = random_below(&seed, BLOCK_ROWS + 1); i > 0; i--)
            at += block_align(granules[lost].extent_bytes[i - 1]);
        written.bytes.data[at] ^= 1;
        struct block_merge_options options = {
            .tenant_id = TENANT,
            .begin_ns = INT64_MIN,
            .last_ns = INT64_MAX,
            .sink = {.append = append_to_buf, .context = &merged.bytes},
        };
        const struct block *const blocks[] = {block};
        buf_init(&merged.bytes, 1u << 30);
        assert_int_equal(block_merge(blocks, 1, &options, &merged.summary, &err), ERR_CORRUPT);
        buf_clear(&merged.bytes);
        options.losses = &losses;
        assert_int_equal(block_merge(blocks, 1, &options, &merged.summary, &err), 0);
        assert_int_equal(losses.row_count, granules[lost].row_count);
        assert_int_equal(losses.profile_count, granules[lost].profile_count);
        merged.span = buf_span(&merged.bytes);
        if (count == 1)
            assert_int_equal(merged.span.size, 0);
        if (merged.span.size) {
            assert_int_equal(open_block(&merged, &kept), ERR_NONE);
            lines_of_block(&read, kept);
            assert_same_lines(&wanted, &read);
            check_names(kept, &read);
            block_close(kept);
        }
        assert_int_equal(read.count, wanted.count);
        lines_fini(&wanted);
        lines_fini(&read);
        block_close(block);
        buf_fini(&written.bytes);
        buf_fini(&merged.bytes);
        batch_destroy(batch);
    }
}

/* A batch of 30 days is merged into a block for each day. Each has only the names, stacks and
 * labels that its rows need, so all together have at most three times the bytes of the batch's
 * block. */
static void blocks_of_days_contain_what_their_rows_need(void **state)
{
    (void)state;
    enum { DAYS = 30 };
    const int64_t day_ns = INT64_C(86400000000000);
    uint64_t seed = 30, bytes = 0;
    struct random_shape shape = random_shape(&seed);
    shape.begin_ns = 19000 * day_ns;
    shape.span_ns = DAYS * day_ns;
    shape.profile_count = 4 * DAYS;
    shape.sample_count = 8000;
    shape.stack_count = 6000;
    shape.location_count = 3000;
    shape.series_count = 1;
    shape.label_set_count = 500;
    struct batch *batch = random_batch(&seed, &shape);
    struct written written;
    struct block *block, *of_day;
    struct lines sent = {0}, read = {0};
    struct err err = {0};
    write_block(&written, batch, 1);
    assert_int_equal(open_block(&written, &block), ERR_NONE);
    lines_of_batch(&sent, batch);
    for (int day = 0; day < DAYS; day++) {
        struct written merged = {0};
        struct lines part = {0};
        const struct block *const blocks[] = {block};
        const struct block_merge_options options = {
            .tenant_id = TENANT,
            .level = 1,
            .begin_ns = shape.begin_ns + day * day_ns,
            .last_ns = shape.begin_ns + (day + 1) * day_ns - 1,
            .sink = {.append = append_to_buf, .context = &merged.bytes},
        };
        buf_init(&merged.bytes, 1u << 30);
        assert_int_equal(block_merge(blocks, 1, &options, &merged.summary, &err), 0);
        if (!merged.summary.row_count) { /* no profile began on that day */
            buf_fini(&merged.bytes);
            continue;
        }
        merged.span = buf_span(&merged.bytes);
        bytes += merged.span.size;
        assert_int_equal(open_block(&merged, &of_day), ERR_NONE);
        lines_of_block(&part, of_day);
        check_names(of_day, &part);
        lines_of_block(&read, of_day);
        lines_fini(&part);
        block_close(of_day);
        buf_fini(&merged.bytes);
    }
    lines_sort(&sent);
    lines_sort(&read);
    assert_same_lines(&sent, &read);
    if (bytes > 3 * written.span.size)
        fail_msg("%" PRIu64 " bytes of %zu", bytes, written.span.size);
    lines_fini(&sent);
    lines_fini(&read);
    block_close(block);
    buf_fini(&written.bytes);
    batch_destroy(batch);
}

/* Deletes profiles from a time on, except for a hole, and compares what is left with the rest. */
static void deleted_profiles_leave_nothing_behind(void **state)
{
    (void)state;
    enum { INPUTS = 3 };
    uint64_t seed = 4242;
    for (int round = 0; round < ROUNDS; round++) {
        struct random_shape shape = random_shape(&seed);
        struct written written[INPUTS], plain = {0}, merged = {0};
        struct block *blocks[INPUTS], *block;
        struct batch *batches[INPUTS];
        struct lines wanted = {0}, read = {0};
        struct err err = {0};
        arena_auto arena = arena_create();
        for (int i = 0; i < INPUTS; i++) {
            batches[i] = random_batch(&seed, &shape);
            write_block(&written[i], batches[i], 0);
            assert_int_equal(open_block(&written[i], &blocks[i]), ERR_NONE);
        }
        const int64_t cut_ns = shape.begin_ns + (int64_t)(random_next(&seed) >> 1) % shape.span_ns;
        const struct catalogue_deletion deletions[] = {
            {.id = 3,
             .selector = "{__profile_type__=~\".*\"}",
             .begin_ns = cut_ns,
             .end_ns = cut_ns + 1000},
            {.id = 5,
             .selector = "{pod!='none such'}",
             .begin_ns = cut_ns + 1,
             .end_ns = INT64_MAX},
            {.id = 8, .selector = "{pod='none such'}", .begin_ns = INT64_MIN, .end_ns = INT64_MAX},
        };
        const int64_t ids[] = {3, 5, 8};
        const struct deletion_set_ids of_blocks[INPUTS] = {{ids, 3}, {ids, 3}, {ids, 3}};
        struct block_merge_options options = {
            .tenant_id = TENANT,
            .begin_ns = INT64_MIN,
            .last_ns = cut_ns - 1,
            .sink = {.append = append_to_buf, .context = &plain.bytes},
        };
        buf_init(&plain.bytes, 1u << 30);
        buf_init(&merged.bytes, 1u << 30);
        assert_int_equal(block_merge((const struct block *const *)blocks, INPUTS, &options,
                                     &plain.summary, &err),
                         0);
        options.last_ns = INT64_MAX;
        options.sink.context = &merged.bytes;
        options.deletions = of_blocks;
        assert_int_equal(deletion_set_create(arena, deletions, 3, NULL, &options.deleted, &err), 0);
        assert_int_equal(block_merge((const struct block *const *)blocks, INPUTS, &options,
                                     &merged.summary, &err),
                         0);
        assert_int_equal(plain.summary.row_count, merged.summary.row_count);
        assert_int_equal(plain.summary.profile_count, merged.summary.profile_count);
        assert_true(merged.bytes.size <= plain.bytes.size);
        if (plain.bytes.size) {
            plain.span = buf_span(&plain.bytes);
            merged.span = buf_span(&merged.bytes);
            assert_int_equal(open_block(&plain, &block), ERR_NONE);
            lines_of_block(&wanted, block);
            block_close(block);
            assert_int_equal(open_block(&merged, &block), ERR_NONE);
            assert_int_equal(block_verify(block, &err), ERR_NONE);
            lines_of_block(&read, block);
            lines_sort(&wanted);
            lines_sort(&read);
            assert_same_lines(&wanted, &read);
            check_names(block, &read);
            block_close(block);
        }
        for (int i = 0; i < INPUTS; i++) {
            block_close(blocks[i]);
            buf_fini(&written[i].bytes);
            batch_destroy(batches[i]);
        }
        buf_fini(&plain.bytes);
        buf_fini(&merged.bytes);
        lines_fini(&wanted);
        lines_fini(&read);
    }
}

/* ---- limits ---- */

/* Distributes count timestamps evenly over the samples of a batch. */
static void add_timestamps(struct batch *batch, uint32_t count)
{
    uint64_t *start = arena_new(batch->arena, uint64_t, batch->sample_count + (size_t)1);
    int64_t *timestamps = arena_new(batch->arena, int64_t, count);
    for (uint32_t i = 0; i <= batch->sample_count; i++)
        start[i] = (uint64_t)count * i / batch->sample_count;
    for (uint32_t i = 0; i < count; i++)
        timestamps[i] = batch->profiles[0].time_ns + i;
    batch->timestamp_start = start;
    batch->timestamps = timestamps;
}

/* Each granule is light, or has one profile. Returns the number of granules. */
static uint32_t check_weights(const struct block *block, uint64_t rows, uint64_t timestamps)
{
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct block_granule *granule = &granules[i];
        const uint64_t weight =
            block_weight(granule->row_count, granule->profile_count, granule->timestamp_count);
        assert_true(weight <= BLOCK_GRANULE_WEIGHT || granule->profile_count == 1);
        assert_true(i == 0 || granule->hour == granules[0].hour);
        rows -= granule->row_count;
        timestamps -= granule->timestamp_count;
    }
    assert_true(rows == 0 && timestamps == 0);
    return count;
}

static void rows_of_an_hour_that_are_too_many_are_several_granules(void **state)
{
    (void)state;
    enum { TIMESTAMPS = 9 << 20 };
    uint64_t seed = 20261129;
    struct random_shape shape = random_shape(&seed);
    shape.sample_count = 64;
    shape.series_count = 1;
    shape.profile_count = 16;
    shape.begin_ns = INT64_C(1700000000) / 3600 * 3600 * 1000000000;
    shape.span_ns = INT64_C(60000000000);
    struct batch *batch = random_batch(&seed, &shape);
    add_timestamps(batch, TIMESTAMPS);
    struct written written, merged = {0};
    struct block *block, *united;
    struct err err = {0};
    write_block(&written, batch, 0);
    assert_int_equal(open_block(&written, &block), ERR_NONE);
    assert_true(check_weights(block, batch->sample_count, TIMESTAMPS) >= 2);
    const struct block *const both[] = {block, block};
    const struct block_merge_options options = {
        .tenant_id = TENANT,
        .level = 1,
        .begin_ns = INT64_MIN,
        .last_ns = INT64_MAX,
        .sink = {.append = append_to_buf, .context = &merged.bytes},
    };
    buf_init(&merged.bytes, 1u << 30);
    assert_int_equal(block_merge(both, 2, &options, &merged.summary, &err), ERR_NONE);
    merged.span = buf_span(&merged.bytes);
    assert_int_equal(open_block(&merged, &united), ERR_NONE);
    assert_true(check_weights(united, 2 * batch->sample_count, UINT64_C(2) * TIMESTAMPS) >= 4);
    assert_int_equal(block_verify(united, &err), ERR_NONE);
    block_close(united);
    block_close(block);
    buf_fini(&merged.bytes);
    buf_fini(&written.bytes);
    batch_destroy(batch);
}

/* Equal names of 64 KiB: the block would be small, because it stores the parts that names share
 * once, but readers refuse a block whose names have more than 1 GiB in full. */
static void names_that_no_reader_accepts_are_not_written(void **state)
{
    (void)state;
    enum { NAME_BYTES = 1 << 16, COUNT = (1 << 30) / NAME_BYTES };
    arena_auto arena = arena_create();
    struct span *strings = arena_new(arena, struct span, COUNT + 2);
    const struct span name = span_of(arena_alloc(arena, NAME_BYTES, 1), NAME_BYTES);
    for (uint32_t i = 1; i < COUNT + 2; i++)
        strings[i] = name;
    strings[0] = span_of("", 0);
    const struct batch_label_set none = {0};
    struct profile tables = {.strings = strings, .string_count = COUNT + 1};
    struct stack_position root = {.node = STACKS_ROOT};
    uint32_t frame = STACKS_NO_FRAME;
    const struct dictionary dictionary = {
        .tables = &tables,
        .stacks = {.node_count = 1, .frames = &frame, .ends = &root, .stack_count = 1},
        .label_sets = &none,
        .label_set_count = 1};
    struct block_summary summary;
    struct err err;
    assert_true(dictionary_is_readable(&dictionary));
    tables.string_count++;
    assert_false(dictionary_is_readable(&dictionary));
    struct buf bytes;
    buf_init(&bytes, 1u << 30);
    const struct block_sink sink = {.append = append_to_buf, .context = &bytes};
    struct block_writer *writer = block_writer_create(TENANT, 1, sink);
    assert_int_equal(block_writer_finish(writer, &dictionary, &summary, &err), ERR_TOO_LARGE);
    block_writer_destroy(writer);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_contains_what_the_batch_contained),
        cmocka_unit_test(merged_blocks_contain_what_all_contained),
        cmocka_unit_test(only_an_unreadable_granule_is_lost),
        cmocka_unit_test(blocks_of_days_contain_what_their_rows_need),
        cmocka_unit_test(a_block_of_another_version_is_refused),
        cmocka_unit_test(deleted_profiles_leave_nothing_behind),
        cmocka_unit_test(totals_and_ranges_are_the_sums_of_their_rows),
        cmocka_unit_test(series_have_totals_of_their_hours),
        cmocka_unit_test(broken_series_totals_are_reported),
        cmocka_unit_test(every_changed_byte_is_detected),
        cmocka_unit_test(invalid_numbers_with_valid_checksums_are_refused),
        cmocka_unit_test(granules_that_claim_too_much_are_refused),
        cmocka_unit_test(addresses_of_files_are_kept_as_offsets),
        cmocka_unit_test(rows_of_an_hour_that_are_too_many_are_several_granules),
        cmocka_unit_test(names_that_no_reader_accepts_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
