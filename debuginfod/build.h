/*
 * build: one symbol table out of a file and what belongs to it.
 *
 * What is best is added first: Go's own table, then DWARF, then symbols; see DESIGN.md. What cannot
 * be read is said, and costs as little of the rest as possible.
 */
#ifndef DEBUGINFOD_BUILD_H
#define DEBUGINFOD_BUILD_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_table_write.h"

#include <stdint.h>

enum {
    BUILD_VERSION = SYMBOL_BUILDER_VERSION,
    BUILD_MAX_SPLIT = 256, /* .dwo files of one build */
};

/* What a build is at; should it die there, whoever waits for it can say where. */
enum build_phase { BUILD_HEADERS, BUILD_GO, BUILD_DWARF, BUILD_SYMBOLS, BUILD_TABLE };

struct build_inputs {
    struct span file;
    struct span alternate; /* dwz's shared file; empty: none */
    const struct span *split_files;
    uint32_t split_file_count;
    bool is_mapped;                        /* the bytes are mappings of files */
    void (*begin)(enum build_phase phase); /* called as each begins; may be NULL */
    bool is_first_names; /* only what takes milliseconds: Go's table and symbols, no DWARF */
};

struct build_report {
    struct symbol_table_facts facts;
    struct symbol_table_writer_counts counts;
    char problem[ERR_MESSAGE_BYTES]; /* what was left out and why; empty: nothing */
    /* dwz's shared file, as the file names it, where names are missing without it. */
    char alternate[SYMBOL_BUILDER_TEXT_BYTES];
    uint8_t alternate_id[SYMBOL_BUILDER_ID_BYTES / 2]; /* its build id */
    uint32_t alternate_id_bytes;
    /* The separate debug file, as .gnu_debuglink names it: a name without folders; empty: none. */
    char debug_link[SYMBOL_BUILDER_LINK_BYTES];
};

/*
 * Appends the table to output. Handles: ERR_INVALID (no ELF file, damaged, or with DWARF of which
 * nothing can be read), ERR_UNSUPPORTED, ERR_TOO_LARGE, ERR_NOT_FOUND (it names nothing).
 */
enum err_code build_table(const struct build_inputs *inputs, struct buf *output,
                          struct build_report *ret_report, struct err *err) MUST_USE;

#endif
