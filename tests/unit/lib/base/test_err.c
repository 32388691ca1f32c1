#include "tests/unit/test.h"

#include "lib/base/err.h"

#include <errno.h>
#include <string.h>

static void keeps_code_and_text(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(err_set(&err, ERR_INVALID, "bad %s", "thing"), ERR_INVALID);
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.message, "bad thing");
}

static void adds_context_in_front(void **state)
{
    (void)state;
    struct err err;
    (void)err_set(&err, ERR_IO, "disk full");
    assert_int_equal(err_add(&err, "writing %s", "x"), ERR_IO);
    assert_string_equal(err.message, "writing x: disk full");
}

static void names_errno(void **state)
{
    (void)state;
    struct err err;
    errno = ENOENT;
    (void)err_set_errno(&err, ERR_IO, "opening f");
    assert_string_equal(err.message, "opening f: No such file or directory");
}

static void cuts_what_is_too_long(void **state)
{
    (void)state;
    struct err err;
    char text[ERR_MESSAGE_BYTES * 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&err, ERR_IO, "%s", text);
    assert_int_equal(strlen(err.message), ERR_MESSAGE_BYTES - 1);
    (void)err_add(&err, "in front");
    assert_int_equal(strlen(err.message), ERR_MESSAGE_BYTES - 1);
    assert_memory_equal(err.message, "in front: x", 11);
}

static void names_every_code(void **state)
{
    (void)state;
    for (unsigned code = 0; code < ERR_CODE_COUNT; code++)
        assert_non_null(err_code_name((enum err_code)code));
    assert_string_equal(err_code_name(ERR_CODE_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_code_and_text), cmocka_unit_test(adds_context_in_front),
        cmocka_unit_test(names_errno),         cmocka_unit_test(cuts_what_is_too_long),
        cmocka_unit_test(names_every_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
