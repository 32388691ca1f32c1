#include "lib/profile/pyroscope/multipart.h"

#include "lib/base/err.h"

#include <strings.h>

static bool equals_ignoring_case(struct span span, const char *text)
{
    return span.size == strlen(text) && strncasecmp((const char *)span.data, text, span.size) == 0;
}

/* ---- "value; name=value; name=\"value\"" ---- */

static void skip_blanks(struct span *rest)
{
    while (rest->size && (*rest->data == ' ' || *rest->data == '\t'))
        *rest = span_of(rest->data + 1, rest->size - 1);
}

static struct span take_until(struct span *rest, const char *ends)
{
    size_t size = 0;
    while (size < rest->size && (rest->data[size] == 0 || !strchr(ends, rest->data[size])))
        size++;
    struct span taken = span_of(rest->data, size);
    if (size)
        *rest = span_of(rest->data + size, rest->size - size);
    return taken;
}

/* Takes the text between quotes, including its backslashes; false if the second quote is missing.
 */
static bool take_quoted(struct span *rest, struct span *ret_text)
{
    size_t at = 1;
    while (at < rest->size && rest->data[at] != '"')
        at += rest->data[at] == '\\' ? 2 : 1;
    if (at >= rest->size)
        return false;
    *ret_text = span_of(rest->data + 1, at - 1);
    *rest = span_of(rest->data + at + 1, rest->size - at - 1);
    return true;
}

/* Takes the next parameter of a header's value. False at the end of the value, and if the parameter
 * is malformed; only then *ret_is_wrong is true. */
static bool take_parameter(struct span *rest, struct span *ret_name, struct span *ret_value,
                           bool *ret_is_wrong)
{
    *ret_is_wrong = false;
    skip_blanks(rest);
    if (rest->size == 0)
        return false;
    *ret_is_wrong = true;
    if (*rest->data != ';')
        return false;
    *rest = span_of(rest->data + 1, rest->size - 1);
    skip_blanks(rest);
    if (rest->size == 0) { /* a last ";" */
        *ret_is_wrong = false;
        return false;
    }
    *ret_name = take_until(rest, "=; \t\"");
    if (ret_name->size == 0 || rest->size == 0 || *rest->data != '=')
        return false;
    *rest = span_of(rest->data + 1, rest->size - 1);
    if (rest->size && *rest->data == '"') {
        *ret_is_wrong = !take_quoted(rest, ret_value);
    } else {
        *ret_value = take_until(rest, "; \t\"");
        *ret_is_wrong = ret_value->size == 0;
    }
    return !*ret_is_wrong;
}

/* Finds the value of one parameter, without quotes; *ret_first is the header's value before its
 * parameters. */
static bool find_parameter(struct span header, const char *wanted, struct span *ret_first,
                           struct span *ret_value)
{
    struct span name, value;
    bool is_wrong, is_found = false;
    skip_blanks(&header);
    *ret_first = take_until(&header, "; \t");
    while (take_parameter(&header, &name, &value, &is_wrong)) {
        if (equals_ignoring_case(name, wanted) && !is_found) {
            *ret_value = value;
            is_found = true;
        }
    }
    return is_found && !is_wrong;
}

/* ---- the boundary ---- */

static bool is_boundary(struct span text)
{
    static const char others[] = "'()+_,-./:=? ";
    if (text.size == 0 || text.size > MULTIPART_BOUNDARY_MAX || text.data[text.size - 1] == ' ')
        return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i], letter = byte | 0x20;
        bool is_plain = (byte >= '0' && byte <= '9') || (letter >= 'a' && letter <= 'z');
        if (!is_plain && (byte == 0 || !strchr(others, byte)))
            return false;
    }
    return true;
}

bool multipart_is_form(struct span content_type)
{
    skip_blanks(&content_type);
    return equals_ignoring_case(take_until(&content_type, "; \t"), "multipart/form-data");
}

