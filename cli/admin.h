/*
 * admin: the parts of `perfolio admin`: calls of the API as a table, and the programs beside us.
 */
#ifndef CLI_ADMIN_H
#define CLI_ADMIN_H

#include "cli/cli.h"

enum { ADMIN_MAX_ARGUMENTS = 64 };

struct admin {
    struct cli *cli;
    const char *noun; /* "tenant", "backup", … */
    const char *verb; /* NULL when there was none */
    struct cli_texts arguments;
    const char *tenant;
    const char *role;
    const char *scopes;
    const char *expires;
    const char *reason;
    const char *name;
    bool is_json;
    bool is_confirmed;
};

/* Looks the noun and verb up in the table and makes the call. Handles: ERR_INVALID as a usage
 * error, and what client_send does. */
enum err_code admin_call(struct admin *admin, struct err *err) MUST_USE;
/* Lists nouns, verbs and what they do. */
void admin_print_calls(const struct cli *cli);

/* Becomes `perfoliod <subcommand> arguments…`, found beside this program or in PATH; returns only
 * when that fails. Handles: ERR_NOT_FOUND. */
enum err_code admin_exec(const char *subcommand, int argc, char **argv, struct err *err) MUST_USE;

#endif
