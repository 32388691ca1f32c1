#include "cli/cli.h"
#include "cli/commands/query_text.h"
#include "cli/linked_object.h"
#include "cli/report.h"
#include "cli/save.h"
#include "cli/share_print.h"
#include "cli/view_options.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PATH_BYTES = 256 << 10 };
#define MAX_RESPONSE_BYTES (UINT64_C(16) << 30)

struct query_command_input {
    struct cli *cli;
    struct view_options_input view;
    struct upload_settings settings;
    const char *text;
    const char *start;
    const char *end;
    const char *report; /* NULL: print the table */
    const char *output;
    bool is_forced;
    bool is_share;
    struct query_text_labels kept_labels;
    struct query_text query_text;
};

static const char *const reports[] = {"top", "folded", "pprof", "flame", "svg", "callgraph", NULL};

static const char *const visibilities[] = {"public", "unlisted", "team", NULL};

static enum err_code take_kept_label(void *values, const struct option_row *row, const char *text,
                                     struct err *err)
{
    struct query_text_labels *labels = &((struct query_command_input *)values)->kept_labels;
    (void)row;
    if (labels->count == QUERY_TEXT_LABELS_MAX)
        return err_set(err, ERR_INVALID, "--keep-label is given more than %d times",
                       QUERY_TEXT_LABELS_MAX);
    labels->names[labels->count++] = text;
    return ERR_NONE;
}

static const struct option_row rows[] = {
    {"start", 0, "TIME",
     "Start of the window: now-1h (the default), yesterday, 2026-01-02T03:04:05Z",
     OPTION_TEXT(struct query_command_input, start)},
    {"end", 0, "TIME", "End of the window, exclusive: now (the default)",
     OPTION_TEXT(struct query_command_input, end)},
    {"report", 0, "REPORT",
     "top (a table, the default), folded, pprof, flame (JSON), svg or callgraph (DOT)",
     OPTION_WORD(struct query_command_input, report, reports),
     .error = "--report is {words}, not {value}"},
    {"output", 'o', "FILE", "Write the report to FILE (- is standard output)",
     OPTION_TEXT(struct query_command_input, output)},
    {"force", 'f', NULL, "Replace an existing file",
     OPTION_FLAG(struct query_command_input, is_forced)},
    {"share", 0, NULL, "Store the result as a share and print its link",
     OPTION_FLAG(struct query_command_input, is_share)},
    {"keep-label", 0, "LABEL", "Keep this label in the share; may be repeated, * keeps all",
     .take = take_kept_label},
    {"title", 0, "TEXT", "Title of the share (type, labels and window)",
     OPTION_TEXT(struct query_command_input, settings.title)},
    {"expires", 0, "TIME", "When the share expires: 12h, 30d, 8w or never",
     OPTION_TEXT(struct query_command_input, settings.expires)},
    {"visibility", 0, "VISIBILITY",
     "Visibility of the share: team (the default), unlisted or public",
     OPTION_WORD(struct query_command_input, settings.visibility, visibilities),
     .error = "--visibility is {words}, not {value}"},
    {0},
};

static enum err_code take_query(void *values, const char *text, struct err *err)
{
    struct query_command_input *query = values;
    if (query->text)
        return err_set(err, ERR_INVALID, "one query at a time: put it in quotes, with its labels");
    query->text = text;
    return ERR_NONE;
}

/* Only labels select samples of a pprof result; other rules are for reports. */
static bool has_more_than_labels(const struct view_options_input *view)
{
    bool has_frames = false;
    for (size_t i = 0; i < view->rule_count; i++)
        has_frames |= view->rules[i].action != FILTER_LABEL;
    return has_frames || view->sample_type || view->limit != VIEW_OPTIONS_NO_LIMIT;
}

/* Refuses options that have no effect without the table or without --report. */
static enum err_code check_report(const struct query_command_input *query, struct err *err)
{
    if (query->report && query->view.is_json)
        return err_set(err, ERR_INVALID,
                       "--json needs the table or --share; --report flame prints JSON");
    if (!query->report && query->output)
        return err_set(err, ERR_INVALID,
                       "-o needs --report folded, pprof, flame, svg or callgraph");
    if (query->report && strcmp(query->report, "pprof") == 0 && has_more_than_labels(&query->view))
        return err_set(err, ERR_INVALID,
                       "--report pprof writes the whole profile: only --label and --group-by "
                       "LABEL can be combined with it");
    return ERR_NONE;
}

/* Refuses options that exclude each other. */
static enum err_code check_arguments(void *values, struct err *err)
{
    struct query_command_input *query = values;
    const struct upload_settings *settings = &query->settings;
    const bool has_view = query->view.rule_count || query->view.sample_type ||
                          query->view.group_by || query->view.limit != VIEW_OPTIONS_NO_LIMIT;
    if (query->report == reports[0])
        query->report = NULL;
    if (!query->text)
        return err_set(err, ERR_INVALID,
                       "give a selector, such as process_cpu:cpu:nanoseconds:cpu:nanoseconds"
                       "{service_name=\"api\"}, in quotes");
    if (query->view.password_file)
        return err_set(err, ERR_INVALID,
                       "--password-file is only for shares: a query uses the token");
    if (query->is_share && (query->report || query->output || has_view))
        return err_set(err, ERR_INVALID,
                       "--report, -o and filters cannot be combined with --share, which stores "
                       "the whole profile; use --keep-label to keep labels for filtering");
    if (!query->is_share &&
        (settings->title || settings->expires || settings->visibility || query->kept_labels.count))
        return err_set(err, ERR_INVALID,
                       "--title, --expires, --visibility and --keep-label need --share");
    return check_report(query, err);
}

