/*
 * debuginfod_transfer: one attempt to download a file from one server: redirects, limits, outcome.
 * Part of debuginfod_client. Threads: a transfer belongs to one thread.
 */
#ifndef LIB_IO_DEBUGINFOD_TRANSFER_H
#define LIB_IO_DEBUGINFOD_TRANSFER_H

#include "lib/io/debuginfod_client.h"

struct arena;
struct http_client;
struct http_url;

struct debuginfod_transfer {
    const struct debuginfod_client_settings *settings; /* with all defaults filled in */
    const struct debuginfod_request *request;
    const char *url;     /* URL of the file */
    const char *auth;    /* NULL: none */
    int64_t deadline_ns; /* deadline of all attempts at this server */
    int fd;              /* an empty file, which receives the debug file */
};

struct debuginfod_try {
    enum debuginfod_outcome outcome;
    bool is_failure; /* a failure of the server, to be reported to its breaker */
    bool may_help;   /* another attempt at this server may succeed */
    int retry_after_s;
    uint64_t bytes;
    char *reason; /* in the arena */
};

/* Whether the operator allows the URL's host at any address and over http. */
bool debuginfod_is_allowed(const struct debuginfod_client_settings *settings,
                           const struct http_url *url);
/* Checks the scheme and a literal address. Errors: ERR_FORBIDDEN. */
enum err_code debuginfod_check_url(const struct debuginfod_client_settings *settings,
                                   const struct http_url *url, struct err *err) MUST_USE;

/* Makes one attempt. Errors: ERR_CANCELLED, ERR_IO. */
enum err_code debuginfod_transfer_try(const struct debuginfod_transfer *transfer,
                                      struct arena *arena, struct debuginfod_try *ret_try,
                                      struct err *err) MUST_USE;

#endif
