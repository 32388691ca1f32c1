/*
 * open: opens a link in the user's browser.
 */
#ifndef CLI_COMMANDS_OPEN_H
#define CLI_COMMANDS_OPEN_H

#include "lib/base/err_code.h"

/* Runs xdg-open, or $BROWSER if xdg-open is not installed or finds no browser, and waits until that
 * program ends. Its other exit statuses are ignored. Errors: ERR_NOT_FOUND (neither opens a
 * browser), ERR_IO. */
enum err_code open_url(const char *url, struct err *err) MUST_USE;

#endif
