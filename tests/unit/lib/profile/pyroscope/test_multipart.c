#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/pyroscope/multipart.h"

#include <stdio.h>

#define TYPE "multipart/form-data; boundary=b"
#define PART(name) "Content-Disposition: form-data; name=\"" name "\"\r\n"

/* expected: "name=body|" for each part, or "!" and a part of the error message. */
static void assert_parts(const char *type, const char *body, const char *expected)
{
    struct multipart multipart;
    struct multipart_part part;
    struct err err = {0};
    bool is_end = false;
    char text[2000] = "";
    size_t size = 0;
    enum err_code code = multipart_init(&multipart, span_text(type), span_text(body), &err);
    while (!code) {
        code = multipart_next(&multipart, &part, &is_end, &err);
        if (code || is_end)
            break;
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%.*s=%.*s|",
                                 (int)part.name_size, part.name, SPAN_PRINT(part.body));
    }
    assert_int_equal(code != ERR_NONE, expected[0] == '!');
    if (code && !strstr(err.message, expected + 1))
        print_error("message: %s\n", err.message);
    if (code)
        assert_non_null(strstr(err.message, expected + 1));
    else
        assert_string_equal(text, expected);
}

static void reads_parts(void **state)
{
    (void)state;
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\none\r\n--b\r\n" PART("b") "\r\ntwo\r\n--b--\r\n",
                 "a=one|b=two|");
    assert_parts("Multipart/Form-Data;Boundary=\"b\"; x=\"y;\\\"z\"",
                 "--b\r\n" PART("a") "\r\none\r\n--b--", "a=one|");
    assert_parts(TYPE, "passed over\r\n--b \t\r\n" PART("a") "X-Other: 1\r\n\r\none\r\n--b--rest",
                 "a=one|");
    assert_parts(TYPE,
                 "--b\r\ncontent-type: text/plain\r\n"
                 "CONTENT-DISPOSITION: form-data; filename=\"f;name=x\"; name=a\r\n\r\n"
                 "\r\n\r\n--b--",
                 "a=\r\n|");
    assert_parts(TYPE, "--b\r\n" PART("q\\\"\\\\u") "\r\nx\r\n--b--", "q\"\\u=x|");
}

static void bodies_may_be_empty_or_look_like_boundaries(void **state)
{
    (void)state;
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\n\r\n--b--", "a=|");
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\n--b--", "a=|");
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\n--b\r\n" PART("c") "\r\nx\r\n--b--", "a=|c=x|");
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\nx\r\n--boundary\r\n--bb--\n--b--\r\n--b--",
                 "a=x\r\n--boundary\r\n--bb--\n--b--|");
    assert_parts(TYPE, "--b--", "");
    assert_parts(TYPE, "--bb\r\n\r\n--b--", "");
}

static void reports_what_is_wrong(void **state)
{
    (void)state;
    assert_false(multipart_is_form(span_of(NULL, 0)));
    assert_parts("text/plain", "", "!is not multipart/form-data");
    assert_parts("multipart/form-data", "", "!needs a boundary");
    assert_parts("multipart/form-data; boundary=", "", "!needs a boundary");
    assert_parts("multipart/form-data; boundary=\"a", "", "!needs a boundary");
    assert_parts("multipart/form-data; boundary=\"a \"", "", "!needs a boundary");
    assert_parts("multipart/form-data; boundary=\"\xc3\xa9\"", "", "!needs a boundary");
    assert_parts("multipart/form-data; boundary=12345678901234567890123456789012345678901234567890"
                 "123456789012345678901",
                 "", "!needs a boundary");
    assert_parts(TYPE, "", "!boundary does not occur");
    assert_parts(TYPE, "--c--", "!boundary does not occur");
    assert_parts(TYPE, "--b\r\n", "!part 1 of the form is truncated");
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\none", "!part 1 of the form is truncated");
    assert_parts(TYPE, "--b\r\n" PART("a") "\r\none\r\n--b\r\n",
                 "!part 2 of the form is truncated");
    assert_parts(TYPE, "--b\n" PART("a") "\r\none\r\n--b", "!boundary does not occur");
    assert_parts(TYPE, "--b\r\nX: y\r\n\r\none\r\n--b--",
                 "!part 1 of the form has no Content-Disp");
    assert_parts(TYPE, "--b\r\nContent-Disposition: attachment; name=a\r\n\r\none\r\n--b--",
                 "!part 1 of the form has no Content-Disp");
    assert_parts(TYPE, "--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\none\r\n--b--",
                 "!part 1 of the form has no Content-Disp");
    assert_parts(TYPE, "--b\r\n" PART("") "\r\none\r\n--b--", "!an empty name");
    assert_parts(TYPE, "--b\r\n" PART("a") PART("b") "\r\none\r\n--b--", "!two names");
    assert_parts(TYPE, "--b\r\nno colon\r\n\r\none\r\n--b--", "!a header line without a name");
    assert_parts(TYPE, "--b\r\n" PART("a") "Content-Transfer-Encoding: base64\r\n\r\none\r\n--b--",
                 "!transfer encoding");
}

static void limits_hold(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, 1 << 20);
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++)
        buf_append_text(&body, "--b\r\n" PART("a") "\r\n\r\n");
    buf_append(&body, "--b--", 6);
    struct multipart multipart;
    struct multipart_part part;
    struct err err;
    bool is_end = false;
    assert_int_equal(multipart_init(&multipart, SPAN_LITERAL(TYPE), buf_span(&body), &err),
                     ERR_NONE);
    for (int i = 0; i < MULTIPART_PARTS_MAX; i++)
        assert_int_equal(multipart_next(&multipart, &part, &is_end, &err), ERR_NONE);
    assert_int_equal(multipart_next(&multipart, &part, &is_end, &err), ERR_TOO_LARGE);

    buf_clear(&body);
    buf_append_text(&body, "--b\r\n" PART("a"));
    while (body.size < MULTIPART_HEADER_MAX)
        buf_append_text(&body, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
    buf_append(&body, "\r\nx\r\n--b--", 11);
    assert_parts(TYPE, (const char *)body.data, "!more than 8192 bytes of header lines");

    buf_clear(&body);
    buf_append_text(&body, "--b\r\nContent-Disposition: form-data; name=");
    for (int i = 0; i <= MULTIPART_NAME_MAX; i++)
        buf_append_byte(&body, 'n');
    buf_append(&body, "\r\n\r\nx\r\n--b--", 13);
    assert_parts(TYPE, (const char *)body.data, "!a name of more than 128 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_parts),
        cmocka_unit_test(bodies_may_be_empty_or_look_like_boundaries),
        cmocka_unit_test(reports_what_is_wrong),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
