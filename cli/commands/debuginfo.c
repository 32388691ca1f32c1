#include "cli/commands/debuginfo_stored.h"
#include "cli/commands/debuginfo_upload.h"
#include "cli/commands/debuginfo_upstreams.h"
#include "cli/save.h"
#include "cli/symbols.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdlib.h>

struct debuginfo {
    struct cli *cli;
    const char *verb;
    struct cli_texts texts;
    const char *output;
    const char *alternate;
    enum symbol_name_format_mode names;
    bool is_forced;
    const char *raw_kind; /* NULL: upload the table */
    bool is_json;
    const char *header_file;
};

static const char *const verbs[] = {"build",  "check",     "show",  "upload", "list",
                                    "delete", "upstreams", "retry", NULL};

static enum err_code take_raw(void *values, const struct option_row *row, const char *text,
                              struct err *err)
{
    struct debuginfo *debuginfo = values;
    (void)row;
    (void)text;
    (void)err;
    debuginfo->raw_kind = debuginfo->raw_kind ? debuginfo->raw_kind : "debuginfo";
    return ERR_NONE;
}

static enum err_code take_executable(void *values, const struct option_row *row, const char *text,
                                     struct err *err)
{
    (void)row;
    (void)text;
    (void)err;
    ((struct debuginfo *)values)->raw_kind = "executable";
    return ERR_NONE;
}

static enum err_code take_names(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct debuginfo *debuginfo = values;
    return symbol_name_format_parse(span_text(text), &debuginfo->names)
               ? ERR_NONE
               : options_refuse(row, text, err);
}

static enum err_code take_quiet(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    (void)row;
    (void)text;
    (void)err;
    ((struct debuginfo *)values)->cli->terminal.is_quiet = true;
    return ERR_NONE;
}

static const struct option_row rows[] = {
    {"output", 'o', "FILE", "build: write the table to FILE",
     OPTION_TEXT(struct debuginfo, output)},
    {"force", 'f', NULL, "Replace an existing file; upload: send files that the server already has",
     OPTION_FLAG(struct debuginfo, is_forced)},
    {"raw", 0, NULL,
     "upload: send the debug file itself, which debuggers can then fetch; the server builds the "
     "table",
     .take = take_raw},
    {"executable", 0, NULL, "upload: like --raw, for the executable", .take = take_executable},
    {"json", 0, NULL,
     "upload, list, upstreams, and check BUILD_ID: print one line of JSON per item",
     OPTION_FLAG(struct debuginfo, is_json)},
    {"header-file", 0, "FILE",
     "upstreams: read the header that authenticates at these servers from the first line of "
     "FILE (- is standard input)",
     OPTION_TEXT(struct debuginfo, header_file)},
    {"alternate-file", 0, "FILE",
     "Shared file of dwz, if it is not at the path in .gnu_debugaltlink",
     OPTION_TEXT(struct debuginfo, alternate)},
    {"names", 0, "MODE",
     "show: full (the default), simple (without parameters) or none (as in the file)",
     .take = take_names, .error = "unknown mode \"{value}\": use full, simple or none"},
    {"quiet", 'q', NULL, "Print only warnings and errors", .take = take_quiet},
    {0},
};

static enum err_code take_word(void *values, const char *text, struct err *err)
{
    struct debuginfo *debuginfo = values;
    (void)err;
    if (!debuginfo->verb)
        debuginfo->verb = text;
    else
        cli_texts_add(debuginfo->cli, &debuginfo->texts, text);
    return ERR_NONE;
}

static bool is_verb(const struct debuginfo *debuginfo, const char *verb)
{
    return debuginfo->verb && strcmp(debuginfo->verb, verb) == 0;
}

