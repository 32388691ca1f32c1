/*
 * markdown: prints the output of --markdown: a line with link and picture, and below it a summary
 * for readers who cannot load the picture, for example from a company's server in a public tracker.
 *
 * Names come from profiles. They are in code spans or escaped, so that they cannot add markup or
 * mentions to the text into which they are pasted. Threads: one.
 */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <jansson.h>
#include <stdbool.h>

struct cli;
struct client;
struct report;

/* Rows of a table. */
enum { MARKDOWN_ROWS = 5, MARKDOWN_MAX_BYTES = 64 << 10 };

/* Appends text as one line without markup, for the text of a link. */
void markdown_append_text(struct buf *output, struct span text);

/* Prints the share's Markdown from the server, with total and top function in the text of the link
 * and the top functions as a table below it. Omits both if the server does not return them.
 * password is the share's or NULL. Does not flush. */
void markdown_print_share(struct cli *cli, struct client *client, const json_t *share,
                          const char *password);

/* Prints a comparison: link and table of the largest changes. has_picture: the preview picture
 * needs no token or password. url may end in a view ("?…"). */
void markdown_print_diff(const struct report *report, const char *url, bool has_picture);

#endif
