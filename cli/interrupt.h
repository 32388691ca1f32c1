/*
 * interrupt: what must not stay behind when somebody stops us with SIGINT, SIGTERM or SIGHUP: a
 * half-written file, the bar on the terminal, an upload that nobody knows can go on.
 *
 * Likewise when a file that is read as memory (input_map) becomes shorter meanwhile, which the
 * kernel tells by SIGBUS: that ends us with EXIT_ERROR and says why.
 *
 * The handler removes the file, wipes the bar, says the text and ends the process by that same
 * signal, so that a shell sees what happened. A signal that was ignored when we started, as under
 * nohup, stays ignored. Each setting replaces the one before; NULL or false takes it back. Texts
 * are borrowed until then. Threads: one.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);

/* Removed when interrupted. */
void interrupt_set_file(const char *path);
/* Written to standard error as it is: clean, with its line break. */
void interrupt_set_text(const char *text);
/* Is there a bar to be wiped? */
void interrupt_set_bar(bool is_shown);

/* The whole screen of the terminal is in use, which was set as *before until then (copied): it is
 * given back, also when a signal that is a fault of ours or SIGQUIT ends us. */
struct termios;
void interrupt_set_screen(int terminal_fd, const struct termios *before);
void interrupt_give_screen_back(void);
/* As if the signal came now: for a handler of somebody else's. */
void interrupt_end(int number);

#endif
