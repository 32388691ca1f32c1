/*
 * symbol_cursor_* of symbol_table.h: from addresses to frames. This is the hot path of symbolizing
 * a profile; lib/symbols/costs.md lists its costs, and tests/bench/bench_symbols.c measures them.
 *
 * A lookup takes four steps. find_group finds the group of 16 records that contains the address: it
 * first tries the next few groups, then searches the levels of 16-way keys. count_records compares
 * all 16 relative addresses with the key, which the compiler turns into one vector comparison.
 * read_record extracts node and line of that record from its bits. frame_node reads the chain of
 * callers, one 8-byte load per node and one per declaration. Each step is skipped when the previous
 * lookup had the same group, record or node.
 */
#include "lib/symbols/symbol_table_read.h"

enum { STEPS_BEFORE_SEARCH = 4 };

/* ---- nodes and declarations ---- */

static bool read_exception(const struct symbol_table *table, uint64_t number,
                           struct symbol_node *ret_node)
{
    struct symbol_table_node_exception exception;
    if (number >= table->node_exceptions)
        return false;
    memcpy(&exception,
           table->sections[SYMBOL_SECTION_NODE_EXCEPTIONS].data + number * sizeof(exception),
           sizeof(exception));
    *ret_node = (struct symbol_node){.parent = exception.parent,
                                     .function = exception.function,
                                     .call_line = exception.line,
                                     .call_file = exception.file};
    return true;
}

static inline bool read_node(const struct symbol_table *table, uint32_t number,
                             struct symbol_node *ret_node)
{
    if (number >= table->header.node_count)
        return false;
    const struct symbol_table_nodes widths = table->node_widths;
    uint64_t word =
        symbol_bits(table->sections[SYMBOL_SECTION_NODES].data + sizeof(struct symbol_table_nodes),
                    number * (uint64_t)table->node_bits, table->node_bits);
    const bool is_exception = word & 1;
    word >>= 1;
    if (is_exception)
        return read_exception(table, word, ret_node);
    ret_node->parent = (uint32_t)word & ((UINT32_C(1) << widths.parent_bits) - 1);
    word >>= widths.parent_bits;
    ret_node->function = (uint32_t)word & ((UINT32_C(1) << widths.function_bits) - 1);
    ret_node->call_line = (int32_t)(word >> widths.function_bits);
    ret_node->call_file = SYMBOL_NONE;
    return true;
}

static inline bool read_declaration(const struct symbol_table *table, uint32_t function,
                                    struct symbol_declaration *ret_declaration)
{
    if (function >= table->header.function_count)
        return false;
    const unsigned file_bits = table->declaration_file_bits,
                   line_bits = table->declaration_line_bits;
    const uint64_t both =
        symbol_bits(table->sections[SYMBOL_SECTION_DECLARATIONS].data +
                        sizeof(struct symbol_table_declarations),
                    function * (uint64_t)(file_bits + line_bits), file_bits + line_bits);
    ret_declaration->file = (uint32_t)(both & ((UINT64_C(1) << file_bits) - 1));
    ret_declaration->line = (uint32_t)(both >> file_bits);
    return true;
}

bool symbol_table_node(const struct symbol_table *table, uint32_t number,
                       struct symbol_node *ret_node)
{
    return read_node(table, number, ret_node);
}

bool symbol_table_declaration(const struct symbol_table *table, uint32_t function,
                              struct symbol_declaration *ret_declaration)
{
    return read_declaration(table, function, ret_declaration);
}

/* ---- frames ---- */

static uint32_t given_file(const struct symbol_table *table, uint32_t file)
{
    return file && file <= table->header.file_count ? file - 1 : SYMBOL_NONE;
}

static uint32_t given_line(uint32_t declared, int32_t difference)
{
    const int64_t line = (int64_t)declared + difference;
    return line >= 0 && line <= SYMBOL_LINE_MAX ? (uint32_t)line : 0;
}

/* Fills in the frames of the node's callers. Returns 0 when a number is out of bounds, which
 * symbol_table_verify would have reported. */
static uint32_t frame_callers(struct symbol_cursor *cursor, uint32_t number,
                              struct symbol_node node)
{
    const struct symbol_table *table = cursor->table;
    uint32_t count = 1;
    for (; node.parent; count++) {
        const int32_t call_line = node.call_line;
        const uint32_t call_file = node.call_file;
        struct symbol_declaration declaration;
        if (node.parent > number || count == SYMBOL_DEPTH_MAX)
            return 0;
        number -= node.parent;
        if (!read_node(table, number, &node) ||
            !read_declaration(table, node.function, &declaration))
            return 0;
        cursor->frames[count] = (struct symbol_frame){
            .function = node.function,
            .file = given_file(table, call_file == SYMBOL_NONE ? declaration.file : call_file),
            .line = given_line(declaration.line, call_line)};
    }
    return count;
}

