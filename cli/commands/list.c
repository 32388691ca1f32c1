#include "cli/cli.h"
#include "cli/client.h"
#include "cli/stored_share.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <stdlib.h>

enum {
    DEFAULT_LIMIT = 50,
    PAGE_SIZE = 100,
    MAX_CELL_BYTES = 4096,
    TIME_COLUMNS = 16,
    WHO_COLUMNS = 9,
};

struct list {
    struct cli *cli;
    const char *search;
    long limit; /* 0: all */
    bool is_json;
    bool is_local;
};

static const struct option_row rows[] = {
    {"limit", 0, "N", "Show at most N shares, 0 for all (50)",
     OPTION_NUMBER(struct list, limit, 0, INT32_MAX, 1), .error = "--limit takes a whole number"},
    {"json", 0, NULL, "Print one share per line as JSON", OPTION_FLAG(struct list, is_json)},
    {"local", 0, NULL, "Show shares pushed from this machine, without a request to the server",
     OPTION_FLAG(struct list, is_local)},
    {0},
};

static enum err_code take_search(void *values, const char *text, struct err *err)
{
    struct list *list = values;
    if (list->search)
        return err_set(err, ERR_INVALID, "one search text only: put it in quotes");
    list->search = text;
    return ERR_NONE;
}

static const struct option_table options = {
    .rows = rows,
    .take_argument = take_search,
    .arguments = "[SEARCH]",
    .text = "List the shares of your team, newest first; without an account, those pushed from "
            "this machine.",
};

static void print_cell(struct span text, int columns)
{
    buf_auto clean;
    buf_init(&clean, MAX_CELL_BYTES);
    terminal_append_clean(&clean,
                          text.size < MAX_CELL_BYTES ? text : span_of(text.data, MAX_CELL_BYTES));
    terminal_print_cell(stdout, buf_span(&clean), columns);
}

struct row {
    const char *url, *title, *visibility, *created_at, *expires_at;
};

static void print_row(struct list *list, const struct row *row)
{
    char created[VALUE_TEXT_BYTES], distance[VALUE_TEXT_BYTES];
    const struct terminal *terminal = &list->cli->terminal;
    const char *dim = terminal_style(terminal, stdout, STYLE_DIM);
    const char *reset = terminal_style(terminal, stdout, STYLE_RESET);
    value_distance(row->expires_at ? row->expires_at : "", clock_wall_ns() / CLOCK_NS_PER_S,
                   distance);
    fputs(dim, stdout);
    value_time(row->created_at, created);
    print_cell(span_of(created, strnlen(created, TIME_COLUMNS)), TIME_COLUMNS);
    printf("%s  ", reset);
    print_cell(span_text(row->visibility), WHO_COLUMNS);
    printf("  %-11.11s  ", distance[0] ? distance : "never");
    terminal_print_clean(stdout, span_text(row->url));
    fputs("  ", stdout);
    /* The columns before the link, 16 + 9 + 11, and three gaps of 2 columns. */
    int space = terminal->columns - 42 - terminal_width(span_text(row->url));
    struct span title = span_text(row->title);
    if (terminal->is_output_terminal && space >= 8 && terminal_width(title) > space)
        print_cell(title, space);
    else
        terminal_print_clean(stdout, title);
    putchar('\n');
}

static void print_heading(const struct list *list)
{
    const struct terminal *terminal = &list->cli->terminal;
    if (terminal->is_output_terminal)
        printf("%s%-16s  %-9s  %-11s  %s%s\n", terminal_style(terminal, stdout, STYLE_BOLD),
               "created (UTC)", "who", "expires", "link and title",
               terminal_style(terminal, stdout, STYLE_RESET));
}

static enum err_code list_stored(struct list *list, struct err *err)
{
    struct stored_share *shares;
    size_t count;
    enum err_code code = stored_share_list(list->cli->arena, &shares, &count, err);
    if (code)
        return code;
    if (!list->is_json)
        print_heading(list);
    long shown = 0;
    for (size_t i = 0; i < count && (!list->limit || shown < list->limit); i++) {
        const struct stored_share *share = &shares[i];
        const char *title = share->title[0] ? share->title : share->filename;
        if (list->search && !strcasestr(title, list->search))
            continue;
        shown++;
        if (list->is_json) {
            json_auto_t *line =
                json_pack("{ssssssssss}", "id", share->id, "url", share->url, "title", title,
                          "created_at", share->created_at, "expires_at", share->expires_at);
            json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
            putchar('\n');
        } else {
            print_row(list,
                      &(struct row){share->url, title, "", share->created_at, share->expires_at});
        }
    }
    return cli_flush(err);
}

static void print_share(struct list *list, const json_t *share)
{
    if (list->is_json) {
        json_dumpf(share, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        return;
    }
    const char *title = client_text(share, "title", "");
    print_row(list, &(struct row){
                        .url = client_text(share, "url", ""),
                        .title = title[0] ? title : client_text(share, "filename", ""),
                        .visibility = client_text(share, "visibility", ""),
                        .created_at = client_text(share, "created_at", ""),
                        .expires_at = client_text(share, "expires_at", NULL),
                    });
}

static enum err_code make_page_path(const struct list *list, const char *cursor, struct buf *path,
                                    struct err *err)
{
    buf_clear(path);
    buf_printf(path, "/api/v1/shares?limit=%d", PAGE_SIZE);
    if (list->search) {
        buf_append_text(path, "&q=");
        buf_append_url(path, span_text(list->search));
    }
    if (cursor) {
        buf_append_text(path, "&cursor=");
        buf_append_url(path, span_text(cursor));
    }
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "the search text is too long") : ERR_NONE;
}

static enum err_code list_server(struct list *list, struct client *client, struct err *err)
{
    enum { MAX_PATH_BYTES = 16 << 10 };
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    const char *cursor = NULL;
    long shown = 0;
    if (!list->is_json)
        print_heading(list);
    for (;;) {
        json_auto_t *page = NULL;
        enum err_code code = make_page_path(list, cursor, &path, err);
        if (code)
            return code;
        code = client_get_json(client, (const char *)path.data, &page, err);
        if (code)
            return code;
        size_t i;
        const json_t *share;
        json_array_foreach(json_object_get(page, "shares"), i, share)
        {
            if (list->limit && shown == list->limit) {
                terminal_note(&list->cli->terminal,
                              "there are more shares: use --limit 0 to show all");
                return cli_flush(err);
            }
            print_share(list, share);
            shown++;
        }
        cursor = client_text(page, "next_cursor", NULL);
        if (!cursor)
            return cli_flush(err);
        cursor = arena_strdup(list->cli->arena, cursor);
    }
}

static enum err_code run_list(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct list list = {.cli = cli, .limit = DEFAULT_LIMIT};
    cli_parse(&list_command, argc, argv, &list);
    if (list.is_local || !cli->account.token) {
        if (!list.is_local)
            terminal_note(&cli->terminal, "not signed in: showing shares pushed from this machine");
        return list_stored(&list, err);
    }
    client_auto client = NULL;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    return code ? code : list_server(&list, client, err);
}

const struct command list_command = {
    .name = "list",
    .summary = "list shares",
    .options = &options,
    .arguments = ARGUMENTS_NONE,
    .run = run_list,
};
