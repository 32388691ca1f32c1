/*
 * advice: rewords error messages of the server for the command line.
 *
 * The server's messages are for every client of its HTTP API and name header fields and parameters.
 * Here they name the option, variable or command that sets them. Threads: any.
 */
#ifndef CLI_ADVICE_H
#define CLI_ADVICE_H

#include "lib/base/err_code.h"

/* Replaces the parts of err->message that refer to HTTP; other messages stay unchanged. */
void advice_translate(struct err *err);

#endif
