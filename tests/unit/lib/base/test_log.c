#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Logs a message, with a field whose value is a number of `digits` digits, and reads through a pipe
 * what log_event writes to standard error. */
static size_t capture(char *text, size_t text_bytes, enum log_level level, const char *message,
                      int digits)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_event(level, message, "n=%0*d", digits, 7);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t size = read(ends[0], text, text_bytes - 1);
    close(ends[0]);
    text[size > 0 ? size : 0] = '\0';
    return size > 0 ? (size_t)size : 0;
}

static void writes_one_line_of_fields(void **state)
{
    (void)state;
    char text[1000];
    capture(text, sizeof(text), LOG_WARN, "disk \"full\"", 1);
    assert_memory_equal(text, "time=20", 7);
    assert_non_null(strstr(text, "Z level=warn msg=\"disk \\\"full\\\"\" n=7\n"));
}

static void omits_lines_below_the_level(void **state)
{
    (void)state;
    char text[1000];
    assert_int_equal(capture(text, sizeof(text), LOG_DEBUG, "quiet", 1), 0);
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    (void)state;
    char text[8192], message[300];
    memset(message, 'm', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    size_t size = capture(text, sizeof(text), LOG_WARN, message, 6000);
    assert_int_equal(size, 4095);
    assert_int_equal(text[size - 1], '\n');
    assert_int_equal(strcspn(text, "\n"), size - 1);
    assert_memory_equal(text + size - 5, "0000", 4);
}

static void quotes_control_characters(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(log_quote("a\n\x1b\\", text, sizeof(text)), "\"a\\x0a\\x1b\\\\\"");
    assert_string_equal(log_quote("0123456789", text, 10), "\"012\"");
}

static void terminal_controls_are_quoted_or_replaced(void **state)
{
    (void)state;
    char text[200], line[1000];
    /* C1 as UTF-8 and as a byte, a bidirectional override, a terminal title, half a character */
    static const char evil[] = "\xc2\x9b"
                               "31m\x9b|\xe2\x80\xae|\x1b]0;x\x07|\n|é\xe2\x80";
    assert_string_equal(log_quote(evil, text, sizeof(text)),
                        "\"\\xc2\\x9b31m\\x9b|\\xe2\\x80\\xae|\\x1b]0;x\\x07|\\x0a|é\\xe2\\x80\"");
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_event(LOG_WARN, evil, "field=%s", evil);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    const ssize_t size = read(ends[0], line, sizeof(line) - 1);
    close(ends[0]);
    assert_true(size > 0);
    line[size] = '\0';
    assert_non_null(strstr(line, " field=?31m?|?|?]0;x?|?|é??\n"));
    assert_int_equal(strcspn(line, "\n"), size - 1);
    for (ssize_t i = 0; i < size - 1; i++)
        assert_true((unsigned char)line[i] >= ' ' && line[i] != 0x7f);
}

/* Appends what the reader gets until nothing arrives for a while; a terminal needs time for it. */
static size_t read_rest(int reader, char *text, size_t size, size_t text_bytes)
{
    struct pollfd ready = {.fd = reader, .events = POLLIN};
    while (poll(&ready, 1, 100) == 1) {
        const ssize_t more = read(reader, text + size, text_bytes - 1 - size);
        assert_true(more > 0);
        size += (size_t)more;
    }
    text[size] = '\0';
    return size;
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Logs more lines than the reader has space for before it reads. A terminal may have the beginning
 * of a line that did not fit and was counted as dropped. */
static void check_unread_lines(int reader, int writer)
{
    enum { COUNT = 5000 };
    static char text[1 << 20];
    const int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    const int saved = dup(STDERR_FILENO);
    dup2(writer, STDERR_FILENO);
    close(writer);
    unsigned logged = 0, dropped = 0;
    for (; logged < COUNT; logged++)
        log_event(LOG_WARN, "unread", "number=%u", logged);
    size_t size = 0;
    do {
        size = read_rest(reader, text, size, sizeof(text));
        log_event(LOG_WARN, "read", "number=%u", logged++);
        size = read_rest(reader, text, size, sizeof(text));
    } while (!strstr(text, "msg=\"read\"") && clock_monotonic_ns() < until_ns);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(reader);
    const char *number = text;
    while ((number = strstr(number, "dropped\" count="))) {
        unsigned count;
        assert_int_equal(sscanf(number++, "dropped\" count=%u", &count), 1);
        dropped += count;
    }
    assert_true(dropped > 0);
    assert_int_equal(count_of(text, "\n") - count_of(text, "dropped\" count=") + dropped, logged);
    assert_non_null(strstr(text, "msg=\"read\""));
}

static void lines_that_nobody_reads_are_dropped_and_counted(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    check_unread_lines(ends[0], ends[1]);
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(side >= 0);
    check_unread_lines(terminal, side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_one_line_of_fields),
        cmocka_unit_test(omits_lines_below_the_level),
        cmocka_unit_test(a_long_line_is_cut_and_still_ends),
        cmocka_unit_test(quotes_control_characters),
        cmocka_unit_test(terminal_controls_are_quoted_or_replaced),
        cmocka_unit_test(lines_that_nobody_reads_are_dropped_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
