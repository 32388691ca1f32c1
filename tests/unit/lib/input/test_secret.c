#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/input/secret.h"

static void assert_refused_token(struct span token, const char *words)
{
    struct err err = {0};
    assert_int_equal(secret_check_token(token, "PERFOLIO_TOKEN", &err), ERR_INVALID);
    if (!strstr(err.message, words))
        print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, words));
    assert_int_equal(strncmp(err.message, "PERFOLIO_TOKEN holds ", 21), 0);
    assert_null(strstr(err.message, "pf_"));
}

static void tokens_have_visible_ascii_characters_only(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(secret_check_token(SPAN_LITERAL("pf_AZaz09-._~+/="), "x", &err), ERR_NONE);
    assert_refused_token(SPAN_LITERAL("pf_a\x1b[0m"), "control character (0x1b) as its byte 5");
    assert_refused_token(SPAN_LITERAL("pf_a\npf_b"), "(0x0a)");
    assert_refused_token(SPAN_LITERAL("pf_a\0"), "(0x00)");
    assert_refused_token(SPAN_LITERAL("pf_a\x7f"), "(0x7f)");
    assert_refused_token(SPAN_LITERAL("pf_a b"), "a blank (0x20)");
    assert_refused_token(SPAN_LITERAL("pf_\u00e4"), "not ASCII (0xc3)");
}

static void other_secrets_have_no_control_characters(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(secret_check(SPAN_LITERAL("a b\tc \u00e4"), "x", &err), ERR_NONE);
    assert_int_equal(secret_check(SPAN_LITERAL("a\x01"), "file", &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "file holds a control character (0x01) as its byte 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_visible_ascii_characters_only),
        cmocka_unit_test(other_secrets_have_no_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
