/*
 * server_config: the address of a server with its token and certificates, and which are valid.
 * Threads: any.
 */
#ifndef AGENT_UPLOAD_SERVER_CONFIG_H
#define AGENT_UPLOAD_SERVER_CONFIG_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

enum { SERVER_CONFIG_FIELD_BYTES = 4096 + 16 };

/* A server, and how to authenticate. */
struct server_config {
    const char *server;     /* https://host:port; http:// only to this machine */
    const char *token_file; /* NULL: none is sent */
    const char *ca_file;    /* NULL: the system's */
    const char *proxy;      /* NULL: the environment's */
};

/* Checks an address to which paths are appended: https, or http to this machine only, because a
 * token must not be sent unencrypted. Errors: ERR_INVALID (also: no host, a query, a user name or
 * a password). */
enum err_code server_config_check(const char *server, struct err *err) MUST_USE;
/* The same for a complete address, which may have a query. */
enum err_code server_config_check_url(const char *url, struct err *err) MUST_USE;

/* Appends the value of the Authorization field, with a NUL; nothing without a token file. The file
 * is read on each call, so it may be replaced. Errors: ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_IO,
 * ERR_INVALID (it is empty or not a token: lib/input/secret.h), ERR_TOO_LARGE. */
enum err_code server_config_token(const struct server_config *access, struct buf *field,
                                  struct err *err) MUST_USE;

#endif
