#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/s3_xml.h"

#include <string.h>

/* Every element as "path=text;". */
static enum err_code collect(void *context, const char *path, struct span text, struct err *err)
{
    (void)err;
    buf_printf(context, "%s=%.*s;", path, SPAN_PRINT(text));
    return ERR_NONE;
}

static void assert_read(const char *xml, const char *expected)
{
    struct err err;
    buf_auto seen;
    buf_init(&seen, 1 << 16);
    if (s3_xml_read(span_text(xml), collect, &seen, &err))
        fail_msg("%s: %s", xml, err.message);
    buf_append_byte(&seen, 0);
    assert_string_equal((const char *)seen.data, expected);
}

static enum err_code read_code(struct span xml)
{
    struct err err;
    buf_auto seen;
    buf_init(&seen, 1 << 20);
    return s3_xml_read(xml, collect, &seen, &err);
}

static void reads_a_listing(void **state)
{
    (void)state;
    assert_read("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
                "  <IsTruncated>true</IsTruncated>\n"
                "  <Contents>\n <Key>a/b</Key><Size>12</Size>\n</Contents>"
                "<Contents><Key>c&amp;d&#x20;&#233;</Key></Contents><Prefix/></ListBucketResult>\n",
                "ListBucketResult/IsTruncated=true;ListBucketResult/Contents/Key=a/b;"
                "ListBucketResult/Contents/Size=12;ListBucketResult/Contents=;"
                "ListBucketResult/Contents/Key=c&d \xc3\xa9;ListBucketResult/Contents=;"
                "ListBucketResult/Prefix=;ListBucketResult=;");
}

static void skips_unknown_elements(void **state)
{
    (void)state;
    assert_read("\xef\xbb\xbf<!-- <x> --><a:Error b:c='/>' d=\"'>\" ><!-- > -->"
                "<Code>NoSuch<!-- - - -->Key</Code ></a:Error>",
                "Error/Code=NoSuchKey;Error=;");
    assert_read("<a><b c=''/><b c='/'></b></a>", "a/b=;a/b=;a=;");
}

static void refuses_malformed_xml(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        " ",
        "text",
        "<a>",
        "<a",
        "<a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>x",
        "<a><b></a></b>",
        "<a>&x;</a>",
        "<a>&#0;</a>",
        "<a>&#xd800;</a>",
        "<a>&</a>",
        "<a>&amp</a>",
        "<a>&#;</a>",
        "<a b='<'/>",
        "<a><!-- </a>",
        "<? <a/>",
        "<a></ a>",
        "<>x</>",
        "<a></a",
        "<:/>",
        "<a><b:></b:></a>",
        "<!DOCTYPE a><a/>",
        "<a><![CDATA[x]]></a>",
        "<a>&#99999999;</a>",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        if (read_code(span_text(broken[i])) != ERR_INVALID)
            fail_msg("took %s", broken[i]);
}

/* A truncated listing must not be taken for a shorter listing. */
static void a_truncated_response_is_refused(void **state)
{
    (void)state;
    static const char xml[] = "<?xml version='1.0'?><L><C><K>a</K></C><C><K>b</K></C></L>";
    for (size_t size = 0; size < sizeof(xml) - 1; size++)
        assert_int_equal(read_code(span_of(xml, size)), ERR_INVALID);
    assert_int_equal(read_code(span_of(xml, sizeof(xml) - 1)), ERR_NONE);
}

static void bounds_depth_and_text(void **state)
{
    (void)state;
    buf_auto xml;
    buf_init(&xml, 1 << 20);
    for (size_t i = 0; i <= S3_XML_MAX_DEPTH; i++)
        buf_append_text(&xml, "<a>");
    assert_int_equal(read_code(buf_span(&xml)), ERR_TOO_LARGE);
    buf_clear(&xml);
    buf_append_text(&xml, "<a>");
    for (size_t i = 0; i <= S3_XML_MAX_TEXT_BYTES; i++)
        buf_append_text(&xml, "x");
    buf_append_text(&xml, "</a>");
    assert_int_equal(read_code(buf_span(&xml)), ERR_TOO_LARGE);
    buf_clear(&xml);
    buf_append_text(&xml, "<");
    for (size_t i = 0; i <= S3_XML_MAX_PATH_BYTES; i++)
        buf_append_text(&xml, "x");
    buf_append_text(&xml, "/>");
    assert_int_equal(read_code(buf_span(&xml)), ERR_TOO_LARGE);
}

static enum err_code refuse(void *context, const char *path, struct span text, struct err *err)
{
    (void)path, (void)text;
    ++*(int *)context;
    return err_set(err, ERR_CANCELLED, "enough");
}

static void the_visitor_can_stop_the_parser(void **state)
{
    (void)state;
    struct err err;
    int count = 0;
    assert_int_equal(s3_xml_read(SPAN_LITERAL("<a><b/><c/></a>"), refuse, &count, &err),
                     ERR_CANCELLED);
    assert_int_equal(count, 1);
}

static void reads_times(void **state)
{
    (void)state;
    assert_true(s3_xml_time(SPAN_LITERAL("2013-05-24T00:00:00.123Z")) ==
                INT64_C(1369353600123000000));
    assert_true(s3_xml_time(SPAN_LITERAL("2013-05-24T00:00:00Z")) == INT64_C(1369353600000000000));
    assert_true(s3_xml_time(SPAN_LITERAL("2013-05-24")) == 0);
    assert_true(s3_xml_time(SPAN_LITERAL("2013-05-24T00:00:00.1")) == 0);
    assert_true(s3_xml_time(SPAN_LITERAL("")) == 0);
    assert_true(s3_xml_time(SPAN_LITERAL("9999999-05-24T00:00:00.1234567890123456789Z")) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_listing),       cmocka_unit_test(skips_unknown_elements),
        cmocka_unit_test(refuses_malformed_xml), cmocka_unit_test(a_truncated_response_is_refused),
        cmocka_unit_test(bounds_depth_and_text), cmocka_unit_test(the_visitor_can_stop_the_parser),
        cmocka_unit_test(reads_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
