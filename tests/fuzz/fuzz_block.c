/*
 * Blocks of the store (store/block/block_format.h). An input is the bytes of a block. It is opened
 * unchanged, and then with corrected checksums, so that the code after the checks is reached. For a
 * block that opens, every reading function is called and its guarantees are checked; a valid block
 * is merged with itself.
 *
 *    fuzz_block --seeds FOLDER      writes the seeds, small blocks of random batches
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/block_read.h"
#include "store/maintain/block_merge.h"
#include "tests/unit/store/random_batch.h"

enum {
    TENANT = 7,
    SEEDS = 14,
    SEEDS_OF_HOURS = 2 /* the last ones */,
    OUTPUT_MAX = 64 << 20,
    ROWS_MAX = 1 << 18
};

/* ---- checksums ---- */

static void seal_extents(uint8_t *block, size_t size, struct block_granule *granule)
{
    uint64_t offset = granule->offset;
    for (int i = 0; i < BLOCK_EXTENT_COUNT; i++) {
        const uint64_t bytes = block_align(granule->extent_bytes[i]);
        if (offset > size || bytes > size - offset)
            return;
        granule->extent_crc[i] = crc32c(span_of(block + offset, (size_t)bytes));
        offset += bytes;
    }
}

/* Granules first, because their section has a checksum, too; only if they are not compressed. */
static void seal_granules(uint8_t *block, size_t size, const struct block_section_extent *extent)
{
    if (extent->stored_bytes != extent->flat_bytes || extent->offset > size ||
        extent->stored_bytes > size - extent->offset)
        return;
    for (uint64_t at = 0; at + sizeof(struct block_granule) <= extent->stored_bytes;
         at += sizeof(struct block_granule)) {
        struct block_granule granule;
        memcpy(&granule, block + extent->offset + at, sizeof(granule));
        seal_extents(block, size, &granule);
        memcpy(block + extent->offset + at, &granule, sizeof(granule));
    }
}

static void seal(uint8_t *block, size_t size)
{
    struct block_footer footer;
    struct block_header header;
    if (size < sizeof(header) + sizeof(footer))
        return;
    uint8_t *end = block + size - sizeof(footer);
    memcpy(&footer, end, sizeof(footer));
    memcpy(footer.magic, BLOCK_END_MAGIC, sizeof(footer.magic));
    footer.version = BLOCK_VERSION;
    footer.tenant_id = TENANT;
    footer.block_bytes = size;
    memcpy(block, BLOCK_MAGIC, sizeof(header.magic));
    memcpy(block + offsetof(struct block_header, id), footer.id, sizeof(footer.id));
    seal_granules(block, size, &footer.sections[BLOCK_GRANULES]);
    for (int i = 0; i < BLOCK_SECTION_COUNT; i++) {
        struct block_section_extent *extent = &footer.sections[i];
        if (extent->stored_bytes <= size && extent->offset <= size &&
            block_align(extent->stored_bytes) <= size - extent->offset)
            extent->crc =
                crc32c(span_of(block + extent->offset, (size_t)block_align(extent->stored_bytes)));
    }
    memcpy(&header, block, sizeof(header));
    header.crc = 0;
    header.crc = crc32c(span_of(&header, sizeof(header)));
    memcpy(block, &header, sizeof(header));
    footer.crc = 0;
    footer.crc = crc32c(span_of(&footer, sizeof(footer)));
    memcpy(end, &footer, sizeof(footer));
}

/* ---- an open block ---- */

static void check_stacks(const struct dictionary *dictionary)
{
    const struct stacks *stacks = &dictionary->stacks;
    fuzz_check(stacks->node_count >= 1 && stacks->stack_count >= 1 && stacks->chain_count >= 1 &&
               stacks->ends[0].node == STACKS_ROOT);
    for (uint32_t i = 1; i < stacks->node_count; i++)
        fuzz_check(stacks->frames[i] < dictionary->tables->location_count);
    for (uint32_t i = 1; i < stacks->chain_count; i++) {
        const struct stack_chain *chain = &stacks->chains[i];
        const struct stack_chain *callers = &stacks->chains[chain->caller.chain];
        fuzz_check(chain[-1].first < chain->first && chain->first < stacks->node_count);
        fuzz_check(chain->caller.chain < i && chain->caller.node >= callers->first &&
                   chain->caller.node < stacks_chain_end(stacks, chain->caller.chain));
        fuzz_check(chain->depth == callers->depth + chain->caller.node - callers->first + 1);
    }
    for (uint32_t i = 1; i < stacks->stack_count; i++) {
        const struct stack_position end = stacks->ends[i];
        fuzz_check(stacks->ends[i - 1].node < end.node && end.node < stacks->node_count);
        fuzz_check(end.chain < stacks->chain_count && end.node >= stacks->chains[end.chain].first &&
                   end.node < stacks_chain_end(stacks, end.chain));
    }
}

