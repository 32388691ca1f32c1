/*
 * symbol_table_read: what an open table is. Private to the files lib/symbols/symbol_*.c.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_READ_H
#define LIB_SYMBOLS_SYMBOL_TABLE_READ_H

#include "lib/symbols/symbol_table.h"
#include "lib/symbols/symbol_table_format.h"

#include <stdbool.h>

/* Bytes come from anywhere in memory. */
typedef uint32_t symbol_u32 __attribute__((aligned(1)));

enum { SYMBOL_SEARCH_WIDTH = 16, SYMBOL_SEARCH_LEVELS = 6 };

/* Keys of one level of the search: every 16th of the level below it. */
struct symbol_level {
    const symbol_u32 *keys;
    uint32_t count;
};

/* Names of functions or files. */
struct symbol_strings {
    struct span frames; /* struct symbol_table_frame, one more than there are frames */
    struct span names;
    uint32_t frame_count;
    uint32_t item_count;
};

struct symbol_table {
    struct span bytes;
    bool is_mapped;
    struct symbol_table_facts facts;
    struct symbol_table_header header;
    struct span sections[SYMBOL_SECTION_END];
    uint32_t group_count;
    uint32_t last_record_offset; /* where a group may begin at most */
    uint32_t last_node_offset;
    unsigned place_file_bits;
    unsigned place_line_bits;
    struct symbol_strings functions;
    struct symbol_strings files;
    struct symbol_level levels[SYMBOL_SEARCH_LEVELS]; /* 0: the groups of the table itself */
    uint32_t level_count;
    uint32_t *search; /* keys of the levels above 0 */
};

struct symbol_node {
    uint32_t parent; /* distance; 0: outermost */
    uint32_t function;
    int32_t call_line;  /* from the declaration of the parent's function */
    uint32_t call_file; /* from 1, 0 unknown; SYMBOL_NONE: as that */
};

struct symbol_place {
    uint32_t file; /* from 1, 0 unknown */
    uint32_t line;
};

/* False when it is out of bounds. */
bool symbol_table_node(const struct symbol_table *table, uint32_t number,
                       struct symbol_node *ret_node);
bool symbol_table_place(const struct symbol_table *table, uint32_t function,
                        struct symbol_place *ret_place);

/* Steps of a search, for verify: to before the first record of a group; the record to come becomes
 * the one in hand, where cursor->left is not 0. */
void symbol_cursor_begin_group(struct symbol_cursor *cursor, uint32_t group);
void symbol_cursor_take_record(struct symbol_cursor *cursor);

static inline uint32_t symbol_group_address(const struct symbol_table *table, uint32_t group)
{
    return table->levels[0].keys[group];
}

static inline uint32_t symbol_group_records(const struct symbol_table *table, uint32_t group)
{
    const uint32_t left = table->header.record_count - group * SYMBOL_RECORD_GROUP;
    return left < SYMBOL_RECORD_GROUP ? left : SYMBOL_RECORD_GROUP;
}

#endif
