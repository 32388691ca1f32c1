/* perfoliod: a table of subcommands. */
#include "api/core/settings.h"
#include "api/core/version.h"
#include "api/ops/backup.h"
#include "api/ops/migrate.h"
#include "api/ops/store_admin.h"
#include "api/server/routes.h"
#include "api/supervisor/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/pg.h"

#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    const char *arguments; /* NULL: for perfoliod's own use, not shown */
    const char *help;
    int operand_count; /* arguments of its own, which precede the settings */
    bool may_be_json;  /* --json may follow the operands */
    enum err_code (*run)(struct settings *settings, char *const *operands, struct err *err);
    /* For backup and restore, in place of run: gets the options --verify-only (backup only) and
     * --allow-damaged, and the last argument as the folder. */
    enum err_code (*run_backup)(struct settings *settings, const char *folder,
                                const struct backup_options *options, struct err *err);
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

static enum err_code run_vacuum_child(struct settings *settings, char *const *operands,
                                      struct err *err)
{
    return supervisor_vacuum_child(settings, 1, operands, err);
}

static enum err_code run_migrate(struct settings *settings, char *const *operands, struct err *err)
{
    (void)operands;
    struct pg_connection *connection = NULL;
    int applied_count = 0;
    if (!*settings->database_url)
        return err_set(err, ERR_INVALID,
                       "migrate needs --database-url; serve migrates the private database itself");
    struct pg_pool *pool = pg_pool_create(settings->database_url, NULL, 1);
    enum err_code code = pg_take(pool, &connection, err);
    if (!code)
        code = migrate_run_external(connection, &applied_count, err);
    pg_give(connection);
    pg_pool_destroy(pool);
    if (code)
        return code;
    printf("%d migration(s) applied, the database is up to date\n", applied_count);
    return ERR_NONE;
}

static enum err_code run_routes(struct settings *settings, char *const *operands, struct err *err)
{
    (void)settings;
    if (strcmp(operands[0], "--json") != 0)
        return err_set(err, ERR_INVALID, "routes needs --json");
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
    {.name = "serve",
     .arguments = "[settings]",
     .help = "start everything and serve until SIGTERM",
     .run = run_serve},
    {.name = "migrate",
     .arguments = "--database-url URL",
     .help = "bring an external database up to date",
     .run = run_migrate},
    {.name = "backup",
     .arguments = "[--allow-damaged] [settings] FOLDER | --verify-only [settings] [FOLDER]",
     .help = "copy database and profiles to a new folder, while the server runs; or verify them",
     .run_backup = backup_run},
    {.name = "restore",
     .arguments = "[--allow-damaged] [settings] FOLDER",
     .help = "make the data folder, absent or empty, from a backup",
     .run_backup = backup_restore},
    {.name = "store",
     .arguments = "verify|stats [--json] [settings]",
     .help = "read and check all stored objects, or show how much the store contains, while the "
             "server runs",
     .operand_count = 1,
     .may_be_json = true,
     .run = run_store},
    {.name = "routes",
     .arguments = "--json",
     .help = "print the server's routes, one JSON object per line",
     .operand_count = 1,
     .run = run_routes},
    {.name = "serve-child", .operand_count = 3, .run = run_serve_child},
    {.name = "migrate-child", .operand_count = 1, .run = run_migrate_child},
    {.name = "vacuum-child", .operand_count = 1, .run = run_vacuum_child},
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

/* Splits the arguments after the subcommand into operands and settings. */
static enum err_code take_operands(const struct command *command, int *argument_count,
                                   char *const **arguments, char *const **ret_operands,
                                   struct err *err)
{
    int wanted = command->operand_count;
    *ret_operands = *arguments;
    for (int i = 0; i < *argument_count; i++)
        if (is_help((*arguments)[i]))
            return ERR_NONE;
    if (*argument_count < wanted)
        return err_set(err, ERR_INVALID, "%s needs %s", command->name,
                       command->arguments ? command->arguments : "other arguments");
    *arguments += command->operand_count;
    *argument_count -= wanted;
    if (command->may_be_json && *argument_count && is_json(**arguments)) {
        ++*arguments;
        --*argument_count;
    }
    return ERR_NONE;
}

/* Every setting is "--name value" or "--name=value", so a word after "--name" is not a folder. */
static bool is_value(char *const *arguments, int index)
{
    return index > 0 && strncmp(arguments[index - 1], "--", 2) == 0 &&
           !strchr(arguments[index - 1], '=');
}

/* Removes the options from arguments, and the folder from their end. */
static enum err_code take_backup_arguments(const struct command *command, int *argument_count,
                                           char **arguments, struct backup_options *ret_options,
                                           const char **ret_folder, struct err *err)
{
    int count = 0;
    bool has_help = false;
    for (int i = 0; i < *argument_count; i++) {
        if (command->run_backup == backup_run && strcmp(arguments[i], "--verify-only") == 0)
            ret_options->verify_only = true;
        else if (strcmp(arguments[i], "--allow-damaged") == 0)
            ret_options->allow_damaged = true;
        else
            arguments[count++] = arguments[i];
        has_help |= is_help(arguments[i]);
    }
    if (count && arguments[count - 1][0] != '-' && !is_value(arguments, count - 1))
        *ret_folder = arguments[--count];
    *argument_count = count;
    if (!*ret_folder && !ret_options->verify_only && !has_help)
        return err_set(err, ERR_INVALID, "%s needs %s", command->name, command->arguments);
    return ERR_NONE;
}

static int run_backup_command(const struct command *command, int argument_count, char **arguments)
{
    struct settings settings;
    struct backup_options options = {0};
    struct err err;
    const char *folder = NULL;
    bool wants_help = false;
    settings_init(&settings);
    enum err_code code =
        take_backup_arguments(command, &argument_count, arguments, &options, &folder, &err);
    if (!code)
        code = settings_load(&settings, argument_count, arguments, &wants_help, &err);
    log_set_level(settings.log_level);
    if (!code && wants_help)
        print_help(stdout);
    else if (!code)
        code = command->run_backup(&settings, folder, &options, &err);
    settings_fini(&settings);
    return code ? fail(&err) : 0;
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
    return command->run_backup ? run_backup_command(command, argc - 2, argv + 2)
                               : run_command(command, argc - 2, argv + 2);
}
