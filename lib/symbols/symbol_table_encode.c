/*
 * Encodes ranges and symbols as records, nodes and declarations.
 *
 * symbol_encoder_run merges two sweeps (symbol_sweep.h), one over the ranges and one over the
 * symbols: at each position a range with a node wins, and a symbol fills the rest. Each piece
 * becomes a record unless it continues the previous one. Nodes are numbered when a record first
 * uses them, callers before the functions inlined into them, so numbers ascend with addresses and
 * parents are near their children.
 */
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer_internal.h"

enum { FIRST_CAPACITY = 256, SEGMENT_IS_CODE = 1 };

static void append_zeros(struct buf *output, size_t size)
{
    uint8_t *zeros = buf_reserve(output, size);
    if (!zeros)
        return;
    memset(zeros, 0, size);
    buf_commit(output, size);
}

/* ---- bits ---- */

struct bit_writer {
    struct buf *output;
    uint64_t word;
    unsigned count; /* bits in word, less than 8 between calls */
};

static void bits_append(struct bit_writer *bits, uint32_t number, unsigned width)
{
    bits->word |= (uint64_t)number << bits->count;
    for (bits->count += width; bits->count >= 8; bits->count -= 8) {
        buf_append_byte(bits->output, (uint8_t)bits->word);
        bits->word >>= 8;
    }
}

static void bits_finish(struct bit_writer *bits)
{
    if (bits->count)
        buf_append_byte(bits->output, (uint8_t)bits->word);
}

static unsigned bit_width(uint32_t number)
{
    return number ? 32 - (unsigned)__builtin_clz(number) : 0;
}

/* ---- order of nodes ---- */

/* Makes space for the numbers of all nodes of the writer: symbols add nodes while records are
 * encoded. Both arrays grow by an eighth, not twofold as in lib/base/vec.h, because nearly all
 * nodes exist at the first call. */
static void grow_numbers(struct symbol_encoder *encoder)
{
    const uint32_t count = encoder->writer->node_count;
    if (count > encoder->number_capacity) {
        encoder->number_capacity = count + count / 8 + FIRST_CAPACITY;
        encoder->numbers =
            mem_resize(encoder->numbers, encoder->number_capacity, sizeof(*encoder->numbers));
        encoder->order =
            mem_resize(encoder->order, encoder->number_capacity, sizeof(*encoder->order));
    }
    for (; encoder->numbered_count < count; encoder->numbered_count++)
        encoder->numbers[encoder->numbered_count] = SYMBOL_NONE;
}

/* Returns the number of a node, in order of first use. A node without a number and all its
 * unnumbered callers get the next numbers, callers first. */
static uint32_t assign_number(struct symbol_encoder *encoder, uint32_t node)
{
    uint32_t chain[SYMBOL_DEPTH_MAX];
    uint32_t depth = 0;
    grow_numbers(encoder);
    for (uint32_t at = node; at != SYMBOL_NONE && encoder->numbers[at] == SYMBOL_NONE;
         at = encoder->writer->nodes[at].parent)
        chain[depth++] = at;
    while (depth) {
        const uint32_t next = chain[--depth];
        encoder->order[encoder->order_count] = next;
        encoder->numbers[next] = encoder->order_count++;
    }
    return encoder->numbers[node];
}

/* ---- records ---- */

static const struct symbol_writer_function *node_function(const struct symbol_table_writer *writer,
                                                          uint32_t node)
{
    return &writer->functions[writer->nodes[node].function];
}

/* ---- groups of records ---- */

/* The width of addresses in a group that spans distance bytes. The highest number is reserved
 * for missing records. */
static unsigned address_shift(uint64_t distance)
{
    return distance < UINT8_MAX ? 0 : distance < UINT16_MAX ? 1 : 2;
}

