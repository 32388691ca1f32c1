/*
 * markdown: what --markdown prints: a line with link and picture, and below it a summary that can
 * be read where the picture cannot be loaded, as that of a server inside a company in a public
 * tracker.
 *
 * Names come from profiles: they stand in code spans, or escaped, so that they add neither markup
 * nor mentions to the text that they are pasted into. Threads: one.
 */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <jansson.h>
#include <stdbool.h>

struct cli;
struct client;
struct report;

/* Rows of a table. */
enum { MARKDOWN_ROWS = 5, MARKDOWN_MAX_BYTES = 64 << 10 };

/* Of one line, without markup: for the text of a link. */
void markdown_append_text(struct buf *output, struct span text);

/* Prints the share's Markdown as the server has made it, with total and top function in the text of
 * the link and the top functions as a table below; without both where the server does not tell
 * them. password is the share's or NULL. Does not flush. */
void markdown_print_share(struct cli *cli, struct client *client, const json_t *share,
                          const char *password);

/* Likewise of a comparison: link and table of the largest changes. has_picture: anyone who has the
 * link may see both sides. url may end in a view ("?…"). */
void markdown_print_diff(const struct report *report, const char *url, bool has_picture);

#endif
