/*
 * debuginfo_stored: lists and deletes the debug files of a team, for perfolio debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_STORED_H
#define CLI_COMMANDS_DEBUGINFO_STORED_H

#include "cli/cli.h"

/* A line for each binary of which there is a table or a file. Handles what client_send does. */
enum err_code debuginfo_list(struct cli *cli, bool is_json, struct err *err) MUST_USE;

/* Table and files of each of these build ids; the first that fails ends it. Handles what
 * client_send does. */
enum err_code debuginfo_delete(struct cli *cli, const struct cli_texts *texts,
                               struct err *err) MUST_USE;

#endif