static struct symbol_table_record_group measure_records(const struct symbol_encoder_record *records,
                                                        uint32_t count)
{
    struct symbol_table_record_group group = {
        .node_base = UINT32_MAX,
        .line_base = INT32_MAX,
        .address_shift = (uint8_t)address_shift(records[count - 1].address - records[0].address)};
    uint32_t nodes = 0, lines = 0, files = 0;
    bool has_file = false;
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].node == SYMBOL_NONE)
            continue;
        if (records[i].node < group.node_base)
            group.node_base = records[i].node;
        if (records[i].line < group.line_base)
            group.line_base = records[i].line;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].node == SYMBOL_NONE)
            continue;
        if (records[i].node - group.node_base + 1 > nodes)
            nodes = records[i].node - group.node_base + 1;
        lines |= (uint32_t)(records[i].line - group.line_base);
        if (records[i].file != SYMBOL_NONE) {
            files |= records[i].file;
            has_file = true;
        }
    }
    group.node_bits = (uint8_t)bit_width(nodes);
    group.line_bits = (uint8_t)bit_width(lines);
    group.file_bits = (uint8_t)(has_file ? bit_width(files | 1) : 0);
    if (nodes == 0)
        group.node_base = 0, group.line_base = 0;
    return group;
}

static void append_addresses(struct buf *output, const struct symbol_encoder_record *records,
                             uint32_t count, unsigned shift)
{
    for (uint32_t i = 0; i < SYMBOL_RECORD_GROUP; i++) {
        const uint32_t behind =
            i < count ? (uint32_t)(records[i].address - records[0].address) : UINT32_MAX;
        buf_append(output, &behind, (size_t)1 << shift);
    }
}

static void append_file_mask(struct buf *output, const struct symbol_encoder_record *records,
                             uint32_t count)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].node != SYMBOL_NONE && records[i].file != SYMBOL_NONE)
            mask |= UINT32_C(1) << i;
    }
    buf_append_u16(output, (uint16_t)mask);
}

static void end_group(struct symbol_encoder *encoder)
{
    struct symbol_encoder_record *records = encoder->group;
    const uint32_t count = encoder->group_count;
    struct buf *output = &encoder->records;
    if (count == 0)
        return;
    const struct symbol_table_record_group group = measure_records(records, count);
    buf_append_u32(&encoder->group_addresses,
                   (uint32_t)(records[0].address - encoder->first_address));
    buf_append_u32(&encoder->group_offsets, (uint32_t)output->size);
    buf_append(output, &group, sizeof(group));
    append_addresses(output, records, count, group.address_shift);
    if (group.file_bits)
        append_file_mask(output, records, count);
    struct bit_writer bits = {.output = output};
    for (uint32_t i = 0; i < count; i++) {
        const bool is_gap = records[i].node == SYMBOL_NONE;
        bits_append(&bits, is_gap ? 0 : records[i].node - group.node_base + 1, group.node_bits);
        bits_append(&bits, is_gap ? 0 : (uint32_t)(records[i].line - group.line_base),
                    group.line_bits);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].node != SYMBOL_NONE && records[i].file != SYMBOL_NONE)
            bits_append(&bits, records[i].file, group.file_bits);
    }
    bits_finish(&bits);
    encoder->group_count = 0;
}

static void add_record(struct symbol_encoder *encoder, const struct symbol_encoder_record *record)
{
    encoder->group[encoder->group_count++] = *record;
    encoder->record_count++;
    if (encoder->group_count == SYMBOL_RECORD_GROUP)
        end_group(encoder);
}

void symbol_encoder_append_gap(struct symbol_encoder *encoder, uint64_t address)
{
    const struct symbol_encoder_record record = {
        .address = address, .node = SYMBOL_NONE, .file = SYMBOL_NONE};
    add_record(encoder, &record);
    encoder->node = SYMBOL_NONE;
}

