#include "agent/upload/server_config.h"

#include "agent/process/procfs_file.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/input/secret.h"
#include "lib/io/http_url.h"

#include <string.h>

enum { TOKEN_MAX_BYTES = 4096 };

static enum err_code check_address(const char *address, bool *ret_has_query, struct err *err)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "::1"};
    arena_auto arena = arena_create();
    struct http_url url;
    /* Parses the address with libcurl, which also connects to it. */
    if (http_url_read(arena, address, &url, err))
        return err_add(err, "the server's address must have the form https://HOST:PORT");
    bool is_allowed = strcmp(url.scheme, "https") == 0;
    for (size_t i = 0; i < sizeof(here) / sizeof(*here); i++)
        is_allowed = is_allowed || strcmp(url.host, here[i]) == 0;
    *ret_has_query = url.has_query;
    if (!is_allowed)
        return err_set(err, ERR_INVALID,
                       "the server's address must begin with https:// (http:// is allowed for this "
                       "machine only): %s",
                       address);
    return ERR_NONE;
}

enum err_code server_config_check_url(const char *url, struct err *err)
{
    bool ignored;
    return check_address(url, &ignored, err);
}

enum err_code server_config_check(const char *server, struct err *err)
{
    bool has_query;
    const enum err_code code = check_address(server, &has_query, err);
    if (!code && has_query)
        return err_set(err, ERR_INVALID, "the server's address must not have a query");
    return code;
}

enum err_code server_config_token(const struct server_config *access, struct buf *field,
                                  struct err *err)
{
    if (!access->token_file)
        return ERR_NONE;
    buf_auto text;
    buf_init(&text, TOKEN_MAX_BYTES);
    enum err_code code = procfs_file_read(access->token_file, &text, err);
    struct span rest = buf_span(&text), line;
    if (code || !span_take_line(&rest, &line))
        return code ? code : err_set(err, ERR_INVALID, "the token file is empty");
    line = span_trim(line);
    code = secret_check_token(line, access->token_file, err);
    if (code)
        return code;
    buf_append_text(field, "Bearer ");
    buf_append_span(field, line);
    buf_append_byte(field, 0);
    return ERR_NONE;
}
