#include "cli/terminal.h"

#include "cli/interrupt.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/plain_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

enum {
    DEFAULT_COLUMNS = 80,
    MIN_COLUMNS = 40,
    NO_LIMIT_COLUMNS = 100000,
    MAX_MESSAGE_BYTES = 64 << 10,
    BAR_CELLS = 24,
};
#define BAR_INTERVAL_NS (100 * CLOCK_NS_PER_MS)

static int columns_of(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return NO_LIMIT_COLUMNS;
    if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0)
        return DEFAULT_COLUMNS;
    return size.ws_col < MIN_COLUMNS ? MIN_COLUMNS : size.ws_col;
}

void terminal_init(struct terminal *terminal, const char *program)
{
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    *terminal = (struct terminal){
        .program = program,
        .is_output_terminal = isatty(STDOUT_FILENO),
        .is_error_terminal = isatty(STDERR_FILENO),
        .may_colour = !(no_colour && no_colour[0]) && kind && kind[0] && strcmp(kind, "dumb") != 0,
        .columns = columns_of(STDOUT_FILENO),
        .error_columns = columns_of(STDERR_FILENO),
    };
}

const char *terminal_style(const struct terminal *terminal, const FILE *file, enum style style)
{
    static const char *const sequences[] = {
        [STYLE_RESET] = "\033[0m", [STYLE_BOLD] = "\033[1m",   [STYLE_DIM] = "\033[2m",
        [STYLE_RED] = "\033[31m",  [STYLE_GREEN] = "\033[32m", [STYLE_YELLOW] = "\033[33m",
        [STYLE_BLUE] = "\033[34m",
    };
    bool is_terminal = file == stdout ? terminal->is_output_terminal : terminal->is_error_terminal;
    return is_terminal && terminal->may_colour ? sequences[style] : "";
}

void terminal_append_clean(struct buf *text, struct span from)
{
    plain_text_append(text, from);
}

void terminal_print_clean(FILE *file, struct span text)
{
    buf_auto clean;
    buf_init(&clean, MAX_MESSAGE_BYTES);
    terminal_append_clean(
        &clean, text.size < MAX_MESSAGE_BYTES ? text : span_of(text.data, MAX_MESSAGE_BYTES));
    fwrite(clean.data, 1, clean.size, file);
}

/* Cleans the text between tabs; "\r" belongs to the end of a line. */
static void print_line_clean(FILE *file, struct span line)
{
    struct span piece, rest = line;
    for (bool is_more = true; is_more;) {
        is_more = span_split(rest, '\t', &piece, &rest);
        buf_auto clean;
        buf_init(&clean, piece.size);
        terminal_append_clean(&clean, piece);
        fwrite(clean.data, 1, clean.size, file);
        if (is_more)
            putc('\t', file);
    }
}

void terminal_print_text(FILE *file, struct span text)
{
    const bool is_terminal = isatty(fileno(file)) != 0;
    struct span line;
    if (!is_terminal)
        fwrite(text.data, 1, text.size, file);
    while (is_terminal && text.size) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        line = span_of(text.data, end ? (size_t)(end - text.data) : text.size);
        text =
            span_of(line.data + line.size + (end ? 1 : 0), text.size - line.size - (end ? 1 : 0));
        if (end && span_ends_with(line, "\r"))
            line.size--;
        print_line_clean(file, line);
        if (end)
            putc('\n', file);
    }
}

static int point_width(uint32_t point)
{
    int width = wcwidth((wchar_t)point);
    return width < 0 ? 1 : width;
}

int terminal_width(struct span text)
{
    int width = 0;
    while (text.size) {
        uint32_t point;
        bool is_plain;
        const size_t size = plain_text_next(text, &point, &is_plain);
        width += is_plain ? point_width(point) : 1;
        text = span_of(text.data + size, text.size - size);
    }
    return width;
}

void terminal_print_cell(FILE *file, struct span text, int columns)
{
    bool is_cut = terminal_width(text) > columns;
    int space = is_cut ? columns - 1 : columns, used = 0;
    while (text.size) {
        uint32_t point;
        bool is_plain;
        const size_t size = plain_text_next(text, &point, &is_plain);
        const int width = is_plain ? point_width(point) : 1;
        if (used + width > space)
            break;
        if (is_plain)
            fwrite(text.data, 1, size, file);
        else
            fputc(PLAIN_TEXT_SUBSTITUTE, file);
        used += width;
        text = span_of(text.data + size, text.size - size);
    }
    if (is_cut)
        fputs("…", file);
    fprintf(file, "%*s", space - used, "");
}

__attribute__((format(printf, 4, 0))) static void print_line(struct terminal *terminal,
                                                             enum style style, const char *word,
                                                             const char *format, va_list arguments)
{
    char message[4096];
    buf_auto clean = {0};
    if (terminal->is_silent)
        return;
    buf_init(&clean, MAX_MESSAGE_BYTES);
    vsnprintf(message, sizeof(message), format, arguments);
    terminal_append_clean(&clean, span_text(message));
    terminal_progress_end(terminal);
    fflush(stdout); /* keeps the order of results and messages */
    if (word)
        fprintf(stderr, "%s: %s%s%s", terminal->program, terminal_style(terminal, stderr, style),
                word, terminal_style(terminal, stderr, STYLE_RESET));
    fprintf(stderr, "%.*s\n", SPAN_PRINT(buf_span(&clean)));
}