void symbol_encoder_append_record(struct symbol_encoder *encoder, uint64_t address, uint32_t node,
                                  uint32_t file, uint32_t line)
{
    const struct symbol_writer_function *function = node_function(encoder->writer, node);
    const struct symbol_encoder_record record = {.address = address,
                                                 .node = assign_number(encoder, node),
                                                 .line = (int32_t)line - (int32_t)function->line,
                                                 .file =
                                                     file == function->file ? SYMBOL_NONE : file};
    add_record(encoder, &record);
    encoder->node = node;
    encoder->file = file;
    encoder->line = line;
}

/* Appends a piece of code that follows all previous ones. */
static void append_piece(struct symbol_encoder *encoder, uint64_t begin, uint64_t end,
                         uint32_t node, uint32_t file, uint32_t line)
{
    const bool has_gap = encoder->record_count && begin != encoder->end;
    if (encoder->record_count == 0)
        encoder->first_address = begin;
    if (has_gap)
        symbol_encoder_append_gap(encoder, encoder->end);
    if (encoder->record_count == 0 || has_gap || node != encoder->node || file != encoder->file ||
        line != encoder->line)
        symbol_encoder_append_record(encoder, begin, node, file, line);
    encoder->end = end;
}

/* ---- ranges and symbols, one over the other ---- */

struct sweep_source {
    struct symbol_sweep sweep;
    struct symbol_piece piece; /* the current one; starts at UINT64_MAX after the last one */
};

static void source_advance(struct sweep_source *sweep_source)
{
    if (!symbol_sweep_next(&sweep_source->sweep, &sweep_source->piece))
        sweep_source->piece = (struct symbol_piece){.begin = UINT64_MAX, .end = UINT64_MAX};
}

/* Drops the pieces, and the part of a piece, before position. */
static void source_skip(struct sweep_source *sweep_source, uint64_t position)
{
    while (sweep_source->piece.end <= position && sweep_source->piece.begin != UINT64_MAX)
        source_advance(sweep_source);
    if (sweep_source->piece.begin < position)
        sweep_source->piece.begin = position;
}

/* The next position after `position` at which this source changes. */
static uint64_t source_change(const struct sweep_source *sweep_source, uint64_t position)
{
    return sweep_source->piece.begin > position ? sweep_source->piece.begin
                                                : sweep_source->piece.end;
}

/* The node of a symbol, created when it is first needed. The top bit of symbol->node marks that
 * it holds a node instead of the index of the name. */
static uint32_t node_of_symbol(struct symbol_table_writer *writer, uint32_t number)
{
    const uint32_t bit = UINT32_C(1) << 31;
    struct symbol_range *symbol = &writer->symbols[number];
    if (!(symbol->node & bit))
        symbol->node = symbol_table_writer_root(writer, writer->symbol_names[symbol->node]) | bit;
    return symbol->node == SYMBOL_NONE ? SYMBOL_NONE : symbol->node & ~bit;
}

static void append_merged_piece(struct symbol_encoder *encoder, const struct sweep_source *ranges,
                                const struct sweep_source *symbols, uint64_t begin, uint64_t end)
{
    struct symbol_table_writer *writer = encoder->writer;
    struct symbol_range line = {.node = SYMBOL_NONE};
    if (ranges->piece.begin <= begin)
        line = writer->ranges[ranges->piece.number];
    if (line.node == SYMBOL_NONE)
        line.node = symbols->piece.begin <= begin
                        ? node_of_symbol(writer, symbols->piece.number)
                        : symbol_table_writer_root(writer, SPAN_LITERAL(""));
    if (line.node != SYMBOL_NONE)
        append_piece(encoder, begin, end, line.node, line.file, line.line);
}

