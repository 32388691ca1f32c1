/*
 * symbol_builder: has a symbol table built by perfolio-symbolize, in a process of its own.
 *
 * The builder reads files that may be hostile, in a sandbox (debuginfod/DESIGN.md); whatever
 * becomes of it, its caller goes on: a crash, a time-out and a lack of memory are errors with a
 * text. What it says of itself is checked here; the table that it wrote is for symbol_table to
 * check. Threads: any; each call waits for its own process.
 */
#ifndef LIB_SYMBOLS_SYMBOL_BUILDER_H
#define LIB_SYMBOLS_SYMBOL_BUILDER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_limit;

enum {
    SYMBOL_BUILDER_VERSION = 1,     /* goes up when a table of the same file would get better */
    SYMBOL_BUILDER_SPLIT_MAX = 256, /* split files of one build */
    SYMBOL_BUILDER_TEXT_BYTES = 512,
    SYMBOL_BUILDER_ID_BYTES = 257, /* of a build id as hexadecimal text */
    SYMBOL_BUILDER_LINK_BYTES = 256,
};

struct symbol_builder_options {
    const char *program;     /* path of perfolio-symbolize; NULL: beside this executable */
    int input_fd;            /* a regular file, as all of them; read from its beginning */
    int output_fd;           /* written from where it stands */
    int alternate_fd;        /* dwz's shared file; -1: none */
    const int *split_fds;    /* .dwo files */
    uint32_t split_fd_count; /* at most SYMBOL_BUILDER_SPLIT_MAX */
    bool is_first_names;     /* milliseconds: Go's table and symbols, nothing of DWARF */
    bool is_packed;          /* the table as it is sent, where that is possible */
    uint64_t memory_bytes;   /* of the process's address space; 0: 4 GiB */
    uint64_t output_bytes;   /* 0: 1 GiB */
    uint32_t cpu_s;          /* 0: 60 */
    int64_t wall_ms;         /* 0: four times cpu_s */
    const struct wait_limit *wait_limit; /* when it is over, the build is; NULL: without end */
};

struct symbol_builder_report {
    char id[SYMBOL_BUILDER_ID_BYTES]; /* the file's; empty: it has none, or could not be read */
    uint32_t quality;                 /* of enum symbol_quality */
    uint32_t broken_units;
    uint32_t functions;
    uint32_t ranges;
    uint64_t table_bytes;
    uint64_t cpu_us;                         /* the process's */
    uint64_t memory_bytes;                   /* its peak, resident */
    char problem[SYMBOL_BUILDER_TEXT_BYTES]; /* what was left out and why; empty: nothing */
    /* dwz's shared file as the file names it: with it names would not be missing. Empty: none. */
    char alternate[SYMBOL_BUILDER_TEXT_BYTES];
    char alternate_id[SYMBOL_BUILDER_ID_BYTES]; /* its build id in hexadecimal; empty: as above */
    /* The separate debug file's name, without folders, as the file has it; empty: none. */
    char debug_link[SYMBOL_BUILDER_LINK_BYTES];
    char warning[SYMBOL_BUILDER_TEXT_BYTES]; /* of the sandbox; empty: it is complete */
};

/*
 * Builds. Handles: ERR_INVALID (the file is damaged or no ELF file; the builder died of it),
 * ERR_UNSUPPORTED, ERR_TOO_LARGE (a limit, memory among them), ERR_TIMEOUT (of the clock or the
 * processor), ERR_CANCELLED (the patience is over), ERR_NOT_FOUND (it names nothing: a stripped
 * file). What was written to output_fd by a build that failed is of no use; its report has the id
 * and the debug link of a file that could be read so far, and nothing else.
 */
enum err_code symbol_builder_run(const struct symbol_builder_options *options,
                                 struct symbol_builder_report *ret_report,
                                 struct err *err) MUST_USE;

/* Can the builder (options.program) be run at all? Handles: ERR_NOT_FOUND. */
enum err_code symbol_builder_check(const char *program, struct err *err) MUST_USE;

#endif
