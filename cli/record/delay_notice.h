/*
 * slow: says on a terminal what is being done when that takes longer than a second.
 *
 *     struct delay_notice *slow = delay_notice_begin(&terminal, "preparing");
 *     …
 *     if (delay_notice_end(slow)) …
 *
 * Threads: one, that of the terminal; a thread of its own speaks in between.
 */
#ifndef CLI_RECORD_DELAY_NOTICE_H
#define CLI_RECORD_DELAY_NOTICE_H

#include <stdbool.h>

struct delay_notice;
struct terminal;

/* what is one line; borrowed, as terminal. Says nothing where standard error is no terminal, or is
 * to be quiet. May be NULL, which delay_notice_end takes. */
struct delay_notice *delay_notice_begin(const struct terminal *terminal, const char *what);
/* Was it said? */
bool delay_notice_end(struct delay_notice *slow);

#endif
