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
    struct span mapped;  /* empty: it was not mapped here */
    struct buf upgraded; /* what bytes are in, where they came in an older form */
    struct symbol_table_facts facts;
    struct symbol_table_header header;
    struct span sections[SYMBOL_SECTION_END];
    uint32_t group_count;
    uint32_t last_record_offset; /* where a group may begin at most */
    struct symbol_table_nodes node_widths;
    unsigned node_bits; /* all of a node's */
    uint32_t node_exceptions;
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

struct symbol_record {
    uint32_t address; /* from the table's first */
    bool is_gap;
    uint32_t node;
    int32_t line;  /* from the declaration of its function */
    uint32_t file; /* 0: that of the declaration; else 1 + file */
};

/* False when the group is damaged. number below symbol_group_records. */
bool symbol_table_record(const struct symbol_table *table, uint32_t group, uint32_t number,
                         struct symbol_record *ret_record);
/* Of a group in RECORDS, without the zeros behind all of them; 0: it is damaged. */
uint32_t symbol_table_record_group_bytes(const struct symbol_table *table, uint32_t group);

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
