/*
 * symbol_table_writer: what a writer holds. Private to symbol_table_write.c, which collects,
 * symbol_table_encode.c, which makes bytes of it, and symbol_unpack.c, which has it all in order.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H
#define LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H

#include "lib/symbols/symbol_strings_write.h"
#include "lib/symbols/symbol_sweep.h"
#include "lib/symbols/symbol_table_format.h"
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
    /* Records of the group that is not full yet. */
    struct symbol_encoder_record {
        uint64_t address;
        uint32_t node; /* its number; SYMBOL_NONE: a gap */
        int32_t line;  /* from the function's declaration */
        uint32_t file; /* SYMBOL_NONE: that of the declaration */
    } group[SYMBOL_RECORD_GROUP];
    uint32_t group_count;
    struct buf node_bytes;
    struct buf node_exceptions;
    struct buf places;
};

/* Records and nodes of what the writer was given; they are not to be given again. */
enum err_code symbol_encoder_run(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                                 struct err *err) MUST_USE;
/* Or one after the other, of a writer that has all functions, and all nodes in their order: records
 * in ascending order, the first at first_address; the last is a gap, at end. Or none at all. */
void symbol_encoder_begin(struct symbol_encoder *encoder, struct symbol_table_writer *writer,
                          uint64_t first_address);
void symbol_encoder_append_record(struct symbol_encoder *encoder, uint64_t address, uint32_t node,
                                  uint32_t file, uint32_t line);
void symbol_encoder_append_gap(struct symbol_encoder *encoder, uint64_t address);
void symbol_encoder_end(struct symbol_encoder *encoder, uint64_t end);
/* Appends the table, with the names that the writer has. Handles: ERR_TOO_LARGE. */
enum err_code symbol_encoder_write(const struct symbol_encoder *encoder,
                                   const struct symbol_table_facts *facts, struct buf *output,
                                   struct err *err) MUST_USE;
void symbol_encoder_fini(struct symbol_encoder *encoder);

#endif
