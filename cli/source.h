/*
 * source: an argument of top, diff and merge: a file, standard input, a URL, a link or the id of a
 * share.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "cli/input.h"
#include "cli/link.h"

struct cli;

/* Whether text is a Perfolio link or id. False if a file of that name exists, unless text is a URL.
 */
bool source_is_link(const char *text, struct cli *cli, struct link *ret_link);

/*
 * Opens an argument. If text is a link or an id, downloads the original bytes of the share, whose
 * password is password or NULL; otherwise calls input_open with text and seconds. The caller closes
 * *ret_input. Errors: those of input_open and
 * client_send.
 */
enum err_code source_open(struct cli *cli, const char *text, int seconds, const char *password,
                          struct input *ret_input, struct err *err) MUST_USE;

#endif
