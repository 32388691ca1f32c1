/*
 * completion: the completion scripts of perfolio-agent, made from the table of its options.
 *
 * deploy/completion contains the output, and a test compares the two. Threads: any.
 */
#ifndef AGENT_COMPLETION_H
#define AGENT_COMPLETION_H

#include <stdbool.h>

/* Prints the script for bash, zsh or fish on standard output; false: there is none for that shell.
 */
bool completion_print(const char *shell);

#endif
