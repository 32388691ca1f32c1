/*
 * symbol_table_writer: what a writer holds. Private to symbol_table_write.c, which collects, and
 * symbol_table_encode.c, which makes bytes of it.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H
#define LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H

#include "lib/symbols/symbol_strings_write.h"
#include "lib/symbols/symbol_sweep.h"
#include "lib/symbols/symbol_table_write.h"

#include <stddef.h>

struct symbol_hash {
    uint64_t low;
    uint64_t high;
};

/* Open addressing: numbers of items, SYMBOL_NONE for a free slot. */
struct symbol_slots {
    uint32_t *numbers;
    uint32_t capacity; /* a power of two, or 0 */
};

struct symbol_writer_file {
    struct symbol_hash hash;
};

struct symbol_writer_function {
    struct symbol_hash hash;
    uint32_t file; /* from 1; 0 unknown, here and below */
    uint32_t line;
};

struct symbol_writer_node {
    uint32_t parent; /* or SYMBOL_NONE */
    uint32_t function;
    uint32_t call_file;
    uint32_t call_line;
};

struct symbol_table_writer {
    struct symbol_table_writer_options options;
    uint64_t seed;
    struct symbol_strings_writer paths;
    struct symbol_strings_writer names;
    struct symbol_slots file_slots;
    struct symbol_slots function_slots;
    uint32_t *recent_nodes; /* by their hash, the last one of each */
    struct symbol_writer_file *files;
    struct symbol_writer_function *functions;
    struct symbol_writer_node *nodes;
    uint16_t *node_depths; /* 1: an outermost function */
    struct symbol_range *ranges;
    struct symbol_range *symbols; /* node is the number of the name */
    struct span *symbol_names;
    struct symbol_segment *segments;
    uint32_t file_count, file_capacity;
    uint32_t function_count, function_capacity;
    uint32_t node_count, node_capacity, node_depth_capacity;
    uint32_t range_count, range_capacity;
    uint32_t symbol_count, symbol_capacity, symbol_name_capacity;
    uint32_t segment_count, segment_capacity;
    struct buf demangled;
    struct err failure; /* code 0: none yet */
};

/* A root node of the function of that linkage name; an empty name is a function nobody knows. */
uint32_t symbol_table_writer_root(struct symbol_table_writer *writer, struct span linkage_name);

/* Records and nodes, as they come out of the ranges. */
struct symbol_encoder {
    struct symbol_table_writer *writer;
    uint64_t first_address;
    uint64_t end; /* of the last piece */
    struct buf group_addresses;
    struct buf group_offsets;
    struct buf records;
    uint32_t record_count;
    uint32_t *numbers; /* of nodes, in order of address; SYMBOL_NONE: not met yet */
    uint32_t *order;   /* the other way round */
    uint32_t number_capacity;
    uint32_t order_capacity;
    uint32_t numbered_count; /* of numbers that are filled in */
    uint32_t order_count;
    /* The last record, as it was given. */
    uint32_t node; /* of the writer; SYMBOL_NONE: a gap, or nothing yet */
    uint32_t file;
    uint32_t line;
    uint64_t address;
    /* What a reader of the group knows. */
    uint32_t coded_node;
    uint32_t coded_file; /* SYMBOL_NONE: the function's own */
    int32_t coded_line;  /* from the function's declaration */
    struct buf node_offsets;
    struct buf node_bytes;
    struct buf places;
};

enum err_code symbol_encoder_run(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                                 struct err *err) MUST_USE;
void symbol_encoder_fini(struct symbol_encoder *encoder);

#endif
