#include "cli/commands/debuginfo_upstreams.h"

#include "cli/client.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { HEADER_MAX_BYTES = 8192 };

static const char path_of_upstreams[] = "/api/v1/debuginfo/upstreams";

static void print_clean(const char *text)
{
    terminal_print_clean(stdout, span_text(text));
}

static void print_upstreams(const json_t *response)
{
    const char *mode = client_text(response, "mode", "?");
    const json_t *row;
    size_t i;
    if (json_is_false(json_object_get(response, "is_available"))) {
        puts("off: this server uses no debuginfod servers, for any team");
        return;
    }
    print_clean(mode);
    putchar('\n');
    if (strcmp(mode, "public") == 0) {
        json_array_foreach(json_object_get(response, "public"), i, row)
        {
            fputs("  ", stdout);
            print_clean(json_string_value(row) ? json_string_value(row) : "?");
            putchar('\n');
        }
    }
    json_array_foreach(json_object_get(response, "upstreams"), i, row)
    {
        fputs("  ", stdout);
        print_clean(client_text(row, "url", "?"));
        puts(json_is_true(json_object_get(row, "has_auth")) ? "  with a header" : "");
    }
}

static void print_response(const json_t *response, bool is_json)
{
    char *text = is_json ? json_dumps(response, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (text)
        puts(text);
    else
        print_upstreams(response);
    free(text);
}

/* Reads a header from the first line of a file. A secret on the command line would be visible to
 * all users of the host. */
static enum err_code read_header_file(struct cli *cli, const char *path, const char **ret_header,
                                      struct err *err)
{
    char bytes[HEADER_MAX_BYTES + 1];
    size_t size = 0;
    ssize_t taken = 0;
    const bool is_input = strcmp(path, "-") == 0;
    fd_auto file = is_input ? -1 : os_openat(AT_FDCWD, path, O_RDONLY, 0);
    const int fd = is_input ? STDIN_FILENO : file;
    if (fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s", path);
    while (size < sizeof(bytes) && (taken = read(fd, bytes + size, sizeof(bytes) - size)) > 0)
        size += (size_t)taken;
    if (taken < 0)
        return err_set_errno(err, ERR_IO, "%s", path);
    struct span rest = span_of(bytes, size), line;
    if (!span_take_line(&rest, &line) || span_trim(line).size == 0 || size == sizeof(bytes))
        return err_set(err, ERR_INVALID,
                       "%s does not begin with a header line, as in Authorization: Bearer …", path);
    line = span_trim(line);
    *ret_header = arena_strndup(cli->arena, line.data, line.size);
    return ERR_NONE;
}

static bool is_mode(const struct cli_texts *texts)
{
    return texts->count == 1 &&
           (strcmp(texts->texts[0], "public") == 0 || strcmp(texts->texts[0], "off") == 0);
}

static json_t *make_body(const struct cli_texts *texts, const char *header)
{
    if (is_mode(texts))
        return json_pack("{s:s}", "mode", texts->texts[0]);
    json_t *list = json_array();
    for (size_t i = 0; i < texts->count; i++) {
        json_t *row = json_pack("{s:s}", "url", texts->texts[i]);
        if (header)
            json_object_set_new(row, "auth", json_string(header));
        json_array_append_new(list, row);
    }
    return json_pack("{s:s,s:o}", "mode", "custom", "upstreams", list);
}

enum err_code debuginfo_upstreams(struct cli *cli, const struct cli_texts *texts,
                                  const char *header_file, bool is_json, struct err *err)
{
    client_auto client = NULL;
    json_auto_t *response = NULL;
    const char *header = NULL;
    enum err_code code = ERR_NONE;
    if (header_file && (texts->count == 0 || is_mode(texts)))
        return err_set(err, ERR_INVALID, "--header-file needs the URLs of servers");
    if (header_file)
        code = read_header_file(cli, header_file, &header, err);
    if (code)
        return code;
    code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    if (texts->count == 0) {
        code = client_get_json(client, path_of_upstreams, &response, err);
    } else {
        json_auto_t *body = make_body(texts, header);
        code = client_call_json(client, "PUT", path_of_upstreams, body, &response, err);
    }
    if (code)
        return code;
    print_response(response, is_json);
    return ERR_NONE;
}

static enum err_code retry_one(struct cli *cli, struct client *client, const char *build_id,
                               struct err *err)
{
    json_auto_t *body = build_id ? json_pack("{s:s}", "build_id", build_id) : json_object();
    json_auto_t *response = NULL;
    enum err_code code =
        client_call_json(client, "POST", "/api/v1/debuginfo/retry", body, &response, err);
    if (code)
        return code;
    if (!cli->terminal.is_quiet)
        printf("%s%srequested again: %" JSON_INTEGER_FORMAT "\n", build_id ? build_id : "",
               build_id ? " " : "", json_integer_value(json_object_get(response, "count")));
    return ERR_NONE;
}

enum err_code debuginfo_retry(struct cli *cli, const struct cli_texts *texts, struct err *err)
{
    client_auto client = NULL;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    if (texts->count == 0)
        return retry_one(cli, client, NULL, err);
    for (size_t i = 0; i < texts->count; i++) {
        code = retry_one(cli, client, texts->texts[i], err);
        if (code)
            return code;
    }
    return ERR_NONE;
}