static void merge_sources(struct symbol_encoder *encoder, struct sweep_source *ranges,
                          struct sweep_source *symbols)
{
    uint64_t position = 0;
    for (;;) {
        source_skip(ranges, position);
        source_skip(symbols, position);
        const uint64_t begin =
            ranges->piece.begin < symbols->piece.begin ? ranges->piece.begin : symbols->piece.begin;
        if (begin == UINT64_MAX || encoder->writer->failure.code)
            return;
        const uint64_t one = source_change(ranges, begin), other = source_change(symbols, begin);
        const uint64_t end = one < other ? one : other;
        append_merged_piece(encoder, ranges, symbols, begin, end);
        position = end;
    }
}

/* ---- nodes ---- */

struct node_fields {
    uint32_t parent; /* distance; 0: no parent */
    uint32_t function;
    int32_t line;  /* relative to the declaration of the parent's function */
    uint32_t file; /* SYMBOL_NONE: file of that declaration */
};

static struct node_fields read_node_fields(const struct symbol_encoder *encoder, uint32_t number)
{
    const struct symbol_table_writer *writer = encoder->writer;
    const struct symbol_writer_node *node = &writer->nodes[encoder->order[number]];
    struct node_fields fields = {.function = node->function, .file = SYMBOL_NONE};
    if (node->parent == SYMBOL_NONE)
        return fields;
    const struct symbol_writer_function *caller = node_function(writer, node->parent);
    fields.parent = number - encoder->numbers[node->parent];
    fields.line = (int32_t)node->call_line - (int32_t)caller->line;
    if (node->call_file != caller->file)
        fields.file = node->call_file;
    return fields;
}

/* Counts the nodes by the bits that they need, to choose the widths that take the fewest bytes. */
struct width_counts {
    uint32_t both[SYMBOL_LOAD_MAX_BITS][SYMBOL_LOAD_MAX_BITS]; /* [parent][line] */
};

static bool fits_widths(const struct node_fields *fields, unsigned parent_bits, unsigned line_bits)
{
    return fields->file == SYMBOL_NONE && fields->line >= 0 &&
           bit_width(fields->parent) <= parent_bits &&
           bit_width((uint32_t)fields->line) <= line_bits;
}

static void count_widths(const struct symbol_encoder *encoder, struct width_counts *counts)
{
    memset(counts, 0, sizeof(*counts));
    for (uint32_t i = 0; i < encoder->order_count; i++) {
        const struct node_fields fields = read_node_fields(encoder, i);
        if (fields.file == SYMBOL_NONE && fields.line >= 0)
            counts->both[bit_width(fields.parent)][bit_width((uint32_t)fields.line)]++;
    }
}

/* The number of nodes that fit the widths. */
static uint32_t count_fitting(const struct width_counts *counts, unsigned parent_bits,
                              unsigned line_bits)
{
    uint32_t fitting = 0;
    for (unsigned parent = 0; parent <= parent_bits; parent++) {
        for (unsigned line = 0; line <= line_bits; line++)
            fitting += counts->both[parent][line];
    }
    return fitting;
}

static struct symbol_table_nodes choose_widths(const struct symbol_encoder *encoder)
{
    enum { PARENT_MAX_BITS = 16, LINE_MAX_BITS = 16 };
    const uint32_t count = encoder->order_count;
    const uint32_t functions = encoder->writer->function_count;
    const unsigned function_bits = bit_width(functions ? functions - 1 : 0);
    struct symbol_table_nodes best = {.function_bits = (uint8_t)function_bits};
    struct width_counts counts;
    uint64_t best_bits = UINT64_MAX;
    count_widths(encoder, &counts);
    for (unsigned parent = 0; parent <= PARENT_MAX_BITS; parent++) {
        for (unsigned line = 0; line <= LINE_MAX_BITS; line++) {
            const uint32_t exceptions = count - count_fitting(&counts, parent, line);
            const uint64_t bits =
                (1 + function_bits + parent + line) * (uint64_t)count +
                exceptions * UINT64_C(8) * sizeof(struct symbol_table_node_exception);
            if (bits >= best_bits || bit_width(exceptions) > function_bits + parent + line)
                continue;
            best_bits = bits;
            best.parent_bits = (uint8_t)parent;
            best.line_bits = (uint8_t)line;
        }
    }
    return best;
}