static const struct option_part parts[] = {
    VIEW_OPTIONS_PART(offsetof(struct query_command_input, view)), {0}};
static const struct option_table options = {
    .rows = rows,
    .take_argument = take_query,
    .check = check_arguments,
    .arguments = "SELECTOR",
    .text = "Merge continuous profiles and show the most expensive functions.\v"
            "SELECTOR is a profile type with labels, such as "
            "'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\",pod=~\"a.*\"}'. A "
            "window may follow, as in perfolio diff: '…@now-2h..now-1h'.",
    .parts = parts,
};

static enum err_code read_query(struct query_command_input *query, struct err *err)
{
    struct query_text *query_text = &query->query_text;
    enum err_code code = query_text_parse(query->text, query->cli, query_text, err);
    if (code)
        return code;
    if (query_text->start && (query->start || query->end))
        return cli_usage(query->cli, err,
                         "the query has a window after its @: leave out --start "
                         "and --end");
    query_text->start = query->start ? query->start : query_text->start;
    query_text->end = query->end ? query->end : query_text->end;
    return ERR_NONE;
}

static enum err_code make_path(const struct query_command_input *query, const char *report,
                               struct buf *path, struct err *err)
{
    buf_append_text(path, "/api/v1/query");
    client_append_parameter(path, "report", report);
    query_text_append(path, &query->query_text);
    view_options_append_query(path, &query->view);
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "query and filters are too long together")
                            : ERR_NONE;
}

static enum err_code print_table(struct query_command_input *query, struct client *client,
                                 struct err *err)
{
    struct cli *cli = query->cli;
    json_auto_t *json = NULL;
    struct report report;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    if (query->view.limit == VIEW_OPTIONS_NO_LIMIT)
        query->view.limit = VIEW_OPTIONS_DEFAULT_LIMIT;
    enum err_code code = make_path(query, "top", &path, err);
    if (!code)
        code = client_get_json(client, (const char *)path.data, &json, err);
    if (code) {
        query_text_point(cli, &query->query_text, err);
        if (code == ERR_NOT_FOUND)
            query_text_print_newest(cli, client, &query->query_text);
        return code;
    }
    code = report_from_json(json, cli->arena, &report, err);
    if (code)
        return code;
    if (query->view.is_json)
        report_print_json(&report);
    else if (report.function_count)
        report_print_table(cli, &report);
    code = cli_flush(err);
    if (code || report.function_count)
        return code;
    return query->view.rule_count
               ? err_set(err, ERR_NOT_FOUND, "no sample of this window matches the filters")
               : query_text_refuse_empty(cli, client, &query->query_text, err);
}

static enum err_code save_report(struct query_command_input *query, struct client *client,
                                 struct err *err)
{
    struct cli *cli = query->cli;
    bool is_empty = false;
    const struct linked_object target = {.client = client, .ret_is_empty = &is_empty};
    const char *report = strcmp(query->report, "flame") == 0 ? "json" : query->report;
    const char *output = query->output ? query->output : "-";
    struct save save;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    if (!query->output && strcmp(report, "pprof") == 0 && cli->terminal.is_output_terminal)
        return cli_usage(cli, err, "pprof cannot be written to a terminal: give a file with -o");
    enum err_code code = make_path(query, report, &path, err);
    if (code)
        return code;
    code = save_open(output, query->is_forced, cli->arena, &save, err);
    if (code)
        return code;
    code = linked_object_download(&target, (const char *)path.data, output, MAX_RESPONSE_BYTES,
                                  save.fd, &cli->terminal, err);
    if (code)
        query_text_point(cli, &query->query_text, err);
    else if (is_empty)
        code = query_text_refuse_empty(cli, client, &query->query_text, err);
    else
        code = save_commit(&save, err);
    save_close(&save);
    return code;
}

static enum err_code share_result(struct query_command_input *query, struct client *client,
                                  struct err *err)
{
    json_auto_t *share = NULL;
    enum err_code code = query_text_share(query->cli, client, &query->query_text,
                                          &query->kept_labels, &query->settings, &share, err);
    if (code)
        return code;
    code = share_print_result(query->cli, client,
                              query->view.is_json ? SHARE_OUTPUT_JSON : SHARE_OUTPUT_URL, share,
                              &query->settings, err);
    share_print_details(query->cli, share, &query->settings);
    return code;
}

static enum err_code run_query(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct query_command_input query = {.cli = cli,
                                        .view = {.cli = cli, .limit = VIEW_OPTIONS_NO_LIMIT}};
    client_auto client = NULL;
    cli_parse(&query_command, argc, argv, &query);
    enum err_code code = read_query(&query, err);
    if (code)
        return code;
    code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    if (query.is_share)
        return share_result(&query, client, err);
    return query.report ? save_report(&query, client, err) : print_table(&query, client, err);
}

const struct command query_command = {
    .name = "query",
    .summary = "merge the profiles of a time window and show the most expensive functions",
    .options = &options,
    .arguments = ARGUMENTS_NONE,
    .run = run_query,
};
