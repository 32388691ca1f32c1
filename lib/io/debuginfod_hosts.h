/*
 * debuginfod_hosts: limits the requests to each host, and suspends a host that fails repeatedly
 * (debuginfod_retry.h). Both are counted for each owner of a list of servers, because a team that
 * lists a path of a public host at which every request fails would otherwise suspend this host for
 * all teams. Threads: any.
 */
#ifndef LIB_IO_DEBUGINFOD_HOSTS_H
#define LIB_IO_DEBUGINFOD_HOSTS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct debuginfod_hosts;
struct debuginfod_host;

struct debuginfod_hosts *debuginfod_hosts_create(void);
void debuginfod_hosts_destroy(struct debuginfod_hosts *hosts); /* NULL is a no-op */

/*
 * Waits until a request to name ("host:port") may be sent for owner. Release *ret_host with
 * debuginfod_hosts_leave. Errors: ERR_BUSY (the host is suspended), ERR_CANCELLED (may_go_on
 * returned false; with may_go_on NULL the wait is not cancelled).
 */
enum err_code debuginfod_hosts_enter(struct debuginfod_hosts *hosts, int64_t owner,
                                     const char *name, bool (*may_go_on)(void *context),
                                     void *context, struct debuginfod_host **ret_host,
                                     struct err *err) MUST_USE;

enum debuginfod_visit { DEBUGINFOD_VISIT_WELL, DEBUGINFOD_VISIT_FAILED, DEBUGINFOD_VISIT_GIVEN_UP };

/* Ends a request that debuginfod_hosts_enter allowed, and records its result. GIVEN_UP: the request
 * was cancelled or failed for a reason other than the host, which counts neither way. */
void debuginfod_hosts_leave(struct debuginfod_hosts *hosts, struct debuginfod_host *host,
                            enum debuginfod_visit visit);

#endif
