#include "cli/admin/admin.h"
#include "lib/base/err.h"

#include <string.h>

static const char *const nouns[] = {"tenant",     "team",        "user",   "token",   "invite",
                                    "login-link", "report",      "share",  "audit",   "profiles",
                                    "retention",  "source-link", "backup", "restore", "store",
                                    "scrub",      "help",        NULL};

static enum err_code take_word(void *values, const char *text, struct err *err)
{
    struct admin *admin = values;
    (void)err;
    if (!admin->noun)
        admin->noun = text;
    else
        cli_texts_add(admin->cli, &admin->arguments, text);
    return ERR_NONE;
}

static enum err_code check_noun(void *values, struct err *err)
{
    const struct admin *admin = values;
    return admin->noun || admin->is_help
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "give a command: run perfolio admin help for a list");
}

static const struct option_table options = {
    .rows = admin_options,
    .take_argument = take_word,
    .check = check_noun,
    .arguments = "tenant|team|user|token|invite|login-link|report|share|audit|profiles|retention|"
                 "source-link|scrub|backup|restore|store ...",
    .text = "Administer a team or, with an operator's token, the whole server.\v"
            "perfolio admin help lists all commands; add --help to a command for its options.",
};

/* The --help of options_parse ignores the noun and verb before it. */
static const struct option_row help_rows[] = {
    {"help", '?', NULL, "Give this help list", OPTION_FLAG(struct admin, is_help), .group = -1},
    {"usage", 0, NULL, NULL, OPTION_FLAG(struct admin, is_help), .is_hidden = true},
    {0},
};
static const struct option_part help_parts[] = {{&options, 0, NULL, 0}, {0}};
static const struct option_table options_with_help = {
    .rows = help_rows,
    .parts = help_parts,
    .has_own_help = true,
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
    cli_check_options(&options_with_help, argc, argv);
    options_parse(&options_with_help, argc, argv, &admin);
    if (!admin.noun) { /* as options_parse does */
        options_print_help(&options_with_help, argv[0]);
        return cli_flush(err);
    }
    if (admin.is_help || strcmp(admin.noun, "help") == 0)
        return admin_help(&admin, err);
    return admin_call(&admin, err);
}

const struct command admin_command = {
    .name = "admin",
    .summary = "tenants, users, tokens, invitations; backup and restore",
    .options = &options,
    .arguments = ARGUMENTS_WORDS,
    .words = nouns,
    .run = run_admin,
};
