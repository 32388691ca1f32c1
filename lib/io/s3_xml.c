#include "lib/io/s3_xml.h"

#include "lib/base/clock.h"

#include <time.h>

struct reader {
    struct span rest;
    s3_xml_visit *visit;
    void *context;
    char path[S3_XML_MAX_PATH_BYTES];
    size_t path_bytes;
    /* Where each open element's name begins in path, behind the slash. */
    size_t starts[S3_XML_MAX_DEPTH];
    size_t depth;
    struct buf text;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static bool is_name_byte(uint8_t byte)
{
    return byte > ' ' && byte < 0x7f && !memchr("<>&=/\"'", byte, 7);
}

static void skip_bytes(struct reader *reader, size_t size)
{
    reader->rest.data += size;
    reader->rest.size -= size;
}

/* Passes over everything up to and with end; false when it does not come. */
static bool skip_behind(struct reader *reader, const char *end)
{
    size_t size = strlen(end);
    const uint8_t *found = memmem(reader->rest.data, reader->rest.size, end, size);
    if (!found)
        return false;
    skip_bytes(reader, (size_t)(found - reader->rest.data) + size);
    return true;
}

static enum err_code malformed(struct err *err)
{
    return err_set(err, ERR_INVALID, "the answer is not well-formed XML");
}

/* The code point behind "&#", without the semicolon; 0 when it is none. */
static uint32_t parse_code_point(struct span digits)
{
    uint64_t number = 0;
    bool is_hex = digits.size > 1 && (digits.data[0] == 'x' || digits.data[0] == 'X');
    bool is_number = is_hex ? span_parse_hex(span_of(digits.data + 1, digits.size - 1), &number)
                            : span_parse_u64(digits, &number);
    bool is_surrogate = number >= 0xd800 && number <= 0xdfff;
    return is_number && number <= 0x10ffff && !is_surrogate ? (uint32_t)number : 0;
}

static void append_utf8(struct buf *text, uint32_t point)
{
    if (point < 0x80) {
        buf_append_byte(text, (uint8_t)point);
        return;
    }
    int following = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    buf_append_byte(text, (uint8_t)(lead[following] | point >> 6 * following));
    while (following--)
        buf_append_byte(text, (uint8_t)(0x80 | (point >> 6 * following & 0x3f)));
}

static bool append_entity(struct buf *text, struct span name)
{
    static const struct {
        const char *name;
        char byte;
    } entities[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    if (name.size > 1 && name.data[0] == '#') {
        uint32_t point = parse_code_point(span_of(name.data + 1, name.size - 1));
        append_utf8(text, point);
        return point != 0;
    }
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (span_equal_text(name, entities[i].name)) {
            buf_append_byte(text, (uint8_t)entities[i].byte);
            return true;
        }
    }
    return false;
}

/* Text up to the next "<" or the end. */
static enum err_code read_text(struct reader *reader, struct err *err)
{
    enum { ENTITY_MAX_BYTES = 12 };
    while (reader->rest.size && reader->rest.data[0] != '<') {
        const uint8_t *at = reader->rest.data;
        size_t size = 0;
        while (size < reader->rest.size && at[size] != '<' && at[size] != '&')
            size++;
        buf_append(&reader->text, at, size);
        skip_bytes(reader, size);
        if (reader->rest.size && reader->rest.data[0] == '&') {
            size_t limit =
                reader->rest.size < ENTITY_MAX_BYTES ? reader->rest.size : ENTITY_MAX_BYTES;
            const uint8_t *end = memchr(reader->rest.data, ';', limit);
            size = end ? (size_t)(end - reader->rest.data) : 0;
            if (!end || !append_entity(&reader->text, span_of(reader->rest.data + 1, size - 1)))
                return malformed(err);
            skip_bytes(reader, size + 1);
        }
        if (buf_failed(&reader->text))
            return err_set(err, ERR_TOO_LARGE, "a text of the XML answer is over %d bytes",
                           S3_XML_MAX_TEXT_BYTES);
    }
    if (reader->depth == 0 && span_trim(buf_span(&reader->text)).size)
        return malformed(err);
    return ERR_NONE;
}

/* A name with the prefix of its name space cut off. */
static bool take_name(struct reader *reader, struct span *ret_name)
{
    size_t size = 0;
    while (size < reader->rest.size && is_name_byte(reader->rest.data[size]))
        size++;
    struct span name = span_of(reader->rest.data, size), before, after;
    skip_bytes(reader, size);
    *ret_name = span_split(name, ':', &before, &after) ? after : name;
    return ret_name->size > 0;
}

/* Passes over attributes, up to and with ">"; quoted values may hold any byte but "<". */
static bool skip_attributes(struct reader *reader, bool *ret_is_empty)
{
    uint8_t quote = 0, last = 0;
    for (size_t i = 0; i < reader->rest.size; i++) {
        uint8_t byte = reader->rest.data[i];
        if (byte == '<')
            return false;
        if (quote) {
            quote = byte == quote ? 0 : quote;
        } else if (byte == '"' || byte == '\'') {
            quote = byte;
        } else if (byte == '>') {
            *ret_is_empty = last == '/';
            skip_bytes(reader, i + 1);
            return true;
        }
        last = byte;
    }
    return false;
}

static enum err_code end_element(struct reader *reader, struct err *err)
{
    enum err_code code =
        reader->visit(reader->context, reader->path, span_trim(buf_span(&reader->text)), err);
    reader->depth--;
    size_t start = reader->starts[reader->depth];
    reader->path_bytes = start ? start - 1 : 0;
    reader->path[reader->path_bytes] = '\0';
    buf_clear(&reader->text);
    return code;
}

static enum err_code read_start(struct reader *reader, struct err *err)
{
    struct span name;
    bool is_empty;
    if (!take_name(reader, &name) || !skip_attributes(reader, &is_empty))
        return malformed(err);
    size_t start = reader->depth ? reader->path_bytes + 1 : 0;
    if (reader->depth == S3_XML_MAX_DEPTH || start + name.size >= S3_XML_MAX_PATH_BYTES)
        return err_set(err, ERR_TOO_LARGE, "the XML answer is nested too deep");
    if (reader->depth)
        reader->path[reader->path_bytes] = '/';
    memcpy(reader->path + start, name.data, name.size);
    reader->path_bytes = start + name.size;
    reader->path[reader->path_bytes] = '\0';
    reader->starts[reader->depth++] = start;
    buf_clear(&reader->text);
    return is_empty ? end_element(reader, err) : ERR_NONE;
}

static enum err_code read_end(struct reader *reader, struct err *err)
{
    struct span name;
    if (reader->depth == 0 || !take_name(reader, &name))
        return malformed(err);
    while (reader->rest.size && is_space(reader->rest.data[0]))
        skip_bytes(reader, 1);
    const char *open = reader->path + reader->starts[reader->depth - 1];
    if (!reader->rest.size || reader->rest.data[0] != '>' || !span_equal_text(name, open))
        return malformed(err);
    skip_bytes(reader, 1);
    return end_element(reader, err);
}

/* What begins with "<". */
static enum err_code read_markup(struct reader *reader, struct err *err)
{
    if (span_starts_with(reader->rest, "<?"))
        return skip_behind(reader, "?>") ? ERR_NONE : malformed(err);
    if (span_starts_with(reader->rest, "<!--"))
        return skip_behind(reader, "-->") ? ERR_NONE : malformed(err);
    if (span_starts_with(reader->rest, "<!"))
        return err_set(err, ERR_INVALID, "the XML answer has parts that no S3 answer has");
    bool is_end = span_starts_with(reader->rest, "</");
    skip_bytes(reader, is_end ? 2 : 1);
    return is_end ? read_end(reader, err) : read_start(reader, err);
}

enum err_code s3_xml_read(struct span xml, s3_xml_visit *visit, void *context, struct err *err)
{
    struct reader reader = {.rest = xml, .visit = visit, .context = context};
    bool has_root = false;
    enum err_code code = ERR_NONE;
    buf_init(&reader.text, S3_XML_MAX_TEXT_BYTES);
    if (span_starts_with(reader.rest, "\xef\xbb\xbf"))
        skip_bytes(&reader, 3);
    while (!code && reader.rest.size) {
        bool was_outside = reader.depth == 0;
        code = read_text(&reader, err);
        if (code || !reader.rest.size)
            break;
        bool is_element = reader.rest.size > 1 && !memchr("?!", reader.rest.data[1], 2);
        if (was_outside && is_element && has_root)
            code = malformed(err);
        has_root = has_root || is_element;
        if (!code)
            code = read_markup(&reader, err);
    }
    buf_fini(&reader.text);
    return !code && (!has_root || reader.depth) ? malformed(err) : code;
}

int64_t s3_xml_time(struct span text)
{
    char copy[40];
    struct tm utc = {0};
    if (text.size >= sizeof(copy))
        return 0;
    memcpy(copy, text.data ? text.data : (const uint8_t *)"", text.size);
    copy[text.size] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &utc);
    if (!rest || utc.tm_year < 70 || utc.tm_year > 200)
        return 0;
    int64_t ns = 0, unit = CLOCK_NS_PER_S;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9' && unit > 1; rest++)
            ns += (*rest - '0') * (unit /= 10);
    return strcmp(rest, "Z") == 0 ? timegm(&utc) * CLOCK_NS_PER_S + ns : 0;
}
