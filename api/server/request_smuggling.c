#include "api/server/request_smuggling.h"

#include <strings.h>

struct head {
    int host_count;
    int length_count;
    int encoding_count;
    bool is_1_1;
};

static bool is_word(struct span span, const char *lower_case)
{
    return span.size == strlen(lower_case) &&
           strncasecmp((const char *)span.data, lower_case, span.size) == 0;
}

static bool has_control(struct span span)
{
    for (size_t i = 0; i < span.size; i++) {
        if (span.data[i] < 0x20 || span.data[i] == 0x7f)
            return true;
    }
    return false;
}

/* Reads a line without its CRLF; false if there is no LF left. */
static bool take_line(struct span *rest, struct span *ret_line, bool *ret_is_bare)
{
    const uint8_t *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    if (!end)
        return false;
    size_t size = (size_t)(end - rest->data);
    *ret_is_bare = size == 0 || rest->data[size - 1] != '\r';
    *ret_line = span_of(rest->data, *ret_is_bare ? size : size - 1);
    *rest = span_of(end + 1, rest->size - size - 1);
    return true;
}

static const char *check_request_line(struct span line, struct head *head)
{
    struct span method, target, version, after;
    if (has_control(line))
        return "the request line contains control characters";
    span_split(line, ' ', &method, &after);
    span_split(after, ' ', &target, &version);
    if (method.size == 0 || target.size == 0)
        return "the request line is malformed";
    head->is_1_1 = span_equal_text(version, "HTTP/1.1");
    if (!head->is_1_1 && !span_equal_text(version, "HTTP/1.0"))
        return "the request line does not end with HTTP/1.1 or HTTP/1.0";
    return NULL;
}

static const char *check_field(struct span line, struct head *head)
{
    struct span name, value;
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return "a header line is continued on the next line";
    if (!span_split(line, ':', &name, &value) || name.size == 0)
        return "a header line has no colon";
    head->host_count += is_word(name, "host");
    head->length_count += is_word(name, "content-length");
    if (is_word(name, "transfer-encoding")) {
        head->encoding_count++;
        if (!is_word(span_trim(value), "chunked"))
            return "the only Transfer-Encoding known here is chunked";
    }
    return NULL;
}

static const char *check_counts(const struct head *head)
{
    if (head->host_count > 1)
        return "there is more than one Host";
    if (head->is_1_1 && head->host_count == 0)
        return "HTTP/1.1 needs a Host";
    if (head->length_count > 1)
        return "there is more than one Content-Length";
    if (head->encoding_count > 1)
        return "there is more than one Transfer-Encoding";
    if (head->encoding_count > 0 && head->length_count > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (head->encoding_count > 0 && !head->is_1_1)
        return "HTTP/1.0 knows no Transfer-Encoding";
    return NULL;
}

const char *request_smuggling_check(struct span bytes)
{
    struct head head = {0};
    struct span line;
    bool is_bare;
    if (!take_line(&bytes, &line, &is_bare))
        return "the request is cut short";
    /* RFC 9112 §2.2: one empty line before the request is tolerated. */
    if (line.size == 0 && !is_bare && !take_line(&bytes, &line, &is_bare))
        return "the request is cut short";
    const char *problem = is_bare ? "a line ends without CR" : check_request_line(line, &head);
    while (!problem) {
        if (!take_line(&bytes, &line, &is_bare))
            return "the request is cut short";
        if (is_bare)
            return "a line ends without CR";
        if (line.size == 0)
            return check_counts(&head);
        problem = check_field(line, &head);
    }
    return problem;
}
