#include "cli/exit_code.h"

static const enum exit_code exit_codes[ERR_CODE_COUNT] = {
    [ERR_NONE] = EXIT_OK,
    [ERR_INVALID] = EXIT_INVALID,
    [ERR_UNSUPPORTED] = EXIT_INVALID,
    [ERR_TOO_LARGE] = EXIT_LIMIT,
    [ERR_NOT_FOUND] = EXIT_NOT_FOUND,
    [ERR_GONE] = EXIT_NOT_FOUND,
    [ERR_CONFLICT] = EXIT_ERROR,
    [ERR_STALE] = EXIT_ERROR,
    [ERR_UNAUTHENTICATED] = EXIT_REFUSED,
    [ERR_FORBIDDEN] = EXIT_REFUSED,
    [ERR_RATE_LIMITED] = EXIT_LIMIT,
    [ERR_QUOTA] = EXIT_LIMIT,
    [ERR_LIMIT] = EXIT_LIMIT,
    [ERR_BUSY] = EXIT_NETWORK,
    [ERR_TIMEOUT] = EXIT_NETWORK,
    [ERR_CANCELLED] = EXIT_ERROR,
    [ERR_CORRUPT] = EXIT_ERROR,
    [ERR_LOST] = EXIT_ERROR,
    [ERR_IO] = EXIT_ERROR,
    [ERR_DATABASE] = EXIT_NETWORK,
    [ERR_NETWORK] = EXIT_NETWORK,
    [ERR_INTERNAL] = EXIT_ERROR,
};

enum exit_code exit_code_of(enum err_code code)
{
    return (unsigned)code < ERR_CODE_COUNT ? exit_codes[code] : EXIT_ERROR;
}
