/*
 * source: what top, diff and merge are given: a file, standard input, a URL, a link or the id of a
 * share.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "cli/input.h"
#include "cli/link.h"

struct cli;

/* Is text a Perfolio link or id? A file of that name comes first. */
bool source_is_link(const char *text, struct cli *cli, struct link *ret_link);

/*
 * As input_open; a link's original bytes are downloaded, with password where it is not NULL. The
 * caller closes *ret_input. Handles what input_open and client_send do.
 */
enum err_code source_open(struct cli *cli, const char *text, int seconds, const char *password,
                          struct input *ret_input, struct err *err) MUST_USE;

#endif
