#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"

static void assert_span(struct span span, const char *text)
{
    if (!span_equal_text(span, text))
        fail_msg("'%.*s' is not '%s'", SPAN_PRINT(span), text);
}

static void parses_whole_numbers_only(void **state)
{
    (void)state;
    uint64_t number;
    int64_t signed_number;
    assert_true(span_parse_u64(span_text("18446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
    assert_false(span_parse_u64(span_text("18446744073709551616"), &number));
    assert_false(span_parse_u64(span_text(""), &number));
    assert_false(span_parse_u64(span_text("1x"), &number));
    assert_false(span_parse_u64(span_text("-1"), &number));
    assert_true(span_parse_i64(span_text("-9223372036854775808"), &signed_number));
    assert_true(signed_number == INT64_MIN);
    assert_false(span_parse_i64(span_text("9223372036854775808"), &signed_number));
    assert_false(span_parse_i64(span_text("-"), &signed_number));
    assert_true(span_parse_hex(span_text("0xFFff"), &number));
    assert_int_equal(number, 0xffff);
    assert_false(span_parse_hex(span_text("0x"), &number));
    assert_false(span_parse_hex(span_text("11112222333344445"), &number));
}

static void takes_lines_of_both_kinds(void **state)
{
    (void)state;
    struct span rest = span_text("one\r\n\ntwo"), line;
    assert_true(span_take_line(&rest, &line));
    assert_span(line, "one");
    assert_true(span_take_line(&rest, &line));
    assert_span(line, "");
    assert_true(span_take_line(&rest, &line));
    assert_span(line, "two");
    assert_false(span_take_line(&rest, &line));
}

static void splits_and_trims(void **state)
{
    (void)state;
    struct span before, after;
    assert_true(span_split(span_text("key=a=b"), '=', &before, &after));
    assert_span(before, "key");
    assert_span(after, "a=b");
    assert_false(span_split(span_text("key"), '=', &before, &after));
    assert_span(before, "key");
    assert_span(after, "");
    assert_span(span_trim(span_text(" \t x y \n")), "x y");
    assert_true(span_compare(span_text("ab"), span_text("abc")) < 0);
    assert_true(span_compare(span_text("b"), span_text("abc")) > 0);
    assert_true(span_ends_with(span_text("x.pb.gz"), ".gz"));
    assert_true(span_starts_with(span_text("x"), ""));
}

static void knows_utf8(void **state)
{
    (void)state;
    assert_true(span_is_utf8(span_text("aé€😀")));
    assert_false(span_is_utf8(span_text("\xc0\xaf")));
    assert_false(span_is_utf8(span_text("\xed\xa0\x80")));
    assert_false(span_is_utf8(span_text("\xf4\x90\x80\x80")));
    assert_false(span_is_utf8(span_text("\xe2\x82")));
    assert_int_equal(span_utf8_size(span_text("€a")), 3);
    assert_int_equal(span_utf8_size(span_text("\xe2\x82")), 0);
    assert_int_equal(span_utf8_size(span_text("")), 0);
}

static void makes_text_utf8(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    static const char *const cases[][2] = {
        {"aé€😀", "aé€😀"},
        {"evil\xff\xfe", "evil??"},
        {"a\xff€", "a?€"},
        {"\x80\xc0\xaf", "???"},
        {"\xe2\x82z", "??z"},
        /* Truncated within a character. */
        {"caf\xc3", "caf"},
        {"1\xe2\x82", "1"},
        {"\xf0\x9f\x98", ""},
        {"\xff\xf0", "?"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct span made = span_make_utf8(span_text(cases[i][0]), arena);
        assert_true(span_is_utf8(made));
        assert_span(made, cases[i][1]);
    }
    const struct span fine = span_text("é");
    assert_ptr_equal(span_make_utf8(fine, arena).data, fine.data);
    assert_span(span_cut_utf8(fine, 2), "é");
    assert_span(span_cut_utf8(fine, 1), "");
    assert_span(span_cut_utf8(span_text("a€"), 3), "a");
    assert_span(span_cut_utf8(span_text("abc"), 2), "ab");
    assert_int_equal(span_cut_utf8(span_text("\x80\x80\x80\x80\x80\x80\x80\x80"), 7).size, 3);
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
        cmocka_unit_test(parses_whole_numbers_only),
        cmocka_unit_test(takes_lines_of_both_kinds),
        cmocka_unit_test(splits_and_trims),
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(makes_text_utf8),
        cmocka_unit_test(refuses_to_pass_its_maximum),
        cmocka_unit_test(escapes_json),
        cmocka_unit_test(invalid_utf8_is_replaced_like_in_browsers),
        cmocka_unit_test(escapes_html_and_urls),
        cmocka_unit_test(prints_long_texts),
        cmocka_unit_test(writes_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
