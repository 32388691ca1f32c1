/*
 * source: an argument of top, diff and merge: a file, standard input, a URL, a link or the id of a
 * share.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "cli/input.h"
#include "cli/link.h"

struct cli;

/* Whether text is a Perfolio link or id. A file of that name takes precedence. */
bool source_is_link(const char *text, struct cli *cli, struct link *ret_link);

/*
 * As input_open; if text is a link or an id, downloads the original bytes of the share. password is
 * the share's, or NULL. The caller closes *ret_input. Handles: the codes of input_open and
 * client_send.
 */
enum err_code source_open(struct cli *cli, const char *text, int seconds, const char *password,
                          struct input *ret_input, struct err *err) MUST_USE;

#endif
