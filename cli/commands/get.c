#include "cli/arguments.h"
#include "cli/save.h"
#include "cli/target.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdlib.h>

enum { OPTION_FORMAT = 0x200, OPTION_PASSWORD_FILE, MAX_NAME_BYTES = 200 };
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

static const struct argp_option options[] = {
    {"format", OPTION_FORMAT, "FORMAT", 0,
     "raw (as uploaded, the default), pb.gz, folded, json, svg, png or dot", 0},
    {"output", 'o', "FILE", 0, "Write to FILE (- is standard output)", 0},
    {"force", 'f', NULL, 0, "Replace an existing file", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "The share's password is the first line of FILE (- is standard input)", 0},
    {0},
};

static const char *find_format(const char *text, struct argp_state *state)
{
    for (size_t i = 0; formats[i]; i++) {
        if (strcmp(text, formats[i]) == 0)
            return i ? formats[i] : NULL;
    }
    argp_error(state, "--format is raw, pb.gz, folded, json, svg, png or dot, not %s", text);
    return NULL;
}

static error_t parse_get_option(int key, char *text, struct argp_state *state)
{
    struct get *get = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &get->arguments;
        return 0;
    case OPTION_FORMAT:
        get->format = find_format(text, state);
        return 0;
    case 'o':
        get->output = text;
        return 0;
    case 'f':
        get->is_forced = true;
        return 0;
    case OPTION_PASSWORD_FILE:
        get->password_file = text;
        return 0;
    case ARGP_KEY_END:
        if (get->output && get->arguments.texts.count > 1)
            argp_error(state, "-o takes one share only");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse_get_option,
    .args_doc = "LINK...",
    .doc = "Download shares: the uploaded bytes, or another format.\v"
           "Without -o the file is written to the current directory under its original name, and "
           "the name is printed.",
    .children = arguments_children,
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
static enum err_code choose_name(struct get *get, struct target *target, const char **ret_name,
                                 struct err *err)
{
    struct arena *arena = get->cli->arena;
    json_auto_t *share = NULL;
    struct client_request request;
    client_request_init(&request, "GET", arena_printf(arena, "/api/v1/shares/%s", target->link.a));
    target_add_password(target, &request);
    enum err_code code = client_send_json(target->client, &request, &share, err);
    if (code)
        return code;
    const char *name = safe_name(client_text(share, "filename", ""), arena);
    if (!name)
        name = target->link.a;
    *ret_name = get->format ? arena_printf(arena, "%s.%s", target->link.a, get->format) : name;
    return ERR_NONE;
}

static enum err_code save_share(struct get *get, struct target *target, struct err *err)
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
    code = target_download(target, path, name, MAX_DOWNLOAD_BYTES, save.fd, &cli->terminal, err);
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
    target_auto target = {0};
    enum err_code code = target_open(get->cli, text, &target, err);
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
    .argp = &argp,
    .arguments = ARGUMENTS_LINKS,
    .run = run_get,
};
