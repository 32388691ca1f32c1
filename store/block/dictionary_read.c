#include "store/block/dictionary_bytes.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/block/bitpack.h"
#include "store/block/column.h"
#include "store/block/dictionary.h"
#include "store/block/oversized.h"

/* A section that is being read. After the first error, which is kept, all numbers read as 0.
 * Columns are cleared only then, because clearing each before it is read would take much of the
 * time. */
struct reading {
    struct column_reader columns;
    struct arena *arena;
    struct arena *scratch;
    struct span rest;
    const char *wrong;   /* the first error; NULL: none */
    size_t string_bytes; /* of all strings */
    uint64_t row_count;  /* of the block */
    bool is_of_series;   /* tables and stacks are not read */
    bool are_strings_left_out;
};

/* A column of zeros takes 3 bytes per 256 numbers, so a corrupt count could otherwise claim any
 * amount of memory. */
static uint32_t read_count(struct reading *reading)
{
    uint32_t count = 0;
    if (reading->rest.size < sizeof(count)) {
        reading->wrong = "a section is cut short";
        return 0;
    }
    memcpy(&count, reading->rest.data, sizeof(count));
    reading->rest = span_of(reading->rest.data + sizeof(count), reading->rest.size - sizeof(count));
    if (count > BLOCK_COUNT_MAX || count / BITPACK_RUN > reading->rest.size) {
        reading->wrong = "a count is impossible";
        return 0;
    }
    return count;
}

static void read_narrow_into(struct reading *reading, uint32_t *values, uint32_t count)
{
    if (!reading->wrong && !column_take_u32(&reading->columns, &reading->rest, values, count))
        reading->wrong = "a column is malformed";
    if (reading->wrong)
        memset(values, 0, count * sizeof(*values));
}

static uint32_t *read_narrow(struct reading *reading, uint32_t count)
{
    uint32_t *values = arena_new_raw(reading->scratch, uint32_t, count);
    read_narrow_into(reading, values, count);
    return values;
}

static uint64_t *read_wide(struct reading *reading, uint32_t count)
{
    uint64_t *values = arena_new_raw(reading->scratch, uint64_t, count);
    if (!reading->wrong && !column_take_u64(&reading->columns, &reading->rest, values, count))
        reading->wrong = "a column is malformed";
    if (reading->wrong)
        memset(values, 0, count * sizeof(*values));
    return values;
}

static void check_indexes(struct reading *reading, const uint32_t *values, uint32_t count,
                          uint64_t limit)
{
    uint32_t greatest = 0;
    for (uint32_t i = 0; i < count; i++)
        greatest = values[i] > greatest ? values[i] : greatest;
    if (count && greatest >= limit && !reading->wrong)
        reading->wrong = "a number leads nowhere";
}

/* Reads numbers; those that are not below limit are an error. */
static const uint32_t *read_indexes(struct reading *reading, uint32_t count, uint64_t limit)
{
    const uint32_t *values = read_narrow(reading, count);
    check_indexes(reading, values, count, limit);
    return values;
}

static struct span read_bytes(struct reading *reading)
{
    struct span bytes = {0};
    if (!reading->wrong && !column_take_bytes(&reading->columns, &reading->rest, &bytes))
        reading->wrong = "a column is malformed";
    return bytes;
}

static void end_section(struct reading *reading)
{
    if (!reading->wrong && reading->rest.size)
        reading->wrong = "a section is too long";
}

/* ---- strings ---- */

/* The columns of STRINGS; unshared bytes are adjacent. */
struct string_columns {
    uint32_t count;
    const uint32_t *shared;
    const uint32_t *others;
    struct span bytes;
    size_t total_bytes; /* of all strings */
};