static void check_labels(const struct dictionary *dictionary)
{
    const uint32_t strings = dictionary->tables->string_count;
    fuzz_check(dictionary->label_set_count >= 1);
    for (uint32_t i = 0; i < dictionary->label_set_count; i++)
        fuzz_check((uint64_t)dictionary->label_sets[i].first_label +
                       dictionary->label_sets[i].label_count <=
                   dictionary->sample_label_count);
    for (uint32_t i = 0; i < dictionary->sample_label_count; i++) {
        const struct profile_label *label = &dictionary->sample_labels[i];
        fuzz_check(label->key < strings && label->text < strings && label->unit < strings);
    }
    for (uint32_t i = 0; i < dictionary->series_count; i++) {
        const struct batch_series *series = &dictionary->series[i];
        fuzz_check((uint64_t)series->first_label + series->label_count <=
                   dictionary->series_label_count);
        fuzz_check(series->type.name < strings && series->type.sample_type.type < strings &&
                   series->type.period_type.unit < strings);
    }
    for (uint32_t i = 0; i < dictionary->series_label_count; i++)
        fuzz_check(dictionary->series_labels[i].name < strings &&
                   dictionary->series_labels[i].value < strings);
}

/* Every byte of every string is readable, and every index in the tables is valid. */
static void check_tables(const struct profile *tables)
{
    for (uint32_t i = 0; i < tables->string_count; i++) /* a checksum reads every byte */
        fuzz_check(crc32c(tables->strings[i]) == crc32c(tables->strings[i]));
    fuzz_check(tables->string_count && tables->strings[0].size == 0);
    for (uint32_t i = 0; i < tables->mapping_count; i++)
        fuzz_check(tables->mappings[i].filename < tables->string_count &&
                   tables->mappings[i].build_id < tables->string_count);
    for (uint32_t i = 0; i < tables->function_count; i++)
        fuzz_check(tables->functions[i].name < tables->string_count &&
                   tables->functions[i].system_name < tables->string_count &&
                   tables->functions[i].filename < tables->string_count);
    for (uint32_t i = 0; i < tables->line_count; i++)
        fuzz_check(tables->lines[i].function == PROFILE_NONE ||
                   tables->lines[i].function < tables->function_count);
    for (uint32_t i = 0; i < tables->location_count; i++) {
        const struct profile_location *location = &tables->locations[i];
        fuzz_check(location->mapping == PROFILE_NONE || location->mapping < tables->mapping_count);
        fuzz_check((uint64_t)location->first_line + location->line_count <= tables->line_count);
    }
}

/* ---- granules ---- */

/* Whether a call failed; checks that its error is one of those for a damaged block. */
static bool is_refused(enum err_code code, const struct err *err)
{
    fuzz_check(!code ||
               ((code == ERR_CORRUPT || code == ERR_TOO_LARGE || code == ERR_UNSUPPORTED) &&
                code == err->code && err->message[0]));
    return code != ERR_NONE;
}

static void check_rows(const struct block *block, const struct block_granule *granule,
                       const struct block_rows *rows)
{
    const struct dictionary *dictionary = block_dictionary(block);
    uint64_t timestamp_count = 0;
    fuzz_check(rows->series < dictionary->series_count && rows->profile_count >= 1);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        fuzz_check(rows->stacks[i] < dictionary->stacks.stack_count);
        fuzz_check(rows->ordinals[i] < rows->profile_count);
        fuzz_check(!rows->label_sets || rows->label_sets[i] < dictionary->label_set_count);
        timestamp_count += rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
    }
    fuzz_check(timestamp_count <= granule->timestamp_count);
    int64_t mixed = 0; /* reads every timestamp; the check always holds */
    for (uint64_t i = 0; i < timestamp_count; i++)
        mixed ^= rows->timestamps[i];
    fuzz_check(mixed != INT64_MIN || timestamp_count);
}

/* Computes sums in every way. The sums are not checked, because those of changed blocks may
 * overflow. */
static void read_sums(const struct block *block, const struct block_granule *granule,
                      struct block_cursor *cursor, int64_t *sums)
{
    const uint32_t ends[] = {0, 1, granule->profile_count / 2, granule->profile_count, UINT32_MAX};
    struct block_totals totals;
    struct err err;
    if (!is_refused(block_read_totals(block, granule, cursor, &totals, &err), &err)) {
        for (uint32_t i = 0; i < totals.count; i++)
            fuzz_check(totals.counts[i] >= 1 &&
                       totals.stacks[i] < block_dictionary(block)->stacks.stack_count &&
                       (i == 0 || totals.stacks[i - 1] < totals.stacks[i]));
    }
    (void)is_refused(block_add_totals(block, granule, cursor, sums, &err), &err);
    for (size_t i = 0; i + 1 < sizeof(ends) / sizeof(ends[0]); i++)
        (void)is_refused(block_add_range(block, granule, cursor, ends[i], ends[i + 1], sums, &err),
                         &err);
}

