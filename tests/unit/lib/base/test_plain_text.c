#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/plain_text.h"

static void assert_shown(const char *text, const char *expected)
{
    buf_auto shown;
    char copy[200];
    buf_init(&shown, 1000);
    plain_text_append(&shown, span_text(text));
    assert_true(span_equal_text(buf_span(&shown), expected));
    strcpy(copy, text);
    assert_true(span_equal_text(span_of(copy, plain_text_clean(copy, strlen(copy))), expected));
}

static void text_of_all_scripts_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "main.f(int)",
                                        "läuft",
                                        "запрос",
                                        "שלום",
                                        "مرحبا",
                                        "日本語",
                                        "👩\u200d💻 ☂\ufe0f",
                                        "می\u200cخواهم",
                                        "std::g<a, b>::operator()"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_shown(texts[i], texts[i]);
}

static void terminal_controls_and_line_breaks_are_replaced(void **state)
{
    (void)state;
    assert_shown("\x1b]0;x\x07", "?]0;x?");
    assert_shown("\x1b[31mred\x1b[0m", "?[31mred?[0m");
    assert_shown("a\nb\rc\td\x7f", "a?b?c?d?");
    assert_shown("\xc2\x9b"
                 "2J\xc2\x85",
                 "?2J?");
    assert_shown("\x9b"
                 "2J",
                 "?2J");
    assert_shown("a\u202Eb\u2066c\u2069\u200e\u200f\u061c\u2028\u2029", "a?b?c??????");
    assert_shown("tag\U000e0041\U000e007f", "tag??");
}

static void invisible_characters_are_replaced(void **state)
{
    (void)state;
    assert_shown("a\u200bb\u2060c\ufeffd\u00ade", "a?b?c?d?e");
    assert_shown("\u034f\u115f\u1160\u17b4\u180e\u3164\uffa0\ufff9\U0001d173", "?????????");
    assert_shown("\u2064\u2065\U000e0100", "???");
    assert_shown("a\u200db\u200c", "a?b?"); /* they join nothing */
    assert_shown("\u00a0\u00ac\u00ae\u200a\u2010\u2027\u202f\u205f\u2070\ufffd\U0001f600",
                 "\u00a0\u00ac\u00ae\u200a\u2010\u2027\u202f\u205f\u2070\ufffd\U0001f600");
}

static void invalid_utf8_bytes_are_replaced_one_by_one(void **state)
{
    (void)state;
    assert_shown("\xff\xc3", "??");
    assert_shown("\xe2\x80z", "??z");
    assert_shown("\xed\xa0\x80", "???"); /* half of a UTF-16 surrogate pair */
    assert_shown("\xc0\x80", "??");      /* an overlong NUL */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_all_scripts_stays),
        cmocka_unit_test(terminal_controls_and_line_breaks_are_replaced),
        cmocka_unit_test(invisible_characters_are_replaced),
        cmocka_unit_test(invalid_utf8_bytes_are_replaced_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