static void read_string_columns(struct reading *reading, struct string_columns *ret_columns)
{
    const uint32_t count = read_count(reading);
    const uint32_t *shared = read_narrow(reading, count);
    const uint32_t *others = read_narrow(reading, count);
    const struct span bytes = read_bytes(reading);
    uint64_t total = 0, given = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += (uint64_t)shared[i] + others[i];
        given += others[i];
        if (shared[i] > (i ? shared[i - 1] + (uint64_t)others[i - 1] : 0))
            reading->wrong = "a string shares more than there is";
    }
    if (!count || given != bytes.size || total > BLOCK_SECTION_MAX_BYTES || shared[0] || others[0])
        reading->wrong = reading->wrong ? reading->wrong : "strings have not the size they should";
    *ret_columns = (struct string_columns){.count = count,
                                           .shared = shared,
                                           .others = others,
                                           .bytes = bytes,
                                           .total_bytes = (size_t)total};
}

static void copy_all_strings(struct reading *reading, const struct string_columns *columns,
                             struct span *strings)
{
    uint8_t *text = arena_new_raw(reading->arena, uint8_t, columns->total_bytes);
    const uint8_t *from = columns->bytes.data;
    for (uint32_t i = 0; i < columns->count; i++) {
        const uint32_t shared = columns->shared[i], others = columns->others[i];
        if (shared)
            memcpy(text, strings[i - 1].data, shared);
        if (others)
            memcpy(text + shared, from, others);
        strings[i] = span_of(text, (size_t)shared + others);
        from += others;
        text += strings[i].size;
    }
}

/* Copies the used strings to the arena. Besides them only the current string is in memory. */
static void copy_used_strings(struct reading *reading, const struct string_columns *columns,
                              const bool *are_used, struct span *strings)
{
    const uint8_t *from = columns->bytes.data;
    buf_auto text;
    buf_init(&text, BLOCK_SECTION_MAX_BYTES);
    for (uint32_t i = 0; i < columns->count; i++) {
        text.size = columns->shared[i];
        buf_append(&text, from, columns->others[i]);
        from += columns->others[i];
        if (are_used[i])
            strings[i] = span_of(arena_strndup(reading->arena, text.data, text.size), text.size);
    }
}

/* Strings that are out of proportion are not read with series: most of them are names of frames,
 * which only queries that read stacks need (store/block/oversized.h). */
static void read_strings(struct reading *reading, struct profile *tables)
{
    struct string_columns columns;
    read_string_columns(reading, &columns);
    if (reading->wrong)
        return;
    struct span *strings = arena_new(reading->arena, struct span, columns.count);
    tables->strings = strings;
    tables->string_count = columns.count;
    reading->string_bytes = columns.total_bytes;
    reading->are_strings_left_out =
        reading->is_of_series &&
        oversized_is(columns.total_bytes, reading->row_count, OVERSIZED_QUERY_BYTES);
    if (reading->are_strings_left_out)
        return;
    copy_all_strings(reading, &columns, strings);
}

static const bool *find_used_strings(struct reading *reading, const struct dictionary *dictionary)
{
    bool *are_used = arena_new(reading->scratch, bool, dictionary->tables->string_count);
    for (uint32_t i = 0; i < dictionary->sample_label_count; i++) {
        const struct profile_label *label = &dictionary->sample_labels[i];
        are_used[label->key] = are_used[label->text] = are_used[label->unit] = true;
    }
    for (uint32_t i = 0; i < dictionary->series_label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[i];
        are_used[label->name] = are_used[label->value] = true;
    }
    for (uint32_t i = 0; i < dictionary->series_count; i++) {
        const struct batch_type *type = &dictionary->series[i].type;
        are_used[type->name] = true;
        are_used[type->sample_type.type] = are_used[type->sample_type.unit] = true;
        are_used[type->period_type.type] = are_used[type->period_type.unit] = true;
    }
    return are_used;
}

/* Reads the strings of series and label sets into a dictionary that has no others. */
static void read_used_strings(struct reading *reading, struct profile *tables,
                              const struct dictionary *dictionary)
{
    struct string_columns columns;
    struct span *strings = arena_new(reading->arena, struct span, tables->string_count);
    read_string_columns(reading, &columns);
    if (reading->wrong || columns.count != tables->string_count)
        return;
    copy_used_strings(reading, &columns, find_used_strings(reading, dictionary), strings);
    tables->strings = strings;
}

