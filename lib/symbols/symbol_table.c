#include "lib/symbols/symbol_table.h"

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_read.h"

#include <sys/stat.h>

/* ---- sections ---- */

static enum err_code set_corrupt(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "damaged symbol table: %s", what);
}

static enum err_code read_header(struct symbol_table *table, struct err *err)
{
    struct symbol_table_header *header = &table->header;
    if (table->bytes.size < sizeof(*header) ||
        memcmp(table->bytes.data, SYMBOL_TABLE_MAGIC, sizeof(header->magic)) != 0)
        return err_set(err, ERR_INVALID, "not a symbol table");
    memcpy(header, table->bytes.data, sizeof(*header));
    if (header->version != SYMBOL_TABLE_VERSION)
        return err_set(err, ERR_UNSUPPORTED,
                       "symbol table version %u is not supported; this program supports version %d",
                       header->version, SYMBOL_TABLE_VERSION);
    if (header->table_bytes != table->bytes.size)
        return set_corrupt(err, "its size does not match its header");
    if (header->section_count > SYMBOL_TABLE_SECTION_MAX_COUNT)
        return set_corrupt(err, "it has too many sections");
    return ERR_NONE;
}

static uint64_t aligned(uint64_t size)
{
    return (size + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT * SYMBOL_TABLE_ALIGNMENT;
}

/* Verifies the checksum of the header (with 0 in place of the checksum), the directory and its
 * padding. */
static enum err_code check_header_checksum(struct symbol_table *table, struct err *err)
{
    struct symbol_table_header header = table->header;
    const uint64_t bytes =
        aligned(sizeof(header) + header.section_count * sizeof(struct symbol_table_section_entry));
    if (bytes > table->bytes.size)
        return set_corrupt(err, "it is truncated");
    header.crc = 0;
    const struct span rest =
        span_of(table->bytes.data + sizeof(header), (size_t)bytes - sizeof(header));
    if (crc32c_extend(crc32c(span_of(&header, sizeof(header))), rest) != table->header.crc)
        return set_corrupt(err, "the checksum of its header is wrong");
    return ERR_NONE;
}

static enum err_code read_sections(struct symbol_table *table, struct err *err)
{
    for (uint32_t i = 0; i < table->header.section_count; i++) {
        struct symbol_table_section_entry entry;
        memcpy(&entry, table->bytes.data + sizeof(table->header) + i * sizeof(entry),
               sizeof(entry));
        if (entry.offset % SYMBOL_TABLE_ALIGNMENT || entry.offset > table->bytes.size ||
            entry.bytes > table->bytes.size - entry.offset || entry.bytes > UINT32_MAX)
            return set_corrupt(err, "a section is out of bounds");
        if (entry.kind >= SYMBOL_SECTION_END)
            continue;
        table->sections[entry.kind] =
            span_of(table->bytes.data + entry.offset, (size_t)entry.bytes);
    }
    return ERR_NONE;
}

/* ---- counts ---- */

static bool has_bytes(const struct symbol_table *table, enum symbol_table_section section,
                      uint64_t bytes)
{
    return table->sections[section].size == bytes;
}

static enum err_code check_counts(struct symbol_table *table, struct err *err)
{
    const struct symbol_table_header *header = &table->header;
    if (header->record_count > 2 * SYMBOL_RANGE_MAX_COUNT * UINT64_C(2) ||
        header->node_count > SYMBOL_NODE_MAX_COUNT ||
        header->function_count > SYMBOL_FUNCTION_MAX_COUNT ||
        header->file_count > SYMBOL_FILE_MAX_COUNT ||
        header->segment_count > SYMBOL_SEGMENT_MAX_COUNT ||
        header->id_bytes > SYMBOL_ID_MAX_BYTES || header->address_bytes > INT32_MAX ||
        header->first_address > UINT64_MAX - header->address_bytes)
        return set_corrupt(err, "a count exceeds its limit");
    table->group_count = (header->record_count + SYMBOL_RECORD_GROUP - 1) / SYMBOL_RECORD_GROUP;
    if (!has_bytes(table, SYMBOL_SECTION_GROUP_ADDRESSES, table->group_count * UINT64_C(4)) ||
        !has_bytes(table, SYMBOL_SECTION_GROUP_OFFSETS, table->group_count * UINT64_C(4)) ||
        !has_bytes(table, SYMBOL_SECTION_SEGMENTS,
                   header->segment_count * sizeof(struct symbol_table_segment)))
        return set_corrupt(err, "the size of a section does not match its count");
    return ERR_NONE;
}

static enum err_code read_declarations(struct symbol_table *table, struct err *err)
{
    struct symbol_table_declarations declarations;
    const struct span section = table->sections[SYMBOL_SECTION_DECLARATIONS];
    if (section.size < sizeof(declarations))
        return set_corrupt(err, "the declarations of functions are missing");
    memcpy(&declarations, section.data, sizeof(declarations));
    const uint64_t width = (uint64_t)declarations.file_bits + declarations.line_bits;
    const uint64_t bits = width * table->header.function_count;
    if (declarations.file_bits > SYMBOL_FILE_MAX_BITS ||
        declarations.line_bits > SYMBOL_LINE_MAX_BITS ||
        section.size != sizeof(declarations) + (bits + 7) / 8 + SYMBOL_LOAD_BYTES)
        return set_corrupt(err, "the declarations of functions are invalid");
    table->declaration_file_bits = declarations.file_bits;
    table->declaration_line_bits = declarations.line_bits;
    return ERR_NONE;
}

static enum err_code read_nodes(struct symbol_table *table, struct err *err)
{
    struct symbol_table_nodes *widths = &table->node_widths;
    const struct span section = table->sections[SYMBOL_SECTION_NODES];
    const size_t exceptions = table->sections[SYMBOL_SECTION_NODE_EXCEPTIONS].size;
    if (section.size < sizeof(*widths))
        return set_corrupt(err, "the inlined calls are missing");
    memcpy(widths, section.data, sizeof(*widths));
    table->node_bits = 1u + widths->parent_bits + widths->function_bits + widths->line_bits;
    const uint64_t bits = (uint64_t)table->node_bits * table->header.node_count;
    if (widths->parent_bits > 31 || widths->function_bits > 31 || widths->line_bits > 31 ||
        table->node_bits > SYMBOL_LOAD_MAX_BITS ||
        section.size != sizeof(*widths) + (bits + 7) / 8 + SYMBOL_LOAD_BYTES ||
        exceptions % sizeof(struct symbol_table_node_exception))
        return set_corrupt(err, "the inlined calls are invalid");
    table->node_exceptions = (uint32_t)(exceptions / sizeof(struct symbol_table_node_exception));
    return ERR_NONE;
}

/* Computes the last offset at which the longest possible group still ends within the section. */
static enum err_code read_record_limits(struct symbol_table *table, struct err *err)
{
    const size_t records = table->sections[SYMBOL_SECTION_RECORDS].size;
    if (records < SYMBOL_RECORD_GROUP_MAX_BYTES)
        return set_corrupt(err, "the padding after its records is missing");
    table->last_record_offset = (uint32_t)(records - SYMBOL_RECORD_GROUP_MAX_BYTES);
    return ERR_NONE;
}

static struct symbol_table_frame frame_at(struct span frames, uint32_t number)
{
    struct symbol_table_frame frame;
    memcpy(&frame, frames.data + number * sizeof(frame), sizeof(frame));
    return frame;
}

/* Checks the index of frames: items and offsets ascend and end with their section; no frame is
 * empty or too large. */
static bool open_strings(struct symbol_strings *strings, struct span frames, struct span names,
                         uint32_t item_count)
{
    const size_t count = frames.size / sizeof(struct symbol_table_frame);
    if (count == 0 || frames.size % sizeof(struct symbol_table_frame))
        return false;
    *strings = (struct symbol_strings){.frames = frames,
                                       .names = names,
                                       .frame_count = (uint32_t)count - 1,
                                       .item_count = item_count};
    struct symbol_table_frame before = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_table_frame frame = frame_at(frames, i);
        if (i == 0 ? frame.first_item != 0 || frame.offset != 0
                   : frame.first_item <= before.first_item || frame.offset <= before.offset)
            return false;
        if (frame.flat_bytes > SYMBOL_FRAME_MAX_BYTES)
            return false;
        before = frame;
    }
    return before.first_item == item_count && before.offset == names.size;
}

