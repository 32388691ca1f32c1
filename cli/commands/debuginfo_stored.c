#include "cli/commands/debuginfo_stored.h"

#include "cli/client.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdlib.h>

enum { PATH_MAX_BYTES = 1024 };

static const char path_of_all[] = "/api/v1/debuginfo";

static long long number(const json_t *json, const char *name)
{
    return (long long)json_integer_value(json_object_get(json, name));
}

static void print_quality(const json_t *table)
{
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(table, "quality"), i, word)
    {
        putchar(i ? ',' : ' ');
        terminal_print_clean(stdout,
                             span_text(json_string_value(word) ? json_string_value(word) : "?"));
    }
}

static void print_binary(const json_t *binary)
{
    const json_t *table = json_object_get(binary, "table");
    terminal_print_clean(stdout, span_text(client_text(binary, "build_id", "?")));
    if (json_is_object(table)) {
        fputs("  ", stdout);
        terminal_print_clean(stdout, span_text(client_text(table, "file", "")));
        printf("  table: %lld functions, %lld bytes,", number(table, "functions"),
               number(table, "bytes"));
        print_quality(table);
    } else {
        fputs("  no table", stdout);
    }
    if (number(binary, "files"))
        printf("  files: %lld, %lld bytes", number(binary, "files"), number(binary, "file_bytes"));
    putchar('\n');
}

/* Returns the number of rows. */
static size_t print_page(const json_t *page, bool is_json)
{
    const json_t *binary;
    size_t i;
    json_array_foreach(json_object_get(page, "binaries"), i, binary)
    {
        if (is_json) {
            json_dumpf(binary, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
            putchar('\n');
        } else {
            print_binary(binary);
        }
    }
    return i;
}

enum err_code debuginfo_list(struct cli *cli, bool is_json, struct err *err)
{
    client_auto client = NULL;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    const char *after = NULL;
    size_t count = 0;
    while (!code) {
        json_auto_t *page = NULL;
        buf_auto path;
        buf_init(&path, PATH_MAX_BYTES);
        buf_append_text(&path, path_of_all);
        client_append_parameter(&path, "after", after);
        buf_append_byte(&path, 0);
        code = client_get_json(client, (const char *)path.data, &page, err);
        if (code)
            break;
        count += print_page(page, is_json);
        const char *next = client_text(page, "next", NULL);
        if (!next)
            break;
        if (after && strcmp(next, after) <= 0)
            return err_set(err, ERR_NETWORK,
                           "the server repeats a page of the list: is it a Perfolio server?");
        after = arena_strdup(cli->arena, next);
    }
    if (code)
        return code;
    if (!count)
        terminal_note(&cli->terminal, "no files yet: run perfolio debuginfo upload FILE");
    return ERR_NONE;
}

static enum err_code delete_one(struct cli *cli, struct client *client, const char *build_id,
                                struct err *err)
{
    json_auto_t *response = NULL;
    char path[sizeof(path_of_all) + PATH_MAX_BYTES];
    const size_t digits = strspn(build_id, "0123456789abcdefABCDEF");
    if (digits == 0 || digits % 2 || build_id[digits] || digits >= PATH_MAX_BYTES)
        return cli_usage(cli, err, "\"%s\" is not a build id", build_id);
    snprintf(path, sizeof(path), "%s/%s", path_of_all, build_id);
    enum err_code code = client_call_json(client, "DELETE", path, NULL, &response, err);
    if (code)
        return code;
    if (!cli->terminal.is_quiet)
        printf("deleted %s\n", build_id);
    return ERR_NONE;
}

enum err_code debuginfo_delete(struct cli *cli, const struct cli_texts *texts, struct err *err)
{
    client_auto client = NULL;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    for (size_t i = 0; !code && i < texts->count; i++)
        code = delete_one(cli, client, texts->texts[i], err);
    return code;
}
