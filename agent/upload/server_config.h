/*
 * server_access: what everything that talks to the server shares: which addresses it may have, and
 * the token. Threads: any.
 */
#ifndef AGENT_UPLOAD_SERVER_CONFIG_H
#define AGENT_UPLOAD_SERVER_CONFIG_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SERVER_CONFIG_FIELD_BYTES = 4096 + 16 };

/* Where the server is, and by what right it is asked. */
struct server_config {
    const char *server;     /* https://host:port; http:// only to this machine */
    const char *token_file; /* NULL: none is sent */
    const char *ca_file;    /* NULL: the system's */
    const char *proxy;      /* NULL: the environment's */
};

/* A token must not travel in the clear. Paths are put behind this address. Handles:
 * ERR_INVALID (also: no host, a query, or a user's name or password in it). */
enum err_code server_config_check(const char *server, struct err *err) MUST_USE;
/* Likewise, of an address that is asked as it is and may have a query. */
enum err_code server_config_check_url(const char *url, struct err *err) MUST_USE;

/* Appends the value of the Authorization field, with a NUL; nothing without a token file. The file
 * is read each time, so that it may be replaced. Handles: ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_IO,
 * ERR_INVALID (it is empty, or is no token: lib/base/secret.h), ERR_TOO_LARGE. */
enum err_code server_config_token(const struct server_config *access, struct buf *field,
                                  struct err *err) MUST_USE;

#endif