static enum err_code check_verb(const struct debuginfo *debuginfo, struct err *err)
{
    for (size_t i = 0; verbs[i]; i++) {
        if (is_verb(debuginfo, verbs[i]))
            return ERR_NONE;
    }
    return err_set(err, ERR_INVALID,
                   "give an action: build, check, show, upload, list, delete, upstreams or retry%s",
                   debuginfo->verb ? cli_did_you_mean(debuginfo->cli, debuginfo->verb, verbs) : "");
}

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct debuginfo *debuginfo = values;
    if (check_verb(debuginfo, err))
        return err->code;
    if (is_verb(debuginfo, "list") && debuginfo->texts.count)
        return err_set(err, ERR_INVALID,
                       "list takes no arguments; use check BUILD_ID for one binary");
    if (is_verb(debuginfo, "upstreams") || is_verb(debuginfo, "retry") ||
        is_verb(debuginfo, "list"))
        return ERR_NONE;
    if (debuginfo->texts.count == 0)
        return err_set(err, ERR_INVALID,
                       is_verb(debuginfo, "delete") ? "give a build id" : "give a file");
    if (is_verb(debuginfo, "build") && !debuginfo->output)
        return err_set(err, ERR_INVALID, "give the file of the table with -o");
    if (is_verb(debuginfo, "build") && debuginfo->texts.count > 1)
        return err_set(err, ERR_INVALID, "one file at a time");
    if (is_verb(debuginfo, "show") && debuginfo->texts.count < 2)
        return err_set(err, ERR_INVALID,
                       "give addresses after the file, or - to read them from standard input");
    return ERR_NONE;
}

static const struct option_table options = {
    .rows = rows,
    .take_argument = take_word,
    .check = check_arguments,
    .arguments = "build FILE -o TABLE\ncheck FILE|TABLE|PROFILE|BUILD_ID...\n"
                 "show FILE|TABLE ADDRESS...|-\nupload FILE|TABLE...\nlist\ndelete BUILD_ID...\n"
                 "upstreams [public|off|URL...]\nretry [BUILD_ID...]",
    .text =
        "Build, inspect and upload symbol tables, which give names to the addresses in profiles. "
        "Only upload sends data: the table, which is built on this machine, or the file itself "
        "with --raw. check shows what the server has for a build id or for the binaries of a "
        "profile. list shows all files that your team uploaded or that the server fetched for it. "
        "delete removes the table and the files of a build id. The server fetches missing debug "
        "files from debuginfod servers: upstreams shows and changes the list of these servers, "
        "retry makes it try again now.\v"
        "A symbol table contains the functions, files, lines and inlined calls of a binary's "
        "addresses and nothing else; it is a small part of the debug information.",
};

/* ---- verbs ---- */

static enum err_code build_table(struct debuginfo *debuginfo, struct err *err)
{
    struct cli *cli = debuginfo->cli;
    struct save save;
    enum err_code code = save_open(debuginfo->output, debuginfo->is_forced, cli->arena, &save, err);
    if (code)
        return code;
    code = symbols_build(cli, debuginfo->texts.texts[0], debuginfo->alternate, save.fd, NULL, err);
    if (!code)
        code = save_commit(&save, err);
    save_close(&save);
    return code;
}

static struct debuginfo_upload upload_of(const struct debuginfo *debuginfo)
{
    return (struct debuginfo_upload){.cli = debuginfo->cli,
                                     .alternate = debuginfo->alternate,
                                     .raw_kind = debuginfo->raw_kind,
                                     .is_forced = debuginfo->is_forced,
                                     .is_json = debuginfo->is_json};
}

static enum err_code check_file(struct debuginfo *debuginfo, const char *path, struct err *err)
{
    struct symbol_table *table;
    const struct debuginfo_upload upload = upload_of(debuginfo);
    if (debuginfo_upload_is_id(path))
        return debuginfo_upload_show(&upload, path, err);
    if (debuginfo_upload_may_be_profile(path))
        return debuginfo_upload_show_profile(&upload, path, err);
    const enum err_code code =
        symbols_open(debuginfo->cli, path, debuginfo->alternate, NULL, &table, err);
    if (code)
        return code;
    if (!debuginfo->cli->terminal.is_quiet)
        symbols_print_facts(path, table);
    symbol_table_close(table);
    return ERR_NONE;
}

static enum err_code upload_file(struct debuginfo *debuginfo, const char *path, struct err *err)
{
    const struct debuginfo_upload upload = upload_of(debuginfo);
    return debuginfo_upload_file(&upload, path, err);
}

