/*
 * symbol_table_read: the representation of an open table. Private to lib/symbols/symbol_*.c.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_READ_H
#define LIB_SYMBOLS_SYMBOL_TABLE_READ_H

#include "lib/base/mapped_file.h"
#include "lib/symbols/symbol_table.h"
#include "lib/symbols/symbol_table_format.h"

#include <stdbool.h>

/* A 32-bit number at any address. */
typedef uint32_t symbol_u32 __attribute__((aligned(1)));

enum { SYMBOL_SEARCH_WIDTH = 16, SYMBOL_SEARCH_LEVELS = 6 };

/* One level of the search tree: every 16th key of the level below. */
struct symbol_level {
    const symbol_u32 *keys;
    uint32_t count;
};

/* The names of functions or files. */
struct symbol_strings {
    struct span frames; /* array of struct symbol_table_frame, one more than frame_count */
    struct span names;
    uint32_t frame_count;
    uint32_t item_count;
};

struct symbol_table {
    struct span bytes;
    struct mapped_file mapped; /* closed: bytes belong to the caller */
    struct symbol_table_facts facts;
    struct symbol_table_header header;
    struct span sections[SYMBOL_SECTION_END];
    uint32_t group_count;
    uint32_t last_record_offset; /* the highest offset at which a group can begin */
    struct symbol_table_nodes node_widths;
    unsigned node_bits; /* width of a node */
    uint32_t node_exceptions;
    unsigned declaration_file_bits;
    unsigned declaration_line_bits;
    struct symbol_strings functions;
    struct symbol_strings files;
    struct symbol_level levels[SYMBOL_SEARCH_LEVELS]; /* level 0: the keys of all groups */
    uint32_t level_count;
    uint32_t *search; /* keys of the levels above 0 */
};

struct symbol_node {
    uint32_t parent; /* distance; 0: an outermost function */
    uint32_t function;
    int32_t call_line;  /* relative to the declaration of the parent's function */
    uint32_t call_file; /* from 1, 0 unknown; SYMBOL_NONE: file of that declaration */
};

struct symbol_declaration {
    uint32_t file; /* from 1, 0 unknown */
    uint32_t line;
};

/* Return false when the number or its data is out of bounds. */
bool symbol_table_node(const struct symbol_table *table, uint32_t number,
                       struct symbol_node *ret_node);
bool symbol_table_declaration(const struct symbol_table *table, uint32_t function,
                              struct symbol_declaration *ret_declaration);

struct symbol_record {
    uint32_t address; /* relative to the table's first address */
    bool is_gap;
    uint32_t node;
    int32_t line;  /* relative to the declaration of its function */
    uint32_t file; /* 0: file of the declaration; else 1 + file */
};

/* Reads a record; number is less than symbol_group_records. Returns false when the group is
 * damaged. */
bool symbol_table_record(const struct symbol_table *table, uint32_t group, uint32_t number,
                         struct symbol_record *ret_record);
/* Size of a group in RECORDS, without the zeros after the last group; 0: damaged. */
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
