/*
 * admin: the parts of `perfolio admin`: calls of the API as a table, and the programs beside us.
 * What a call is for and which options it takes is told by its own --help, from the same table.
 */
#ifndef CLI_ADMIN_ADMIN_H
#define CLI_ADMIN_ADMIN_H

#include "cli/cli.h"

enum { ADMIN_MAX_ARGUMENTS = 64 };

struct admin_call;

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
    const char *start;
    const char *end;
    const char *keep;
    const char *totals;
    const char *position;
    bool is_json;
    bool is_confirmed;
    bool is_help; /* --help: explain instead of acting */
};

/* All options of `perfolio admin`, for its argp and for the help of single calls. */
extern const struct argp_option admin_options[];

/* Looks the noun and verb up in the table and makes the call. Handles: ERR_INVALID as a usage
 * error, and what client_send does. */
enum err_code admin_call(struct admin *admin, struct err *err) MUST_USE;
/* The call that noun and verb name, the verb taken off the arguments; NULL: there is none. */
const struct admin_call *admin_find_call(struct admin *admin);

/* Explains the call that noun and verb name on standard output; a noun alone lists its calls, and
 * "help" alone all of them. Handles: ERR_INVALID as a usage error (no such call), ERR_IO. */
enum err_code admin_help(struct admin *admin, struct err *err) MUST_USE;

/* A usage error for a noun or verb that does not exist, with the closest one that does. */
enum err_code admin_refuse(struct admin *admin, struct err *err) MUST_USE;

/* Is this one of the nouns for which admin_exec is meant? */
bool admin_is_program(const char *noun);

/* Becomes `perfoliod <subcommand> arguments…`, found beside this program or in PATH; returns only
 * when that fails. Handles: ERR_NOT_FOUND. */
enum err_code admin_exec(const char *subcommand, int argc, char **argv, struct err *err) MUST_USE;

#endif