/* ---- tables ---- */

static void read_mappings(struct reading *reading, struct profile *tables)
{
    const uint32_t count = tables->mapping_count;
    const uint64_t *starts = read_wide(reading, count);
    const uint64_t *limits = read_wide(reading, count);
    const uint64_t *offsets = read_wide(reading, count);
    const uint32_t *filenames = read_indexes(reading, count, tables->string_count);
    const uint32_t *build_ids = read_indexes(reading, count, tables->string_count);
    const uint32_t *bits = read_narrow(reading, count);
    struct profile_mapping *mappings = arena_new_raw(reading->arena, struct profile_mapping, count);
    for (uint32_t i = 0; i < count; i++) {
        mappings[i] = (struct profile_mapping){
            .start = starts[i],
            .limit = limits[i],
            .offset = offsets[i],
            .filename = filenames[i],
            .build_id = build_ids[i],
            .has_functions = bits[i] & 1,
            .has_filenames = bits[i] & 2,
            .has_line_numbers = bits[i] & 4,
            .has_inline_frames = bits[i] & 8,
        };
    }
    tables->mappings = mappings;
}

static void read_functions(struct reading *reading, struct profile *tables)
{
    const uint32_t count = tables->function_count;
    const uint32_t *names = read_indexes(reading, count, tables->string_count);
    const uint32_t *system_names = read_indexes(reading, count, tables->string_count + 1ULL);
    const uint32_t *filenames = read_indexes(reading, count, tables->string_count);
    const uint64_t *start_lines = read_wide(reading, count);
    struct profile_function *functions =
        arena_new_raw(reading->arena, struct profile_function, count);
    for (uint32_t i = 0; i < count; i++) {
        functions[i] = (struct profile_function){
            .name = names[i],
            .system_name = system_names[i] ? system_names[i] - 1 : names[i],
            .filename = filenames[i],
            .start_line = column_unzigzag(start_lines[i]),
        };
    }
    tables->functions = functions;
}

static void read_lines(struct reading *reading, struct profile *tables)
{
    const uint32_t count = tables->line_count;
    const uint32_t *functions = read_indexes(reading, count, tables->function_count + 1ULL);
    const uint64_t *numbers = read_wide(reading, count);
    const uint64_t *columns = read_wide(reading, count);
    struct profile_line *lines = arena_new_raw(reading->arena, struct profile_line, count);
    for (uint32_t i = 0; i < count; i++) {
        lines[i] = (struct profile_line){
            .function = functions[i] - 1, /* 0 - 1 is PROFILE_NONE */
            .line = column_unzigzag(numbers[i]),
            .column = column_unzigzag(columns[i]),
        };
    }
    tables->lines = lines;
}

static void read_locations(struct reading *reading, struct profile *tables)
{
    const uint32_t count = tables->location_count;
    const uint32_t *mappings = read_indexes(reading, count, tables->mapping_count + 1ULL);
    const uint64_t *steps = read_wide(reading, count);
    const uint32_t *line_counts = read_narrow(reading, count);
    const uint32_t *are_folded = read_narrow(reading, count);
    struct profile_location *locations =
        arena_new_raw(reading->arena, struct profile_location, count);
    uint64_t address = 0, line = 0;
    for (uint32_t i = 0; i < count; i++) {
        address += (uint64_t)column_unzigzag(steps[i]);
        locations[i] = (struct profile_location){
            .address = address,
            .mapping = mappings[i] - 1,
            .first_line = (uint32_t)line,
            .line_count = line_counts[i],
            .is_folded = are_folded[i] != 0,
        };
        line += line_counts[i];
    }
    if (line != tables->line_count && !reading->wrong)
        reading->wrong = "locations have other lines than there are";
    tables->locations = locations;
}

static void read_tables(struct reading *reading, struct profile *tables)
{
    tables->mapping_count = read_count(reading);
    tables->function_count = read_count(reading);
    tables->line_count = read_count(reading);
    tables->location_count = read_count(reading);
    if (reading->wrong)
        return;
    read_mappings(reading, tables);
    read_functions(reading, tables);
    read_lines(reading, tables);
    read_locations(reading, tables);
}

