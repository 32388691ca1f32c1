/*
 * request_limits: the limits that requests of all kinds share: a part of struct server
 * (api/core/server.h). Threads: any; each limit has its own lock.
 */
#ifndef API_HTTP_REQUEST_LIMITS_H
#define API_HTTP_REQUEST_LIMITS_H

struct concurrency_limit;
struct rate_limiter;
struct settings;

struct request_limits {
    struct rate_limiter *rate_limiter;   /* api/http/rate_limiter.h */
    struct concurrency_limit *reports;   /* api/http/concurrency_limit.h: slow work of readers */
    struct concurrency_limit *agents;    /* requests of agents (ROUTE_AGENT) */
    struct concurrency_limit *downloads; /* stored objects (ROUTE_DOWNLOAD) */
    struct concurrency_limit *workers;   /* the workers that each client occupies */
};

/* download_threads: the threads that handle downloads. */
struct request_limits *request_limits_create(const struct settings *settings, int download_threads);
void request_limits_destroy(struct request_limits *limits); /* NULL is a no-op */

#endif
