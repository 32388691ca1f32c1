/*
 * listener: binds the sockets on which the server listens. Called by the supervisor, before it
 * starts the server as an unprivileged user.
 */
#ifndef API_HTTP_LISTENER_H
#define API_HTTP_LISTENER_H

#include "lib/base/err_code.h"

enum { LISTENER_HOST_BYTES = 256 };

/* Splits "host:port" or "[::1]:port". Errors: ERR_INVALID. */
enum err_code listener_split(const char *address, char ret_host[LISTENER_HOST_BYTES], int *ret_port,
                             struct err *err) MUST_USE;

/*
 * Binds the port of address ("host:port") on every address of its host ("localhost" is 127.0.0.1
 * and ::1, whatever /etc/hosts contains) and appends the sockets to fds, which has *fd_count
 * entries and space for max_fds (close-on-exec, non-blocking). With port 0 the kernel chooses one;
 * *ret_port is the chosen port. Errors: ERR_CONFLICT (in use, by another program or by one of fds:
 * the message states which), ERR_INVALID (no such host or address here), ERR_FORBIDDEN (a port
 * below 1024 without the privilege).
 */
enum err_code listener_open(const char *address, int *fds, int max_fds, int *fd_count,
                            int *ret_port, struct err *err) MUST_USE;

#endif
