#include "lib/symbols/symbol_table_old.h"

#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer.h"

enum {
    OLD_SEGMENTS = 1,
    OLD_GROUP_ADDRESSES,
    OLD_GROUP_OFFSETS,
    OLD_RECORDS,
    OLD_NODE_OFFSETS,
    OLD_NODES,
    OLD_DECLARATIONS,
    OLD_FUNCTION_FRAMES,
    OLD_FUNCTION_NAMES,
    OLD_FILE_FRAMES,
    OLD_FILE_NAMES,
    OLD_SECTIONS,
    NODE_GROUP = 32,
    RECORD_GROUP_MAX_BYTES = SYMBOL_RECORD_GROUP * 4 * SYMBOL_VARINT_MAX_BYTES,
    NODE_MAX_BITS = 24 + 22 + SYMBOL_LINE_MAX_BITS,
    NODE_GROUP_MAX_BYTES =
        16 + (NODE_GROUP * (NODE_MAX_BITS + SYMBOL_FILE_MAX_BITS) + 7) / 8 + SYMBOL_LOAD_BYTES
};

struct node_group {
    uint32_t function_base;
    int32_t line_base;
    uint8_t parent_bits;
    uint8_t function_bits;
    uint8_t line_bits;
    uint8_t file_bits;
};
static_assert(sizeof(struct node_group) == 12, "no holes");

struct upgrade {
    struct span bytes;
    struct symbol_table_header header;
    struct span sections[OLD_SECTIONS];
    struct symbol_table_writer *writer;
    struct symbol_encoder encoder;
    struct err *err;
};

static enum err_code set_damaged(const struct upgrade *upgrade, const char *what)
{
    return err_set(upgrade->err, ERR_CORRUPT, "damaged symbol table: %s", what);
}

/* ---- head ---- */

static uint64_t aligned(uint64_t size)
{
    return (size + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT * SYMBOL_TABLE_ALIGNMENT;
}

static enum err_code read_section(struct upgrade *upgrade, uint32_t number)
{
    struct symbol_table_section_entry place;
    memcpy(&place, upgrade->bytes.data + sizeof(upgrade->header) + number * sizeof(place),
           sizeof(place));
    if (place.offset % SYMBOL_TABLE_ALIGNMENT || place.offset > upgrade->bytes.size ||
        place.bytes > UINT32_MAX || aligned(place.bytes) > upgrade->bytes.size - place.offset)
        return set_damaged(upgrade, "a section is out of bounds");
    const uint8_t *data = upgrade->bytes.data + place.offset;
    if (crc32c(span_of(data, (size_t)aligned(place.bytes))) != place.crc)
        return set_damaged(upgrade, "the checksum of a section is wrong");
    if (place.kind < OLD_SECTIONS)
        upgrade->sections[place.kind] = span_of(data, (size_t)place.bytes);
    return ERR_NONE;
}

static enum err_code read_head(struct upgrade *upgrade)
{
    struct symbol_table_header *header = &upgrade->header;
    memcpy(header, upgrade->bytes.data, sizeof(*header));
    const uint64_t head = aligned(sizeof(*header) + header->section_count *
                                                        sizeof(struct symbol_table_section_entry));
    if (header->table_bytes != upgrade->bytes.size ||
        header->section_count > SYMBOL_TABLE_SECTION_MAX_COUNT || head > upgrade->bytes.size)
        return set_damaged(upgrade, "it is truncated");
    const uint32_t crc = header->crc;
    header->crc = 0;
    const struct span rest =
        span_of(upgrade->bytes.data + sizeof(*header), (size_t)head - sizeof(*header));
    if (crc32c_extend(crc32c(span_of(header, sizeof(*header))), rest) != crc)
        return set_damaged(upgrade, "the checksum of its header is wrong");
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; !code && i < header->section_count; i++)
        code = read_section(upgrade, i);
    return code;
}

static uint32_t count_groups(uint32_t count, uint32_t group)
{
    return (count + group - 1) / group;
}

static bool has_bytes(const struct upgrade *upgrade, int section, uint64_t bytes)
{
    return upgrade->sections[section].size == bytes;
}