void terminal_note(struct terminal *terminal, const char *format, ...)
{
    va_list arguments;
    if (terminal->is_quiet)
        return;
    va_start(arguments, format);
    print_line(terminal, STYLE_RESET, NULL, format, arguments);
    va_end(arguments);
}

void terminal_warn(struct terminal *terminal, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(terminal, STYLE_YELLOW, "warning: ", format, arguments);
    va_end(arguments);
}

void terminal_fail(struct terminal *terminal, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(terminal, STYLE_RED, "error: ", format, arguments);
    va_end(arguments);
}

static void print_bytes(FILE *file, uint64_t bytes)
{
    if (bytes < 10 << 10)
        fprintf(file, "%llu B", (unsigned long long)bytes);
    else if (bytes < 10 << 20)
        fprintf(file, "%.0f KiB", (double)bytes / 1024);
    else
        fprintf(file, "%.1f MiB", (double)bytes / (1 << 20));
}

/* Whether the caller has to draw the bar now (see terminal_progress). If so, notes that it is on
 * the screen. */
static bool begin_bar(struct terminal *terminal, uint64_t done, uint64_t total)
{
    int64_t now = clock_monotonic_ns();
    if (!terminal->is_error_terminal || terminal->is_quiet || terminal->is_silent ||
        (terminal->has_bar && (done == terminal->bar_done ||
                               (now - terminal->bar_ns < BAR_INTERVAL_NS && done != total))))
        return false;
    terminal->has_bar = true;
    interrupt_set_bar(true);
    terminal->bar_ns = now;
    terminal->bar_done = done;
    return true;
}

static void draw_bar(struct terminal *terminal, const char *what, uint64_t done, uint64_t total)
{
    /* 32 columns for the percentage, the bytes or counts, and blanks. */
    int space = terminal->error_columns - BAR_CELLS - 32;
    fputs("\r\033[K", stderr);
    buf_auto name;
    buf_init(&name, MAX_MESSAGE_BYTES);
    terminal_append_clean(&name, span_of(what, strnlen(what, MAX_MESSAGE_BYTES)));
    terminal_print_cell(stderr, buf_span(&name), space < 8 ? 8 : space > 30 ? 30 : space);
    if (total) {
        double share = done < total ? (double)done / (double)total : 1;
        int filled = (int)(share * BAR_CELLS);
        fprintf(stderr, " %s", terminal_style(terminal, stderr, STYLE_BLUE));
        for (int i = 0; i < BAR_CELLS; i++)
            fputs(i < filled ? "━" : i == filled ? "╸" : " ", stderr);
        fprintf(stderr, "%s %3.0f%%", terminal_style(terminal, stderr, STYLE_RESET), share * 100);
    }
    fputs("  ", stderr);
}

void terminal_progress(struct terminal *terminal, const char *what, uint64_t done, uint64_t total)
{
    if (!begin_bar(terminal, done, total))
        return;
    draw_bar(terminal, what, done, total);
    print_bytes(stderr, done);
    if (total && done == total)
        fputs(", waiting", stderr);
    fflush(stderr);
}

void terminal_progress_count(struct terminal *terminal, const char *what, const char *noun,
                             uint64_t done, uint64_t total)
{
    if (!begin_bar(terminal, done, total))
        return;
    draw_bar(terminal, what, done, total);
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s", done, total, noun);
    fflush(stderr);
}

void terminal_progress_end(struct terminal *terminal)
{
    if (!terminal->has_bar)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    terminal->has_bar = false;
    interrupt_set_bar(false);
}

/* The handler only interrupts the read, so that the echo is restored before the signal is
 * handled. */
static void on_interrupt(int number)
{
    (void)number;
}

/* Reads one line; false if a signal interrupted it. */
static bool read_line(FILE *file, struct buf *line)
{
    for (int byte = getc(file); byte != '\n'; byte = getc(file)) {
        if (byte == EOF)
            return !ferror(file);
        buf_append_byte(line, (uint8_t)byte);
    }
    return true;
}

enum err_code terminal_prompt_secret(const char *prompt, struct buf *typed, struct err *err)
{
    struct termios before, silent;
    struct sigaction interrupt = {.sa_handler = on_interrupt}, usual;
    FILE *file = fopen("/dev/tty", "r+e");
    if (!file || tcgetattr(fileno(file), &before)) {
        err_set_errno(err, ERR_IO, "no terminal is available to read the secret");
        if (file)
            fclose(file);
        return err->code;
    }
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    fputs(prompt, file);
    fflush(file);
    sigaction(SIGINT, &interrupt, &usual);
    tcsetattr(fileno(file), TCSAFLUSH, &silent);
    buf_clear(typed);
    bool is_read = read_line(file, typed);
    tcsetattr(fileno(file), TCSAFLUSH, &before);
    sigaction(SIGINT, &usual, NULL);
    fputs("\n", file);
    fclose(file);
    if (!is_read)
        raise(SIGINT);
    return buf_failed(typed) ? err_set(err, ERR_INVALID, "the typed text is too long") : ERR_NONE;
}