static void append_exception(struct symbol_encoder *encoder, const struct node_fields *fields)
{
    const struct symbol_table_node_exception exception = {.parent = fields->parent,
                                                          .function = fields->function,
                                                          .line = fields->line,
                                                          .file = fields->file};
    buf_append(&encoder->node_exceptions, &exception, sizeof(exception));
}

static void append_nodes(struct symbol_encoder *encoder)
{
    const struct symbol_table_nodes widths = choose_widths(encoder);
    const unsigned rest_bits =
        (unsigned)widths.parent_bits + widths.function_bits + widths.line_bits;
    uint32_t exceptions = 0;
    buf_append(&encoder->node_bytes, &widths, sizeof(widths));
    struct bit_writer bits = {.output = &encoder->node_bytes};
    for (uint32_t i = 0; i < encoder->order_count; i++) {
        const struct node_fields fields = read_node_fields(encoder, i);
        if (fits_widths(&fields, widths.parent_bits, widths.line_bits)) {
            bits_append(&bits, 0, 1);
            bits_append(&bits, fields.parent, widths.parent_bits);
            bits_append(&bits, fields.function, widths.function_bits);
            bits_append(&bits, (uint32_t)fields.line, widths.line_bits);
        } else {
            bits_append(&bits, 1, 1);
            /* The index may be narrower than 32 bits; the remaining bits are 0. */
            bits_append(&bits, exceptions++, rest_bits < 32 ? rest_bits : 32);
            bits_append(&bits, 0, rest_bits < 32 ? 0 : rest_bits - 32);
            append_exception(encoder, &fields);
        }
    }
    bits_finish(&bits);
    append_zeros(&encoder->node_bytes, SYMBOL_LOAD_BYTES);
}

/* ---- declarations of functions ---- */

static void append_declarations(struct symbol_encoder *encoder)
{
    const struct symbol_table_writer *writer = encoder->writer;
    uint32_t lines = 0;
    for (uint32_t i = 0; i < writer->function_count; i++)
        lines |= writer->functions[i].line;
    const struct symbol_table_declarations declarations = {
        .file_bits = (uint8_t)bit_width(writer->file_count),
        .line_bits = (uint8_t)bit_width(lines)};
    buf_append(&encoder->declarations, &declarations, sizeof(declarations));
    struct bit_writer bits = {.output = &encoder->declarations};
    for (uint32_t i = 0; i < writer->function_count; i++) {
        bits_append(&bits, writer->functions[i].file, declarations.file_bits);
        bits_append(&bits, writer->functions[i].line, declarations.line_bits);
    }
    bits_finish(&bits);
    append_zeros(&encoder->declarations, SYMBOL_LOAD_BYTES);
}

/* ---- clipping to code ---- */

static const struct symbol_segment *segment_at(const struct symbol_table_writer *writer,
                                               uint64_t address)
{
    for (uint32_t i = 0; i < writer->segment_count; i++) {
        const struct symbol_segment *segment = &writer->segments[i];
        if (segment->flags & SEGMENT_IS_CODE && address >= segment->address &&
            address - segment->address < segment->memory_bytes)
            return segment;
    }
    return NULL;
}

static bool has_code_segment(const struct symbol_table_writer *writer)
{
    for (uint32_t i = 0; i < writer->segment_count; i++) {
        if (writer->segments[i].flags & SEGMENT_IS_CODE && writer->segments[i].memory_bytes)
            return true;
    }
    return false;
}

/* Linkers leave dropped functions at addresses near 0, or at the highest addresses. Removes
 * ranges that do not begin in an executable segment, and shortens those that extend beyond it. */
