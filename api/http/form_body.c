#include "api/http/form_body.h"

#include "api/http/request.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A text of this size without a line break is no single stack. Binary data of this size contain a
 * line break or a NUL with a probability of 99.7 %. */
enum { LONG_BYTES = 512 };

static bool has_type(const struct request *request, const char *type)
{
    const struct span field = request_field(request, "content-type");
    const size_t size = strlen(type);
    return field.size >= size && strncasecmp((const char *)field.data, type, size) == 0;
}

/* Whether the body has none of the bytes that curl -d removes. */
static bool lacks_removed_bytes(const struct request *request)
{
    return has_type(request, "application/x-www-form-urlencoded") &&
           !memchr(request->body.data, '\n', request->body.size) &&
           !memchr(request->body.data, '\r', request->body.size) &&
           !memchr(request->body.data, '\0', request->body.size);
}

/* JSON means the same without line breaks. */
static bool is_text_of_lines(struct span body)
{
    const struct span text = span_trim(body);
    return text.size && text.data[0] != '{' && text.data[0] != '[' && span_is_utf8(text);
}

/* Whether a value is followed by the next stack: "main;f 1main;g 2". */
static bool has_joined_lines(struct span text)
{
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] != ' ' || !isdigit(text.data[i + 1]))
            continue;
        while (i + 1 < text.size && isdigit(text.data[i + 1]))
            i++;
        if (i + 1 < text.size && (isalpha(text.data[i + 1]) || strchr("_[<", text.data[i + 1])))
            return true;
    }
    return false;
}

enum err_code form_body_check(const struct request *request, bool may_be_multipart, struct err *err)
{
    const struct span body = request->body;
    if (!may_be_multipart && has_type(request, "multipart/form-data"))
        return err_set(err, ERR_UNSUPPORTED,
                       "the body is a form (multipart/form-data): send the file itself, with curl "
                       "--data-binary @FILE");
    if (body.size && lacks_removed_bytes(request) && is_text_of_lines(body) &&
        (body.size > LONG_BYTES || has_joined_lines(body)))
        return err_set(err, ERR_INVALID,
                       "the body is one line without a line break, sent as a form: curl -d removes "
                       "the line breaks of a file; use --data-binary @FILE");
    return ERR_NONE;
}

enum err_code form_body_explain(const struct request *request, enum err_code code, struct err *err)
{
    if ((code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_CORRUPT) &&
        request->body.size && lacks_removed_bytes(request)) {
        const size_t size = strlen(err->message);
        snprintf(err->message + size, sizeof(err->message) - size,
                 " (curl -d removes bytes of a file: use --data-binary @FILE)");
    }
    return code;
}
