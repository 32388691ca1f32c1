/* Every byte of a table that came from somewhere else: symbol_table_verify of symbol_table.h. */
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table_read.h"

static enum err_code damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "damaged symbol table: %s", what);
}

/* Sections follow upon each other, each with its zeros, from the directory to the end. */
static enum err_code verify_sections(const struct symbol_table *table, struct err *err)
{
    uint64_t end = sizeof(table->header) +
                   table->header.section_count * sizeof(struct symbol_table_section_place);
    for (uint32_t i = 0; i < table->header.section_count; i++) {
        struct symbol_table_section_place place;
        memcpy(&place, table->bytes.data + sizeof(table->header) + i * sizeof(place),
               sizeof(place));
        end = (end + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT * SYMBOL_TABLE_ALIGNMENT;
        const uint64_t bytes = (place.bytes + SYMBOL_TABLE_ALIGNMENT - 1) / SYMBOL_TABLE_ALIGNMENT *
                               SYMBOL_TABLE_ALIGNMENT;
        if (place.offset != end || bytes > table->bytes.size - end)
            return damaged(err, "sections do not follow upon each other");
        if (crc32c(span_of(table->bytes.data + end, (size_t)bytes)) != place.crc)
            return damaged(err, "the checksum of a section");
        end += bytes;
    }
    return end == table->bytes.size ? ERR_NONE : damaged(err, "bytes behind its sections");
}

/* ---- nodes ---- */

static bool is_line(int64_t line)
{
    return line >= 0 && line <= SYMBOL_LINE_MAX;
}

static bool is_sound_node(const struct symbol_table *table, uint32_t number, uint16_t *depths)
{
    struct symbol_node node, parent;
    struct symbol_place place;
    if (!symbol_table_node(table, number, &node) ||
        !symbol_table_place(table, node.function, &place))
        return false;
    depths[number] = 1;
    if (node.parent == 0)
        return true;
    if (node.parent > number || !symbol_table_node(table, number - node.parent, &parent) ||
        !symbol_table_place(table, parent.function, &place))
        return false;
    depths[number] = (uint16_t)(depths[number - node.parent] + 1);
    return depths[number] <= SYMBOL_DEPTH_MAX && is_line((int64_t)place.line + node.call_line) &&
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
    return sound == count ? ERR_NONE : damaged(err, "an inlined call");
}

static enum err_code verify_places(const struct symbol_table *table, struct err *err)
{
    struct symbol_place place = {0};
    for (uint32_t i = 0; i < table->header.function_count; i++) {
        symbol_table_place(table, i, &place);
        if (place.file > table->header.file_count || place.line > SYMBOL_LINE_MAX)
            return damaged(err, "the place of a function");
    }
    return ERR_NONE;
}

/* ---- records ---- */

static bool is_sound_record(const struct symbol_cursor *cursor)
{
    const struct symbol_table *table = cursor->table;
    struct symbol_node node;
    struct symbol_place place;
    if (cursor->is_gap)
        return true;
    return symbol_table_node(table, cursor->node, &node) &&
           symbol_table_place(table, node.function, &place) &&
           is_line((int64_t)place.line + cursor->line) &&
           (cursor->file == 0 || cursor->file - 1 <= table->header.file_count);
}

/* Where the group ends in RECORDS; 0 when something in it is wrong. */
static uint32_t verify_group(struct symbol_cursor *cursor, uint32_t group)
{
    const struct symbol_table *table = cursor->table;
    const uint32_t count = symbol_group_records(table, group);
    const bool is_last = group + 1 == table->group_count;
    uint32_t before = 0;
    symbol_cursor_begin_group(cursor, group);
    if (cursor->next != symbol_group_address(table, group))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (cursor->left == 0 || (i && cursor->next <= before))
            return 0;
        symbol_cursor_take_record(cursor);
        if (!is_sound_record(cursor) ||
            (i == 0 && cursor->begin != symbol_group_address(table, group)))
            return 0;
        before = cursor->begin;
    }
    const bool ends_well = is_last ? cursor->is_gap && before == table->header.address_bytes
                                   : before < cursor->group_end;
    return ends_well ? (uint32_t)(cursor->at - table->sections[SYMBOL_SECTION_RECORDS].data) : 0;
}

static enum err_code verify_records(const struct symbol_table *table, struct err *err)
{
    const symbol_u32 *offsets =
        (const symbol_u32 *)table->sections[SYMBOL_SECTION_GROUP_OFFSETS].data;
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    uint32_t end = 0;
    for (uint32_t i = 0; i < table->group_count; i++) {
        if (offsets[i] != end)
            return damaged(err, "a group of records is not where the one before ends");
        end = verify_group(&cursor, i);
        if (end == 0)
            return damaged(err, "a record");
    }
    return end == table->last_record_offset ? ERR_NONE : damaged(err, "the end of its records");
}

enum err_code symbol_table_verify(const struct symbol_table *table, struct err *err)
{
    enum err_code code = verify_sections(table, err);
    if (!code)
        code = verify_places(table, err);
    if (!code)
        code = verify_nodes(table, err);
    if (!code)
        code = verify_records(table, err);
    if (!code)
        code = symbol_names_verify(table, err);
    return code;
}
