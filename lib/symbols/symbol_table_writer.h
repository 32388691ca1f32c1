/*
 * symbol_table_writer: builds a symbol table from the contents of a debug file.
 *
 *     struct symbol_table_writer *writer = symbol_table_writer_create(&options);
 *     uint32_t file = symbol_table_writer_file(writer, path);
 *     uint32_t function = symbol_table_writer_function(writer, &(struct symbol_function){…});
 *     uint32_t outer = symbol_table_writer_node(writer, SYMBOL_NONE, function, SYMBOL_NONE, 0);
 *     uint32_t inner = symbol_table_writer_node(writer, outer, inlined, call_file, call_line);
 *     symbol_table_writer_range(writer, begin, end, inner, file, line);
 *     symbol_table_writer_symbol(writer, begin, end, linkage_name);     for code without DWARF
 *     if (symbol_table_writer_finish(writer, &facts, &output, &err)) …
 *     symbol_table_writer_destroy(writer);
 *
 * A node is a function at the position where it was inlined; a node without a parent is the
 * function itself. A range of addresses has a node, and the file and line of its code. The frames
 * of an address are, leaf first: the node's function at the range's file and line; its parent's
 * function at the node's call file and call line; and so on.
 *
 * Items may be added in any order; ascending addresses are fastest. Where ranges overlap, the range
 * that was added first wins and later ones get the rest, so add the best source first. When an item
 * exceeds a limit of symbol_table_facts.h, the writer stores the error, and
 * symbol_table_writer_finish returns it; until then all calls do nothing and return SYMBOL_NONE, so
 * that a builder needs one check at the end.
 *
 * Memory: 24 bytes per range, 18 per node, 40 per distinct function; names are compressed as they
 * arrive and not kept. Threads: a writer belongs to one thread.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H
#define LIB_SYMBOLS_SYMBOL_TABLE_WRITER_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

/*
 * Appends the full name for display of linkage_name to output, which is empty; appends nothing if
 * the linkage name needs no change. Called once for each distinct linkage name that was added
 * without a name. It must drop clone suffixes (.cold, .constprop.0) and versions (@GLIBC_2.2.5),
 * also of names that are not mangled, so that the stacks of all clones merge.
 */
typedef void symbol_demangle_function(void *context, struct span linkage_name, struct buf *output);

struct symbol_table_writer_options {
    symbol_demangle_function *demangle; /* NULL: linkage names are displayed unchanged */
    void *context;                      /* passed to demangle */
    bool is_quick;                      /* compress names faster and less well */
};

struct symbol_function {
    struct span linkage_name; /* as in the file; empty: equal to name */
    struct span name;         /* for display; empty: the demangled linkage_name */
    uint32_t file;            /* where it is declared, or SYMBOL_NONE */
    uint32_t line;            /* where it is declared; 0: unknown */
};

struct symbol_table_writer_counts {
    uint32_t files;
    uint32_t functions;
    uint32_t nodes;
    uint32_t ranges;  /* as added */
    uint32_t symbols; /* as added */
};

struct symbol_table_writer;

/* options may be NULL. */
struct symbol_table_writer *
symbol_table_writer_create(const struct symbol_table_writer_options *options);
void symbol_table_writer_destroy(struct symbol_table_writer *writer);

/* Return the number of a file, function or node, that of an equal one if it exists (a node is
 * compared with recent nodes only). The bytes are copied. They return SYMBOL_NONE for an empty
 * path, for a function without a name, and for a node without a function or deeper than
 * SYMBOL_DEPTH_MAX. A node whose parent is SYMBOL_NONE is an outermost function. */
uint32_t symbol_table_writer_file(struct symbol_table_writer *writer, struct span path);
uint32_t symbol_table_writer_function(struct symbol_table_writer *writer,
                                      const struct symbol_function *function);
uint32_t symbol_table_writer_node(struct symbol_table_writer *writer, uint32_t parent,
                                  uint32_t function, uint32_t call_file, uint32_t call_line);

/*
 * Assigns the code of [begin, end) to node, file and line (0: unknown). Empty ranges are ignored.
 * With SYMBOL_NONE as node only the line is known (a file that has only .debug_line); symbols then
 * supply the function.
 */
void symbol_table_writer_range(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                               uint32_t node, uint32_t file, uint32_t line);

/*
 * Adds a symbol for addresses that no range with a node covers. It becomes a function only if there
 * are such addresses. Where symbols overlap, the one that was added first wins. linkage_name is
 * borrowed until finish. The caller determines the end of a symbol without a size, and must not
 * extend it across a gap.
 */
void symbol_table_writer_symbol(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                                struct span linkage_name);

/* Adds a PT_LOAD header, unchanged. The caller adds all headers of the binary. */
void symbol_table_writer_segment(struct symbol_table_writer *writer,
                                 const struct symbol_segment *segment);

/* The numbers of items added so far. */
struct symbol_table_writer_counts
symbol_table_writer_counts(const struct symbol_table_writer *writer);

/*
 * Appends the table to output. Afterwards only counts and destroy may be called. Errors:
 * ERR_TOO_LARGE (a limit, or output's maximum).
 */
enum err_code symbol_table_writer_finish(struct symbol_table_writer *writer,
                                         const struct symbol_table_facts *facts, struct buf *output,
                                         struct err *err) MUST_USE;

#endif