static uint32_t clip_to_code(const struct symbol_table_writer *writer, struct symbol_range *ranges,
                             uint32_t count)
{
    uint32_t kept = 0;
    const struct symbol_segment *segment = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_range range = ranges[i];
        if (!segment || range.begin - segment->address >= segment->memory_bytes)
            segment = segment_at(writer, range.begin);
        if (!segment)
            continue;
        const uint64_t left = segment->memory_bytes - (range.begin - segment->address);
        if (range.bytes > left)
            range.bytes = (uint32_t)left;
        ranges[kept++] = range;
    }
    return kept;
}

static enum err_code check_address_range(const struct symbol_table_writer *writer, struct err *err)
{
    uint64_t first = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < writer->range_count + writer->symbol_count; i++) {
        const struct symbol_range *range = i < writer->range_count
                                               ? &writer->ranges[i]
                                               : &writer->symbols[i - writer->range_count];
        first = range->begin < first ? range->begin : first;
        end = range->begin + range->bytes > end ? range->begin + range->bytes : end;
    }
    if (end > first && end - first > INT32_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "code from 0x%llx to 0x%llx: a symbol table covers at most 2 GiB",
                       (unsigned long long)first, (unsigned long long)end);
    return ERR_NONE;
}

/* ---- the whole table ---- */

static void encoder_init(struct symbol_encoder *encoder, struct symbol_table_writer *writer)
{
    *encoder = (struct symbol_encoder){.writer = writer, .node = SYMBOL_NONE};
    buf_init(&encoder->group_addresses, UINT32_MAX);
    buf_init(&encoder->group_offsets, UINT32_MAX);
    buf_init(&encoder->records, UINT32_MAX);
    buf_init(&encoder->node_bytes, UINT32_MAX);
    buf_init(&encoder->node_exceptions, UINT32_MAX);
    buf_init(&encoder->declarations, UINT32_MAX);
}

void symbol_encoder_fini(struct symbol_encoder *encoder)
{
    buf_fini(&encoder->group_addresses);
    buf_fini(&encoder->group_offsets);
    buf_fini(&encoder->records);
    buf_fini(&encoder->node_bytes);
    buf_fini(&encoder->node_exceptions);
    buf_fini(&encoder->declarations);
    mem_free(encoder->numbers);
    mem_free(encoder->order);
}

void symbol_encoder_begin(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                          uint64_t first_address)
{
    encoder_init(encoder, writer);
    encoder->first_address = first_address;
    grow_numbers(encoder);
    for (uint32_t i = 0; i < writer->node_count; i++)
        encoder->numbers[i] = encoder->order[i] = i;
    encoder->order_count = writer->node_count;
}

void symbol_encoder_end(struct symbol_encoder *encoder, uint64_t end)
{
    encoder->end = end;
    end_group(encoder);
    append_zeros(&encoder->records, SYMBOL_RECORD_GROUP_MAX_BYTES);
    append_nodes(encoder);
    append_declarations(encoder);
}

enum err_code symbol_encoder_run(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                                 struct err *err)
{
    encoder_init(encoder, writer);
    if (has_code_segment(writer)) {
        writer->range_count = clip_to_code(writer, writer->ranges, writer->range_count);
        writer->symbol_count = clip_to_code(writer, writer->symbols, writer->symbol_count);
    }
    const enum err_code code = check_address_range(writer, err);
    if (code)
        return code;
    struct sweep_source ranges, symbols;
    symbol_sweep_init(&ranges.sweep, writer->ranges, writer->range_count);
    symbol_sweep_init(&symbols.sweep, writer->symbols, writer->symbol_count);
    source_advance(&ranges);
    source_advance(&symbols);
    merge_sources(encoder, &ranges, &symbols);
    symbol_sweep_fini(&ranges.sweep);
    symbol_sweep_fini(&symbols.sweep);
    if (encoder->record_count)
        symbol_encoder_append_gap(encoder, encoder->end);
    symbol_encoder_end(encoder, encoder->end);
    return ERR_NONE;
}
