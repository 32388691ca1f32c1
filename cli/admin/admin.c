#include "cli/admin/admin.h"

#include <string.h>

enum {
    OPTION_TENANT = 0x200,
    OPTION_ROLE,
    OPTION_SCOPES,
    OPTION_EXPIRES,
    OPTION_REASON,
    OPTION_NAME,
    OPTION_START,
    OPTION_END,
    OPTION_KEEP,
    OPTION_TOTALS,
    OPTION_POSITION,
    OPTION_YES,
    OPTION_JSON,
    OPTION_USAGE
};

static const char *const nouns[] = {"tenant",     "team",        "user",   "token",   "invite",
                                    "login-link", "report",      "share",  "audit",   "profiles",
                                    "retention",  "source-link", "backup", "restore", "store",
                                    "scrub",      "help",        NULL};

const struct argp_option admin_options[] = {
    {"tenant", OPTION_TENANT, "ID", 0, "Tenant to act on, by its number", 0},
    {"role", OPTION_ROLE, "ROLE", 0, "owner, member or viewer", 0},
    {"scopes", OPTION_SCOPES, "A,B", 0,
     "Scopes of a new token, such as ingest,debuginfo (share,read)", 0},
    {"expires", OPTION_EXPIRES, "TIME", 0, "Lifetime of a new token: 30d, 8w or never", 0},
    {"reason", OPTION_REASON, "TEXT", 0, "Why a share is taken down", 0},
    {"name", OPTION_NAME, "TEXT", 0, "Name of a new user", 0},
    {"start", OPTION_START, "TIME", 0, "Start of the window (the oldest profile)", 0},
    {"end", OPTION_END, "TIME", 0, "End of the window, exclusive (after the newest profile)", 0},
    {"keep", OPTION_KEEP, "DURATION", 0, "How long a rule keeps profiles: 3d, 90d, 1y or forever",
     0},
    {"totals", OPTION_TOTALS, "DURATION", 0, "How long a rule keeps hourly totals", 0},
    {"position", OPTION_POSITION, "N", 0, "Position of a rule; 1 is the first (unchanged, or last)",
     0},
    {"yes", OPTION_YES, NULL, 0, "Confirm an action that cannot be undone", 0},
    {"json", OPTION_JSON, NULL, 0, "Print the response of the server", 0},
    {0},
};

/* The server reads a number without a unit as seconds; a user probably means days. */
static const char *require_unit(const struct argp_state *state, const char *duration)
{
    if (*duration && strspn(duration, "0123456789") == strlen(duration))
        argp_error(state, "%s has no unit: write %sd for days or %ss for seconds", duration,
                   duration, duration);
    return duration;
}

static error_t parse_admin_option(int key, char *text, struct argp_state *state)
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
    case OPTION_START:
        admin->start = text;
        return 0;
    case OPTION_END:
        admin->end = text;
        return 0;
    case OPTION_KEEP:
        admin->keep = require_unit(state, text);
        return 0;
    case OPTION_TOTALS:
        admin->totals = require_unit(state, text);
        return 0;
    case OPTION_POSITION:
        admin->position = text;
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
        if (!admin->noun && !admin->is_help)
            argp_error(state, "give a command: run perfolio admin help for a list");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = admin_options,
    .parser = parse_admin_option,
    .args_doc = "tenant|team|user|token|invite|login-link|report|share|audit|profiles|retention|"
                "source-link|scrub|backup|restore|store ...",
    .doc = "Administer a team or, with an operator's token, the whole server.\v"
           "perfolio admin help lists all commands; add --help to a command for its options.",
};

/* argp's own --help ignores the noun and verb before it. */
static const struct argp_option help_options[] = {
    {"help", '?', NULL, 0, "Give this help list", -1},
    {"usage", OPTION_USAGE, NULL, OPTION_HIDDEN, NULL, 0},
    {0},
};

static error_t parse_help(int key, char *text, struct argp_state *state)
{
    struct admin *admin = state->input;
    (void)text;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = admin;
    else if (key == '?' || key == OPTION_USAGE)
        admin->is_help = true;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_child help_children[] = {{&argp, 0, NULL, 0}, {0}};
static const struct argp argp_with_help = {
    .options = help_options,
    .parser = parse_help,
    .children = help_children,
};

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
            strcmp(argv[i], "--usage") == 0)
            return true;
    }
    return false;
}

static enum err_code run_admin(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct admin admin = {.cli = cli};
    bool is_program = argc > 1 && admin_is_program(argv[1]);
    if (is_program && wants_help(argc - 2, argv + 2)) {
        admin.noun = argv[1];
        return admin_help(&admin, err);
    }
    if (is_program) /* perfoliod parses the options of these nouns */
        return admin_exec(argv[1], argc - 2, argv + 2, err);
    cli_check_options(&argp_with_help, argc, argv, false);
    argp_parse(&argp_with_help, argc, argv, ARGP_NO_HELP, NULL, &admin);
    if (!admin.noun) { /* as argp does */
        argp_help(&argp_with_help, stdout, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK,
                  argv[0]);
        return cli_flush(err);
    }
    if (admin.is_help || strcmp(admin.noun, "help") == 0)
        return admin_help(&admin, err);
    return admin_call(&admin, err);
}

const struct command admin_command = {
    .name = "admin",
    .summary = "tenants, users, tokens, invitations; backup and restore",
    .argp = &argp,
    .arguments = ARGUMENTS_WORDS,
    .words = nouns,
    .run = run_admin,
};
