/*
 * gauges: what the server's parts hold at the moment, for /metrics: caches, budget of heavy memory,
 * database connections, shares and bytes stored, and when background work was last done.
 *
 * Threads: gauges_create and gauges_refresh belong to the threads that start the server and do its
 * background work; reading is any thread's.
 */
#ifndef API_SERVER_GAUGES_H
#define API_SERVER_GAUGES_H

#include "lib/base/err.h"

struct gauges;
struct server;

/* Registers all gauges with server->metrics; to be called when the server's parts are there. */
struct gauges *gauges_create(struct server *server);
/* NULL is a no-op. After the last answer of /metrics. */
void gauges_destroy(struct gauges *gauges);

/* After each round of background work: notes the time, and once a minute counts what is stored.
 * Handles: ERR_DATABASE, ERR_BUSY. */
enum err_code gauges_refresh(struct gauges *gauges, struct err *err) MUST_USE;

#endif