/* Handles all files even if one fails; the first failure determines the exit status. */
static enum err_code handle_each(struct debuginfo *debuginfo,
                                 enum err_code (*act)(struct debuginfo *debuginfo, const char *path,
                                                      struct err *err),
                                 struct err *err)
{
    enum err_code result = ERR_NONE;
    for (size_t i = 0; i < debuginfo->texts.count; i++) {
        struct err own;
        const enum err_code code = act(debuginfo, debuginfo->texts.texts[i], &own);
        if (!code)
            continue;
        if (result)
            terminal_fail(&debuginfo->cli->terminal, "%s", own.message);
        else
            *err = own;
        result = result ? result : code;
    }
    return result;
}

struct showing {
    struct debuginfo *debuginfo;
    struct symbol_names *names;
    struct symbol_cursor cursor;
};

static enum err_code show_address(struct showing *showing, struct span text, struct err *err)
{
    uint64_t address;
    if (!span_parse_hex(text, &address))
        return cli_usage(showing->debuginfo->cli, err, "\"%.*s\" is not a hexadecimal address",
                         SPAN_PRINT(text));
    return symbols_print_address(&showing->cursor, showing->names, showing->debuginfo->names,
                                 address, err);
}

static enum err_code show_lines(struct showing *showing, struct err *err)
{
    char *line = NULL;
    size_t space = 0;
    enum err_code code = ERR_NONE;
    for (ssize_t size; !code && (size = getline(&line, &space, stdin)) >= 0;) {
        const struct span text = span_trim(span_of(line, (size_t)size));
        if (text.size)
            code = show_address(showing, text, err);
    }
    if (!code && ferror(stdin))
        code = err_set_errno(err, ERR_IO, "standard input");
    free(line);
    return code;
}

static enum err_code show_addresses(struct debuginfo *debuginfo, struct err *err)
{
    const struct cli_texts *texts = &debuginfo->texts;
    struct showing showing = {.debuginfo = debuginfo};
    struct symbol_table *table;
    enum err_code code =
        symbols_open(debuginfo->cli, texts->texts[0], debuginfo->alternate, NULL, &table, err);
    if (code)
        return code;
    showing.names = symbol_names_create(table);
    symbol_cursor_init(&showing.cursor, table);
    for (size_t i = 1; !code && i < texts->count; i++) {
        const bool is_input = strcmp(texts->texts[i], "-") == 0;
        code = is_input ? show_lines(&showing, err)
                        : show_address(&showing, span_text(texts->texts[i]), err);
    }
    symbol_names_destroy(showing.names);
    symbol_table_close(table);
    return code;
}

static enum err_code run_debuginfo(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct debuginfo debuginfo = {.cli = cli};
    cli_parse(&debuginfo_command, argc, argv, &debuginfo);
    enum err_code code;
    if (is_verb(&debuginfo, "build"))
        code = build_table(&debuginfo, err);
    else if (is_verb(&debuginfo, "check"))
        code = handle_each(&debuginfo, check_file, err);
    else if (is_verb(&debuginfo, "upstreams"))
        code = debuginfo_upstreams(cli, &debuginfo.texts, debuginfo.header_file, debuginfo.is_json,
                                   err);
    else if (is_verb(&debuginfo, "retry"))
        code = debuginfo_retry(cli, &debuginfo.texts, err);
    else if (is_verb(&debuginfo, "list"))
        code = debuginfo_list(cli, debuginfo.is_json, err);
    else if (is_verb(&debuginfo, "delete"))
        code = debuginfo_delete(cli, &debuginfo.texts, err);
    else if (is_verb(&debuginfo, "upload"))
        code = handle_each(&debuginfo, upload_file, err);
    else
        code = show_addresses(&debuginfo, err);
    return code ? code : cli_flush(err);
}

const struct command debuginfo_command = {
    .name = "debuginfo",
    .summary = "build, inspect and upload symbol tables",
    .options = &options,
    .arguments = ARGUMENTS_FILES,
    .words = verbs,
    .run = run_debuginfo,
};
