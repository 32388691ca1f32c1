/*
 * gauges: gauges of the server's parts, for /metrics: caches, memory budgets, database connections,
 * shares and bytes stored, and the time of the last background work.
 *
 * Threads: gauges_create and gauges_refresh belong to the threads that start the server and do its
 * background work; reading is any thread's.
 */
#ifndef API_SERVER_GAUGES_H
#define API_SERVER_GAUGES_H

#include "lib/base/err_code.h"

struct gauges;
struct server;

/* Registers all gauges with server->metrics; call it when the server's parts exist. */
struct gauges *gauges_create(struct server *server);
/* NULL is a no-op. Call it after the last response of /metrics. */
void gauges_destroy(struct gauges *gauges);

/* Called after each round of background work: records the time, and once a minute counts the stored
 * data. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code gauges_refresh(struct gauges *gauges, struct err *err) MUST_USE;

#endif