/* ---- stacks ---- */

/* Loads eight bytes of bits from the given byte, or the rest if fewer are left. */
static uint64_t bits_at(struct span bits, size_t byte)
{
    uint64_t word = 0;
    const size_t left = bits.size - byte;
    memcpy(&word, bits.data + byte, left < sizeof(word) ? left : sizeof(word));
    return word;
}

/* A stack ends at each node whose bit is set; the first node has the lowest bit. */
static void find_ends(struct reading *reading, struct stacks *stacks, uint32_t expected)
{
    enum { WORD_BITS = 64 };
    const struct span bits = read_bytes(reading);
    const uint32_t count = stacks->node_count - 1;
    struct stack_position *ends =
        arena_new_raw(reading->arena, struct stack_position, expected + (size_t)1);
    struct stack_position position = {.node = STACKS_ROOT};
    uint32_t found = 0;
    ends[found++] = position;
    if (bits.size != (count + (size_t)7) / 8) {
        reading->wrong = reading->wrong ? reading->wrong : "stacks' ends are cut short";
        return;
    }
    for (uint32_t first = 0; first < count; first += WORD_BITS) {
        uint64_t word = bits_at(bits, first / 8);
        if (count - first < WORD_BITS)
            word &= (UINT64_C(1) << (count - first)) - 1;
        if (found + (uint32_t)__builtin_popcountll(word) > expected + UINT64_C(1)) {
            reading->wrong = "there are more stacks than there should be";
            return;
        }
        for (; word; word &= word - 1) {
            position.node = first + (uint32_t)__builtin_ctzll(word) + 1;
            while (position.node >= stacks_chain_end(stacks, position.chain))
                position.chain++;
            ends[found++] = position;
        }
    }
    if (found != expected + 1)
        reading->wrong = "there are fewer stacks than there should be";
    stacks->ends = ends;
    stacks->stack_count = found;
}

/* A chain begins at each node that is not one level below the node before. */
static void find_chains(struct reading *reading, struct stacks *stacks, const uint32_t *steps)
{
    const uint32_t count = stacks->node_count - 1;
    struct stack_chains chains;
    uint32_t most = 0, first = STACKS_ROOT, depth = 0; /* of the current chain */
    for (uint32_t i = 0; i < count; i++)
        most += steps[i] != 0;
    stack_chains_init(&chains, reading->arena, reading->scratch, most);
    for (uint32_t node = 1; node <= count; node++) {
        if (!steps[node - 1])
            continue;
        depth += node - 1 - first; /* depth of the node before it */
        if (steps[node - 1] > depth) {
            reading->wrong = "a frame lies above the root";
            return;
        }
        depth += 1 - steps[node - 1];
        first = node;
        stack_chains_add(&chains, node, depth);
    }
    stacks->chains = chains.chains;
    stacks->chain_count = chains.count;
}

static void read_stacks(struct reading *reading, const struct profile *tables,
                        struct stacks *stacks)
{
    const uint32_t count = read_count(reading);
    const uint32_t stack_count = read_count(reading);
    const uint32_t *steps = read_narrow(reading, count);
    const size_t capacity = count + (size_t)1;
    uint32_t *frames = arena_new_raw(reading->arena, uint32_t, capacity);
    read_narrow_into(reading, frames + 1, count);
    check_indexes(reading, frames + 1, count, tables->location_count);
    if (reading->wrong)
        return;
    frames[0] = STACKS_NO_FRAME;
    *stacks = (struct stacks){.node_count = count + 1, .frames = frames};
    find_chains(reading, stacks, steps);
    if (!reading->wrong)
        find_ends(reading, stacks, stack_count);
}

/* ---- labels ---- */

/* The start of each set's labels; an error when they do not add up to count. */
static uint32_t *add_up(struct reading *reading, const uint32_t *counts, uint32_t count,
                        uint32_t expected)
{
    uint32_t *starts = arena_new_raw(reading->scratch, uint32_t, count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = (uint32_t)total;
        total += counts[i];
    }
    if (total != expected && !reading->wrong)
        reading->wrong = "there are other labels than there should be";
    return starts;
}

