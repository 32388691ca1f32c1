#include "api/share/viewer_path.h"

#include "lib/base/digest.h"
#include "lib/base/err.h"

static enum err_code refuse_path(struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "path must be that of a viewer page of this server: /p/<id>?… or /d/<a>..<b>?…, "
                   "without scheme and host");
}

/* A "%" needs two digits, and must not encode a control character. */
static bool is_escape(struct span rest)
{
    uint8_t byte;
    return rest.size >= 3 && digest_parse_hex(span_of(rest.data + 1, 2), &byte, 1) &&
           byte >= 0x20 && byte != 0x7f;
}

enum err_code viewer_path_check_query(const char *name, struct span query, struct err *err)
{
    for (size_t i = 0; i < query.size; i++) {
        uint8_t byte = query.data[i];
        if (byte <= 0x20 || byte >= 0x7f || memchr("\"#<>\\", byte, 5))
            return err_set(err, ERR_INVALID,
                           "%s contains a byte that a query encodes with %%: 0x%02x at %zu", name,
                           byte, i);
        if (byte == '%' && !is_escape(span_of(query.data + i, query.size - i)))
            return err_set(err, ERR_INVALID,
                           "%s has a %% at %zu that two hexadecimal digits must follow, and not "
                           "those of a control character",
                           name, i);
    }
    if (query.size && memmem(query.data, query.size, "//", 2))
        return err_set(err, ERR_INVALID, "%s holds \"//\": write %%2F for \"/\"", name);
    return ERR_NONE;
}

/* Removes an id from *rest. */
static bool take_id(struct span *rest, struct span *ret_id)
{
    if (rest->size < DIGEST_ID_LENGTH)
        return false;
    *ret_id = span_of(rest->data, DIGEST_ID_LENGTH);
    *rest = span_of(rest->data + DIGEST_ID_LENGTH, rest->size - DIGEST_ID_LENGTH);
    return digest_is_id(*ret_id);
}

enum err_code viewer_path_parse(struct span text, struct viewer_path *ret_path, struct err *err)
{
    struct viewer_path path = {.id_count = 1};
    bool is_diff = span_starts_with(text, "/d/");
    if (!is_diff && !span_starts_with(text, "/p/"))
        return refuse_path(err);
    struct span rest = span_of(text.data + 3, text.size - 3);
    if (!take_id(&rest, &path.ids[0]))
        return refuse_path(err);
    if (is_diff) {
        if (!span_starts_with(rest, ".."))
            return refuse_path(err);
        rest = span_of(rest.data + 2, rest.size - 2);
        path.id_count = 2;
        if (!take_id(&rest, &path.ids[1]))
            return refuse_path(err);
    }
    if (rest.size && rest.data[0] != '?')
        return refuse_path(err);
    if (rest.size)
        path.query = span_of(rest.data + 1, rest.size - 1);
    enum err_code code = viewer_path_check_query("path", path.query, err);
    if (code)
        return code;
    *ret_path = path;
    return ERR_NONE;
}
