/*
 * interrupt: cleans up when SIGINT, SIGTERM or SIGHUP ends the process: removes an incomplete file,
 * clears the progress bar and prints how to resume an upload.
 *
 * It also handles SIGBUS, which the kernel sends when a file mapped by input_map is truncated: the
 * process then ends with EXIT_ERROR and a message.
 *
 * The handler cleans up and ends the process with the same signal, so that a shell sees the cause.
 * A signal that was ignored at the start, as under nohup, stays ignored. Each function
 * interrupt_set_… replaces the value that it set before; NULL or false clears it. A path or text is
 * borrowed until it is replaced. Threads: one.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/* Installs the handlers. main calls it once, before it runs the command. */
void interrupt_install(void);

/* Names a file that is removed when the process is interrupted. */
void interrupt_set_file(const char *path);
/* Sets the text that is written to standard error, unchanged, when the process is interrupted. It
 * must contain no control characters except line breaks. */
void interrupt_set_text(const char *text);
/* Sets whether the progress bar is visible and must be cleared. */
void interrupt_set_bar(bool is_shown);

/* Declares that the whole screen is in use. *before (copied) is the previous terminal mode; it is
 * restored also when SIGQUIT or a crash ends the process. */
struct termios;
void interrupt_set_screen(int terminal_fd, const struct termios *before);
/* Leaves the full screen and restores the mode of the terminal from before interrupt_set_screen.
 * Safe to repeat. */
void interrupt_give_screen_back(void);
/* Cleans up, and ends the process by signal number, even if another handler is installed for it.
 * For calls from that handler: the process ends when the handler returns. */
void interrupt_end(int number);

#endif
