/*
 * terminal: messages on standard error, colours, a progress bar, widths of text.
 *
 * Standard output is for results (URLs, tables, JSON); all messages are written to standard error.
 * Colours and the bar appear only on a terminal; NO_COLOR (https://no-color.org) and TERM=dumb
 * disable colours. Control characters are removed from text of other sources, so that a title or an
 * error of a server cannot control the terminal. Threads: one.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdio.h>

enum style {
    STYLE_RESET,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_RED,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_BLUE,
};

struct terminal {
    const char *program; /* "perfolio push", the prefix of every message */
    bool is_output_terminal;
    bool is_error_terminal;
    bool may_colour;
    bool is_quiet;     /* no notes; warnings and errors are printed */
    bool is_silent;    /* prints nothing, because something else uses the screen */
    int columns;       /* width of standard output; large if that is not a terminal */
    int error_columns; /* width of standard error; large if that is not a terminal */
    bool has_bar;      /* the bar is on the screen */
    int64_t bar_ns;    /* monotonic time at which it was drawn last */
    uint64_t bar_done; /* the number that it shows */
};

void terminal_init(struct terminal *terminal, const char *program);
/* The escape sequence for stdout or stderr; "" without colours. */
const char *terminal_style(const struct terminal *terminal, const FILE *file, enum style style);

/* One line on standard error. A note has no prefix and is silenced by --quiet. */
void terminal_note(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);
/* "perfolio push: …" */
void terminal_warn(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);
void terminal_fail(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);

/* Draws or redraws the bar, at most ten times per second and when done reaches total. what is the
 * text before the bar; it may contain any bytes. done and total are bytes; total 0: unknown. When
 * all bytes are done, the bar states that it waits (for the response). Does nothing unless standard
 * error is a terminal, and with is_quiet or is_silent. */
void terminal_progress(struct terminal *terminal, const char *what, uint64_t done, uint64_t total);
/* As terminal_progress for counted items, such as "12 of 57 files", where noun is "files". */
void terminal_progress_count(struct terminal *terminal, const char *what, const char *noun,
                             uint64_t done, uint64_t total);
/* Clears the bar. The functions that print messages clear it, too. */
void terminal_progress_end(struct terminal *terminal);

/* Appends text; characters that are not plain (lib/base/plain_text.h) become "?". */
void terminal_append_clean(struct buf *text, struct span from);
/* Prints text as terminal_append_clean appends it, at most the first 64 KiB. */
void terminal_print_clean(FILE *file, struct span text);
/* Prints text of several lines: cleaned except for tabs and line ends if file is a terminal, else
 * unchanged. */
void terminal_print_text(FILE *file, struct span text);
/* The number of columns of clean text (combining marks count 0, wide characters 2). */
int terminal_width(struct span text);
/* Writes text, cleaned, padded with blanks to columns, or truncated with "…" if it is wider. */
void terminal_print_cell(FILE *file, struct span text, int columns);

/* Reads a password or token from /dev/tty, without echo, and replaces the content of typed with it.
 * Ctrl-C ends the process after the echo is restored. Errors: ERR_IO (no terminal), ERR_INVALID
 * (longer than the maximum of typed). */
enum err_code terminal_prompt_secret(const char *prompt, struct buf *typed,
                                     struct err *err) MUST_USE;

#endif
