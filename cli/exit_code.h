/*
 * exit_code: how `perfolio` ends, for scripts. The table is in perfolio(1) too.
 */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include "lib/base/err.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_ERROR = 1,     /* anything else: files, the disk, a state that does not allow it */
    EXIT_USAGE = 2,     /* arguments, environment or settings file */
    EXIT_NETWORK = 3,   /* the server is unreachable, breaks off, is too slow or stays busy */
    EXIT_REFUSED = 4,   /* not signed in, wrong token or password, not allowed */
    EXIT_NOT_FOUND = 5, /* no such share, link, file; or expired or deleted */
    EXIT_LIMIT = 6,     /* too large, a quota is used up, too often */
    EXIT_INVALID = 7,   /* not a profile, or a value that is not understood */
};

enum exit_code exit_code_of(enum err_code code);

#endif
