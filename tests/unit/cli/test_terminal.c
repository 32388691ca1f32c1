#include "tests/unit/test.h"

#include "cli/terminal.h"
#include "lib/base/mem.h"

#include <locale.h>
#include <stdlib.h>

static void assert_clean(const char *from, const char *expected)
{
    buf_auto text;
    buf_init(&text, 1024);
    terminal_append_clean(&text, span_text(from));
    buf_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, expected);
}

static void untrusted_text_cannot_control_the_terminal(void **state)
{
    (void)state;
    assert_clean("plain Grüße 日本", "plain Grüße 日本");
    assert_clean("\033[31mred", "?[31mred");
    assert_clean("a\r\nb\tc\x7f", "a??b?c?");
    assert_clean("\xc2\x9b"
                 "31m",
                 "?31m"); /* C1: CSI in one character */
    assert_clean("\xe2\x80\xae"
                 "exe.txt",
                 "?exe.txt"); /* right-to-left override */
    assert_clean("\xff\xfe", "??");
    assert_clean("cut \xe6\x97", "cut ??");
}

static void widths_are_columns(void **state)
{
    (void)state;
    assert_int_equal(terminal_width(SPAN_LITERAL("abc")), 3);
    assert_int_equal(terminal_width(SPAN_LITERAL("µs")), 2);
    assert_int_equal(terminal_width(SPAN_LITERAL("日本")), 4);
    assert_int_equal(terminal_width(SPAN_LITERAL("e\xcc\x81")), 1); /* combining accent */
}

static void assert_cell(const char *from, int columns, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    terminal_print_cell(file, span_text(from), columns);
    fclose(file);
    assert_string_equal(text, expected);
    free(text);
}

static void cells_are_padded_or_cut(void **state)
{
    (void)state;
    assert_cell("abc", 5, "abc  ");
    assert_cell("abcde", 5, "abcde");
    assert_cell("abcdef", 5, "abcd…");
    assert_cell("日本語", 5, "日本…");
    assert_cell("日本語", 4, "日… ");
    assert_cell("", 2, "  ");
}

/* Leaves bytes on the stack that no allocator can have returned. */
__attribute__((noinline)) static void dirty_stack(void)
{
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = 0x5a;
}

static void a_silent_terminal_prints_and_frees_nothing(void **state)
{
    (void)state;
    struct terminal terminal = {.program = "perfolio test", .is_silent = true};
    dirty_stack();
    terminal_note(&terminal, "%s", "note");
    dirty_stack();
    terminal_warn(&terminal, "%s", "warning");
    dirty_stack();
    terminal_fail(&terminal, "%s", "error");
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untrusted_text_cannot_control_the_terminal),
        cmocka_unit_test(widths_are_columns),
        cmocka_unit_test(cells_are_padded_or_cut),
        cmocka_unit_test(a_silent_terminal_prints_and_frees_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
