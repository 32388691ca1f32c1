#include "cli/arguments.h"
#include "cli/linked_object.h"
#include "cli/save.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdlib.h>

enum { MAX_NAME_BYTES = 200 };
#define MAX_DOWNLOAD_BYTES (UINT64_C(16) << 30)

struct get {
    struct cli *cli;
    struct arguments arguments;
    const char *format; /* NULL: as uploaded */
    const char *output;
    const char *password_file;
    const char *password;
    bool is_forced;
};

static const char *const formats[] = {"raw", "pb.gz", "folded", "json", "svg", "png", "dot", NULL};

static const struct option_row rows[] = {
    {"format", 0, "FORMAT", "raw (as uploaded, the default), pb.gz, folded, json, svg, png or dot",
     OPTION_WORD(struct get, format, formats), .error = "--format is {words}, not {value}"},
    {"output", 'o', "FILE", "Write to FILE (- is standard output)",
     OPTION_TEXT(struct get, output)},
    {"force", 'f', NULL, "Replace an existing file", OPTION_FLAG(struct get, is_forced)},
    {"password-file", 0, "FILE",
     "The share's password is the first line of FILE (- is standard input)",
     OPTION_TEXT(struct get, password_file)},
    {0},
};

static enum err_code check_arguments(void *values, struct err *err)
{
    struct get *get = values;
    if (get->format == formats[0])
        get->format = NULL;
    return get->output && get->arguments.texts.count > 1
               ? err_set(err, ERR_INVALID, "-o takes one share only")
               : ERR_NONE;
}

static const struct option_part parts[] = {ARGUMENTS_PART(offsetof(struct get, arguments)), {0}};
static const struct option_table options = {
    .rows = rows,
    .check = check_arguments,
    .arguments = "LINK...",
    .text = "Download shares: the uploaded bytes, or another format.\v"
            "Without -o the file is written to the current directory under its original name, and "
            "the name is printed.",
    .parts = parts,
};

/* The last part of a name that the server sent, without parts that lead out of the folder or hide
 * the file. NULL: nothing is left, or it begins with "-", which is standard output or looks like an
 * option of other programs. */
static const char *safe_name(const char *name, struct arena *arena)
{
    const char *slash = strrchr(name, '/');
    struct span last = span_text(slash ? slash + 1 : name);
    buf_auto clean;
    buf_init(&clean, MAX_NAME_BYTES);
    terminal_append_clean(&clean, last);
    char *safe = arena_strndup(arena, clean.data, clean.size);
    for (char *at = safe; *at; at++) {
        if (*at == '?' || *at == '\\')
            *at = '_';
    }
    while (*safe == '.')
        safe++;
    return buf_failed(&clean) || !*safe || *safe == '-' ? NULL : safe;
}

/* Chooses the name that the page offers: the uploaded one, or the id with an extension. */
static enum err_code choose_name(struct get *get, struct linked_object *target,
                                 const char **ret_name, struct err *err)
{
    struct arena *arena = get->cli->arena;
    json_auto_t *share = NULL;
    struct client_request request;
    client_request_init(&request, "GET", arena_printf(arena, "/api/v1/shares/%s", target->link.a));
    linked_object_add_password(target, &request);
    enum err_code code = client_send_json(target->client, &request, &share, err);
    if (code)
        return code;
    const char *name = safe_name(client_text(share, "filename", ""), arena);
    if (!name)
        name = target->link.a;
    *ret_name = get->format ? arena_printf(arena, "%s.%s", target->link.a, get->format) : name;
    return ERR_NONE;
}

static enum err_code save_share(struct get *get, struct linked_object *target, struct err *err)
{
    struct cli *cli = get->cli;
    const char *name = get->output, *id = target->link.a;
    const char *path = get->format ? arena_printf(cli->arena, "/p/%s.%s", id, get->format)
                                   : arena_printf(cli->arena, "/api/v1/shares/%s/raw", id);
    struct save save;
    enum err_code code = name ? ERR_NONE : choose_name(get, target, &name, err);
    if (code)
        return code;
    code = save_open(name, get->is_forced, cli->arena, &save, err);
    if (code)
        return code;
    code = linked_object_download(target, path, name, MAX_DOWNLOAD_BYTES, save.fd, &cli->terminal,
                                  err);
    if (!code)
        code = save_commit(&save, err);
    save_close(&save);
    if (code || get->output)
        return code;
    puts(name);
    return cli_flush(err);
}

static enum err_code get_one(void *context, const char *text, struct err *err)
{
    struct get *get = context;
    linked_object_auto target = {0};
    enum err_code code = linked_object_open(get->cli, text, &target, err);
    if (code)
        return code;
    target.password = get->password;
    code = save_share(get, &target, err);
    return code && get->arguments.texts.count > 1 ? err_add(err, "%s", text) : code;
}

static enum err_code run_get(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct get get = {.cli = cli, .arguments = {.cli = cli, .wanted = "give a link or an id"}};
    enum err_code code = ERR_NONE;
    cli_parse(&get_command, argc, argv, &get);
    if (get.password_file)
        code = cli_read_secret(cli, get.password_file, &get.password, err);
    return code ? code : arguments_each(&get.arguments, "downloaded", get_one, &get, err);
}

const struct command get_command = {
    .name = "get",
    .summary = "download a share, as uploaded or in another format",
    .options = &options,
    .arguments = ARGUMENTS_LINKS,
    .run = run_get,
};
