#include "cli/admin.h"

#include <string.h>

enum {
    OPTION_TENANT = 0x200,
    OPTION_ROLE,
    OPTION_SCOPES,
    OPTION_EXPIRES,
    OPTION_REASON,
    OPTION_NAME,
    OPTION_YES,
    OPTION_JSON
};

static const char *const nouns[] = {"tenant", "user",  "token",  "invite",  "login-link", "report",
                                    "share",  "audit", "backup", "restore", "help",       NULL};

static const struct argp_option options[] = {
    {"tenant", OPTION_TENANT, "ID", 0, "Tenant to act on, by its number", 0},
    {"role", OPTION_ROLE, "ROLE", 0, "owner, member or viewer", 0},
    {"scopes", OPTION_SCOPES, "A,B", 0, "Of a new token: share, read, admin, … (share,read)", 0},
    {"expires", OPTION_EXPIRES, "TIME", 0, "Of a new token: 30d, 8w or never", 0},
    {"reason", OPTION_REASON, "TEXT", 0, "Why a share is taken down", 0},
    {"name", OPTION_NAME, "TEXT", 0, "Name of a new user", 0},
    {"yes", OPTION_YES, NULL, 0, "Do what cannot be undone", 0},
    {"json", OPTION_JSON, NULL, 0, "Print the server's answer", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct admin *admin = state->input;
    switch (key) {
    case OPTION_TENANT:
        admin->tenant = text;
        return 0;
    case OPTION_ROLE:
        admin->role = text;
        return 0;
    case OPTION_SCOPES:
        admin->scopes = text;
        return 0;
    case OPTION_EXPIRES:
        admin->expires = text;
        return 0;
    case OPTION_REASON:
        admin->reason = text;
        return 0;
    case OPTION_NAME:
        admin->name = text;
        return 0;
    case OPTION_YES:
        admin->is_confirmed = true;
        return 0;
    case OPTION_JSON:
        admin->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!admin->noun)
            admin->noun = text;
        else
            cli_texts_add(admin->cli, &admin->arguments, text);
        return 0;
    case ARGP_KEY_END:
        if (!admin->noun)
            argp_error(state, "say what: perfolio admin help lists it");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "tenant|user|token|invite|login-link|report|share|audit|backup|restore ...",
    .doc = "Administer a team or, with an operator's token, the whole server.\v"
           "perfolio admin help lists all it can do.",
};

static enum err_code run(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct admin admin = {.cli = cli};
    /* These have options of their own, which are perfoliod's. */
    if (argc > 1 && (strcmp(argv[1], "backup") == 0 || strcmp(argv[1], "restore") == 0))
        return admin_exec(argv[1], argc - 2, argv + 2, err);
    cli_parse(&admin_command, argc, argv, &admin);
    if (strcmp(admin.noun, "help") == 0) {
        admin_print_calls(cli);
        return cli_flush(err);
    }
    return admin_call(&admin, err);
}

const struct command admin_command = {
    .name = "admin",
    .summary = "tenants, users, tokens, invitations; backup and restore",
    .argp = &argp,
    .arguments = ARGUMENTS_WORDS,
    .words = nouns,
    .run = run,
};
