/*
 * build: builds one symbol table from a file and its companion files.
 *
 * The best source is added first, because the first range wins: Go's own table, then DWARF, then
 * ELF symbols; see README.md. A source that cannot be read is reported, and the other sources are
 * still used.
 */
#ifndef DEBUGINFOD_BUILD_H
#define DEBUGINFOD_BUILD_H

#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_table_writer.h"

#include <stdint.h>

struct buf;

enum {
    BUILD_VERSION = SYMBOL_BUILDER_VERSION,
    BUILD_MAX_SPLIT = 256, /* .dwo files of one build */
};

/* The current phase of a build, reported so that the caller can name it if the process dies. */
enum build_phase { BUILD_HEADERS, BUILD_GO, BUILD_DWARF, BUILD_SYMBOLS, BUILD_TABLE };

struct build_inputs {
    struct span file;
    struct span alternate; /* dwz's shared file; empty: none */
    const struct span *split_files;
    uint32_t split_file_count;
    bool is_mapped;                        /* the spans are mappings of files */
    void (*begin)(enum build_phase phase); /* called at the start of each phase; may be NULL */
    bool is_first_names; /* read only Go's table and symbols, no DWARF: takes milliseconds */
};

struct build_report {
    struct symbol_table_facts facts;
    struct symbol_table_writer_counts counts;
    char problem[ERR_MESSAGE_BYTES]; /* what was left out and why; empty: nothing */
    /* Path of dwz's shared file as the file contains it, if that file is needed and was not given;
     * otherwise empty. */
    char alternate[SYMBOL_BUILDER_TEXT_BYTES];
    uint8_t alternate_id[SYMBOL_BUILDER_ID_BYTES / 2]; /* build id of that file */
    uint32_t alternate_id_bytes;
    /* The separate debug file that .gnu_debuglink names, without directories; empty: none. */
    char debug_link[SYMBOL_BUILDER_LINK_BYTES];
};

/*
 * Appends the table to output. Errors: ERR_INVALID (not an ELF file, damaged, or with DWARF that
 * cannot be read at all), ERR_UNSUPPORTED, ERR_TOO_LARGE, ERR_NOT_FOUND (the file contains no
 * names).
 */
enum err_code build_table(const struct build_inputs *inputs, struct buf *output,
                          struct build_report *ret_report, struct err *err) MUST_USE;

#endif
