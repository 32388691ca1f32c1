/*
 * interrupt: cleans up when SIGINT, SIGTERM or SIGHUP ends the process: removes an incomplete file,
 * clears the progress bar and prints how to resume an upload.
 *
 * It also handles SIGBUS, which the kernel sends when a file mapped by input_map is truncated: the
 * process then ends with EXIT_ERROR and a message.
 *
 * The handler cleans up and ends the process with the same signal, so that a shell sees the cause.
 * A signal that was ignored at the start, as under nohup, stays ignored. Each setter replaces the
 * previous value; NULL or false clears it. Texts are borrowed until then. Threads: one.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);

/* path is removed when interrupted. */
void interrupt_set_file(const char *path);
/* Written to standard error unchanged; it contains no control characters but its line break. */
void interrupt_set_text(const char *text);
/* Set while the progress bar is visible. */
void interrupt_set_bar(bool is_shown);

/* Declares that the whole screen is in use. *before (copied) is the previous terminal mode; it is
 * restored also when SIGQUIT or a crash ends the process. */
struct termios;
void interrupt_set_screen(int terminal_fd, const struct termios *before);
void interrupt_give_screen_back(void);
/* Handles signal number as if it had arrived now; for other signal handlers. */
void interrupt_end(int number);

#endif
