/*
 * exit_code: the exit statuses of `perfolio`, for scripts. perfolio(1) has the same table.
 */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include "lib/base/err_code.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_ERROR = 1,     /* all other errors: files, the disk, conflicts */
    EXIT_USAGE = 2,     /* arguments, environment or settings file */
    EXIT_NETWORK = 3,   /* the server is unreachable, too slow or busy, or the connection broke */
    EXIT_REFUSED = 4,   /* not signed in, wrong token or password, not allowed */
    EXIT_NOT_FOUND = 5, /* no such share, link or file; or it has expired or was deleted */
    EXIT_LIMIT = 6,     /* too large, too many requests, or a quota is used up */
    EXIT_INVALID = 7,   /* not a profile, or an invalid value */
};

enum exit_code exit_code_of(enum err_code code);

#endif
