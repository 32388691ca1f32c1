#include "cli/cli.h"
#include "cli/client.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

enum { MAX_PATH_BYTES = 4096 };

struct usage {
    struct cli *cli;
    const char *start;
    const char *end;
    bool is_json;
};

static const struct option_row rows[] = {
    {"start", 0, "TIME", "First day: now-30d (the default), 2026-01-02T00:00:00Z",
     OPTION_TEXT(struct usage, start)},
    {"end", 0, "TIME", "Last day (today)", OPTION_TEXT(struct usage, end)},
    {"json", 0, NULL, "Print the response as JSON", OPTION_FLAG(struct usage, is_json)},
    {0},
};

static enum err_code refuse_argument(void *values, const char *text, struct err *err)
{
    (void)values;
    (void)text;
    return err_set(err, ERR_INVALID, "too many arguments");
}

static const struct option_table options = {
    .rows = rows,
    .take_argument = refuse_argument,
    .text =
        "Show the volume of continuous profiles that your team sent, by day (UTC), and how much "
        "of it is stored.",
};

static int64_t number(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static void print_cells(const json_t *sums, const char *series)
{
    char text[VALUE_TEXT_BYTES];
    printf("  %12s", value_count(number(sums, "profiles"), text));
    printf("  %16s", value_count(number(sums, "samples"), text));
    printf("  %12s", value_bytes((uint64_t)number(sums, "bytes"), text));
    printf("  %10s\n", series);
}

static void print_day(const json_t *day)
{
    char series[VALUE_TEXT_BYTES];
    printf("%-10.10s", client_text(day, "day", ""));
    print_cells(day, value_count(number(day, "series"), series));
}

static void print_usage(const struct usage *usage, const json_t *response)
{
    const struct terminal *terminal = &usage->cli->terminal;
    const json_t *days = json_object_get(response, "days");
    char text[VALUE_TEXT_BYTES];
    printf("%s%-10s  %12s  %16s  %12s  %10s%s\n", terminal_style(terminal, stdout, STYLE_BOLD),
           "day (UTC)", "profiles", "samples", "bytes", "series",
           terminal_style(terminal, stdout, STYLE_RESET));
    for (size_t i = 0; i < json_array_size(days); i++)
        print_day(json_array_get(days, i));
    printf("%-10s", "total");
    print_cells(json_object_get(response, "total"), "");
    printf("stored now: %s\n", value_bytes((uint64_t)number(response, "bytes_stored"), text));
    printf("names cut:  %s\n",
           value_count(number(json_object_get(response, "total"), "cut_strings"), text));
}

static enum err_code run_usage(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct usage usage = {.cli = cli};
    client_auto client = NULL;
    json_auto_t *response = NULL;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    cli_parse(&usage_command, argc, argv, &usage);
    buf_append_text(&path, "/api/v1/usage");
    client_append_parameter(&path, "start", usage.start);
    client_append_parameter(&path, "end", usage.end);
    if (buf_failed(&path))
        return err_set(err, ERR_INVALID, "--start and --end are too long");
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = client_get_json(client, arena_strndup(cli->arena, path.data, path.size), &response, err);
    if (code)
        return code;
    if (usage.is_json) {
        json_dumpf(response, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
    } else {
        print_usage(&usage, response);
    }
    return cli_flush(err);
}

const struct command usage_command = {
    .name = "usage",
    .summary = "show the data volume of your team by day",
    .options = &options,
    .run = run_usage,
};