static enum err_code check_counts(const struct upgrade *upgrade)
{
    const struct symbol_table_header *header = &upgrade->header;
    if (header->record_count > 4 * SYMBOL_RANGE_MAX_COUNT ||
        header->node_count > SYMBOL_NODE_MAX_COUNT ||
        header->function_count > SYMBOL_FUNCTION_MAX_COUNT ||
        header->file_count > SYMBOL_FILE_MAX_COUNT ||
        header->segment_count > SYMBOL_SEGMENT_MAX_COUNT ||
        header->id_bytes > SYMBOL_ID_MAX_BYTES || header->address_bytes > INT32_MAX ||
        header->first_address > UINT64_MAX - header->address_bytes)
        return set_damaged(upgrade, "a count exceeds its limit");
    const uint64_t groups = count_groups(header->record_count, SYMBOL_RECORD_GROUP);
    if (!has_bytes(upgrade, OLD_GROUP_ADDRESSES, groups * 4) ||
        !has_bytes(upgrade, OLD_GROUP_OFFSETS, groups * 4) ||
        !has_bytes(upgrade, OLD_NODE_OFFSETS, count_groups(header->node_count, NODE_GROUP) * 4ul) ||
        !has_bytes(upgrade, OLD_SEGMENTS,
                   header->segment_count * sizeof(struct symbol_table_segment)) ||
        upgrade->sections[OLD_RECORDS].size < RECORD_GROUP_MAX_BYTES ||
        upgrade->sections[OLD_NODES].size < NODE_GROUP_MAX_BYTES)
        return set_damaged(upgrade, "the size of a section does not match its count");
    return ERR_NONE;
}

/* ---- segments, functions, names ---- */

static void convert_segments(struct upgrade *upgrade)
{
    for (uint32_t i = 0; i < upgrade->header.segment_count; i++) {
        struct symbol_table_segment bytes;
        memcpy(&bytes, upgrade->sections[OLD_SEGMENTS].data + i * sizeof(bytes), sizeof(bytes));
        const struct symbol_segment segment = {.offset = bytes.offset,
                                               .address = bytes.address,
                                               .file_bytes = bytes.file_bytes,
                                               .memory_bytes = bytes.memory_bytes,
                                               .alignment = bytes.alignment,
                                               .flags = bytes.flags};
        symbol_table_writer_segment(upgrade->writer, &segment);
    }
}

static enum err_code convert_functions(struct upgrade *upgrade)
{
    struct symbol_table_declarations places;
    struct symbol_table_writer *writer = upgrade->writer;
    const struct span section = upgrade->sections[OLD_DECLARATIONS];
    const uint32_t count = upgrade->header.function_count;
    if (section.size < sizeof(places))
        return set_damaged(upgrade, "the declarations of functions are missing");
    memcpy(&places, section.data, sizeof(places));
    const unsigned width = (unsigned)places.file_bits + places.line_bits;
    if (places.file_bits > SYMBOL_FILE_MAX_BITS || places.line_bits > SYMBOL_LINE_MAX_BITS ||
        section.size != sizeof(places) + ((uint64_t)width * count + 7) / 8 + SYMBOL_LOAD_BYTES)
        return set_damaged(upgrade, "the declarations of functions are invalid");
    writer->functions = mem_new(struct symbol_writer_function, count);
    writer->file_count = upgrade->header.file_count;
    for (; writer->function_count < count; writer->function_count++) {
        struct symbol_writer_function *function = &writer->functions[writer->function_count];
        const uint64_t both = symbol_bits(section.data + sizeof(places),
                                          writer->function_count * (uint64_t)width, width);
        function->file = (uint32_t)(both & ((UINT64_C(1) << places.file_bits) - 1));
        function->line = (uint32_t)(both >> places.file_bits);
        if (function->file > writer->file_count || function->line > SYMBOL_LINE_MAX)
            return set_damaged(upgrade, "the declaration of a function is invalid");
    }
    return ERR_NONE;
}

/* Copies the frames and their index unchanged; finishing the writer adds the end of the index. */
static bool copy_names(struct symbol_strings_writer *writer, struct span frames, struct span names,
                       uint32_t count)
{
    const size_t end_bytes = sizeof(struct symbol_table_frame);
    if (frames.size < end_bytes || frames.size % end_bytes)
        return false;
    buf_append(&writer->index, frames.data, frames.size - end_bytes);
    buf_append_span(&writer->frames, names);
    writer->count = count;
    return true;
}

/* ---- nodes ---- */

