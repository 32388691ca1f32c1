#include "store/block/dictionary_bytes.h"

#include "lib/base/arena.h"
#include "store/block/column.h"
#include "store/block/dictionary.h"

/* A section that is being written; columns are filled one after the other in the same memory. */
struct section {
    struct column_writer columns;
    struct buf *output;
    uint32_t *narrow;
    uint64_t *wide;
};

/* Appends a column of count numbers (FILL_NARROW: 32 bits, FILL_WIDE: 64 bits), each given by an
 * expression of the index i: FILL_NARROW(section, count, i, lines[i].line) */
#define FILL_NARROW(section, count, i, expression)                                                 \
    do {                                                                                           \
        for (uint32_t i = 0; i < (count); i++)                                                     \
            (section)->narrow[i] = (uint32_t)(expression);                                         \
        column_append_u32(&(section)->columns, (section)->output, (section)->narrow, (count));     \
    } while (0)
#define FILL_WIDE(section, count, i, expression)                                                   \
    do {                                                                                           \
        for (uint32_t i = 0; i < (count); i++)                                                     \
            (section)->wide[i] = (uint64_t)(expression);                                           \
        column_append_u64(&(section)->columns, (section)->output, (section)->wide, (count));       \
    } while (0)

static size_t shared_bytes(struct span a, struct span b)
{
    const size_t most = a.size < b.size ? a.size : b.size;
    size_t count = 0;
    for (; count + sizeof(uint64_t) <= most; count += sizeof(uint64_t)) {
        uint64_t x, y;
        memcpy(&x, a.data + count, sizeof(x));
        memcpy(&y, b.data + count, sizeof(y));
        if (x != y)
            break;
    }
    while (count < most && a.data[count] == b.data[count])
        count++;
    return count;
}

static void write_strings(struct section *section, const struct dictionary *dictionary,
                          struct arena *scratch)
{
    const struct profile *tables = dictionary->tables;
    const uint32_t count = tables->string_count;
    uint32_t *shared = arena_new_raw(scratch, uint32_t, count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        shared[i] = i ? (uint32_t)shared_bytes(tables->strings[i - 1], tables->strings[i]) : 0;
        total += tables->strings[i].size - shared[i];
    }
    buf_append_u32(section->output, count);
    FILL_NARROW(section, count, i, shared[i]);
    FILL_NARROW(section, count, i, tables->strings[i].size - shared[i]);
    uint8_t *bytes = column_reserve_bytes(&section->columns, section->output, total);
    for (uint32_t i = 0; i < count && bytes; i++) {
        const struct span text = tables->strings[i];
        if (text.size > shared[i])
            memcpy(bytes, text.data + shared[i], text.size - shared[i]);
        bytes += text.size - shared[i];
    }
}

static void write_mappings(struct section *section, const struct profile *tables)
{
    const struct profile_mapping *mappings = tables->mappings;
    const uint32_t count = tables->mapping_count;
    FILL_WIDE(section, count, i, mappings[i].start);
    FILL_WIDE(section, count, i, mappings[i].limit);
    FILL_WIDE(section, count, i, mappings[i].offset);
    FILL_NARROW(section, count, i, mappings[i].filename);
    FILL_NARROW(section, count, i, mappings[i].build_id);
    FILL_NARROW(section, count, i,
                mappings[i].has_functions | mappings[i].has_filenames << 1 |
                    mappings[i].has_line_numbers << 2 | mappings[i].has_inline_frames << 3);
}

static void write_functions(struct section *section, const struct profile *tables)
{
    const struct profile_function *functions = tables->functions;
    const uint32_t count = tables->function_count;
    FILL_NARROW(section, count, i, functions[i].name);
    FILL_NARROW(section, count, i,
                functions[i].system_name == functions[i].name ? 0 : functions[i].system_name + 1);
    FILL_NARROW(section, count, i, functions[i].filename);
    FILL_WIDE(section, count, i, column_zigzag(functions[i].start_line));
}

