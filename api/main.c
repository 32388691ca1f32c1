/* perfoliod: a table of subcommands. */
#include "api/backup.h"
#include "api/migrate.h"
#include "api/routes.h"
#include "api/settings.h"
#include "api/store_admin.h"
#include "api/supervisor.h"
#include "api/version.h"
#include "lib/base/log.h"
#include "lib/io/pg.h"

#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    const char *arguments; /* NULL: for perfoliod's own use, not shown */
    const char *help;
    int operand_count; /* that come before the settings */
    bool has_last;     /* one more comes after the settings, given to run first */
    bool may_be_json;  /* --json may stand behind the operands */
    enum err_code (*run)(struct settings *settings, char *const *operands, struct err *err);
};

static enum err_code run_serve(struct settings *settings, char *const *operands, struct err *err)
{
    (void)operands;
    return supervisor_run(settings, err);
}

static enum err_code run_serve_child(struct settings *settings, char *const *operands,
                                     struct err *err)
{
    return supervisor_serve_child(settings, 3, operands, err);
}

static enum err_code run_migrate_child(struct settings *settings, char *const *operands,
                                       struct err *err)
{
    return supervisor_migrate_child(settings, 1, operands, err);
}

static enum err_code run_migrate(struct settings *settings, char *const *operands, struct err *err)
{
    (void)operands;
    struct pg_connection *connection = NULL;
    int applied_count = 0;
    if (!*settings->database_url)
        return err_set(err, ERR_INVALID,
                       "migrate wants --database-url; serve migrates the private database itself");
    struct pg_pool *pool = pg_pool_create(settings->database_url, NULL, 1);
    enum err_code code = pg_take(pool, &connection, err);
    if (!code)
        code = migrate_run_external(connection, &applied_count, err);
    pg_give(connection);
    pg_pool_destroy(pool);
    if (!code)
        printf("%d migration(s) applied, the database is up to date\n", applied_count);
    return code;
}

static enum err_code run_backup(struct settings *settings, char *const *operands, struct err *err)
{
    return backup_run(settings, operands[0], err);
}

static enum err_code run_restore(struct settings *settings, char *const *operands, struct err *err)
{
    return backup_restore(settings, operands[0], err);
}

static enum err_code run_routes(struct settings *settings, char *const *operands, struct err *err)
{
    (void)settings;
    if (strcmp(operands[0], "--json") != 0)
        return err_set(err, ERR_INVALID, "routes wants --json");
    routes_print(stdout);
    return ERR_NONE;
}

static bool is_json(const char *argument)
{
    return argument && strcmp(argument, "--json") == 0;
}

static enum err_code run_store(struct settings *settings, char *const *operands, struct err *err)
{
    return store_admin_run(settings, operands[0], is_json(operands[1]), err);
}

static const struct command commands[] = {
    {"serve", "[settings]", "start everything and serve until SIGTERM", 0, false, false, run_serve},
    {"migrate", "--database-url URL", "bring an external database up to date", 0, false, false,
     run_migrate},
    {"backup", "[settings] FOLDER", "copy database and profiles to a new folder, while it serves",
     0, true, false, run_backup},
    {"restore", "[settings] FOLDER", "make the data folder, absent or empty, from a backup", 0,
     true, false, run_restore},
    {.name = "store",
     .arguments = "verify|stats [--json] [settings]",
     .help = "read and check all continuous profiles, or say how much there is, while it serves",
     .operand_count = 1,
     .may_be_json = true,
     .run = run_store},
    {"routes", "--json", "print what the server answers, one JSON object per line", 1, false, false,
     run_routes},
    {"serve-child", NULL, NULL, 3, false, false, run_serve_child},
    {"migrate-child", NULL, NULL, 1, false, false, run_migrate_child},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *file)
{
    fprintf(file, "perfoliod %s: the server of Perfolio, where a profile becomes a link.\n\n",
            PERFOLIO_VERSION);
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (commands[i].arguments)
            fprintf(file, "  perfoliod %s %s\n      %s\n", commands[i].name, commands[i].arguments,
                    commands[i].help);
    fprintf(file, "  perfoliod help | version\n\n"
                  "Settings, as flags, in the environment, or in the file's section [server]:\n\n");
    settings_print_help(file);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int fail(const struct err *err)
{
    fprintf(stderr, "perfoliod: %s\n", err->message);
    return err->code == ERR_INVALID ? 2 : 1;
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Splits what follows the subcommand into operands and settings. */
static enum err_code take_operands(const struct command *command, int *argument_count,
                                   char *const **arguments, char *const **ret_operands,
                                   struct err *err)
{
    int wanted = command->operand_count + command->has_last;
    *ret_operands = *arguments;
    for (int i = 0; i < *argument_count; i++)
        if (is_help((*arguments)[i]))
            return ERR_NONE;
    if (*argument_count < wanted ||
        (command->has_last && (*arguments)[*argument_count - 1][0] == '-'))
        return err_set(err, ERR_INVALID, "%s wants %s", command->name,
                       command->arguments ? command->arguments : "other arguments");
    if (command->has_last)
        *ret_operands = *arguments + *argument_count - 1;
    else
        *arguments += command->operand_count;
    *argument_count -= wanted;
    if (command->may_be_json && *argument_count && is_json(**arguments)) {
        ++*arguments;
        --*argument_count;
    }
    return ERR_NONE;
}

static int run_command(const struct command *command, int argument_count, char *const *arguments)
{
    struct settings settings;
    struct err err;
    bool wants_help = false;
    char *const *operands;
    settings_init(&settings);
    enum err_code code = take_operands(command, &argument_count, &arguments, &operands, &err);
    if (!code)
        code = settings_load(&settings, argument_count, arguments, &wants_help, &err);
    log_set_level(settings.log_level);
    if (!code && wants_help)
        print_help(stdout);
    else if (!code)
        code = command->run(&settings, operands, &err);
    settings_fini(&settings);
    return code ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "help") == 0 || is_help(name)) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? 0 : 2;
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        printf("perfoliod %s\n", PERFOLIO_VERSION);
        return 0;
    }
    const struct command *command = find_command(name);
    if (!command) {
        fprintf(stderr, "perfoliod: there is no subcommand \"%s\"; see perfoliod help\n", name);
        return 2;
    }
    return run_command(command, argc - 2, argv + 2);
}
