/*
 * admin: the parts of `perfolio admin`: a table of API calls, and the subcommands of perfoliod that
 * it starts. The --help of a call is made from the same table.
 */
#ifndef CLI_ADMIN_ADMIN_H
#define CLI_ADMIN_ADMIN_H

#include "cli/cli.h"

struct admin_call;

struct admin {
    struct cli *cli;
    const char *noun;           /* "tenant", "backup", … */
    const char *verb;           /* set by admin_find_call; NULL: the call has none */
    struct cli_texts arguments; /* all words after the noun, at first with the verb */
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

/* ---- admin_options.c ---- */

/* All options of `perfolio admin`, also for the help of single calls; ends with a row without a
 * name. */
extern const struct option_row admin_options[];

/* ---- admin_find.c ---- */

/* Finds the call of the noun and of the verb, which is the first argument. Removes the verb from
 * the arguments. NULL: there is no such call. */
const struct admin_call *admin_find_call(struct admin *admin);
/* Sets a usage error for a noun or verb that does not exist, and names the closest one that does.
 */
enum err_code admin_refuse(struct admin *admin, struct err *err) MUST_USE;

/* ---- admin_call.c ---- */

/* Looks the noun and verb up in the table and makes the call. Errors: ERR_INVALID as a usage
 * error, the codes of client_send. */
enum err_code admin_call(struct admin *admin, struct err *err) MUST_USE;

/* ---- admin_help.c ---- */

/* Explains the call that noun and verb name on standard output; a noun alone lists its calls, and
 * "help" alone all of them. Errors: ERR_INVALID as a usage error (no such call), ERR_IO. */
enum err_code admin_help(struct admin *admin, struct err *err) MUST_USE;

/* ---- admin_exec.c ---- */

/* Whether admin_exec handles this noun. */
bool admin_is_program(const char *noun);

/* Executes `perfoliod <subcommand> arguments…`, from the folder of this program or PATH; returns
 * only if that fails. Errors: ERR_NOT_FOUND. */
enum err_code admin_exec(const char *subcommand, int argc, char **argv, struct err *err) MUST_USE;

#endif
