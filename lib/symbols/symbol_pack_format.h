/*
 * symbol_pack_format: the bytes of a packed symbol table, and what both its directions know while
 * they go through it. Private to symbol_pack.c and symbol_unpack.c.
 *
 * Little-endian. struct symbol_table_header, with SYMBOL_PACK_MAGIC, a version of its own, the
 * number of columns as section_count and the packed bytes as table_bytes; its checksum covers all
 * bytes, with 0 there. Then a struct symbol_pack_column for each column, in their order; then the
 * columns, each one frame of zstd, or nothing where it has no bytes. Numbers are varints of at most
 * five bytes.
 *
 *   SEGMENTS          struct symbol_table_segment, as the program headers came
 *   PLACE_FILES       of each function: zigzag(file - the file of the function before)
 *   PLACE_LINES       of each function: zigzag(line - the line of the function before)
 *   NODE_PARENTS      of each node: 0: an outermost function; 1 + n: its parent is n callers above
 *                     the node before it, less than SYMBOL_PACK_NEAR_CALLERS; SYMBOL_PACK_FAR +
 * node - parent, where it is not among those NODE_FUNCTIONS    0: function, call line and call file
 * are as foretold (below); else 1 + zigzag of the function less that of the last sibling, or, of a
 * first one, of the parent NODE_LINES        of inlined calls that were not foretold: zigzag(call
 * line - the last sibling's, or that of the declaration of the parent's function) NODE_FILES of
 * those: 0: the file of the parent's declaration; else 1 + file RECORD_ADDRESSES  of each record:
 * address - the one before RECORD_NODES      enum symbol_pack_step, and a number: step +
 * SYMBOL_PACK_STEPS * number RECORD_LINES      of each that is no gap: zigzag(line - the one that
 * the node had last, at first that of its function's declaration) RECORD_FILES      of those: 0:
 * the file that the node had last, at first that of the declaration; else 1 + file FUNCTION_SIZES
 * of each function: bytes of its name, and of its linkage name, 0 where it is equal FUNCTION_NAMES
 * their bytes, in the same order FILE_SIZES, FILE_NAMES   likewise, without a second
 *
 * A node is foretold by the one that came last in the same position: as a child of the same
 * function, behind a sibling of the same function and call line. What a compiler inlines into a
 * function it mostly inlines into each copy of it.
 */
#ifndef LIB_SYMBOLS_SYMBOL_PACK_FORMAT_H
#define LIB_SYMBOLS_SYMBOL_PACK_FORMAT_H

#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer.h"

#define SYMBOL_PACK_MAGIC "PFSYMPK1"

enum {
    SYMBOL_PACK_VERSION = 1,
    SYMBOL_PACK_NEAR_CALLERS = 32, /* what lies further above is told as another number */
    SYMBOL_PACK_FAR = 1 + SYMBOL_PACK_NEAR_CALLERS,
    SYMBOL_PACK_RATIO_SLACK_BYTES = 1 << 20,
    SYMBOL_PACK_FOLLOWER_BITS = 16
};

enum symbol_pack_column_kind {
    SYMBOL_PACK_SEGMENTS,
    SYMBOL_PACK_PLACE_FILES,
    SYMBOL_PACK_PLACE_LINES,
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

/* Where a record's node is from the last record's. */
enum symbol_pack_step {
    SYMBOL_PACK_SAME, /* number 0: the same; 1: none, a gap */
    SYMBOL_PACK_NEW,  /* the first one that no record had, and so many more */
    SYMBOL_PACK_UP,   /* a caller, 1 + so many above */
    SYMBOL_PACK_FROM, /* zigzag(node - the last one) */
    SYMBOL_PACK_STEPS
};

/* What both directions know, filled in as nodes and records come. */
struct symbol_pack_model {
    struct symbol_writer_node *nodes;               /* node_count of them have come */
    const struct symbol_writer_function *functions; /* all of them */
    uint32_t node_count;
    uint32_t *last_children; /* of each node, SYMBOL_NONE: none yet */
    uint32_t last_root;
    uint32_t *followers; /* by a hash of a position, the node that came there last */
    /* Of records. */
    uint32_t *lines; /* of each node, as its last record has it */
    uint32_t *files;
    uint32_t next_new; /* the lowest node that no record had yet, callers included */
    uint32_t node;     /* of the last record that is no gap */
};

/* nodes has room for node_count; functions are all there. */
void symbol_pack_model_init(struct symbol_pack_model *model, struct symbol_writer_node *nodes,
                            uint32_t node_count, const struct symbol_writer_function *functions);
void symbol_pack_model_fini(struct symbol_pack_model *model);

/* What is known of the next node from its parent alone. */
struct symbol_pack_position {
    uint32_t sibling;   /* SYMBOL_NONE: it is the first */
    uint32_t *follower; /* the one that is foretold, SYMBOL_NONE: none */
    uint32_t near_function;
    uint32_t near_line;
};
struct symbol_pack_position symbol_pack_model_position(const struct symbol_pack_model *model,
                                                       uint32_t parent);
/* The next node, in nodes already, has come. */
void symbol_pack_model_add(struct symbol_pack_model *model,
                           const struct symbol_pack_position *position);
/* All nodes have come: records follow. */
void symbol_pack_model_begin_records(struct symbol_pack_model *model);

/* To the beginning of a file. Handles: ERR_IO. */
enum err_code symbol_pack_write(int fd, struct span bytes, struct err *err) MUST_USE;

#endif
