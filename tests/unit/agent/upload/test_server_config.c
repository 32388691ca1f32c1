#include "tests/unit/test.h"

#include "agent/upload/server_config.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum err_code read_token(struct span text, struct buf *field, struct err *err)
{
    char path[] = "/tmp/perfolio-token-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.data, text.size), text.size);
    close(fd);
    const struct server_config access = {.token_file = path};
    const enum err_code code = server_config_token(&access, field, err);
    unlink(path);
    return code;
}

static void the_token_is_the_first_line_without_blanks_around_it(void **state)
{
    (void)state;
    struct err err;
    buf_auto field;
    buf_init(&field, SERVER_CONFIG_FIELD_BYTES);
    assert_int_equal(read_token(SPAN_LITERAL(" pf_abc \r\nmore\n"), &field, &err), ERR_NONE);
    assert_string_equal((const char *)field.data, "Bearer pf_abc");
}

static void invalid_characters_of_a_token_are_named(void **state)
{
    (void)state;
    struct err err;
    buf_auto field;
    buf_init(&field, SERVER_CONFIG_FIELD_BYTES);
    assert_int_equal(read_token(SPAN_LITERAL("pf_a\x1b[0m\n"), &field, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "/tmp/perfolio-token-"));
    assert_non_null(strstr(err.message, "control character (0x1b)"));
    assert_int_equal(read_token(SPAN_LITERAL("pf_a\0b\n"), &field, &err), ERR_INVALID);
    assert_int_equal(read_token(SPAN_LITERAL("\xef\xbb\xbfpf_a\n"), &field, &err), ERR_INVALID);
    assert_int_equal(field.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_is_the_first_line_without_blanks_around_it),
        cmocka_unit_test(invalid_characters_of_a_token_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