enum err_code multipart_init(struct multipart *multipart, struct span content_type,
                             struct span body, struct err *err)
{
    struct span type, boundary;
    if (!multipart_is_form(content_type))
        return err_set(err, ERR_INVALID, "the content type is not multipart/form-data");
    if (!find_parameter(content_type, "boundary", &type, &boundary) || !is_boundary(boundary))
        return err_set(
            err, ERR_INVALID,
            "the content type multipart/form-data needs a boundary of 1 to 70 characters");
    *multipart = (struct multipart){.rest = body, .delimiter_size = boundary.size + 4};
    memcpy(multipart->delimiter, "\r\n--", 4);
    memcpy(multipart->delimiter + 4, boundary.data, boundary.size);
    return ERR_NONE;
}

/* ---- parts ---- */

static enum err_code set_malformed(const struct multipart *multipart, const char *what,
                                   struct err *err)
{
    return err_set(err, ERR_INVALID, "part %u of the form %s", multipart->part_count + 1, what);
}

static void skip_bytes(struct multipart *multipart, size_t size)
{
    multipart->rest = span_of(multipart->rest.data + size, multipart->rest.size - size);
}

/* Takes what follows a delimiter: the end of its line, or the "--" of the last one. False if it is
 * neither. */
static bool take_line_end(struct multipart *multipart, bool *ret_is_end)
{
    *ret_is_end = span_starts_with(multipart->rest, "--");
    if (*ret_is_end)
        return true;
    skip_blanks(&multipart->rest);
    if (!span_starts_with(multipart->rest, "\r\n"))
        return false;
    skip_bytes(multipart, 2);
    return true;
}

/* Whether the delimiter at the start of `at` ends its line, so it is not the start of other text.
 */
static bool is_delimiter(const struct multipart *multipart, struct span at)
{
    struct multipart copy = *multipart;
    bool is_end;
    copy.rest = at;
    skip_bytes(&copy, copy.delimiter_size);
    return take_line_end(&copy, &is_end);
}

/* Takes everything up to the next delimiter, and skips the delimiter; false if there is none. */
static bool take_content(struct multipart *multipart, struct span *ret_content)
{
    struct span rest = multipart->rest;
    for (;;) {
        const uint8_t *found = NULL;
        if (rest.size >= multipart->delimiter_size)
            found = memmem(rest.data, rest.size, multipart->delimiter, multipart->delimiter_size);
        if (!found)
            return false;
        rest = span_of(found, (size_t)(rest.data + rest.size - found));
        if (is_delimiter(multipart, rest))
            break;
        rest = span_of(rest.data + 2, rest.size - 2);
    }
    *ret_content = span_of(multipart->rest.data, (size_t)(rest.data - multipart->rest.data));
    multipart->rest = rest;
    skip_bytes(multipart, multipart->delimiter_size);
    return true;
}

/* Skips the text before the first delimiter, and the delimiter, which at the start of the body has
 * no CR LF before it. */
static bool skip_preamble(struct multipart *multipart)
{
    multipart->is_started = true;
    struct span preamble, body = multipart->rest;
    size_t size = multipart->delimiter_size - 2;
    if (body.size >= size && memcmp(body.data, multipart->delimiter + 2, size) == 0) {
        bool is_end;
        skip_bytes(multipart, size);
        struct multipart copy = *multipart;
        if (take_line_end(&copy, &is_end))
            return true;
    }
    multipart->rest = body;
    return take_content(multipart, &preamble);
}

/* Copies the name without backslashes; false if it is too long. */
static bool set_name(struct multipart_part *part, struct span quoted)
{
    for (size_t i = 0; i < quoted.size; i++) {
        if (quoted.data[i] == '\\' && i + 1 < quoted.size)
            i++;
        if (part->name_size == MULTIPART_NAME_MAX)
            return false;
        part->name[part->name_size++] = (char)quoted.data[i];
    }
    return true;
}

