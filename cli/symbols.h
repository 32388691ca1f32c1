/*
 * symbols: symbol tables of local files, for perfolio debuginfo: opened, or built first.
 */
#ifndef CLI_SYMBOLS_H
#define CLI_SYMBOLS_H

#include "cli/cli.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_name.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table.h"

/*
 * ret_report, of each function: what the builder reports of the file, with id and debug link of one
 * that names nothing, zeros where no table was built. With it no warning is printed, and the
 * function may be called by any thread; symbols_warn prints later. NULL: warnings are printed.
 */
void symbols_warn(struct cli *cli, const char *path, const struct symbol_builder_report *report);

/*
 * Builds the table of the file at path into output_fd, in a process of its own (perfolio-symbolize,
 * beside this program), and warns of what it left out. alternate is dwz's shared file or NULL: then
 * it is looked for where the file says, and missing names are a warning.
 * Handles: ERR_NOT_FOUND (it is not there, or names nothing), ERR_INVALID, ERR_UNSUPPORTED,
 * ERR_TOO_LARGE, ERR_TIMEOUT, ERR_IO.
 */
enum err_code symbols_build(struct cli *cli, const char *path, const char *alternate, int output_fd,
                            struct symbol_builder_report *ret_report, struct err *err) MUST_USE;

/* The build id of a file, as hexadecimal text, which may name nothing. Handles: as symbols_build; a
 * file without any is ERR_INVALID. */
enum err_code symbols_read_id(const char *path, char ret_id[SYMBOL_BUILDER_ID_BYTES],
                              struct err *err) MUST_USE;

/* The table in a file, which may be a packed one. Handles: ERR_INVALID (it is neither), and what
 * symbol_table_open_fd and symbol_unpack_fd do. */
enum err_code symbols_open_fd(int fd, struct symbol_table **ret_table, struct err *err) MUST_USE;

/*
 * The table in the file at path, or of it where it is none, verified. Handles: as symbols_build,
 * and ERR_CORRUPT.
 */
enum err_code symbols_open(struct cli *cli, const char *path, const char *alternate,
                           struct symbol_builder_report *ret_report,
                           struct symbol_table **ret_table, struct err *err) MUST_USE;

/* As symbols_open, of a file that is open and no table; name stands in messages. */
enum err_code symbols_open_program(struct cli *cli, int fd, const char *name,
                                   struct symbol_builder_report *ret_report,
                                   struct symbol_table **ret_table, struct err *err) MUST_USE;

/* A few lines on standard output: id, quality, sizes. */
void symbols_print_facts(const char *path, const struct symbol_table *table);

/*
 * An address and its frames, leaf first, as addr2line -fip prints them:
 *   0x401136: inner at /src/a.c:3
 *    (inlined by) outer at /src/a.c:10
 * Handles: ERR_CORRUPT.
 */
enum err_code symbols_print_address(struct symbol_cursor *cursor, struct symbol_names *names,
                                    enum symbol_name_mode mode, uint64_t address,
                                    struct err *err) MUST_USE;

#endif
