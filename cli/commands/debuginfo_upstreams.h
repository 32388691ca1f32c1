/*
 * debuginfo_upstreams: whom the server asks for a team's debug files, and that it asks now: for
 * perfolio debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H
#define CLI_COMMANDS_DEBUGINFO_UPSTREAMS_H

#include "cli/cli.h"

/*
 * Without texts prints who is asked; "public" or "off" alone, or URLs, say who is from now on.
 * header_file has one header line that proves to all of those URLs who asks ("-" is standard
 * input); NULL: each keeps what it has. Handles: ERR_INVALID, and what client_send does.
 */
enum err_code debuginfo_upstreams(struct cli *cli, const struct cli_texts *texts,
                                  const char *header_file, bool is_json, struct err *err) MUST_USE;

/* Of these build ids, or of all that names are missing of. Handles what client_send does. */
enum err_code debuginfo_retry(struct cli *cli, const struct cli_texts *texts,
                              struct err *err) MUST_USE;

#endif