static enum err_code read_strings(struct symbol_table *table, struct err *err)
{
    const struct span *sections = table->sections;
    if (!open_strings(&table->functions, sections[SYMBOL_SECTION_FUNCTION_FRAMES],
                      sections[SYMBOL_SECTION_FUNCTION_NAMES], table->header.function_count) ||
        !open_strings(&table->files, sections[SYMBOL_SECTION_FILE_FRAMES],
                      sections[SYMBOL_SECTION_FILE_NAMES], table->header.file_count))
        return set_corrupt(err, "its index of names is invalid");
    return ERR_NONE;
}

/* ---- search ---- */

/* Makes the groups the lowest level of the search tree. Checks that they ascend and that the first
 * one begins at the table's first address. */
static enum err_code read_groups(struct symbol_table *table, struct err *err)
{
    const symbol_u32 *keys =
        (const symbol_u32 *)table->sections[SYMBOL_SECTION_GROUP_ADDRESSES].data;
    table->levels[0] = (struct symbol_level){.keys = keys, .count = table->group_count};
    if (table->group_count && keys[0] != 0)
        return set_corrupt(err, "its first address is wrong");
    for (uint32_t i = 1; i < table->group_count; i++) {
        if (keys[i] <= keys[i - 1])
            return set_corrupt(err, "its addresses do not ascend");
    }
    if (table->group_count && keys[table->group_count - 1] > table->header.address_bytes)
        return set_corrupt(err, "it has addresses after its end");
    return ERR_NONE;
}

