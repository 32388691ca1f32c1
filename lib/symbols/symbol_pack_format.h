/*
 * symbol_pack_format: the byte layout of a packed symbol table, and the prediction model that
 * packing and unpacking share. Private to symbol_pack*.c and symbol_unpack.c.
 *
 * Little-endian. The file consists of:
 *
 *   offset  size     content
 *        0   256     struct symbol_table_header with these differences: the magic is
 *                    SYMBOL_PACK_MAGIC, version is SYMBOL_PACK_VERSION, section_count is the
 *                    number of columns, table_bytes is the size of this file, and crc covers all
 *                    bytes (with 0 in place of crc)
 *      256   15*16   struct symbol_pack_column of each column, in the order of the enumeration
 *      496           the columns: one zstd frame each, nothing for an empty column
 *
 * Numbers in columns are varints of at most five bytes. zigzag() maps small negative and positive
 * differences to small numbers.
 *
 *   column             numbers
 *   SEGMENTS           struct symbol_table_segment of each program header
 *   DECLARATION_FILES  per function: zigzag(file - file of the previous function)
 *   DECLARATION_LINES  per function: zigzag(line - line of the previous function)
 *   NODE_PARENTS       per node: 0: no parent (an outermost function);
 *                      1 + n: the parent is n levels above the previous node (0: that node
 *                      itself), n < SYMBOL_PACK_NEAR_CALLERS;
 *                      SYMBOL_PACK_FAR + number - number of the parent: any other parent
 *   NODE_FUNCTIONS     per node: 0: function, call line and call file are as predicted (see
 *                      below); else 1 + zigzag(function - function of the previous sibling, or of
 *                      the parent if it is the first child)
 *   NODE_LINES         per node that has a parent and was not predicted: zigzag(call line - call
 *                      line of the previous sibling, or declaration line of the parent's function)
 *   NODE_FILES         the same nodes: 0: file of the declaration of the parent's function;
 *                      1 + file
 *   RECORD_ADDRESSES   per record: address - address of the previous record
 *   RECORD_NODES       per record: enum symbol_pack_step + SYMBOL_PACK_STEPS * number
 *   RECORD_LINES       per record that is not a gap: zigzag(line - last line of the same node,
 *                      initially the declaration line of its function)
 *   RECORD_FILES       the same records: 0: last file of the same node, initially that of the
 *                      declaration; 1 + file
 *   FUNCTION_SIZES     per function: size of its name; size of its linkage name, 0 if it is equal
 *   FUNCTION_NAMES     the bytes of these names, in the same order
 *   FILE_SIZES         per file: size of its path
 *   FILE_NAMES         the bytes of these paths
 *
 * Prediction of nodes: the model remembers, for each position, the node that was last seen there. A
 * position is the function of the parent together with the function and call line of the previous
 * sibling. A compiler that inlines f into g usually inlines the same calls into every copy of g, so
 * the remembered node is nearly always right and the node costs one byte.
 *
 * Example: push_back is inlined into f and into h, and the same three calls are inlined into each
 * copy. The nodes of the first copy are encoded with function, line and file. In the second copy,
 * each of the three nodes has the same position as its counterpart, so NODE_FUNCTIONS has a 0.
 */
#ifndef LIB_SYMBOLS_SYMBOL_PACK_FORMAT_H
#define LIB_SYMBOLS_SYMBOL_PACK_FORMAT_H

#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer_internal.h"

#define SYMBOL_PACK_MAGIC "PFSYMPK1"

enum {
    SYMBOL_PACK_VERSION = 1,
    SYMBOL_PACK_NEAR_CALLERS = 32, /* other parents are encoded as a difference of numbers */
    SYMBOL_PACK_FAR = 1 + SYMBOL_PACK_NEAR_CALLERS,
    SYMBOL_PACK_RATIO_SLACK_BYTES = 1 << 20, /* see SYMBOL_PACK_MAX_RATIO */
    SYMBOL_PACK_PREDICTION_BITS = 16         /* predicted_nodes has 2^16 entries */
};

enum symbol_pack_column_kind {
    SYMBOL_PACK_SEGMENTS,
    SYMBOL_PACK_DECLARATION_FILES,
    SYMBOL_PACK_DECLARATION_LINES,
    SYMBOL_PACK_NODE_PARENTS,
    SYMBOL_PACK_NODE_FUNCTIONS,
    SYMBOL_PACK_NODE_LINES,
    SYMBOL_PACK_NODE_FILES,
    SYMBOL_PACK_RECORD_ADDRESSES,
    SYMBOL_PACK_RECORD_NODES,
    SYMBOL_PACK_RECORD_LINES,
    SYMBOL_PACK_RECORD_FILES,
    SYMBOL_PACK_FUNCTION_SIZES,
    SYMBOL_PACK_FUNCTION_NAMES,
    SYMBOL_PACK_FILE_SIZES,
    SYMBOL_PACK_FILE_NAMES,
    SYMBOL_PACK_COLUMNS
};

struct symbol_pack_column {
    uint64_t packed_bytes;
    uint64_t flat_bytes;
};
static_assert(sizeof(struct symbol_pack_column) == 16, "no holes");

/* How the node of a record is derived from the node of the previous record. */
enum symbol_pack_step {
    SYMBOL_PACK_SAME, /* number 0: the same node; 1: a gap, without a node */
    SYMBOL_PACK_NEW,  /* the lowest node without a record, plus number */
    SYMBOL_PACK_UP,   /* the caller 1 + number levels above */
    SYMBOL_PACK_FROM, /* zigzag(node - previous node) is the number */
    SYMBOL_PACK_STEPS
};

/* The state that packing and unpacking update in the same way for each node and record. */
struct symbol_pack_model {
    struct symbol_writer_node *nodes;               /* the first node_count of them are complete */
    const struct symbol_writer_function *functions; /* all of them */
    uint32_t node_count;
    uint32_t *last_children; /* last child of each node; SYMBOL_NONE: no child yet */
    uint32_t last_root;
    uint32_t *predicted_nodes; /* by a hash of the position: the node last seen there */
    /* State of the records. */
    uint32_t *lines; /* line and file of each node's last record */
    uint32_t *files;
    uint32_t next_new; /* the lowest number that no record has used, directly or as a caller */
    uint32_t node;     /* of the last record that is not a gap */
};

/* Borrows nodes, with space for node_count of them, and the complete functions. */
void symbol_pack_model_init(struct symbol_pack_model *model, struct symbol_writer_node *nodes,
                            uint32_t node_count, const struct symbol_writer_function *functions);
void symbol_pack_model_fini(struct symbol_pack_model *model);

/* Everything that the parent of the next node determines. */
struct symbol_pack_position {
    uint32_t sibling;         /* SYMBOL_NONE: the next node is the first child */
    uint32_t *predicted_node; /* entry of predicted_nodes; it is SYMBOL_NONE without a prediction */
    uint32_t near_function;   /* from which NODE_FUNCTIONS stores the difference */
    uint32_t near_line;       /* from which NODE_LINES does */
};
struct symbol_pack_position symbol_pack_model_position(const struct symbol_pack_model *model,
                                                       uint32_t parent);
/* Adds the next node, which is already in nodes, to the model. */
void symbol_pack_model_add(struct symbol_pack_model *model,
                           const struct symbol_pack_position *position);
/* Starts the records, after all nodes were added. */
void symbol_pack_model_begin_records(struct symbol_pack_model *model);

/* Replaces the content of a file with bytes. Errors: ERR_IO. */
enum err_code symbol_pack_write(int fd, struct span bytes, struct err *err) MUST_USE;

#endif
