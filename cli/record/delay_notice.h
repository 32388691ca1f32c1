/*
 * slow: says on a terminal what is being done when that takes longer than a second.
 *
 *     struct slow *slow = slow_begin(&terminal, "preparing");
 *     …
 *     if (slow_end(slow)) …
 *
 * Threads: one, that of the terminal; a thread of its own speaks in between.
 */
#ifndef CLI_RECORD_DELAY_NOTICE_H
#define CLI_RECORD_DELAY_NOTICE_H

#include <stdbool.h>

struct slow;
struct terminal;

/* what is one line; borrowed, as terminal. Says nothing where standard error is no terminal, or is
 * to be quiet. May be NULL, which slow_end takes. */
struct slow *slow_begin(const struct terminal *terminal, const char *what);
/* Was it said? */
bool slow_end(struct slow *slow);

#endif
