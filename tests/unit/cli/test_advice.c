#include "tests/unit/test.h"

#include "cli/advice.h"
#include "lib/base/err.h"

#include <string.h>

static void assert_translated(const char *message, const char *expected)
{
    struct err err = {0};
    err_set(&err, ERR_INVALID, "%s", message);
    advice_translate(&err);
    assert_string_equal(err.message, expected);
}

static void advice_of_the_server_names_options_and_commands(void **state)
{
    (void)state;
    assert_translated("Sign in, or send a token as \"Authorization: Bearer pf_…\"",
                      "this needs a token: run `perfolio login URL`, or set PERFOLIO_TOKEN");
    assert_translated("this share needs a password: send it in the header X-Perfolio-Password",
                      "this share needs a password: give a file that contains it with "
                      "--password-file FILE, or - for standard input");
    assert_translated("the share's password must have 8 to 72 bytes; it is sent in the header "
                      "X-Perfolio-Password",
                      "the share's password must have 8 to 72 bytes");
    assert_translated("The field \"expires\" must be \"never\" or a number",
                      "\"expires\" must be \"never\" or a number");
    assert_translated("the disk is full", "the disk is full");
    assert_translated("", "");
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    char message[ERR_MESSAGE_BYTES] = "";
    struct err err = {0};
    memset(message, 'x', sizeof(message) - 1);
    memcpy(message + 100, ": send it in the header X-Perfolio-Password", 43);
    err_set(&err, ERR_INVALID, "%s", message);
    advice_translate(&err);
    assert_non_null(strstr(err.message, "--password-file FILE"));
    assert_true(strlen(err.message) < sizeof(err.message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_of_the_server_names_options_and_commands),
        cmocka_unit_test(a_long_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
