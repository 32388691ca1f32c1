/*
 * Addresses to frames: symbol_cursor_* of symbol_table.h. This is the hot path of resolving a
 * profile; what it costs is in lib/symbols/DESIGN.md, and tests/bench/bench_symbols.c measures it.
 */
#include "lib/symbols/symbol_table_read.h"

enum { STEPS_BEFORE_SEARCH = 4 };

/* ---- nodes and places ---- */

static inline bool read_node(const struct symbol_table *table, uint32_t number,
                             struct symbol_node *ret_node)
{
    if (number >= table->header.node_count)
        return false;
    const symbol_u32 *offsets =
        (const symbol_u32 *)table->sections[SYMBOL_SECTION_NODE_OFFSETS].data;
    const uint32_t offset = offsets[number / SYMBOL_NODE_GROUP];
    if (offset > table->last_node_offset)
        return false;
    const uint8_t *bytes = table->sections[SYMBOL_SECTION_NODES].data + offset;
    struct symbol_table_node_group group;
    memcpy(&group, bytes, sizeof(group));
    const unsigned width = (unsigned)group.parent_bits + group.function_bits + group.line_bits;
    if (width > SYMBOL_NODE_MAX_BITS || group.parent_bits > 32 || group.function_bits > 32 ||
        group.line_bits > 32 || group.file_bits > SYMBOL_FILE_MAX_BITS)
        return false;
    bytes += sizeof(group);
    uint32_t mask = 0;
    if (group.file_bits) {
        memcpy(&mask, bytes, sizeof(mask));
        bytes += sizeof(mask);
    }
    const uint32_t place = number % SYMBOL_NODE_GROUP;
    unsigned bit = place * width;
    ret_node->parent = (uint32_t)symbol_bits(bytes, bit, group.parent_bits);
    bit += group.parent_bits;
    ret_node->function =
        group.function_base + (uint32_t)symbol_bits(bytes, bit, group.function_bits);
    bit += group.function_bits;
    ret_node->call_line =
        (int32_t)((uint32_t)group.line_base + (uint32_t)symbol_bits(bytes, bit, group.line_bits));
    ret_node->call_file = SYMBOL_NONE;
    if (mask >> place & 1) {
        const uint32_t left = table->header.node_count - (number - place);
        const unsigned nodes = left < SYMBOL_NODE_GROUP ? left : SYMBOL_NODE_GROUP;
        const unsigned before = (unsigned)__builtin_popcount(mask & ((UINT32_C(1) << place) - 1));
        ret_node->call_file =
            (uint32_t)symbol_bits(bytes, nodes * width + before * group.file_bits, group.file_bits);
    }
    return true;
}

static inline bool read_place(const struct symbol_table *table, uint32_t function,
                              struct symbol_place *ret_place)
{
    if (function >= table->header.function_count)
        return false;
    const unsigned file_bits = table->place_file_bits, line_bits = table->place_line_bits;
    const uint64_t both = symbol_bits(
        table->sections[SYMBOL_SECTION_PLACES].data + sizeof(struct symbol_table_places),
        function * (uint64_t)(file_bits + line_bits), file_bits + line_bits);
    ret_place->file = (uint32_t)(both & ((UINT64_C(1) << file_bits) - 1));
    ret_place->line = (uint32_t)(both >> file_bits);
    return true;
}

bool symbol_table_node(const struct symbol_table *table, uint32_t number,
                       struct symbol_node *ret_node)
{
    return read_node(table, number, ret_node);
}

