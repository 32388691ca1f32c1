/*
 * debuginfo_upstreams: shows and sets the debuginfod servers of a team, and retries missing files,
 * for perfolio debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H
#define CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H

#include "cli/cli.h"

/*
 * Without texts, prints the list; "public", "off" or URLs replace it. header_file contains one
 * header line that authenticates at all of these URLs ("-" is standard input); NULL keeps the
 * present headers. Handles: ERR_INVALID, and what client_send does.
 */
enum err_code debuginfo_upstreams(struct cli *cli, const struct cli_texts *texts,
                                  const char *header_file, bool is_json, struct err *err) MUST_USE;

/* Retries these build ids, or all with missing names. Handles the errors of client_send. */
enum err_code debuginfo_retry(struct cli *cli, const struct cli_texts *texts,
                              struct err *err) MUST_USE;

#endif
