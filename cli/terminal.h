/*
 * terminal: what the user sees: messages on standard error, colours, a progress bar, widths.
 *
 * Standard output belongs to results (URLs, tables, JSON); everything said here goes to standard
 * error. Colours and the bar appear only on a terminal; NO_COLOR (https://no-color.org) and
 * TERM=dumb turn colours off. Text from outside is cleaned of control characters, so that a
 * title or an error from a server cannot steer the terminal. Threads: one.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

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
    const char *program; /* "perfolio push": before every message */
    bool is_output_terminal;
    bool is_error_terminal;
    bool may_colour;
    bool is_quiet;  /* notes are left out; warnings and errors are not */
    bool is_silent; /* nothing is said: the screen is somebody else's */
    int columns;    /* of standard output; a large number when it is no terminal */
    int error_columns;
    bool has_bar; /* the bar is on the screen */
    int64_t bar_ns;
    uint64_t bar_done; /* what it shows */
};

void terminal_init(struct terminal *terminal, const char *program);
/* The escape sequence for a stream that is stdout or stderr, "" where there are no colours. */
const char *terminal_style(const struct terminal *terminal, const FILE *file, enum style style);

/* One line on standard error. A note has no prefix and is silenced by --quiet. */
void terminal_note(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);
/* "perfolio push: …" */
void terminal_warn(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);
void terminal_fail(struct terminal *terminal, const char *format, ...) PRINTF_LIKE(2, 3);

/* what may be any text. Draws or redraws the bar, at most ten times a second; total 0 is unknown.
 * When all is done it says that the answer is awaited. Nothing happens unless standard error is a
 * terminal. */
void terminal_progress(struct terminal *terminal, const char *what, uint64_t done, uint64_t total);
/* Likewise of things that are counted: "12 of 57 files". */
void terminal_progress_count(struct terminal *terminal, const char *what, const char *things,
                             uint64_t done, uint64_t total);
/* Wipes the bar. Messages do it themselves. */
void terminal_progress_end(struct terminal *terminal);

/* Text with characters that are not plain (lib/base/plain_text.h) shown as "?", appended. */
void terminal_append_clean(struct buf *text, struct span from);
/* Likewise, printed; of more than 64 KiB the start. */
void terminal_print_clean(FILE *file, struct span text);
/* Text of several lines: cleaned where file is a terminal, but for tabs and the ends of lines, else
 * as it is. */
void terminal_print_text(FILE *file, struct span text);
/* Columns that text takes when it is clean (combining marks count 0, wide characters 2). */
int terminal_width(struct span text);
/* Writes text, cleaned, padded with blanks to columns, or cut with "…" when it is wider. */
void terminal_print_cell(FILE *file, struct span text, int columns);

/* Asks on the terminal without echo; for passwords and tokens. Handles: ERR_IO (no terminal). */
enum err_code terminal_ask_secret(const char *prompt, struct buf *answer, struct err *err) MUST_USE;

#endif