static void frame_node(struct symbol_cursor *cursor, uint32_t number)
{
    struct symbol_node node;
    struct symbol_declaration declaration;
    cursor->framed_node = number;
    cursor->frame_count = 0;
    if (!read_node(cursor->table, number, &node) ||
        !read_declaration(cursor->table, node.function, &declaration))
        return;
    cursor->frames[0].function = node.function;
    cursor->own_file = declaration.file;
    cursor->own_line = declaration.line;
    cursor->frame_count = frame_callers(cursor, number, node);
}

/* ---- records ---- */

static const symbol_u32 *group_offsets(const struct symbol_table *table)
{
    return (const symbol_u32 *)table->sections[SYMBOL_SECTION_GROUP_OFFSETS].data;
}

/* Starts reading a group. Afterwards its widths are in bounds; a damaged group has no records. */
static void begin_group(struct symbol_cursor *cursor, uint32_t group)
{
    const struct symbol_table *table = cursor->table;
    const uint32_t offset = group_offsets(table)[group];
    const bool is_in_bounds = offset <= table->last_record_offset;
    const uint8_t *at = table->sections[SYMBOL_SECTION_RECORDS].data + (is_in_bounds ? offset : 0);
    struct symbol_table_record_group head;
    memcpy(&head, at, sizeof(head));
    const bool is_sound =
        is_in_bounds && head.address_shift <= 2 && head.node_bits <= SYMBOL_NODE_MAX_BITS &&
        head.line_bits <= SYMBOL_LINE_MAX_BITS && head.file_bits <= SYMBOL_FILE_MAX_BITS;
    cursor->group = group;
    cursor->group_begin = symbol_group_address(table, group);
    cursor->group_bytes =
        (group + 1 < table->group_count ? symbol_group_address(table, group + 1) : UINT32_MAX) -
        cursor->group_begin;
    cursor->group_records = is_sound ? symbol_group_records(table, group) : 0;
    cursor->record = SYMBOL_NONE;
    cursor->count = 0;
    cursor->address_shift = is_sound ? head.address_shift : 0;
    cursor->node_base = head.node_base;
    cursor->line_base = head.line_base;
    cursor->node_bits = head.node_bits;
    cursor->line_bits = head.line_bits;
    cursor->file_bits = is_sound ? head.file_bits : 0;
    cursor->file_mask = 0;
    cursor->addresses = at + sizeof(head);
    cursor->bits = cursor->addresses + ((size_t)SYMBOL_RECORD_GROUP << cursor->address_shift);
    if (cursor->file_bits) {
        uint16_t mask;
        memcpy(&mask, cursor->bits, sizeof(mask));
        cursor->file_mask = mask;
        cursor->bits += sizeof(mask);
    }
}

/* The number of records of the group that begin at or before the address (relative to the
 * group). Missing records have the highest number, which the clamped key never reaches. */
static inline uint32_t count_records(const struct symbol_cursor *cursor, uint32_t behind)
{
    if (cursor->address_shift == 0) {
        const uint8_t key = behind < UINT8_MAX ? (uint8_t)behind : UINT8_MAX - 1;
        uint8_t found = 0;
        for (int i = 0; i < SYMBOL_RECORD_GROUP; i++)
            found = (uint8_t)(found + (cursor->addresses[i] <= key));
        return found;
    }
    if (cursor->address_shift == 1) {
        const uint16_t key = behind < UINT16_MAX ? (uint16_t)behind : UINT16_MAX - 1;
        uint16_t numbers[SYMBOL_RECORD_GROUP], found = 0;
        memcpy(numbers, cursor->addresses, sizeof(numbers));
        for (int i = 0; i < SYMBOL_RECORD_GROUP; i++)
            found = (uint16_t)(found + (numbers[i] <= key));
        return found;
    }
    const symbol_u32 *numbers = (const symbol_u32 *)cursor->addresses;
    uint32_t found = 0;
    for (int i = 0; i < SYMBOL_RECORD_GROUP; i++)
        found += numbers[i] <= behind;
    return found;
}

static inline void read_record(const struct symbol_cursor *cursor, uint32_t number,
                               struct symbol_record *ret_record)
{
    const unsigned width = (unsigned)cursor->node_bits + cursor->line_bits;
    const uint64_t word = symbol_bits(cursor->bits, number * width, width);
    const uint32_t node = (uint32_t)word & ((UINT32_C(1) << cursor->node_bits) - 1);
    ret_record->is_gap = node == 0;
    ret_record->node = cursor->node_base + node - 1;
    ret_record->line =
        (int32_t)((uint32_t)cursor->line_base + (uint32_t)(word >> cursor->node_bits));
    ret_record->file = 0;
    if (cursor->file_mask >> number & 1) {
        const uint32_t before =
            (uint32_t)__builtin_popcount(cursor->file_mask & ((UINT32_C(1) << number) - 1));
        ret_record->file =
            1 + (uint32_t)symbol_bits(cursor->bits,
                                      cursor->group_records * width + before * cursor->file_bits,
                                      cursor->file_bits);
    }
}