/*
 * Builds the search tree: each level has every 16th key of the one below, until at most 16 keys are
 * left. A search reads one cache line per level. The upper levels together have a fifteenth of the
 * keys, so they tend to stay in the cache. Example: 1.39 million records are 87,000 groups, 5,430,
 * 340, 22 and 2 keys.
 */
static void build_search_levels(struct symbol_table *table)
{
    uint32_t *to = table->search = mem_new(uint32_t, table->group_count / 8 + 64);
    table->level_count = 1;
    for (struct symbol_level *below = table->levels; below->count > SYMBOL_SEARCH_WIDTH; below++) {
        struct symbol_level *level = below + 1;
        *level = (struct symbol_level){
            .keys = to, .count = (below->count + SYMBOL_SEARCH_WIDTH - 1) / SYMBOL_SEARCH_WIDTH};
        for (uint32_t i = 0; i < level->count; i++)
            *to++ = below->keys[i * SYMBOL_SEARCH_WIDTH];
        table->level_count++;
    }
}

static enum err_code open_table(struct symbol_table *table, struct err *err)
{
    enum err_code (*const steps[])(struct symbol_table *, struct err *) = {
        read_header, check_header_checksum, read_sections, check_counts, read_declarations,
        read_nodes,  read_record_limits,    read_strings,  read_groups};
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        const enum err_code code = steps[i](table, err);
        if (code)
            return code;
    }
    build_search_levels(table);
    return ERR_NONE;
}

static void read_facts(struct symbol_table *table)
{
    const struct symbol_table_header *header = &table->header;
    table->facts = (struct symbol_table_facts){.id_kind = header->id_kind,
                                               .id_bytes = header->id_bytes,
                                               .machine = header->machine,
                                               .quality = header->quality,
                                               .broken_units = header->broken_units,
                                               .builder_version = header->builder_version};
    memcpy(table->facts.id, header->id, header->id_bytes);
}

/* ---- opening ---- */

enum err_code symbol_table_open(struct span bytes, struct symbol_table **ret_table, struct err *err)
{
    struct symbol_table *table = mem_new(struct symbol_table, 1);
    table->bytes = bytes;
    const enum err_code code = open_table(table, err);
    if (code) {
        symbol_table_close(table);
        return code;
    }
    read_facts(table);
    *ret_table = table;
    return ERR_NONE;
}

enum err_code symbol_table_open_fd(int fd, struct symbol_table **ret_table, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return err_set_errno(err, ERR_IO, "symbol table");
    if (!S_ISREG(status.st_mode) || status.st_size <= 0)
        return err_set(err, ERR_INVALID, "not a symbol table");
    mapped_file_auto file = {0};
    enum err_code code = mapped_file_open(fd, (size_t)status.st_size, &file, err);
    if (code)
        return code;
    code = symbol_table_open(file.bytes, ret_table, err);
    if (code)
        return mapped_file_check(&file, err) ? err->code : code;
    (*ret_table)->mapped = file;
    file = (struct mapped_file){0};
    return ERR_NONE;
}

enum err_code symbol_table_check(const struct symbol_table *table, struct err *err)
{
    return mapped_file_check(&table->mapped, err);
}

void symbol_table_close(struct symbol_table *table)
{
    if (!table)
        return;
    mapped_file_close(&table->mapped);
    mem_free(table->search);
    mem_free(table);
}

const struct symbol_table_facts *symbol_table_facts(const struct symbol_table *table)
{
    return &table->facts;
}

struct symbol_table_sizes symbol_table_sizes(const struct symbol_table *table)
{
    const struct symbol_table_header *header = &table->header;
    return (struct symbol_table_sizes){.bytes = header->table_bytes,
                                       .first_address = header->first_address,
                                       .end_address = header->first_address + header->address_bytes,
                                       .records = header->record_count,
                                       .nodes = header->node_count,
                                       .functions = header->function_count,
                                       .files = header->file_count,
                                       .segments = header->segment_count};
}

struct symbol_segment symbol_table_segment(const struct symbol_table *table, uint32_t number)
{
    struct symbol_table_segment segment;
    memcpy(&segment, table->sections[SYMBOL_SECTION_SEGMENTS].data + number * sizeof(segment),
           sizeof(segment));
    return (struct symbol_segment){.offset = segment.offset,
                                   .address = segment.address,
                                   .file_bytes = segment.file_bytes,
                                   .memory_bytes = segment.memory_bytes,
                                   .alignment = segment.alignment,
                                   .flags = segment.flags};
}