static void read_granule(const struct block *block, const struct block_granule *granule,
                         struct block_cursor *cursor, int64_t *sums)
{
    const struct block_profile *profiles;
    struct block_rows rows;
    struct err err;
    (void)is_refused(block_read_profiles(block, granule, cursor, &profiles, &err), &err);
    if (granule->row_count <= ROWS_MAX)
        read_sums(block, granule, cursor, sums);
    for (int wants_details = 0; wants_details < 2; wants_details++) {
        if (granule->row_count <= ROWS_MAX &&
            !is_refused(block_read_rows(block, granule, cursor, wants_details, &rows, &err), &err))
            check_rows(block, granule, &rows);
    }
}

/* ---- one block ---- */

static enum err_code append_bytes(void *context, struct span bytes, struct err *err)
{
    buf_append_span(context, bytes);
    return buf_failed(context) ? err_set(err, ERR_TOO_LARGE, "the output is too long") : ERR_NONE;
}

static void merge_with_itself(const struct block *block)
{
    const struct block *const both[] = {block, block};
    buf_auto output;
    buf_init(&output, OUTPUT_MAX);
    const struct block_merge_options options = {.tenant_id = TENANT,
                                                .begin_ns = INT64_MIN,
                                                .last_ns = INT64_MAX,
                                                .sink = {append_bytes, &output}};
    struct block_summary summary;
    struct err err;
    struct block *merged;
    if (is_refused(block_merge(both, 2, &options, &summary, &err), &err) || !summary.row_count)
        return;
    const struct span bytes = buf_span(&output);
    fuzz_check(block_open(block_source_memory(&bytes, "merged"), TENANT, 1, &merged, &err) == 0);
    block_close(merged);
}

static uint64_t count_rows(const struct block *block)
{
    uint32_t count;
    uint64_t rows = 0;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++)
        rows += granules[i].row_count;
    return rows;
}

static void read_block(struct span bytes)
{
    struct block *block;
    struct err err;
    if (is_refused(block_open(block_source_memory(&bytes, "block"), TENANT, 1, &block, &err), &err))
        return;
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    check_tables(block_dictionary(block)->tables);
    check_stacks(block_dictionary(block));
    check_labels(block_dictionary(block));
    struct block_cursor *cursor = block_cursor_create();
    int64_t *sums = mem_new(int64_t, block_dictionary(block)->stacks.stack_count);
    for (uint32_t i = 0; i < count; i++)
        read_granule(block, &granules[i], cursor, sums);
    for (uint32_t i = 0; i < block_dictionary(block)->series_count; i++) {
        const struct block_granule *totals = block_series_totals(block, i);
        if (totals && totals->row_count <= ROWS_MAX)
            read_sums(block, totals, cursor, sums);
    }
    mem_free(sums);
    block_cursor_destroy(cursor);
    if (count_rows(block) <= ROWS_MAX && !is_refused(block_verify(block, &err), &err) &&
        !is_refused(block_verify_series_totals(block, &err), &err))
        merge_with_itself(block);
    block_close(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_block(span_of(data, size));
    /* A buffer of exactly this size, so that sanitizers detect reads beyond it. */
    uint8_t *copy = mem_alloc(size ? size : 1, 1);
    if (size)
        memcpy(copy, data, size);
    seal(copy, size);
    read_block(span_of(copy, size));
    mem_free(copy);
    return 0;
}

/* ---- seeds ---- */

static void write_seed(const char *folder, uint64_t number)
{
    uint64_t state = number * 1000 + 17;
    struct random_shape shape = random_shape(&state);
    shape.sample_count = 1 + random_below(&state, number < SEEDS / 2 ? 12 : 90);
    shape.stack_count = 1 + random_below(&state, 12);
    shape.location_count = 1 + random_below(&state, 8);
    shape.label_set_count = number % 2 ? 4 : 1;
    shape.has_timestamps = number % 3 == 0;
    const bool has_hours = number >= SEEDS - SEEDS_OF_HOURS;
    if (has_hours) { /* enough hours that series have totals */
        shape.span_ns = INT64_C(7) * 3600000000000;
        shape.profile_count = 40;
    }
    struct batch *batch = random_batch(&state, &shape);
    struct block_summary summary;
    struct err err;
    char path[512];
    buf_auto output;
    buf_init(&output, OUTPUT_MAX);
    fuzz_check(
        !block_write_batch(batch, TENANT, number % 4 == 3 || has_hours, &output, &summary, &err));
    snprintf(path, sizeof(path), "%s/block-%02u", folder, (unsigned)number);
    FILE *file = fopen(path, "wb");
    fuzz_check(file && fwrite(output.data, 1, output.size, file) == output.size);
    fclose(file);
    batch_destroy(batch);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    if (*count != 3 || strcmp((*arguments)[1], "--seeds") != 0)
        return 0;
    for (uint64_t i = 0; i < SEEDS; i++)
        write_seed((*arguments)[2], i);
    exit(0);
}
