/*
 * debuginfo_upstreams: shows and sets the debuginfod servers of a team, and retries missing files,
 * for perfolio debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H
#define CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H

#include "cli/cli.h"

/*
 * Without texts, prints the list of servers. With texts ("public", "off" or URLs), replaces the
 * list. header_file is a file with one header line, which authenticates the team at all of these
 * URLs ("-": standard input); NULL: the present headers are kept. Errors: ERR_INVALID, the codes
 * of client_send.
 */
enum err_code debuginfo_upstreams(struct cli *cli, const struct cli_texts *texts,
                                  const char *header_file, bool is_json, struct err *err) MUST_USE;

/* Makes the server retry the look-ups of these build ids; without texts, of all that lack names.
 * Errors: those of client_send. */
enum err_code debuginfo_retry(struct cli *cli, const struct cli_texts *texts,
                              struct err *err) MUST_USE;

#endif
