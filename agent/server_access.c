#include "agent/server_access.h"

#include "agent/small_file.h"

#include <string.h>

enum { TOKEN_MAX_BYTES = 4096 };

enum err_code server_access_check(const char *address, struct err *err)
{
    const struct span server = span_text(address);
    static const char *const here[] = {"http://localhost", "http://127.0.0.1", "http://[::1]"};
    bool is_allowed = span_starts_with(server, "https://");
    for (size_t i = 0; i < sizeof(here) / sizeof(*here); i++) {
        const size_t size = strlen(here[i]);
        is_allowed =
            is_allowed ||
            (span_starts_with(server, here[i]) &&
             (server.size == size || server.data[size] == ':' || server.data[size] == '/'));
    }
    if (!is_allowed)
        return err_set(err, ERR_INVALID,
                       "the server's address has to begin with https:// (http:// is for this "
                       "machine alone): %s",
                       address);
    return ERR_NONE;
}

enum err_code server_access_token(const struct server_access *access, struct buf *field,
                                  struct err *err)
{
    if (!access->token_file)
        return ERR_NONE;
    buf_auto text;
    buf_init(&text, TOKEN_MAX_BYTES);
    enum err_code code = small_file_read(access->token_file, &text, err);
    struct span rest = buf_span(&text), line;
    if (code || !span_take_line(&rest, &line))
        return code ? code : err_set(err, ERR_INVALID, "the token file is empty");
    buf_append_text(field, "Bearer ");
    buf_append_span(field, span_trim(line));
    buf_append_byte(field, 0);
    return ERR_NONE;
}