static void write_tables(struct section *section, const struct dictionary *dictionary)
{
    const struct profile *tables = dictionary->tables;
    buf_append_u32(section->output, tables->mapping_count);
    buf_append_u32(section->output, tables->function_count);
    buf_append_u32(section->output, tables->line_count);
    buf_append_u32(section->output, tables->location_count);
    write_mappings(section, tables);
    write_functions(section, tables);
    const struct profile_line *lines = tables->lines;
    FILL_NARROW(section, tables->line_count, i, lines[i].function + 1);
    FILL_WIDE(section, tables->line_count, i, column_zigzag(lines[i].line));
    FILL_WIDE(section, tables->line_count, i, column_zigzag(lines[i].column));
    const struct profile_location *locations = tables->locations;
    const uint32_t count = tables->location_count;
    FILL_NARROW(section, count, i, locations[i].mapping + 1);
    FILL_WIDE(section, count, i,
              column_zigzag((int64_t)(locations[i].address - (i ? locations[i - 1].address : 0))));
    FILL_NARROW(section, count, i, locations[i].line_count);
    FILL_NARROW(section, count, i, locations[i].is_folded);
}

/* Per node but the root: how many levels it is above a child of the node before it. */
static const uint32_t *list_steps(const struct stacks *stacks, struct arena *scratch)
{
    uint32_t *steps = arena_new(scratch, uint32_t, stacks->node_count);
    for (uint32_t i = 1; i < stacks->chain_count; i++) {
        const struct stack_chain *chain = &stacks->chains[i], *before = chain - 1;
        const uint32_t depth = before->depth + chain->first - before->first;
        steps[chain->first - 1] = depth - chain->depth;
    }
    return steps;
}

static void write_stacks(struct section *section, const struct dictionary *dictionary,
                         struct arena *scratch)
{
    const struct stacks *stacks = &dictionary->stacks;
    const uint32_t count = stacks->node_count - 1;
    buf_append_u32(section->output, count);
    buf_append_u32(section->output, stacks->stack_count - 1);
    column_append_u32(&section->columns, section->output, list_steps(stacks, scratch), count);
    column_append_u32(&section->columns, section->output, stacks->frames + 1, count);
    const size_t size = (count + (size_t)7) / 8;
    uint8_t *bits = arena_new(scratch, uint8_t, size);
    for (uint32_t i = 1; i < stacks->stack_count; i++) {
        const uint32_t bit = stacks->ends[i].node - 1;
        bits[bit / 8] |= (uint8_t)(1 << bit % 8);
    }
    column_append_bytes(&section->columns, section->output, span_of(bits, size));
}

static bool has_link(const struct batch_label_set *set)
{
    static const struct batch_link none;
    return memcmp(&set->link, &none, sizeof(none)) != 0;
}

static void write_label_sets(struct section *section, const struct dictionary *dictionary,
                             struct arena *scratch)
{
    const struct batch_label_set *sets = dictionary->label_sets;
    const uint32_t set_count = dictionary->label_set_count;
    struct batch_link *links = arena_new(scratch, struct batch_link, set_count);
    uint32_t link_count = 0, label_count = 0;
    for (uint32_t i = 0; i < set_count; i++) {
        label_count += sets[i].label_count;
        if (has_link(&sets[i]))
            links[link_count++] = sets[i].link;
    }
    /* Stored in the order of the sets, whatever their order in sample_labels. */
    struct profile_label *labels = arena_new_raw(scratch, struct profile_label, label_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < set_count; i++) {
        memcpy(labels + count, dictionary->sample_labels + sets[i].first_label,
               sets[i].label_count * sizeof(*labels));
        count += sets[i].label_count;
    }
    buf_append_u32(section->output, set_count);
    buf_append_u32(section->output, label_count);
    buf_append_u32(section->output, link_count);
    FILL_NARROW(section, set_count, i, sets[i].label_count);
    FILL_NARROW(section, set_count, i, has_link(&sets[i]));
    column_append_bytes(&section->columns, section->output,
                        span_of(links, link_count * sizeof(*links)));
    FILL_NARROW(section, label_count, i, labels[i].key);
    FILL_NARROW(section, label_count, i, labels[i].is_numeric);
    FILL_NARROW(section, label_count, i, labels[i].text);
    FILL_WIDE(section, label_count, i, column_zigzag(labels[i].number));
    FILL_NARROW(section, label_count, i, labels[i].unit);
}

