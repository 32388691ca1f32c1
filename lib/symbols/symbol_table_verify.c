/* symbol_table_verify of symbol_table.h: checks every byte of a table. */
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table_read.h"

static enum err_code set_damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "damaged symbol table: %s", what);
}

/* Checks that the sections, each with its padding, follow one another from the directory to the
 * end, and verifies their checksums. */
static enum err_code verify_sections(const struct symbol_table *table, struct err *err)
{
    uint64_t end = sizeof(table->header) +
                   table->header.section_count * sizeof(struct symbol_table_section_entry);
    for (uint32_t i = 0; i < table->header.section_count; i++) {
        struct symbol_table_section_entry entry;
        memcpy(&entry, table->bytes.data + sizeof(table->header) + i * sizeof(entry),
               sizeof(entry));
        end = (end + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT * SYMBOL_TABLE_ALIGNMENT;
        const uint64_t bytes = (entry.bytes + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT *
                               SYMBOL_TABLE_ALIGNMENT;
        if (entry.offset != end || bytes > table->bytes.size - end)
            return set_damaged(err, "its sections are not contiguous");
        if (crc32c(span_of(table->bytes.data + end, (size_t)bytes)) != entry.crc)
            return set_damaged(err, "the checksum of a section is wrong");
        end += bytes;
    }
    return end == table->bytes.size ? ERR_NONE
                                    : set_damaged(err, "it has bytes after its sections");
}

/* ---- nodes ---- */

static bool is_line(int64_t line)
{
    return line >= 0 && line <= SYMBOL_LINE_MAX;
}

static bool is_sound_node(const struct symbol_table *table, uint32_t number, uint16_t *depths)
{
    struct symbol_node node, parent;
    struct symbol_declaration declaration;
    if (!symbol_table_node(table, number, &node) ||
        !symbol_table_declaration(table, node.function, &declaration))
        return false;
    depths[number] = 1;
    if (node.parent == 0)
        return true;
    if (node.parent > number || !symbol_table_node(table, number - node.parent, &parent) ||
        !symbol_table_declaration(table, parent.function, &declaration))
        return false;
    depths[number] = (uint16_t)(depths[number - node.parent] + 1);
    return depths[number] <= SYMBOL_DEPTH_MAX &&
           is_line((int64_t)declaration.line + node.call_line) &&
           (node.call_file == SYMBOL_NONE || node.call_file <= table->header.file_count);
}

static enum err_code verify_nodes(const struct symbol_table *table, struct err *err)
{
    const uint32_t count = table->header.node_count;
    uint16_t *depths = mem_new(uint16_t, count);
    uint32_t sound = 0;
    while (sound < count && is_sound_node(table, sound, depths))
        sound++;
    mem_free(depths);
    return sound == count ? ERR_NONE : set_damaged(err, "an inlined call is invalid");
}

static enum err_code verify_places(const struct symbol_table *table, struct err *err)
{
    struct symbol_declaration declaration = {0};
    for (uint32_t i = 0; i < table->header.function_count; i++) {
        symbol_table_declaration(table, i, &declaration);
        if (declaration.file > table->header.file_count || declaration.line > SYMBOL_LINE_MAX)
            return set_damaged(err, "the declaration of a function is invalid");
    }
    return ERR_NONE;
}

/* ---- records ---- */

static bool is_sound_record(const struct symbol_table *table, const struct symbol_record *record)
{
    struct symbol_node node;
    struct symbol_declaration declaration;
    if (record->is_gap)
        return true;
    return symbol_table_node(table, record->node, &node) &&
           symbol_table_declaration(table, node.function, &declaration) &&
           is_line((int64_t)declaration.line + record->line) &&
           (record->file == 0 || record->file - 1 <= table->header.file_count);
}

/* Checks that addresses ascend from the address of the group to below that of the next group, or
 * to the end of the table for the last group. */
static bool verify_group(const struct symbol_table *table, uint32_t group)
{
    const uint32_t count = symbol_group_records(table, group);
    const uint32_t begin = symbol_group_address(table, group);
    struct symbol_record record = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t before = record.address;
        if (!symbol_table_record(table, group, i, &record) || !is_sound_record(table, &record) ||
            (i == 0 ? record.address != begin : record.address <= before))
            return false;
    }
    if (group + 1 == table->group_count)
        return record.is_gap && record.address == table->header.address_bytes;
    return record.address < symbol_group_address(table, group + 1);
}

static enum err_code verify_records(const struct symbol_table *table, struct err *err)
{
    const symbol_u32 *offsets =
        (const symbol_u32 *)table->sections[SYMBOL_SECTION_GROUP_OFFSETS].data;
    uint32_t end = 0;
    for (uint32_t i = 0; i < table->group_count; i++) {
        if (offsets[i] != end)
            return set_damaged(err, "its groups of records are not contiguous");
        if (!verify_group(table, i))
            return set_damaged(err, "a record is invalid");
        end += symbol_table_record_group_bytes(table, i);
    }
    return end == table->last_record_offset
               ? ERR_NONE
               : set_damaged(err, "its records end too early or too late");
}

enum err_code symbol_table_verify(const struct symbol_table *table, struct err *err)
{
    enum err_code code = verify_sections(table, err);
    if (code)
        return code;
    code = verify_places(table, err);
    if (code)
        return code;
    code = verify_nodes(table, err);
    if (code)
        return code;
    code = verify_records(table, err);
    if (code)
        return code;
    return symbol_names_verify(table, err);
}
