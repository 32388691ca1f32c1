/*
 * debuginfod_transfer: one try to get one file of one server: redirects, limits, what came of it.
 * Part of debuginfod_client. Threads: a transfer belongs to one.
 */
#ifndef LIB_IO_DEBUGINFOD_TRANSFER_H
#define LIB_IO_DEBUGINFOD_TRANSFER_H

#include "lib/io/debuginfod_client.h"

struct arena;
struct http_client;
struct http_url;

struct debuginfod_transfer {
    const struct debuginfod_client_settings *settings; /* with no 0 in it */
    const struct debuginfod_request *request;
    const char *url;     /* of the file */
    const char *auth;    /* NULL: none */
    int64_t deadline_ns; /* of all tries at this server */
    int fd;              /* empty; gets the file */
};

struct debuginfod_try {
    enum debuginfod_outcome outcome;
    bool is_failure; /* of the server, which its breaker shall hear of */
    bool may_help;   /* to try again */
    int retry_after_s;
    uint64_t bytes;
    char *reason; /* in the arena */
};

/* Is the operator's word for the URL's host that it may be asked wherever it is, and by http? */
bool debuginfod_is_allowed(const struct debuginfod_client_settings *settings,
                           const struct http_url *url);
/* Scheme and literal address. Handles: ERR_FORBIDDEN. */
enum err_code debuginfod_check_url(const struct debuginfod_client_settings *settings,
                                   const struct http_url *url, struct err *err) MUST_USE;

/* Handles: ERR_CANCELLED, ERR_IO. */
enum err_code debuginfod_transfer_try(const struct debuginfod_transfer *transfer,
                                      struct arena *arena, struct debuginfod_try *ret_try,
                                      struct err *err) MUST_USE;

#endif
