#include "tests/unit/test.h"

#include "api/http/byte_range.h"

static void assert_part(const char *field, uint64_t first, uint64_t bytes)
{
    struct byte_range range = {0};
    assert_int_equal(byte_range_read(span_text(field), 1000, &range), BYTE_RANGE_PART);
    assert_int_equal(range.first, first);
    assert_int_equal(range.bytes, bytes);
}

static void a_range_ends_at_the_end_of_the_file(void **state)
{
    (void)state;
    assert_part("bytes=0-0", 0, 1);
    assert_part("bytes=0-99", 0, 100);
    assert_part(" bytes=100-", 100, 900);
    assert_part("bytes=-100", 900, 100);
    assert_part("bytes=-5000", 0, 1000);
    assert_part("bytes=999-18446744073709551615", 999, 1);
}

static void a_range_after_the_end_is_refused(void **state)
{
    (void)state;
    struct byte_range range;
    static const char *const fields[] = {"bytes=1000-", "bytes=1000-1001", "bytes=-0"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(byte_range_read(span_text(fields[i]), 1000, &range), BYTE_RANGE_NONE);
    assert_int_equal(byte_range_read(SPAN_LITERAL("bytes=0-"), 0, &range), BYTE_RANGE_NONE);
    assert_int_equal(byte_range_read(SPAN_LITERAL("bytes=-1"), 0, &range), BYTE_RANGE_NONE);
}

static void an_invalid_range_selects_the_whole_file(void **state)
{
    (void)state;
    struct byte_range range;
    static const char *const fields[] = {"",
                                         "bytes",
                                         "bytes=",
                                         "bytes=-",
                                         "bytes=a-b",
                                         "bytes=1-0",
                                         "lines=0-1",
                                         "bytes=0-1,5-6",
                                         "bytes=+1-2",
                                         "bytes=0x1-20",
                                         "bytes=1 - 2",
                                         "bytes=--1",
                                         "bytes=99999999999999999999-"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(byte_range_read(span_text(fields[i]), 1000, &range), BYTE_RANGE_WHOLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_ends_at_the_end_of_the_file),
        cmocka_unit_test(a_range_after_the_end_is_refused),
        cmocka_unit_test(an_invalid_range_selects_the_whole_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