static uint32_t frame_record(struct symbol_cursor *cursor, uint32_t number)
{
    struct symbol_record record;
    read_record(cursor, number, &record);
    cursor->record = number;
    cursor->count = 0;
    if (record.is_gap)
        return 0;
    if (cursor->framed_node != record.node)
        frame_node(cursor, record.node);
    const uint32_t file = record.file ? record.file - 1 : cursor->own_file;
    cursor->frames[0].file = given_file(cursor->table, file);
    cursor->frames[0].line = given_line(cursor->own_line, record.line);
    return cursor->count = cursor->frame_count;
}

bool symbol_table_record(const struct symbol_table *table, uint32_t group, uint32_t number,
                         struct symbol_record *ret_record)
{
    struct symbol_cursor cursor;
    cursor.table = table;
    begin_group(&cursor, group);
    if (number >= cursor.group_records)
        return false;
    read_record(&cursor, number, ret_record);
    uint32_t behind = 0;
    memcpy(&behind, cursor.addresses + ((size_t)number << cursor.address_shift),
           (size_t)1 << cursor.address_shift);
    ret_record->address = cursor.group_begin + behind;
    return true;
}

uint32_t symbol_table_record_group_bytes(const struct symbol_table *table, uint32_t group)
{
    struct symbol_cursor cursor;
    cursor.table = table;
    begin_group(&cursor, group);
    if (cursor.group_records == 0)
        return 0;
    const uint32_t bits = cursor.group_records * ((uint32_t)cursor.node_bits + cursor.line_bits) +
                          (uint32_t)__builtin_popcount(cursor.file_mask) * cursor.file_bits;
    return (uint32_t)(cursor.bits - table->sections[SYMBOL_SECTION_RECORDS].data) -
           group_offsets(table)[group] + (bits + 7) / 8;
}

/* ---- search ---- */

static uint32_t count_up_to(const symbol_u32 *keys, uint32_t count, uint32_t key)
{
    uint32_t found = 0;
    if (count >= SYMBOL_SEARCH_WIDTH) {
        for (uint32_t i = 0; i < SYMBOL_SEARCH_WIDTH; i++)
            found += keys[i] <= key;
        return found;
    }
    for (uint32_t i = 0; i < count; i++)
        found += keys[i] <= key;
    return found;
}

/* The last group that begins at or before key; the first group begins at 0. */
static uint32_t search_group(const struct symbol_table *table, uint32_t key)
{
    uint32_t at = 0;
    for (uint32_t i = table->level_count; i-- > 0;) {
        const struct symbol_level *level = &table->levels[i];
        const uint32_t first = at * SYMBOL_SEARCH_WIDTH;
        if (i == 0) /* prefetch: this load overlaps with that of the keys */
            __builtin_prefetch(group_offsets(table) + first);
        at = first + count_up_to(level->keys + first, level->count - first, key) - 1;
    }
    return at;
}

static void find_group(struct symbol_cursor *cursor, uint32_t key)
{
    const struct symbol_table *table = cursor->table;
    uint32_t group = cursor->group;
    if (group != SYMBOL_NONE && key >= cursor->group_begin) {
        for (unsigned i = 0; i < STEPS_BEFORE_SEARCH; i++) {
            group++;
            if (group + 1 == table->group_count || key < symbol_group_address(table, group + 1)) {
                begin_group(cursor, group);
                return;
            }
        }
    }
    begin_group(cursor, search_group(table, key));
}

void symbol_cursor_init(struct symbol_cursor *cursor, const struct symbol_table *table)
{
    cursor->table = table;
    cursor->group = SYMBOL_NONE;
    cursor->group_begin = cursor->group_bytes = 0;
    cursor->framed_node = SYMBOL_NONE;
    cursor->frame_count = 0;
    cursor->own_file = cursor->own_line = 0;
}

uint32_t symbol_cursor_find(struct symbol_cursor *cursor, uint64_t address)
{
    const struct symbol_table *table = cursor->table;
    const uint64_t key = address - table->header.first_address;
    if (address < table->header.first_address || key >= table->header.address_bytes ||
        table->group_count == 0)
        return 0;
    if ((uint32_t)key - cursor->group_begin >= cursor->group_bytes)
        find_group(cursor, (uint32_t)key);
    const uint32_t record = count_records(cursor, (uint32_t)key - cursor->group_begin) - 1;
    if (record == cursor->record)
        return cursor->count;
    return record < cursor->group_records ? frame_record(cursor, record) : 0;
}
