/*
 * symbols: opens symbol tables of local files, and builds them if necessary, for perfolio debuginfo
 * and record.
 */
#ifndef CLI_SYMBOLS_H
#define CLI_SYMBOLS_H

#include "cli/cli.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_name_format.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table.h"

/*
 * Prints the problem and the warning of a report, if there are any.
 *
 * Functions below return the report of perfolio-symbolize about the file in *ret_report; if the
 * file has no symbols, it still contains the id and the debug link. It contains only zeros if
 * perfolio-symbolize did not run, because the file cannot be opened or is a table already. If
 * ret_report is NULL, the functions print the warnings themselves after a success. Otherwise they
 * print nothing, so any thread may call them, and the caller may print them with symbols_warn.
 */
void symbols_warn(struct cli *cli, const char *path, const struct symbol_builder_report *report);

/*
 * Builds the table of the file at path into output_fd, in a separate process (perfolio-symbolize,
 * in the folder of this program), and warns of data that it left out. alternate is dwz's shared
 * file; NULL: the path in the file is used, and missing names are a warning. Errors: ERR_NOT_FOUND
 * (no such file, or it has no symbols), ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE, ERR_TIMEOUT,
 * ERR_IO.
 */
enum err_code symbols_build(struct cli *cli, const char *path, const char *alternate, int output_fd,
                            struct symbol_builder_report *ret_report, struct err *err) MUST_USE;

/* Reads the build id of a file, also of one without symbols, as hexadecimal text. Errors: as
 * symbols_build; a file without a build id is ERR_INVALID. */
enum err_code symbols_read_id(const char *path, char ret_id[SYMBOL_BUILDER_ID_BYTES],
                              struct err *err) MUST_USE;

/* Opens a file that is a table or a packed table. Errors: ERR_INVALID (it is neither), and the
 * errors of symbol_table_open_fd and symbol_unpack_fd. */
enum err_code symbols_open_fd(int fd, struct symbol_table **ret_table, struct err *err) MUST_USE;

/*
 * Opens and verifies the file at path if it is a table, else builds its table. Errors: as
 * symbols_build, and ERR_CORRUPT.
 */
enum err_code symbols_open(struct cli *cli, const char *path, const char *alternate,
                           struct symbol_builder_report *ret_report,
                           struct symbol_table **ret_table, struct err *err) MUST_USE;

/* Builds and opens the table of the open file fd, which stays open and is not a table itself. Does
 * not read dwz's shared file. name names the file in messages. Errors: as symbols_build. */
enum err_code symbols_open_program(struct cli *cli, int fd, const char *name,
                                   struct symbol_builder_report *ret_report,
                                   struct symbol_table **ret_table, struct err *err) MUST_USE;

/* Prints id, quality and sizes on standard output. */
void symbols_print_facts(const char *path, const struct symbol_table *table);

/*
 * Prints an address and its frames, leaf first, in the form of addr2line -fip:
 *   0x401136: inner at /src/a.c:3
 *    (inlined by) outer at /src/a.c:10
 * Errors: ERR_CORRUPT.
 */
enum err_code symbols_print_address(struct symbol_cursor *cursor, struct symbol_names *names,
                                    enum symbol_name_format_mode mode, uint64_t address,
                                    struct err *err) MUST_USE;

#endif