static bool read_node_fields(const struct upgrade *upgrade, uint32_t number, uint32_t *ret_parent,
                             uint32_t *ret_function, int32_t *ret_line, uint32_t *ret_file)
{
    uint32_t offset, mask = 0;
    struct node_group group;
    const struct span section = upgrade->sections[OLD_NODES];
    memcpy(&offset, upgrade->sections[OLD_NODE_OFFSETS].data + number / NODE_GROUP * 4ul, 4);
    if (offset > section.size - NODE_GROUP_MAX_BYTES)
        return false;
    const uint8_t *bytes = section.data + offset;
    memcpy(&group, bytes, sizeof(group));
    const unsigned width = (unsigned)group.parent_bits + group.function_bits + group.line_bits;
    if (width > NODE_MAX_BITS || group.parent_bits > 32 || group.function_bits > 32 ||
        group.line_bits > 32 || group.file_bits > SYMBOL_FILE_MAX_BITS)
        return false;
    bytes += sizeof(group);
    if (group.file_bits) {
        memcpy(&mask, bytes, sizeof(mask));
        bytes += sizeof(mask);
    }
    const uint32_t place = number % NODE_GROUP;
    unsigned bit = place * width;
    *ret_parent = (uint32_t)symbol_bits(bytes, bit, group.parent_bits);
    bit += group.parent_bits;
    *ret_function = group.function_base + (uint32_t)symbol_bits(bytes, bit, group.function_bits);
    bit += group.function_bits;
    *ret_line =
        (int32_t)((uint32_t)group.line_base + (uint32_t)symbol_bits(bytes, bit, group.line_bits));
    *ret_file = SYMBOL_NONE;
    if (mask >> place & 1) {
        const uint32_t left = upgrade->header.node_count - (number - place);
        const unsigned nodes = left < NODE_GROUP ? left : NODE_GROUP;
        const unsigned before = (unsigned)__builtin_popcount(mask & ((UINT32_C(1) << place) - 1));
        *ret_file =
            (uint32_t)symbol_bits(bytes, nodes * width + before * group.file_bits, group.file_bits);
    }
    return true;
}

static bool convert_node(struct upgrade *upgrade, uint32_t number)
{
    struct symbol_table_writer *writer = upgrade->writer;
    uint32_t parent, function, file;
    int32_t line;
    if (!read_node_fields(upgrade, number, &parent, &function, &line, &file) ||
        function >= writer->function_count || parent > number)
        return false;
    struct symbol_writer_node *node = &writer->nodes[number];
    *node = (struct symbol_writer_node){.parent = SYMBOL_NONE, .function = function};
    writer->node_depths[number] = 1;
    if (parent == 0)
        return true;
    node->parent = number - parent;
    writer->node_depths[number] = (uint16_t)(writer->node_depths[node->parent] + 1);
    const struct symbol_writer_function *caller =
        &writer->functions[writer->nodes[node->parent].function];
    node->call_line = caller->line + (uint32_t)line;
    node->call_file = file == SYMBOL_NONE ? caller->file : file;
    return writer->node_depths[number] <= SYMBOL_DEPTH_MAX && node->call_line <= SYMBOL_LINE_MAX &&
           node->call_file <= writer->file_count;
}

static enum err_code convert_nodes(struct upgrade *upgrade)
{
    struct symbol_table_writer *writer = upgrade->writer;
    const uint32_t count = upgrade->header.node_count;
    writer->nodes = mem_new(struct symbol_writer_node, count);
    writer->node_depths = mem_new(uint16_t, count);
    for (; writer->node_count < count; writer->node_count++) {
        if (!convert_node(upgrade, writer->node_count))
            return set_damaged(upgrade, "an inlined call is invalid");
    }
    return ERR_NONE;
}

/* ---- records ---- */

struct reader {
    const uint8_t *at;
    uint32_t address;
    uint32_t node;
    uint32_t file; /* 0: file of the function's declaration; else 1 + file */
    int32_t line;
};

static bool convert_record(struct upgrade *upgrade, struct reader *reader, bool *ret_is_gap)
{
    const struct symbol_table_writer *writer = upgrade->writer;
    const uint64_t first = upgrade->header.first_address;
    const uint32_t head = symbol_varint(&reader->at);
    const uint32_t node = head & 1 ? symbol_varint(&reader->at) : UINT32_MAX;
    reader->address += head >> 1;
    *ret_is_gap = node == 0;
    if (*ret_is_gap) {
        symbol_encoder_append_gap(&upgrade->encoder, first + reader->address);
        return true;
    }
    if (head & 1) {
        reader->node += (uint32_t)symbol_unzigzag(node - 1);
        reader->file = 0;
        reader->line = 0;
    }
    const uint32_t line = symbol_varint(&reader->at);
    reader->line = (int32_t)((uint32_t)reader->line + (uint32_t)symbol_unzigzag(line >> 1));
    if (line & 1)
        reader->file = symbol_varint(&reader->at);
    if (reader->node >= writer->node_count)
        return false;
    const struct symbol_writer_function *function =
        &writer->functions[writer->nodes[reader->node].function];
    const uint32_t file = reader->file ? reader->file - 1 : function->file;
    const uint32_t absolute = function->line + (uint32_t)reader->line;
    if (file > writer->file_count || absolute > SYMBOL_LINE_MAX)
        return false;
    symbol_encoder_append_record(&upgrade->encoder, first + reader->address, reader->node, file,
                                 absolute);
    return true;
}

