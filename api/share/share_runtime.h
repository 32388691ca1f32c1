/*
 * share_runtime: what api/share keeps in memory between requests: a part of struct server
 * (api/core/server.h). One per server, created before it starts.
 *
 * Threads: any; each part has its own lock.
 */
#ifndef API_SHARE_SHARE_RUNTIME_H
#define API_SHARE_SHARE_RUNTIME_H

#include "api/report/report_body.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flight_cache;
struct profile_cache;
struct server;
struct view_counter;

/* Complete responses (flame graphs and the like), compressed. */
enum { SHARE_RUNTIME_RESPONSE_BYTES = 64 << 20 };

struct share_runtime {
    struct profile_cache *profiles; /* api/share/profile_cache.h: decoded profiles, single flight */
    struct view_counter *views;
    struct flight_cache *responses; /* of struct cached_response, by share id and parameters */

    int64_t next_sweep_ns; /* monotonic; used by the jobs thread */
};

struct share_runtime *share_runtime_create(size_t profile_cache_bytes);
/* NULL is a no-op. Views not yet written are lost: call share_jobs_write_views before. */
void share_runtime_destroy(struct share_runtime *memory);

/* Drops the cached profile and responses of a share that is deleted. */
void share_runtime_forget(struct server *server, const char *share_id);

/* One finished report of shares. */
struct cached_response {
    struct report_body body;
    bool is_incomplete; /* names were left out because the disk has no space for a symbol table */
};

#endif
