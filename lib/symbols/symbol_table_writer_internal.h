/*
 * symbol_table_writer_internal: the state of a writer. Private to symbol_table_write.c (collects
 * the items), symbol_table_encode.c (encodes them), symbol_table_finish.c (assembles the table) and
 * symbol_unpack.c (supplies items that are already in order).
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_WRITER_INTERNAL_H
#define LIB_SYMBOLS_SYMBOL_TABLE_WRITER_INTERNAL_H

#include "lib/base/err.h"
#include "lib/symbols/symbol_strings_write.h"
#include "lib/symbols/symbol_sweep.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer.h"

#include <stddef.h>

struct symbol_hash {
    uint64_t low;
    uint64_t high;
};

/* A hash table with open addressing that holds the numbers of items; SYMBOL_NONE is a free slot. */
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
    uint32_t *recent_nodes; /* the last node of each hash */
    struct symbol_writer_file *files;
    struct symbol_writer_function *functions;
    struct symbol_writer_node *nodes;
    uint16_t *node_depths; /* 1: an outermost function */
    struct symbol_range *ranges;
    struct symbol_range *symbols; /* node is the index of the name */
    struct span *symbol_names;
    struct symbol_segment *segments;
    uint32_t file_count, file_capacity;
    uint32_t function_count, function_capacity;
    uint32_t node_count, node_capacity, node_depth_capacity;
    uint32_t range_count, range_capacity;
    uint32_t symbol_count, symbol_capacity, symbol_name_capacity;
    uint32_t segment_count, segment_capacity;
    struct buf demangled;
    struct err failure; /* code 0: none */
};

/* Returns an outermost node of the function with that linkage name. An empty name is an unknown
 * function. */
uint32_t symbol_table_writer_root(struct symbol_table_writer *writer, struct span linkage_name);

/* Encodes records, nodes and declarations. */
struct symbol_encoder {
    struct symbol_table_writer *writer;
    uint64_t first_address;
    uint64_t end; /* end of the last piece */
    struct buf group_addresses;
    struct buf group_offsets;
    struct buf records;
    uint32_t record_count;
    uint32_t *numbers; /* number of each node in order of address; SYMBOL_NONE: none yet */
    uint32_t *order;   /* the inverse of numbers */
    uint32_t number_capacity;
    uint32_t order_capacity;
    uint32_t numbered_count; /* how many of numbers are initialized */
    uint32_t order_count;
    /* The last record. */
    uint32_t node; /* in the writer's numbering; SYMBOL_NONE: a gap, or no record yet */
    uint32_t file;
    uint32_t line;
    /* The records of the current group. */
    struct symbol_encoder_record {
        uint64_t address;
        uint32_t node; /* its number; SYMBOL_NONE: a gap */
        int32_t line;  /* relative to the declaration of the function */
        uint32_t file; /* SYMBOL_NONE: file of the declaration */
    } group[SYMBOL_RECORD_GROUP];
    uint32_t group_count;
    struct buf node_bytes;
    struct buf node_exceptions;
    struct buf declarations;
};

/* Encodes everything that was added to the writer. May reorder and shorten the writer's ranges
 * and symbols, so it can be called only once. */
enum err_code symbol_encoder_run(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                                 struct err *err) MUST_USE;
/* In place of symbol_encoder_run, the caller (symbol_unpack.c) appends the records itself, for a
 * writer that has all functions, and all nodes in their final order: begin, then each record in
 * ascending order, the first at first_address and the last a gap at `end`, then end. There may be
 * no records. */
void symbol_encoder_begin(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                          uint64_t first_address);
void symbol_encoder_append_record(struct symbol_encoder *encoder, uint64_t address, uint32_t node,
                                  uint32_t file, uint32_t line);
void symbol_encoder_append_gap(struct symbol_encoder *encoder, uint64_t address);
void symbol_encoder_end(struct symbol_encoder *encoder, uint64_t end);
/* Appends the table, with the names that the writer holds. Errors: ERR_TOO_LARGE. */
enum err_code symbol_encoder_write(const struct symbol_encoder *encoder,
                                   const struct symbol_table_facts *facts, struct buf *output,
                                   struct err *err) MUST_USE;
void symbol_encoder_fini(struct symbol_encoder *encoder);

#endif
