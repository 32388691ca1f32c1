/*
 * server: the parts of a running perfoliod, built once and passed down; no globals.
 */
#ifndef API_SERVER_H
#define API_SERVER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct ingest_limits_memory;
struct auth;
struct debuginfo_fetch;
struct debuginfo_jobs;
struct debuginfod_client;
struct disk;
struct gauges;
struct integrity;
struct http_server;
struct rate_limiter;
struct metrics;
struct symbol_resolver;
struct object_store;
struct pg_pool;
struct pg_watch;
struct profile_cache;
struct sources;
struct scrub;
struct settings;
struct share_runtime;
struct store;
struct store_damage_log;
struct symbol_tables;
struct tenant_limits_memory;
struct query_memory;
struct concurrency_limit;
struct worker_pool;

struct server {
    const struct settings *settings; /* api/settings.h */
    struct disk *disk;               /* api/ops/disk.h: is there room to store anything? */
    struct pg_watch *database_watch; /* lib/io/pg.h: does the database respond? */
    struct pg_pool *database;        /* role perfolio_server: row-level security applies */
    struct pg_pool *jobs_database;   /* role perfolio_jobs: background work, operator routes */
    struct object_store *objects;
    struct integrity *integrity;           /* api/ops/integrity.h: damaged and lost objects */
    struct store *store;                   /* store/store.h: continuous profiles */
    struct store_damage_log *store_damage; /* api/ops/store_damage.h: blocks that cannot be read */
    struct worker_pool
        *writers;      /* api/ops/object_writer_thread.h: threads that wait for the disk */
    struct auth *auth; /* api/identity/auth.h: tokens seen lately */
    struct ingest_limits_memory
        *ingest_limits; /* api/ingest/ingest_limits.h: what tenants have sent lately */
    struct rate_limiter
        *rate_limiter; /* api/http/rate_limiter.h: rates per address, token, tenant */
    struct tenant_limits_memory *tenant_limits; /* api/identity/tenant_limits.h */
    struct report_cache *report_cache;          /* api/query/report_cache.h: finished reports */
    struct profile_cache *profiles; /* api/share/profile_cache.h: decoded profiles, single flight */
    struct symbol_resolver *symbol_resolver; /* api/report/symbol_resolver.h: names of addresses */
    struct share_runtime
        *shares; /* api/share/share.h: counted views, cookie key, finished answers */
    struct symbol_tables *symbol_tables;     /* api/debuginfo/symbol_tables.h: names of addresses */
    struct debuginfo_jobs *debuginfo_jobs;   /* api/debuginfo/job_queue.h: builds them */
    struct debuginfo_fetch *debuginfo_fetch; /* api/debuginfo/fetch_job.h; NULL: nobody is asked */
    struct scrub *scrub;                     /* api/ops/scrub.h; NULL: it is turned off */
    struct sources *sources;           /* api/ingest/sources.h: who has sent profiles lately */
    struct query_memory *query_memory; /* api/query/query_memory.h: of all questions together */
    struct object_readiness *object_readiness; /* api/ops/object_readiness.h: for /readyz */
    struct concurrency_limit
        *concurrency; /* api/http/concurrency_limit.h: who may keep workers busy with reports */
    struct debuginfod_client *debuginfod; /* api/debuginfo/upstreams.h; NULL: nobody is asked */
    struct metrics *metrics;              /* api/ops/metrics.h */
    struct gauges *gauges;                /* api/ops/gauges.h: what the parts hold, for metrics */
    struct http_server *http;             /* api/http/http_server.h */
};

enum { SERVER_MAX_LISTENERS = 16 };

enum {
    /* How long a request waits for a database that restarts, before it is answered 503. */
    SERVER_DATABASE_WAIT_MS = 1500,
    /* Deadlines of statements while the database responds: of requests, and of background work and
     * operator routes, which delete and count much at once. */
    SERVER_STATEMENT_MS = 15000,
    SERVER_JOBS_STATEMENT_MS = 60000,
};

/* pg_try_advisory_lock on it: whoever holds it may delete objects, or keeps others from it. */
#define SERVER_SWEEP_LOCK INT64_C(0x50465357) /* "PFSW" */

/* What the supervisor hands to the process that serves. */
struct server_start {
    const char *conninfo;      /* of perfolio_server, or of an external database */
    const char *jobs_conninfo; /* of perfolio_jobs, or of the same external database */
    bool set_roles;            /* SET ROLE to those two after connecting (external database) */
    int listeners[SERVER_MAX_LISTENERS]; /* bound and listening */
    int listener_count;
    int ready_fd; /* gets one byte when requests are answered; -1: nobody waits */
};

/*
 * Builds all parts, serves until SIGTERM or SIGINT, then lets requests in flight finish. SIGHUP
 * reads the certificate again and reopens the access log. settings name the certificate, the key
 * and the data folder as this process sees them. Called once, by main.
 */
enum err_code server_run(const struct settings *settings, const struct server_start *start,
                         struct err *err) MUST_USE;

#endif
