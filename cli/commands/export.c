#include "cli/cli.h"
#include "cli/commands/query_text.h"
#include "cli/linked_object.h"
#include "cli/save.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <string.h>
#include <unistd.h>

enum { MAX_PATH_BYTES = 256 << 10 };
#define MAX_RESPONSE_BYTES (UINT64_C(1) << 40)

struct exporting {
    struct cli *cli;
    const char *text;
    const char *start;
    const char *end;
    const char *output;
    struct cli_texts labels;
    bool is_forced;
    struct query_text query_text;
};

static enum err_code take_label(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct exporting *export = values;
    (void)row;
    (void)err;
    cli_texts_add(export->cli, &export->labels, text);
    return ERR_NONE;
}

static const struct option_row rows[] = {
    {"parquet", 0, NULL, "Write Apache Parquet (the default)", OPTION_IGNORED},
    {"start", 0, "TIME",
     "Start of the window: now-1h (the default), yesterday, 2026-01-02T03:04:05Z",
     OPTION_TEXT(struct exporting, start)},
    {"end", 0, "TIME", "End of the window, exclusive: now (the default)",
     OPTION_TEXT(struct exporting, end)},
    {"label", 0, "KEY=VALUE", "Only samples with this label; may be repeated", .take = take_label},
    {"output", 'o', "FILE", "Write to FILE (- is standard output)",
     OPTION_TEXT(struct exporting, output)},
    {"force", 'f', NULL, "Replace an existing file", OPTION_FLAG(struct exporting, is_forced)},
    {0},
};

static enum err_code take_selector(void *values, const char *text, struct err *err)
{
    struct exporting *export = values;
    if (export->text)
        return err_set(err, ERR_INVALID,
                       "one selector at a time: put it in quotes, with its labels");
    export->text = text;
    return ERR_NONE;
}

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct exporting *export = values;
    if (!export->text)
        return err_set(err, ERR_INVALID,
                       "give a selector, such as process_cpu:cpu:nanoseconds:cpu:nanoseconds"
                       "{service_name=\"api\"}, in quotes");
    if (!export->output)
        return err_set(err, ERR_INVALID, "give the file with -o (- is standard output)");
    return ERR_NONE;
}

static const struct option_table options = {
    .rows = rows,
    .take_argument = take_selector,
    .check = check_arguments,
    .arguments = "SELECTOR",
    .text =
        "Save the samples of continuous profiles as a table: an Apache Parquet file for DuckDB, "
        "pandas and other tools.\v"
        "SELECTOR and its optional window have the form described in perfolio query.",
};

static enum err_code read_query(struct exporting *export, struct err *err)
{
    struct query_text *query_text = &export->query_text;
    enum err_code code = query_text_parse(export->text, export->cli, query_text, err);
    if (code)
        return code;
    if (query_text->start && (export->start || export->end))
        return cli_usage(export->cli, err,
                         "the selector has a window after its @: leave out --start and --end");
    query_text->start = export->start ? export->start : query_text->start;
    query_text->end = export->end ? export->end : query_text->end;
    return ERR_NONE;
}

static enum err_code make_path(const struct exporting *export, struct buf *path, struct err *err)
{
    buf_append_text(path, "/api/v1/export?format=parquet");
    query_text_append(path, &export->query_text);
    for (size_t i = 0; i < export->labels.count; i++)
        client_append_parameter(path, "label", export->labels.texts[i]);
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "the selector is too long") : ERR_NONE;
}

/* Checks that the file begins as Parquet, because a proxy or another server may respond with its
 * own page. A pipe cannot be checked. */
static enum err_code check_begin(int fd, struct err *err)
{
    char begin[4];
    const ssize_t size = pread(fd, begin, sizeof(begin), 0);
    if (size < 0 || (size == sizeof(begin) && memcmp(begin, "PAR1", sizeof(begin)) == 0))
        return ERR_NONE;
    return err_set(err, ERR_NETWORK,
                   "the response is not a Parquet file: check that the URL is that of a Perfolio "
                   "server");
}

static enum err_code save_table(const struct exporting *export, struct client *client,
                                struct err *err)
{
    struct cli *cli = export->cli;
    bool is_empty = false;
    const struct linked_object target = {.client = client, .ret_is_empty = &is_empty};
    struct save save;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    enum err_code code = make_path(export, &path, err);
    if (code)
        return code;
    code = save_open(export->output, export->is_forced, cli->arena, &save, err);
    if (code)
        return code;
    code = linked_object_download(&target, (const char *)path.data, export->output,
                                  MAX_RESPONSE_BYTES, save.fd, &cli->terminal, err);
    if (!code && !is_empty)
        code = check_begin(save.fd, err);
    if (code)
        query_text_point(cli, &export->query_text, err);
    else if (is_empty)
        code = query_text_refuse_empty(cli, client, &export->query_text, err);
    else
        code = save_commit(&save, err);
    save_close(&save);
    return code;
}

static enum err_code run_export(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct exporting export = {.cli = cli};
    client_auto client = NULL;
    cli_parse(&export_command, argc, argv, &export);
    if (strcmp(export.output, "-") == 0 && cli->terminal.is_output_terminal)
        return cli_usage(cli, err, "Parquet cannot be written to a terminal: give a file with -o");
    enum err_code code = read_query(&export, err);
    if (code)
        return code;
    code = cli_connect(cli, NULL, &client, err);
    return code ? code : save_table(&export, client, err);
}

const struct command export_command = {
    .name = "export",
    .summary = "save the samples of a time window as a Parquet file",
    .options = &options,
    .arguments = ARGUMENTS_NONE,
    .run = run_export,
};