static bool convert_group(struct upgrade *upgrade, uint32_t group, uint32_t *last, bool *ret_is_gap)
{
    const struct span section = upgrade->sections[OLD_RECORDS];
    const uint32_t left = upgrade->header.record_count - group * SYMBOL_RECORD_GROUP;
    struct reader reader = {0};
    uint32_t offset;
    memcpy(&reader.address, upgrade->sections[OLD_GROUP_ADDRESSES].data + group * 4ul, 4);
    memcpy(&offset, upgrade->sections[OLD_GROUP_OFFSETS].data + group * 4ul, 4);
    if (offset > section.size - RECORD_GROUP_MAX_BYTES)
        return false;
    reader.at = section.data + offset;
    for (uint32_t i = 0; i < left && i < SYMBOL_RECORD_GROUP; i++) {
        if (!convert_record(upgrade, &reader, ret_is_gap) ||
            reader.address > upgrade->header.address_bytes ||
            (group + i ? reader.address <= *last : reader.address != 0))
            return false;
        *last = reader.address;
    }
    return true;
}

static enum err_code convert_records(struct upgrade *upgrade)
{
    const struct symbol_table_header *header = &upgrade->header;
    uint32_t last = 0;
    bool is_gap = true;
    symbol_encoder_begin(&upgrade->encoder, upgrade->writer, header->first_address);
    for (uint32_t i = 0; i < count_groups(header->record_count, SYMBOL_RECORD_GROUP); i++) {
        if (!convert_group(upgrade, i, &last, &is_gap))
            return set_damaged(upgrade, "a record is invalid");
    }
    if (!is_gap || last != header->address_bytes)
        return set_damaged(upgrade, "its last record is invalid");
    symbol_encoder_end(&upgrade->encoder, header->first_address + last);
    return ERR_NONE;
}

/* ---- the whole table ---- */

static enum err_code convert_table(struct upgrade *upgrade, struct buf *output)
{
    const struct symbol_table_header *header = &upgrade->header;
    const struct span *sections = upgrade->sections;
    struct symbol_table_facts facts = {.id_kind = header->id_kind,
                                       .id_bytes = header->id_bytes,
                                       .machine = header->machine,
                                       .quality = header->quality,
                                       .broken_units = header->broken_units,
                                       .builder_version = header->builder_version};
    memcpy(facts.id, header->id, header->id_bytes);
    convert_segments(upgrade);
    enum err_code code = convert_functions(upgrade);
    if (!code)
        code = convert_nodes(upgrade);
    if (!code)
        code = convert_records(upgrade);
    if (!code && (!copy_names(&upgrade->writer->names, sections[OLD_FUNCTION_FRAMES],
                              sections[OLD_FUNCTION_NAMES], header->function_count) ||
                  !copy_names(&upgrade->writer->paths, sections[OLD_FILE_FRAMES],
                              sections[OLD_FILE_NAMES], header->file_count)))
        code = set_damaged(upgrade, "its index of names is invalid");
    return code ? code : symbol_encoder_write(&upgrade->encoder, &facts, output, upgrade->err);
}

enum err_code symbol_table_upgrade(struct span bytes, struct buf *output, struct err *err)
{
    struct upgrade upgrade = {.bytes = bytes, .err = err};
    if (bytes.size < sizeof(upgrade.header))
        return set_damaged(&upgrade, "it is truncated");
    enum err_code code = read_head(&upgrade);
    if (!code)
        code = check_counts(&upgrade);
    if (code)
        return code;
    upgrade.writer = symbol_table_writer_create(NULL);
    code = convert_table(&upgrade, output);
    symbol_encoder_fini(&upgrade.encoder);
    symbol_table_writer_destroy(upgrade.writer);
    return code == ERR_TOO_LARGE ? set_damaged(&upgrade, "it exceeds a limit") : code;
}
