/*
 * server: the parts of a running perfoliod, built by main and passed down; no globals.
 */
#ifndef API_SERVER_H
#define API_SERVER_H

struct auth;
struct http_server;
struct limiter;
struct metrics;
struct object_store;
struct pg_pool;
struct profile_cache;
struct settings;
struct share_memory;

struct server {
    const struct settings *settings; /* api/settings.h */
    struct pg_pool *database;        /* role perfolio_server: row-level security applies */
    struct pg_pool *jobs_database;   /* role perfolio_jobs: background work, operator routes */
    struct object_store *objects;
    struct auth *auth;              /* api/auth.h: tokens seen lately */
    struct limiter *limiter;        /* api/limiter.h: rates per address, token, tenant */
    struct profile_cache *profiles; /* api/profile_cache.h: decoded profiles, single flight */
    struct share_memory *shares;    /* api/share.h: counted views, cookie key, finished answers */
    struct metrics *metrics;        /* api/metrics.h */
    struct http_server *http;       /* api/http.h */
};

#endif
