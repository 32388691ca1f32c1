#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/span_utf8.h"

static void assert_span(struct span span, const char *text)
{
    if (!span_equal_text(span, text))
        fail_msg("'%.*s' is not '%s'", SPAN_PRINT(span), text);
}

static void refuses_to_pass_its_maximum(void **state)
{
    (void)state;
    buf_auto buf;
    buf_init(&buf, 5);
    buf_append_text(&buf, "1234");
    assert_false(buf_failed(&buf));
    buf_append_text(&buf, "56");
    assert_true(buf_failed(&buf));
    buf_append_text(&buf, "5");
    assert_span(buf_span(&buf), "1234");
    buf_clear(&buf);
    buf_append_text(&buf, "12345");
    assert_false(buf_failed(&buf));
}

static void escapes_json(void **state)
{
    (void)state;
    buf_auto buf;
    buf_init(&buf, 1000);
    buf_append_json(&buf, span_of("a\"\\\n\x01é\xff\x7f", 9));
    assert_span(buf_span(&buf), "\"a\\\"\\\\\\n\\u0001é\xef\xbf\xbd\\u007f\"");
    buf_clear(&buf);
    buf_append_json(&buf, SPAN_LITERAL("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"));
    assert_span(buf_span(&buf), "\"\\u0080\\u009b\\u009f\xc2\xa0\"");
}

#define BROKEN "\xef\xbf\xbd"

/* Unicode 15, 3.9, tables 3-8 to 3-11, and truncated sequences. */
static void invalid_utf8_is_replaced_like_in_browsers(void **state)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41",
         BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41",
         BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN BROKEN "A"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42",
         BROKEN BROKEN BROKEN BROKEN BROKEN "A" BROKEN BROKEN "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", BROKEN BROKEN BROKEN BROKEN "A"},
        {"d\xe2\x82", "d" BROKEN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        buf_auto json, html;
        buf_init(&json, 1000);
        buf_init(&html, 1000);
        buf_append_json(&json, span_text(cases[i].text));
        buf_append_html(&html, span_text(cases[i].text));
        assert_span(span_of(json.data + 1, json.size - 2), cases[i].shown);
        assert_span(buf_span(&html), cases[i].shown);
    }
}

static void escapes_html_and_urls(void **state)
{
    (void)state;
    buf_auto buf;
    buf_init(&buf, 1000);
    buf_append_html(&buf, span_text("<a href=\"x\">'&\x01</a>"));
    assert_span(buf_span(&buf), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&lt;/a&gt;");
    buf_clear(&buf);
    buf_append_html(&buf, span_text("a\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9z"));
    assert_span(buf_span(&buf), "a\\u202A\\u202E\\u2066\\u2069z");
    buf_clear(&buf);
    buf_append_html(
        &buf, span_text("\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xff\xc2\x9b\xc2\xa0"));
    assert_span(buf_span(&buf),
                "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xef\xbf\xbd\xc2\xa0");
    buf_clear(&buf);
    buf_append_url(&buf, span_text("a b/é~"));
    assert_span(buf_span(&buf), "a%20b%2F%C3%A9~");
}

static void prints_long_texts(void **state)
{
    (void)state;
    buf_auto buf;
    buf_init(&buf, 10000);
    buf_printf(&buf, "%0*d", 1000, 7);
    assert_int_equal(buf.size, 1000);
    assert_int_equal(buf.data[999], '7');
}

static void writes_little_endian(void **state)
{
    (void)state;
    buf_auto buf;
    buf_init(&buf, 100);
    buf_append_u16(&buf, 0x0102);
    buf_append_u32(&buf, 0x03040506);
    buf_append_u64(&buf, 0x0708090a0b0c0d0e);
    buf_append_f64(&buf, 1.0);
    assert_memory_equal(buf.data,
                        "\x02\x01\x06\x05\x04\x03\x0e\x0d\x0c\x0b\x0a\x09\x08\x07"
                        "\0\0\0\0\0\0\xf0\x3f",
                        22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_to_pass_its_maximum),
        cmocka_unit_test(escapes_json),
        cmocka_unit_test(invalid_utf8_is_replaced_like_in_browsers),
        cmocka_unit_test(escapes_html_and_urls),
        cmocka_unit_test(prints_long_texts),
        cmocka_unit_test(writes_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
