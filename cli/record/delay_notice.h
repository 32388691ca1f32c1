/*
 * delay_notice: prints a line on the terminal if a step takes longer than one second.
 *
 *     struct delay_notice *notice = delay_notice_begin(&terminal, "preparing");
 *     …
 *     if (delay_notice_end(notice)) …
 *
 * Threads: functions belong to the thread of the terminal; an internal thread prints the line.
 */
#ifndef CLI_RECORD_DELAY_NOTICE_H
#define CLI_RECORD_DELAY_NOTICE_H

#include <stdbool.h>

struct delay_notice;
struct terminal;

/* what is one line; what and terminal are borrowed. Returns NULL, which delay_notice_end accepts,
 * if standard error is not a terminal, with --quiet, or if no thread can start. */
struct delay_notice *delay_notice_begin(const struct terminal *terminal, const char *what);
/* Returns true if the line was printed. */
bool delay_notice_end(struct delay_notice *notice);

#endif
