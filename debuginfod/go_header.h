/*
 * go_header: the header of Go's function table (pclntab), and access to its functions, names and
 * files.
 */
#ifndef DEBUGINFOD_GO_HEADER_H
#define DEBUGINFOD_GO_HEADER_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum { GO_MAX_FUNCTIONS = 1 << 22, GO_NO_INDEX = -1 };

/* The layouts, named after the first Go version that wrote them. */
enum go_version { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct go_header {
    enum go_version version;
    uint8_t quantum; /* alignment of code */
    uint8_t word;    /* bytes of a pointer */
    uint32_t function_count;
    uint64_t text_start; /* according to the header, from 1.18 to 1.25; else 0 */
    struct span table;   /* all of it */
    struct span names;
    struct span units; /* file numbers of compilation units */
    struct span files;
    struct span lines;     /* programs that map each address of a function to a value */
    struct span functions; /* addresses and offsets, followed by the data that these refer to */
    uint32_t file_count;   /* of version 1.2 */
};

struct go_function {
    uint64_t entry; /* from 1.18 on relative to the start of the text */
    uint64_t end;
    struct span name;
    uint32_t start_line; /* 0: unknown */
    uint32_t file_program;
    uint32_t line_program;
    uint32_t inline_program; /* 0: no inlined calls */
    uint32_t first_file;     /* of its compilation unit */
    uint64_t inline_tree;    /* an address, or from 1.18 on an offset from "go:func.*" */
    bool has_inline_tree;
};

/* Reads the header of a table. Errors: ERR_INVALID, ERR_UNSUPPORTED. */
enum err_code go_header_read(struct span table, struct go_header *ret_header,
                             struct err *err) MUST_USE;
/* Reads a function; number is less than function_count. Returns false when it is damaged. */
bool go_header_function(const struct go_header *header, uint32_t number,
                        struct go_function *ret_function);
/* Names and paths are empty when they are missing or out of bounds. */
struct span go_header_name(const struct go_header *header, int64_t offset);
struct span go_header_file(const struct go_header *header, const struct go_function *function,
                           int64_t number);

#endif