/* Queries check for each series whether rows may have a label: a short list makes that cheap. */
static void find_label_keys(struct reading *reading, struct dictionary *dictionary)
{
    const uint32_t count = dictionary->sample_label_count;
    if (!count || reading->wrong)
        return;
    bool *is_key = arena_new(reading->scratch, bool, dictionary->tables->string_count);
    uint32_t key_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        key_count += !is_key[dictionary->sample_labels[i].key];
        is_key[dictionary->sample_labels[i].key] = true;
    }
    uint32_t *keys = arena_new_raw(reading->arena, uint32_t, key_count);
    for (uint32_t i = 0; i < dictionary->tables->string_count; i++) {
        if (is_key[i])
            keys[dictionary->label_key_count++] = i;
    }
    dictionary->label_keys = keys;
}

static void read_sample_labels(struct reading *reading, struct dictionary *dictionary)
{
    const uint32_t count = dictionary->sample_label_count;
    const uint32_t strings = dictionary->tables->string_count;
    const uint32_t *keys = read_indexes(reading, count, strings);
    const uint32_t *kinds = read_indexes(reading, count, 2);
    const uint32_t *texts = read_indexes(reading, count, strings);
    const uint64_t *numbers = read_wide(reading, count);
    const uint32_t *units = read_indexes(reading, count, strings);
    struct profile_label *labels = arena_new_raw(reading->arena, struct profile_label, count);
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = (struct profile_label){
            .key = keys[i],
            .text = texts[i],
            .number = column_unzigzag(numbers[i]),
            .unit = units[i],
            .is_numeric = kinds[i] == 1,
        };
    }
    dictionary->sample_labels = labels;
    find_label_keys(reading, dictionary);
}

static void read_label_sets(struct reading *reading, struct dictionary *dictionary)
{
    const uint32_t count = read_count(reading);
    dictionary->sample_label_count = read_count(reading);
    const uint32_t link_count = read_count(reading);
    const uint32_t *label_counts = read_narrow(reading, count);
    const uint32_t *have_links = read_indexes(reading, count, 2);
    uint32_t linked = 0;
    for (uint32_t i = 0; i < count; i++)
        linked += have_links[i];
    const uint32_t *starts = add_up(reading, label_counts, count, dictionary->sample_label_count);
    const struct span links = read_bytes(reading);
    if (!count || linked != link_count || links.size != linked * sizeof(struct batch_link))
        reading->wrong = reading->wrong ? reading->wrong : "links are cut short";
    if (reading->wrong)
        return;
    struct batch_label_set *sets = arena_new(reading->arena, struct batch_label_set, count);
    const uint8_t *link = links.data;
    for (uint32_t i = 0; i < count; i++) {
        sets[i].first_label = starts[i];
        sets[i].label_count = label_counts[i];
        if (have_links[i]) {
            memcpy(&sets[i].link, link, sizeof(sets[i].link));
            link += sizeof(sets[i].link);
        }
    }
    dictionary->label_sets = sets;
    dictionary->label_set_count = count;
    read_sample_labels(reading, dictionary);
}

static void read_series_labels(struct reading *reading, struct dictionary *dictionary)
{
    const uint32_t count = dictionary->series_label_count;
    const uint32_t *names = read_indexes(reading, count, dictionary->tables->string_count);
    const uint32_t *values = read_indexes(reading, count, dictionary->tables->string_count);
    struct batch_label *labels = arena_new_raw(reading->arena, struct batch_label, count);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = (struct batch_label){.name = names[i], .value = values[i]};
    dictionary->series_labels = labels;
}

