#include "tests/unit/test.h"

#include "lib/base/base64.h"

#include <stdlib.h>

static void assert_decodes(const char *text, const char *wanted, size_t wanted_size)
{
    const struct span from = span_text(text);
    uint8_t *bytes = malloc(base64_max_bytes(from.size));
    size_t size = SIZE_MAX;
    assert_non_null(bytes);
    assert_true(base64_decode(from, bytes, &size));
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes, wanted, wanted_size);
    free(bytes);
}

/* The examples of RFC 4648, section 10. */
static void decodes_with_and_without_padding(void **state)
{
    (void)state;
    assert_decodes("", "", 0);
    assert_decodes("Zg==", "f", 1);
    assert_decodes("Zg", "f", 1);
    assert_decodes("Zm8=", "fo", 2);
    assert_decodes("Zm8", "fo", 2);
    assert_decodes("Zm9v", "foo", 3);
    assert_decodes("Zm9vYmFy", "foobar", 6);
}

static void knows_both_alphabets(void **state)
{
    (void)state;
    assert_decodes("+/+/", "\xfb\xff\xbf", 3);
    assert_decodes("-_-_", "\xfb\xff\xbf", 3);
}

static void refuses_malformed_input(void **state)
{
    (void)state;
    static const char *const texts[] = {"Z", "Zm9vY", "Zm 9", "Zg==x", "Zg===", "%%%%", "Zm9\n"};
    uint8_t bytes[32];
    size_t size;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(base64_decode(span_text(texts[i]), bytes, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_with_and_without_padding),
        cmocka_unit_test(knows_both_alphabets),
        cmocka_unit_test(refuses_malformed_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
