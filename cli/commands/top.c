#include "cli/arguments.h"
#include "cli/linked_object.h"
#include "cli/report.h"
#include "cli/source.h"
#include "cli/view_options.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"

enum { MAX_PATH_BYTES = 64 << 10 };

struct top_command {
    struct cli *cli;
    struct view_options_input view;
    const char *source;
};

static enum err_code take_source(void *values, const char *text, struct err *err)
{
    struct top_command *top = values;
    if (top->source)
        return err_set(err, ERR_INVALID, "one profile at a time");
    top->source = text;
    return ERR_NONE;
}

static enum err_code check_source(void *values, struct err *err)
{
    const struct top_command *top = values;
    return top->source ? ERR_NONE : err_set(err, ERR_INVALID, "give a profile or a link");
}

static const struct option_part parts[] = {VIEW_OPTIONS_PART(offsetof(struct top_command, view)),
                                           {0}};
static const struct option_table options = {
    .take_argument = take_source,
    .check = check_source,
    .arguments = "FILE|-|URL|LINK",
    .text = "Show the most expensive functions of a local profile or of a share.\v"
            "flat is the cost of a function itself, cum includes the functions that it calls.",
    .parts = parts,
};

static enum err_code request_report(struct top_command *top, const char *password,
                                    struct report *report, json_t **ret_json, struct err *err)
{
    struct arena *arena = top->cli->arena;
    linked_object_auto target = {0};
    enum err_code code = linked_object_open(top->cli, top->source, &target, err);
    if (code)
        return code;
    target.password = password;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    buf_printf(&path, "/api/v1/shares/%s/top", target.link.a);
    view_options_append_query(&path, &top->view);
    buf_append_byte(&path, 0);
    if (buf_failed(&path))
        return err_set(err, ERR_TOO_LARGE, "the filters are too long together");
    struct client_request request;
    client_request_init(&request, "GET", (const char *)path.data);
    linked_object_add_password(&target, &request);
    code = client_send_json(target.client, &request, ret_json, err);
    return code ? code : report_from_json(*ret_json, arena, report, err);
}

static enum err_code compute(struct top_command *top, struct profile **ret_profile,
                             struct report *report, struct err *err)
{
    struct arena *arena = top->cli->arena;
    struct view_options shown;
    const struct view *view;
    input_auto input = INPUT_NONE;
    enum err_code code = view_options_make(&top->view, &shown, err);
    if (code)
        return code;
    code = source_open(top->cli, top->source, 0, NULL, &input, err);
    if (code)
        return code;
    code = input_decode(&input, NULL, ret_profile, err);
    if (code)
        return code;
    input_warn(&input, *ret_profile, &top->cli->terminal);
    code = view_create(arena, *ret_profile, &shown, &view, err);
    if (code)
        return code;
    report_from_view(view, top->view.limit, arena, report);
    return ERR_NONE;
}

static enum err_code run_top(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct top_command top = {.cli = cli,
                              .view = {.cli = cli, .limit = VIEW_OPTIONS_DEFAULT_LIMIT}};
    cli_parse(&top_command, argc, argv, &top);
    json_auto_t *json = NULL;
    struct profile *profile = NULL;
    struct report report;
    struct link link;
    const char *password = NULL;
    const struct cli_texts sources = {.texts = &top.source, .count = 1};
    enum err_code code = arguments_check_stdin(cli, &sources, top.view.password_file, err);
    if (code)
        return code;
    if (top.view.password_file)
        code = cli_read_secret(cli, top.view.password_file, &password, err);
    if (code)
        return code;
    if (source_is_link(top.source, cli, &link))
        code = request_report(&top, password, &report, &json, err);
    else
        code = compute(&top, &profile, &report, err);
    if (!code && top.view.is_json)
        report_print_json(&report);
    else if (!code)
        report_print_table(cli, &report);
    profile_destroy(profile);
    return code ? code : cli_flush(err);
}

const struct command top_command = {
    .name = "top",
    .summary = "show the most expensive functions",
    .options = &options,
    .arguments = ARGUMENTS_BOTH,
    .run = run_top,
};