static void write_series(struct section *section, const struct dictionary *dictionary,
                         struct arena *scratch)
{
    const struct batch_series *series = dictionary->series;
    const uint32_t series_count = dictionary->series_count;
    uint32_t label_count = 0;
    for (uint32_t i = 0; i < series_count; i++)
        label_count += series[i].label_count;
    struct batch_label *labels = arena_new_raw(scratch, struct batch_label, label_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < series_count; i++) {
        memcpy(labels + count, dictionary->series_labels + series[i].first_label,
               series[i].label_count * sizeof(*labels));
        count += series[i].label_count;
    }
    buf_append_u32(section->output, series_count);
    buf_append_u32(section->output, label_count);
    FILL_NARROW(section, series_count, i, series[i].type.name);
    FILL_NARROW(section, series_count, i, series[i].type.sample_type.type);
    FILL_NARROW(section, series_count, i, series[i].type.sample_type.unit);
    FILL_NARROW(section, series_count, i, series[i].type.period_type.type);
    FILL_NARROW(section, series_count, i, series[i].type.period_type.unit);
    FILL_NARROW(section, series_count, i, series[i].type.kind);
    FILL_NARROW(section, series_count, i, series[i].label_count);
    FILL_NARROW(section, label_count, i, labels[i].name);
    FILL_NARROW(section, label_count, i, labels[i].value);
}

/* The longest column of a section. */
static size_t longest_column(const struct dictionary *dictionary)
{
    const struct profile *tables = dictionary->tables;
    const size_t counts[] = {
        tables->string_count,        tables->mapping_count,
        tables->function_count,      tables->line_count,
        tables->location_count,      dictionary->stacks.node_count,
        dictionary->label_set_count, dictionary->sample_label_count,
        dictionary->series_count,    dictionary->series_label_count,
    };
    size_t longest = 0;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        longest = counts[i] > longest ? counts[i] : longest;
    return longest;
}

bool dictionary_is_readable(const struct dictionary *dictionary)
{
    const struct profile *tables = dictionary->tables;
    uint64_t string_bytes = 0, sample_labels = 0, series_labels = 0;
    for (uint32_t i = 0; i < tables->string_count; i++)
        string_bytes += tables->strings[i].size;
    for (uint32_t i = 0; i < dictionary->label_set_count; i++)
        sample_labels += dictionary->label_sets[i].label_count;
    for (uint32_t i = 0; i < dictionary->series_count; i++)
        series_labels += dictionary->series[i].label_count;
    const uint64_t counts[] = {tables->string_count,        tables->mapping_count,
                               tables->function_count,      tables->line_count,
                               tables->location_count,      dictionary->stacks.node_count,
                               dictionary->label_set_count, sample_labels,
                               dictionary->series_count,    series_labels};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (counts[i] > BLOCK_COUNT_MAX)
            return false;
    }
    return string_bytes <= BLOCK_SECTION_MAX_BYTES;
}

void dictionary_write_section(const struct dictionary *dictionary, enum block_section section,
                              enum bitpack_effort effort, struct buf *output)
{
    arena_auto scratch = arena_create();
    const size_t longest = longest_column(dictionary);
    struct section state = {
        .output = output,
        .narrow = arena_new_raw(scratch, uint32_t, longest),
        .wide = arena_new_raw(scratch, uint64_t, longest),
    };
    column_writer_init(&state.columns, 0, effort);
    switch (section) {
    case BLOCK_STRINGS:
        write_strings(&state, dictionary, scratch);
        break;
    case BLOCK_TABLES:
        write_tables(&state, dictionary);
        break;
    case BLOCK_STACKS:
        write_stacks(&state, dictionary, scratch);
        break;
    case BLOCK_LABEL_SETS:
        write_label_sets(&state, dictionary, scratch);
        break;
    case BLOCK_SERIES:
        write_series(&state, dictionary, scratch);
        break;
    case BLOCK_GRANULES:
    case BLOCK_SECTION_COUNT:
        break;
    }
    column_writer_fini(&state.columns);
}
