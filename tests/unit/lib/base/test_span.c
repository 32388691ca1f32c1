#include "tests/unit/test.h"

#include "lib/base/span.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_whole_numbers_only),
        cmocka_unit_test(takes_lines_of_both_kinds),
        cmocka_unit_test(splits_and_trims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
