/* Ranges and symbols into records, nodes and places: the heart of symbol_table_write.h. */
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer.h"

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
    unsigned count; /* of bits in word, below 8 between calls */
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

static unsigned width_of(uint32_t number)
{
    return number ? 32 - (unsigned)__builtin_clz(number) : 0;
}

/* ---- order of nodes ---- */

/* All nodes that have come since get their place; symbols add some while records are made. */
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

/* The node's number in order of first address; its callers come before it. */
static uint32_t number_of(struct symbol_encoder *encoder, uint32_t node)
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

static const struct symbol_writer_function *function_of(const struct symbol_table_writer *writer,
                                                        uint32_t node)
{
    return &writer->functions[writer->nodes[node].function];
}

/* ---- groups of records ---- */

/* Bytes of an address in a group whose last one is so far from its first. The highest number is for
 * records that are not there. */
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
    group.node_bits = (uint8_t)width_of(nodes);
    group.line_bits = (uint8_t)width_of(lines);
    group.file_bits = (uint8_t)(has_file ? width_of(files | 1) : 0);
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
    const struct symbol_writer_function *function = function_of(encoder->writer, node);
    const struct symbol_encoder_record record = {.address = address,
                                                 .node = number_of(encoder, node),
                                                 .line = (int32_t)line - (int32_t)function->line,
                                                 .file =
                                                     file == function->file ? SYMBOL_NONE : file};
    add_record(encoder, &record);
    encoder->node = node;
    encoder->file = file;
    encoder->line = line;
}

/* One piece of code behind all that came before. */
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

struct source {
    struct symbol_sweep sweep;
    struct symbol_piece piece; /* begin UINT64_MAX behind the last */
};

static void source_next(struct source *source)
{
    if (!symbol_sweep_next(&source->sweep, &source->piece))
        source->piece = (struct symbol_piece){.begin = UINT64_MAX, .end = UINT64_MAX};
}

/* Forgets what lies before position. */
static void source_skip(struct source *source, uint64_t position)
{
    while (source->piece.end <= position && source->piece.begin != UINT64_MAX)
        source_next(source);
    if (source->piece.begin < position)
        source->piece.begin = position;
}

/* Where what begins at position changes: its end, or the begin of another. */
static uint64_t source_change(const struct source *source, uint64_t position)
{
    return source->piece.begin > position ? source->piece.begin : source->piece.end;
}

/* The node of a symbol, made when its name is needed for the first time. */
static uint32_t node_of_symbol(struct symbol_table_writer *writer, uint32_t number)
{
    const uint32_t bit = UINT32_C(1) << 31;
    struct symbol_range *symbol = &writer->symbols[number];
    if (!(symbol->node & bit))
        symbol->node = symbol_table_writer_root(writer, writer->symbol_names[symbol->node]) | bit;
    return symbol->node == SYMBOL_NONE ? SYMBOL_NONE : symbol->node & ~bit;
}

static void append_from(struct symbol_encoder *encoder, const struct source *ranges,
                        const struct source *symbols, uint64_t begin, uint64_t end)
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

static void append_all(struct symbol_encoder *encoder, struct source *ranges,
                       struct source *symbols)
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
        append_from(encoder, ranges, symbols, begin, end);
        position = end;
    }
}

/* ---- nodes ---- */

struct node_fields {
    uint32_t parent; /* distance, 0: none */
    uint32_t function;
    int32_t line;  /* from the declaration of the parent's function */
    uint32_t file; /* SYMBOL_NONE: as that */
};

static struct node_fields fields_of(const struct symbol_encoder *encoder, uint32_t number)
{
    const struct symbol_table_writer *writer = encoder->writer;
    const struct symbol_writer_node *node = &writer->nodes[encoder->order[number]];
    struct node_fields fields = {.function = node->function, .file = SYMBOL_NONE};
    if (node->parent == SYMBOL_NONE)
        return fields;
    const struct symbol_writer_function *caller = function_of(writer, node->parent);
    fields.parent = number - encoder->numbers[node->parent];
    fields.line = (int32_t)node->call_line - (int32_t)caller->line;
    if (node->call_file != caller->file)
        fields.file = node->call_file;
    return fields;
}

/* How many nodes need how many bits, to find the widths that take the fewest bytes. */
struct width_counts {
    uint32_t both[SYMBOL_LOAD_MAX_BITS][SYMBOL_LOAD_MAX_BITS]; /* [parent][line] */
};

static bool is_usual(const struct node_fields *fields, unsigned parent_bits, unsigned line_bits)
{
    return fields->file == SYMBOL_NONE && fields->line >= 0 &&
           width_of(fields->parent) <= parent_bits && width_of((uint32_t)fields->line) <= line_bits;
}

static void count_widths(const struct symbol_encoder *encoder, struct width_counts *counts)
{
    memset(counts, 0, sizeof(*counts));
    for (uint32_t i = 0; i < encoder->order_count; i++) {
        const struct node_fields fields = fields_of(encoder, i);
        if (fields.file == SYMBOL_NONE && fields.line >= 0)
            counts->both[width_of(fields.parent)][width_of((uint32_t)fields.line)]++;
    }
}

/* Nodes that widths have room for. */
static uint32_t count_usual(const struct width_counts *counts, unsigned parent_bits,
                            unsigned line_bits)
{
    uint32_t usual = 0;
    for (unsigned parent = 0; parent <= parent_bits; parent++) {
        for (unsigned line = 0; line <= line_bits; line++)
            usual += counts->both[parent][line];
    }
    return usual;
}