static enum err_code read_disposition(const struct multipart *multipart, struct span value,
                                      struct multipart_part *part, struct err *err)
{
    struct span type, name;
    if (!find_parameter(value, "name", &type, &name) || !equals_ignoring_case(type, "form-data"))
        return set_malformed(multipart, "has no Content-Disposition of form-data with a name", err);
    if (part->name_size)
        return set_malformed(multipart, "has two names", err);
    if (!set_name(part, name))
        return err_set(err, ERR_TOO_LARGE, "part %u of the form has a name of more than %d bytes",
                       multipart->part_count + 1, MULTIPART_NAME_MAX);
    return part->name_size ? ERR_NONE : set_malformed(multipart, "has an empty name", err);
}

static enum err_code read_part_header(const struct multipart *multipart, struct span line,
                                      struct multipart_part *part, struct err *err)
{
    struct span name, value;
    if (!span_split(line, ':', &name, &value) || name.size == 0)
        return set_malformed(multipart, "has a header line without a name", err);
    value = span_trim(value);
    if (equals_ignoring_case(name, "content-disposition"))
        return read_disposition(multipart, value, part, err);
    if (equals_ignoring_case(name, "content-type"))
        part->content_type = value;
    if (equals_ignoring_case(name, "content-transfer-encoding") &&
        !equals_ignoring_case(value, "binary") && !equals_ignoring_case(value, "8bit") &&
        !equals_ignoring_case(value, "7bit"))
        return err_set(err, ERR_UNSUPPORTED,
                       "part %u of the form has a transfer encoding; send it as binary",
                       multipart->part_count + 1);
    return ERR_NONE;
}

static enum err_code read_headers(struct multipart *multipart, struct multipart_part *part,
                                  struct err *err)
{
    size_t header_bytes = 0;
    for (;;) {
        const uint8_t *start_of_line = multipart->rest.data;
        size_t visible = multipart->rest.size;
        if (visible > MULTIPART_HEADER_MAX - header_bytes)
            visible = MULTIPART_HEADER_MAX - header_bytes;
        const uint8_t *end = visible ? memmem(start_of_line, visible, "\r\n", 2) : NULL;
        if (!end && visible < multipart->rest.size)
            return err_set(err, ERR_TOO_LARGE,
                           "part %u of the form has more than %d bytes of header lines",
                           multipart->part_count + 1, MULTIPART_HEADER_MAX);
        if (!end)
            return set_malformed(multipart, "is truncated", err);
        struct span line = span_of(start_of_line, (size_t)(end - start_of_line));
        if (line.size == 0)
            return ERR_NONE; /* the empty line is not skipped: it may belong to a delimiter */
        header_bytes += line.size + 2;
        skip_bytes(multipart, line.size + 2);
        enum err_code code = read_part_header(multipart, line, part, err);
        if (code)
            return code;
    }
}

enum err_code multipart_next(struct multipart *multipart, struct multipart_part *ret_part,
                             bool *ret_is_end, struct err *err)
{
    struct multipart_part part = {0};
    if (!multipart->is_started && !skip_preamble(multipart))
        return err_set(err, ERR_INVALID, "the form has no part: its boundary does not occur");
    if (!take_line_end(multipart, ret_is_end))
        return set_malformed(multipart, "begins on the line of its boundary", err);
    if (*ret_is_end)
        return ERR_NONE;
    if (multipart->part_count == MULTIPART_PARTS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the form has more than %d parts", MULTIPART_PARTS_MAX);
    enum err_code code = read_headers(multipart, &part, err);
    if (code)
        return code;
    if (part.name_size == 0)
        return set_malformed(multipart, "has no Content-Disposition of form-data with a name", err);
    /* The content begins with the empty line after the headers. Without a body, the CR LF of that
     * line is also the start of the delimiter. */
    struct span content;
    if (!take_content(multipart, &content))
        return set_malformed(multipart, "is truncated", err);
    part.body = content.size ? span_of(content.data + 2, content.size - 2) : content;
    multipart->part_count++;
    *ret_part = part;
    return ERR_NONE;
}