static void read_series(struct reading *reading, struct dictionary *dictionary)
{
    const uint32_t count = read_count(reading);
    dictionary->series_label_count = read_count(reading);
    const uint32_t strings = dictionary->tables->string_count;
    const uint32_t *texts[5]; /* name, type, unit, period's type, its unit */
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        texts[i] = read_indexes(reading, count, strings);
    const uint32_t *kinds = read_indexes(reading, count, BATCH_KINDS);
    const uint32_t *label_counts = read_narrow(reading, count);
    const uint32_t *starts = add_up(reading, label_counts, count, dictionary->series_label_count);
    if (reading->wrong)
        return;
    struct batch_series *series = arena_new_raw(reading->arena, struct batch_series, count);
    for (uint32_t i = 0; i < count; i++) {
        series[i] = (struct batch_series){
            .type = {.name = texts[0][i],
                     .sample_type = {.type = texts[1][i], .unit = texts[2][i]},
                     .period_type = {.type = texts[3][i], .unit = texts[4][i]},
                     .kind = kinds[i]},
            .first_label = starts[i],
            .label_count = label_counts[i],
        };
    }
    dictionary->series = series;
    dictionary->series_count = count;
    read_series_labels(reading, dictionary);
}

static void read_section(struct reading *reading, enum block_section section,
                         struct profile *tables, struct dictionary *dictionary)
{
    switch (section) {
    case BLOCK_STRINGS:
        read_strings(reading, tables);
        break;
    case BLOCK_TABLES:
        read_tables(reading, tables);
        break;
    case BLOCK_STACKS:
        read_stacks(reading, tables, &dictionary->stacks);
        break;
    case BLOCK_LABEL_SETS:
        read_label_sets(reading, dictionary);
        break;
    case BLOCK_SERIES:
        read_series(reading, dictionary);
        break;
    case BLOCK_GRANULES:
    case BLOCK_SECTION_COUNT:
        break;
    }
}

/* Reads the wanted sections into the dictionary and its tables. */
static enum err_code read_sections(struct reading *reading,
                                   const struct span sections[BLOCK_SECTION_COUNT],
                                   const enum block_section *wanted, size_t wanted_count,
                                   struct profile *tables, struct dictionary *dictionary,
                                   struct err *err)
{
    arena_auto scratch = arena_create();
    reading->scratch = scratch;
    column_reader_init(&reading->columns);
    tables->arena = reading->arena;
    dictionary->tables = tables;
    for (size_t i = 0; i < wanted_count && !reading->wrong; i++) {
        reading->rest = sections[wanted[i]];
        read_section(reading, wanted[i], tables, dictionary);
        end_section(reading);
    }
    if (!reading->wrong && reading->are_strings_left_out) {
        reading->rest = sections[BLOCK_STRINGS];
        read_used_strings(reading, tables, dictionary);
    }
    column_reader_fini(&reading->columns);
    dictionary->has_few_strings = reading->are_strings_left_out;
    if (reading->string_bytes)
        dictionary->string_bytes = reading->string_bytes;
    return reading->wrong ? err_set(err, ERR_CORRUPT, "%s", reading->wrong) : ERR_NONE;
}

enum err_code dictionary_read_series(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     uint64_t row_count, struct dictionary *ret_dictionary,
                                     struct err *err)
{
    static const enum block_section wanted[] = {BLOCK_STRINGS, BLOCK_LABEL_SETS, BLOCK_SERIES};
    struct reading reading = {.arena = arena, .row_count = row_count, .is_of_series = true};
    *ret_dictionary = (struct dictionary){0};
    return read_sections(&reading, sections, wanted, sizeof(wanted) / sizeof(wanted[0]),
                         arena_new(arena, struct profile, 1), ret_dictionary, err);
}

enum err_code dictionary_read_stacks(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     struct dictionary *dictionary, struct err *err)
{
    static const enum block_section wanted[] = {BLOCK_STRINGS, BLOCK_TABLES, BLOCK_STACKS};
    const size_t first = dictionary->has_few_strings ? 0 : 1;
    struct profile *tables = arena_new(arena, struct profile, 1);
    struct reading reading = {.arena = arena};
    tables->strings = dictionary->tables->strings;
    tables->string_count = dictionary->tables->string_count;
    return read_sections(&reading, sections, wanted + first,
                         sizeof(wanted) / sizeof(wanted[0]) - first, tables, dictionary, err);
}
