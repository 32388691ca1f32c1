/*
 * open: opens a link in the user's browser.
 */
#ifndef CLI_COMMANDS_OPEN_H
#define CLI_COMMANDS_OPEN_H

#include "lib/base/err_code.h"

/* Starts xdg-open (or $BROWSER if that is not installed) and does not wait for the browser.
 * Errors: ERR_NOT_FOUND (neither exists), ERR_IO. */
enum err_code open_url(const char *url, struct err *err) MUST_USE;

#endif