bool symbol_table_place(const struct symbol_table *table, uint32_t function,
                        struct symbol_place *ret_place)
{
    return read_place(table, function, ret_place);
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

/* Frames of the node's callers; 0 when something is out of bounds, which verify would have said. */
static uint32_t frame_callers(struct symbol_cursor *cursor, struct symbol_node node)
{
    const struct symbol_table *table = cursor->table;
    uint32_t number = cursor->node;
    uint32_t count = 1;
    for (; node.parent; count++) {
        const int32_t call_line = node.call_line;
        const uint32_t call_file = node.call_file;
        struct symbol_place place;
        if (node.parent > number || count == SYMBOL_DEPTH_MAX)
            return 0;
        number -= node.parent;
        if (!read_node(table, number, &node) || !read_place(table, node.function, &place))
            return 0;
        cursor->frames[count] = (struct symbol_frame){
            .function = node.function,
            .file = given_file(table, call_file == SYMBOL_NONE ? place.file : call_file),
            .line = given_line(place.line, call_line)};
    }
    return count;
}

static void frame_node(struct symbol_cursor *cursor)
{
    struct symbol_node node;
    struct symbol_place place;
    cursor->framed_node = cursor->node;
    cursor->frame_count = 0;
    if (!read_node(cursor->table, cursor->node, &node) ||
        !read_place(cursor->table, node.function, &place))
        return;
    cursor->frames[0].function = node.function;
    cursor->own_file = place.file;
    cursor->own_line = place.line;
    cursor->frame_count = frame_callers(cursor, node);
}

static uint32_t frame_record(struct symbol_cursor *cursor)
{
    if (cursor->is_gap)
        return 0;
    if (cursor->framed_node != cursor->node)
        frame_node(cursor);
    const uint32_t file = cursor->file ? cursor->file - 1 : cursor->own_file;
    cursor->frames[0].file = given_file(cursor->table, file);
    cursor->frames[0].line = given_line(cursor->own_line, cursor->line);
    return cursor->frame_count;
}

/* ---- records ---- */

static void read_next(struct symbol_cursor *cursor)
{
    if (cursor->left == 0) {
        cursor->next = cursor->group_end;
        return;
    }
    const uint32_t number = symbol_varint(&cursor->at);
    cursor->next += number >> 1;
    cursor->next_is_other_node = number & 1;
}

static inline void take_record(struct symbol_cursor *cursor)
{
    cursor->begin = cursor->next;
    cursor->is_gap = false;
    if (cursor->next_is_other_node) {
        const uint32_t number = symbol_varint(&cursor->at);
        if (number == 0) {
            cursor->is_gap = true;
        } else {
            cursor->node += (uint32_t)symbol_unzigzag(number - 1);
            cursor->file = 0;
            cursor->line = 0;
        }
    }
    if (!cursor->is_gap) {
        const uint32_t number = symbol_varint(&cursor->at);
        cursor->line = (int32_t)((uint32_t)cursor->line + (uint32_t)symbol_unzigzag(number >> 1));
        if (number & 1)
            cursor->file = symbol_varint(&cursor->at);
    }
    cursor->left--;
    read_next(cursor);
}

void symbol_cursor_take_record(struct symbol_cursor *cursor)
{
    take_record(cursor);
}

static const symbol_u32 *group_offsets(const struct symbol_table *table)
{
    return (const symbol_u32 *)table->sections[SYMBOL_SECTION_GROUP_OFFSETS].data;
}

void symbol_cursor_begin_group(struct symbol_cursor *cursor, uint32_t group)
{
    const struct symbol_table *table = cursor->table;
    const symbol_u32 *offsets = group_offsets(table);
    const bool is_sound = offsets[group] <= table->last_record_offset;
    cursor->group = group;
    cursor->group_end =
        group + 1 < table->group_count ? symbol_group_address(table, group + 1) : UINT32_MAX;
    cursor->begin = cursor->next = symbol_group_address(table, group);
    cursor->left = is_sound ? symbol_group_records(table, group) : 0;
    cursor->at = table->sections[SYMBOL_SECTION_RECORDS].data + (is_sound ? offsets[group] : 0);
    __builtin_prefetch(cursor->at + 64); /* most groups end in the line behind */
    cursor->is_gap = true;
    cursor->node = 0;
    cursor->file = 0;
    cursor->line = 0;
    read_next(cursor);
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

/* The last group that begins at or before key; the first one begins at 0. */
static uint32_t search_group(const struct symbol_table *table, uint32_t key)
{
    uint32_t at = 0;
    for (uint32_t i = table->level_count; i-- > 0;) {
        const struct symbol_level *level = &table->levels[i];
        const uint32_t first = at * SYMBOL_SEARCH_WIDTH;
        if (i == 0) /* comes while the keys do */
            __builtin_prefetch(group_offsets(table) + first);
        at = first + count_up_to(level->keys + first, level->count - first, key) - 1;
    }
    return at;
}

/* The nodes of a group's records are near each other: those of the first one's come while the
 * others are gone through. */
static void prefetch_node(const struct symbol_table *table, uint32_t node)
{
    const symbol_u32 *offsets =
        (const symbol_u32 *)table->sections[SYMBOL_SECTION_NODE_OFFSETS].data;
    const uint32_t offset =
        node < table->header.node_count ? offsets[node / SYMBOL_NODE_GROUP] : UINT32_MAX;
    if (offset <= table->last_node_offset)
        __builtin_prefetch(table->sections[SYMBOL_SECTION_NODES].data + offset);
}

static void find_group(struct symbol_cursor *cursor, uint32_t key)
{
    const struct symbol_table *table = cursor->table;
    uint32_t group = cursor->group;
    if (group == SYMBOL_NONE || key < symbol_group_address(table, group)) {
        symbol_cursor_begin_group(cursor, search_group(table, key));
        return;
    }
    for (unsigned i = 0; i < STEPS_BEFORE_SEARCH; i++, group++) {
        if (group + 1 == table->group_count || key < symbol_group_address(table, group + 1)) {
            if (group != cursor->group || key < cursor->begin)
                symbol_cursor_begin_group(cursor, group);
            return;
        }
    }
    symbol_cursor_begin_group(cursor, search_group(table, key));
}

void symbol_cursor_init(struct symbol_cursor *cursor, const struct symbol_table *table)
{
    cursor->table = table;
    cursor->group = SYMBOL_NONE;
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
    find_group(cursor, (uint32_t)key);
    if (cursor->left && cursor->next <= (uint32_t)key) {
        take_record(cursor);
        prefetch_node(table, cursor->node);
    }
    while (cursor->left && cursor->next <= (uint32_t)key)
        take_record(cursor);
    return frame_record(cursor);
}
