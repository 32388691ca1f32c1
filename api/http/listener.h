/*
 * listener: sockets that are bound and listening, made before rights are dropped.
 */
#ifndef API_HTTP_LISTENER_H
#define API_HTTP_LISTENER_H

#include "lib/base/err.h"

enum { LISTENER_HOST_BYTES = 256 };

/* Splits "host:port" or "[::1]:port". Handles: ERR_INVALID. */
enum err_code listener_split(const char *address, char ret_host[LISTENER_HOST_BYTES], int *ret_port,
                             struct err *err) MUST_USE;

/*
 * Binds every address that host has ("localhost" is 127.0.0.1 and ::1, whatever /etc/hosts says)
 * and appends the sockets to fds (close-on-exec, not blocking). Port 0 lets the kernel choose one;
 * *ret_port tells it. Handles: ERR_CONFLICT (in use, by another program or by one of fds: the
 * message says which), ERR_INVALID (no such host or address here), ERR_FORBIDDEN (a port below 1024
 * without the right).
 */
enum err_code listener_open(const char *address, int *fds, int max_fds, int *fd_count,
                            int *ret_port, struct err *err) MUST_USE;

#endif
