/*
 * debuginfo_stored: lists and deletes the debug files of a team, for perfolio debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_STORED_H
#define CLI_COMMANDS_DEBUGINFO_STORED_H

#include "cli/cli.h"

/* Prints a line for each binary with a table or a file. Errors: those of client_send. */
enum err_code debuginfo_list(struct cli *cli, bool is_json, struct err *err) MUST_USE;

/* Deletes table and files of each of these build ids, up to the first failure. Errors: those
 * of client_send, ERR_INVALID as a usage error (not a build id). */
enum err_code debuginfo_delete(struct cli *cli, const struct cli_texts *texts,
                               struct err *err) MUST_USE;

#endif
