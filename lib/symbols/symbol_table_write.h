/*
 * symbol_table_write: makes a symbol table out of what a debug file says.
 *
 *     struct symbol_table_writer *writer = symbol_table_writer_create(&options);
 *     uint32_t file = symbol_table_writer_file(writer, path);
 *     uint32_t function = symbol_table_writer_function(writer, &(struct symbol_function){…});
 *     uint32_t outer = symbol_table_writer_node(writer, SYMBOL_NONE, function, SYMBOL_NONE, 0);
 *     uint32_t inner = symbol_table_writer_node(writer, outer, inlined, call_file, call_line);
 *     symbol_table_writer_range(writer, begin, end, inner, file, line);
 *     symbol_table_writer_symbol(writer, begin, end, linkage_name);     for what DWARF has not
 *     if (symbol_table_writer_finish(writer, &facts, &output, &err)) …
 *     symbol_table_writer_destroy(writer);
 *
 * A node is a function at the place where it was inlined; one without a parent stands for the
 * function itself. A range of addresses has a node, and the file and line of its code. So the
 * frames of an address are, leaf first: the node's function at the range's file and line; its
 * parent's function at the node's call file and call line; and so on.
 *
 * Everything may come in any order, ascending is fastest. Where ranges overlap, the one that was
 * added first has the place and later ones get what is left of theirs: best source first. What a
 * limit of symbol_table_facts.h refuses is remembered and said by finish; until then all calls do
 * nothing and give SYMBOL_NONE, so that a builder checks once, at the end.
 *
 * Memory: 24 bytes a range, 18 a node, 40 a distinct function; names are compressed as
 * they come and not kept. Threads: a writer belongs to one thread.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_WRITE_H
#define LIB_SYMBOLS_SYMBOL_TABLE_WRITE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Appends the full name for people of linkage_name to output, which is empty; nothing when the
 * linkage name is good as it is. Called once for each distinct linkage name that came without a
 * name. Clone suffixes (.cold, .constprop.0) and versions (@GLIBC_2.2.5) are to be left out, also
 * of names that are not mangled, so that stacks merge.
 */
typedef void symbol_demangle_function(void *context, struct span linkage_name, struct buf *output);

struct symbol_table_writer_options {
    symbol_demangle_function *demangle; /* NULL: every name is for people */
    void *context;                      /* of demangle */
    bool is_quick;                      /* in a hurry: names are packed less well */
};

struct symbol_function {
    struct span linkage_name; /* as in the file; empty: the same as name */
    struct span name;         /* for people; empty: what demangle makes of linkage_name */
    uint32_t file;            /* of its declaration, or SYMBOL_NONE */
    uint32_t line;            /* of its declaration; 0: unknown */
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

/* The number of a file or function or node, an old one where there is its equal (of nodes: where it
 * came not long ago). Bytes are not borrowed. An empty path, a function without a name, and a node
 * without a function or deeper than SYMBOL_DEPTH_MAX are SYMBOL_NONE; a node whose parent is
 * SYMBOL_NONE is an outermost function. */
uint32_t symbol_table_writer_file(struct symbol_table_writer *writer, struct span path);
uint32_t symbol_table_writer_function(struct symbol_table_writer *writer,
                                      const struct symbol_function *function);
uint32_t symbol_table_writer_node(struct symbol_table_writer *writer, uint32_t parent,
                                  uint32_t function, uint32_t call_file, uint32_t call_line);

/*
 * The code of [begin, end) is of node, from file and line (0: unknown). Empty ranges are ignored.
 * With SYMBOL_NONE as node it is known which line the code is of, but not which function's (a file
 * with .debug_line alone); symbols give the function then.
 */
void symbol_table_writer_range(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                               uint32_t node, uint32_t file, uint32_t line);

/*
 * A symbol of a symbol table, for addresses that no range with a node has: it becomes a function
 * only when there are such. Where symbols overlap, the first that was added has the place. The
 * bytes of linkage_name are borrowed until finish. A symbol without a size is the caller's to end:
 * never across a gap.
 */
void symbol_table_writer_symbol(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                                struct span linkage_name);

/* All PT_LOAD headers, as they are in the file. */
void symbol_table_writer_segment(struct symbol_table_writer *writer,
                                 const struct symbol_segment *segment);

/* What came until now. */
struct symbol_table_writer_counts
symbol_table_writer_counts(const struct symbol_table_writer *writer);

/*
 * Appends the table to output. The writer is of no use afterwards but for counts and destroy.
 * Handles: ERR_TOO_LARGE (a limit, or output's maximum).
 */
enum err_code symbol_table_writer_finish(struct symbol_table_writer *writer,
                                         const struct symbol_table_facts *facts, struct buf *output,
                                         struct err *err) MUST_USE;

#endif