static struct symbol_table_nodes choose_widths(const struct symbol_encoder *encoder)
{
    enum { PARENT_MAX_BITS = 16, LINE_MAX_BITS = 16 };
    const uint32_t count = encoder->order_count;
    const uint32_t functions = encoder->writer->function_count;
    const unsigned function_bits = width_of(functions ? functions - 1 : 0);
    struct symbol_table_nodes best = {.function_bits = (uint8_t)function_bits};
    struct width_counts counts;
    uint64_t best_bits = UINT64_MAX;
    count_widths(encoder, &counts);
    for (unsigned parent = 0; parent <= PARENT_MAX_BITS; parent++) {
        for (unsigned line = 0; line <= LINE_MAX_BITS; line++) {
            const uint32_t exceptions = count - count_usual(&counts, parent, line);
            const uint64_t bits =
                (1 + function_bits + parent + line) * (uint64_t)count +
                exceptions * UINT64_C(8) * sizeof(struct symbol_table_node_exception);
            if (bits >= best_bits || width_of(exceptions) > function_bits + parent + line)
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
        const struct node_fields fields = fields_of(encoder, i);
        if (is_usual(&fields, widths.parent_bits, widths.line_bits)) {
            bits_append(&bits, 0, 1);
            bits_append(&bits, fields.parent, widths.parent_bits);
            bits_append(&bits, fields.function, widths.function_bits);
            bits_append(&bits, (uint32_t)fields.line, widths.line_bits);
        } else {
            bits_append(&bits, 1, 1);
            /* Its number may be narrower than 32 bits, and what is left of them is 0. */
            bits_append(&bits, exceptions++, rest_bits < 32 ? rest_bits : 32);
            bits_append(&bits, 0, rest_bits < 32 ? 0 : rest_bits - 32);
            append_exception(encoder, &fields);
        }
    }
    bits_finish(&bits);
    append_zeros(&encoder->node_bytes, SYMBOL_LOAD_BYTES);
}

/* ---- places of functions ---- */

static void append_places(struct symbol_encoder *encoder)
{
    const struct symbol_table_writer *writer = encoder->writer;
    uint32_t lines = 0;
    for (uint32_t i = 0; i < writer->function_count; i++)
        lines |= writer->functions[i].line;
    const struct symbol_table_places places = {.file_bits = (uint8_t)width_of(writer->file_count),
                                               .line_bits = (uint8_t)width_of(lines)};
    buf_append(&encoder->places, &places, sizeof(places));
    struct bit_writer bits = {.output = &encoder->places};
    for (uint32_t i = 0; i < writer->function_count; i++) {
        bits_append(&bits, writer->functions[i].file, places.file_bits);
        bits_append(&bits, writer->functions[i].line, places.line_bits);
    }
    bits_finish(&bits);
    append_zeros(&encoder->places, SYMBOL_LOAD_BYTES);
}

/* ---- what is code ---- */

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

/* Linkers leave functions that they dropped at addresses near 0, or at the highest: what is not in
 * an executable segment goes, and what reaches out of one is cut. */
static uint32_t keep_code(const struct symbol_table_writer *writer, struct symbol_range *ranges,
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

static enum err_code check_span(const struct symbol_table_writer *writer, struct err *err)
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
                       "code from 0x%llx to 0x%llx: a symbol table has room for 2 GiB",
                       (unsigned long long)first, (unsigned long long)end);
    return ERR_NONE;
}

/* ---- all of it ---- */

static void encoder_init(struct symbol_encoder *encoder, struct symbol_table_writer *writer)
{
    *encoder = (struct symbol_encoder){.writer = writer, .node = SYMBOL_NONE};
    buf_init(&encoder->group_addresses, UINT32_MAX);
    buf_init(&encoder->group_offsets, UINT32_MAX);
    buf_init(&encoder->records, UINT32_MAX);
    buf_init(&encoder->node_bytes, UINT32_MAX);
    buf_init(&encoder->node_exceptions, UINT32_MAX);
    buf_init(&encoder->places, UINT32_MAX);
}

void symbol_encoder_fini(struct symbol_encoder *encoder)
{
    buf_fini(&encoder->group_addresses);
    buf_fini(&encoder->group_offsets);
    buf_fini(&encoder->records);
    buf_fini(&encoder->node_bytes);
    buf_fini(&encoder->node_exceptions);
    buf_fini(&encoder->places);
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
    append_places(encoder);
}

enum err_code symbol_encoder_run(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                                 struct err *err)
{
    encoder_init(encoder, writer);
    if (has_code_segment(writer)) {
        writer->range_count = keep_code(writer, writer->ranges, writer->range_count);
        writer->symbol_count = keep_code(writer, writer->symbols, writer->symbol_count);
    }
    const enum err_code code = check_span(writer, err);
    if (code)
        return code;
    struct source ranges, symbols;
    symbol_sweep_init(&ranges.sweep, writer->ranges, writer->range_count);
    symbol_sweep_init(&symbols.sweep, writer->symbols, writer->symbol_count);
    source_next(&ranges);
    source_next(&symbols);
    append_all(encoder, &ranges, &symbols);
    symbol_sweep_fini(&ranges.sweep);
    symbol_sweep_fini(&symbols.sweep);
    if (encoder->record_count)
        symbol_encoder_append_gap(encoder, encoder->end);
    symbol_encoder_end(encoder, encoder->end);
    return ERR_NONE;
}
