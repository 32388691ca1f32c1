#include "lib/io/s3_xml.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <expat.h>
#include <limits.h>
#include <time.h>

struct reader {
    XML_Parser parser;
    s3_xml_visit *visit;
    void *context;
    char path[S3_XML_MAX_PATH_BYTES];
    size_t path_bytes;
    /* Where the name of each open element begins in path, after the slash. */
    size_t starts[S3_XML_MAX_DEPTH];
    size_t depth;
    struct buf text;
    enum err_code code; /* the first failure; parsing stops there */
    struct err *err;
};

/* expat calls some handlers once more after XML_StopParser: the first failure stays. */
static void stop_with(struct reader *reader, enum err_code code)
{
    if (!reader->code)
        reader->code = code;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void refuse(struct reader *reader, enum err_code code, const char *message)
{
    if (!reader->code)
        stop_with(reader, err_set(reader->err, code, "%s", message));
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    struct reader *reader = context;
    const char *colon = strchr(name, ':');
    const char *local = colon ? colon + 1 : name;
    const size_t size = strlen(local), start = reader->depth ? reader->path_bytes + 1 : 0;
    if (size == 0) { /* ":" alone is a name of XML without namespaces */
        refuse(reader, ERR_INVALID, "an element of the XML response has no local name");
        return;
    }
    if (reader->depth == S3_XML_MAX_DEPTH || start + size >= S3_XML_MAX_PATH_BYTES) {
        refuse(reader, ERR_TOO_LARGE, "the XML response is nested too deep");
        return;
    }
    if (reader->depth)
        reader->path[reader->path_bytes] = '/';
    memcpy(reader->path + start, local, size + 1);
    reader->path_bytes = start + size;
    reader->starts[reader->depth++] = start;
    buf_clear(&reader->text);
}

static void on_end(void *context, const XML_Char *name)
{
    (void)name;
    struct reader *reader = context;
    if (reader->code)
        return;
    const enum err_code code = reader->visit(reader->context, reader->path,
                                             span_trim(buf_span(&reader->text)), reader->err);
    if (code)
        stop_with(reader, code);
    const size_t start = reader->starts[--reader->depth];
    reader->path_bytes = start ? start - 1 : 0;
    reader->path[reader->path_bytes] = '\0';
    buf_clear(&reader->text);
}

static void on_text(void *context, const XML_Char *text, int size)
{
    struct reader *reader = context;
    buf_append(&reader->text, text, (size_t)size);
    if (buf_failed(&reader->text))
        refuse(reader, ERR_TOO_LARGE, "a text of the XML response is over 8 KiB");
}

static void on_doctype(void *context, const XML_Char *name, const XML_Char *system_id,
                       const XML_Char *public_id, int has_subset)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse(context, ERR_INVALID, "the XML response has a document type, which S3 does not use");
}

static void on_cdata(void *context)
{
    refuse(context, ERR_INVALID, "the XML response has a CDATA section, which S3 does not use");
}

enum err_code s3_xml_read(struct span xml, s3_xml_visit *visit, void *context, struct err *err)
{
    if (xml.size > INT_MAX)
        return err_set(err, ERR_TOO_LARGE, "the XML response is too large");
    struct reader reader = {
        .parser = XML_ParserCreate("UTF-8"), .visit = visit, .context = context, .err = err};
    if (!reader.parser)
        return err_set(err, ERR_INTERNAL, "cannot create an XML parser");
    buf_init(&reader.text, S3_XML_MAX_TEXT_BYTES);
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, on_start, on_end);
    XML_SetCharacterDataHandler(reader.parser, on_text);
    XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
    XML_SetStartCdataSectionHandler(reader.parser, on_cdata);
    const bool is_parsed = XML_Parse(reader.parser, xml.data ? (const char *)xml.data : "",
                                     (int)xml.size, XML_TRUE) == XML_STATUS_OK;
    if (!is_parsed && !reader.code)
        reader.code =
            err_set(err, ERR_INVALID, "the response is not well-formed XML: %s in line %lu",
                    XML_ErrorString(XML_GetErrorCode(reader.parser)),
                    (unsigned long)XML_GetCurrentLineNumber(reader.parser));
    XML_ParserFree(reader.parser);
    buf_fini(&reader.text);
    return reader.code;
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
