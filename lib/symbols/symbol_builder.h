/*
 * symbol_builder: builds a symbol table by running perfolio-symbolize in a separate process.
 *
 * The builder reads files that may be hostile, in a sandbox (debuginfod/README.md). The caller
 * survives any failure of it: a crash, a timeout and a lack of memory are reported as errors with a
 * message. This module checks the builder's report; symbol_table checks the table that it wrote.
 * Threads: any; each call waits for its own process.
 */
#ifndef LIB_SYMBOLS_SYMBOL_BUILDER_H
#define LIB_SYMBOLS_SYMBOL_BUILDER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_limit;

enum {
    /* increased when a rebuild of the same file would improve its table */
    SYMBOL_BUILDER_VERSION = 1,
    SYMBOL_BUILDER_SPLIT_MAX = 256, /* maximum number of split files in one build */
    SYMBOL_BUILDER_TEXT_BYTES = 512,
    SYMBOL_BUILDER_ID_BYTES = 257, /* a build id as hexadecimal text, with NUL */
    SYMBOL_BUILDER_LINK_BYTES = 256,
};

struct symbol_builder_options {
    const char *program;     /* path of perfolio-symbolize; NULL: next to this executable */
    int input_fd;            /* a regular file, like all inputs; read from its beginning */
    int output_fd;           /* written from its current position */
    int alternate_fd;        /* the shared file made by dwz; -1: none */
    const int *split_fds;    /* .dwo files */
    uint32_t split_fd_count; /* at most SYMBOL_BUILDER_SPLIT_MAX */
    /* read only Go's table and the symbols, not DWARF: takes milliseconds */
    bool is_first_names;
    bool is_packed;                      /* write the packed form of the table where possible */
    uint64_t memory_bytes;               /* limit on the address space of the process; 0: 4 GiB */
    uint64_t output_bytes;               /* limit on the size of the output; 0: 1 GiB */
    uint32_t cpu_s;                      /* limit of the CPU time; 0: 60 */
    int64_t wall_ms;                     /* limit of the wall-clock time; 0: four times cpu_s */
    const struct wait_limit *wait_limit; /* cancels the build; NULL: no limit */
};

struct symbol_builder_report {
    /* build id of the file; empty: none, or it could not be read */
    char id[SYMBOL_BUILDER_ID_BYTES];
    uint32_t quality; /* bits of enum symbol_quality */
    uint32_t broken_units;
    uint32_t functions;
    uint32_t ranges;
    uint64_t table_bytes;
    uint64_t cpu_us;                         /* of the builder process */
    uint64_t memory_bytes;                   /* its peak resident memory */
    char problem[SYMBOL_BUILDER_TEXT_BYTES]; /* what was left out and why; empty: nothing */
    /* Path of dwz's shared file as the file contains it, when names are missing without it.
     * Empty: none. */
    char alternate[SYMBOL_BUILDER_TEXT_BYTES];
    /* build id of that file in hexadecimal; empty: none */
    char alternate_id[SYMBOL_BUILDER_ID_BYTES];
    /* Name of the separate debug file, without directories, as the file contains it. Empty:
     * none. */
    char debug_link[SYMBOL_BUILDER_LINK_BYTES];
    char warning[SYMBOL_BUILDER_TEXT_BYTES]; /* of the sandbox; empty: the sandbox is complete */
};

/*
 * Builds a table. Errors: ERR_INVALID (the file is damaged or not an ELF file; or the builder
 * crashed on it), ERR_UNSUPPORTED, ERR_TOO_LARGE (a limit, also of memory and CPU time),
 * ERR_TIMEOUT (wall-clock time), ERR_CANCELLED (wait_limit is over), ERR_NOT_FOUND (no names: a
 * stripped file). After a failure the content of output_fd is unusable; the report then contains
 * only the id and the debug link, if the file could be read that far.
 */
enum err_code symbol_builder_run(const struct symbol_builder_options *options,
                                 struct symbol_builder_report *ret_report,
                                 struct err *err) MUST_USE;

/* Checks that the builder (options.program) can be run. Errors: ERR_NOT_FOUND. */
enum err_code symbol_builder_check(const char *program, struct err *err) MUST_USE;

#endif
