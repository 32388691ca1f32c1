/*
 * server: the parts of a running perfoliod, built once (api/server/server_run.h) and passed down;
 * there are no globals. The comment of each member names the header that declares it.
 */
#ifndef API_CORE_SERVER_H
#define API_CORE_SERVER_H

#include <stdint.h>

struct ingest_limits_memory;
struct auth;
struct debuginfo_fetch;
struct debuginfo_jobs;
struct debuginfod_client;
struct disk;
struct export_space;
struct gauges;
struct integrity;
struct http_server;
struct rate_limiter;
struct memory_gate;
struct metrics;
struct missing_symbols;
struct symbol_resolver;
struct object_readiness;
struct object_store;
struct pg_pool;
struct pg_watch;
struct profile_cache;
struct public_tables;
struct report_cache;
struct sources;
struct scrub;
struct server_key;
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
    const struct settings *settings; /* api/core/settings.h */
    struct disk *disk;               /* api/core/disk.h: whether data can be stored */
    struct pg_watch *database_watch; /* lib/io/pg.h: whether the database responds */
    struct pg_pool *database;        /* role perfolio_server: row-level security applies */
    struct pg_pool *jobs_database;   /* role perfolio_jobs: background work, operator routes */
    struct object_store *objects;
    struct integrity *integrity;     /* api/core/integrity.h: damaged and lost objects */
    struct server_key *key;          /* api/core/server_key.h: signs cookies and tokens */
    struct memory_gate *memory_gate; /* api/core/memory_gate.h: budget of heavy work */
    struct store *store;             /* store/store.h: continuous profiles */
    _Atomic(struct store *) copies;  /* the store, once its copies of objects can be evicted */
    struct store_damage_log *store_damage; /* api/core/store_damage.h: blocks that cannot be read */
    struct worker_pool *writers;           /* api/core/object_writer_thread.h */
    struct auth *auth;                     /* api/identity/auth.h: cache of tokens */
    struct ingest_limits_memory *ingest_limits; /* api/ingest/ingest_limits.h */
    struct rate_limiter *rate_limiter;          /* api/http/rate_limiter.h */
    struct password_cache *passwords; /* api/identity/password_cache.h: matched recently */
    struct tenant_limits_memory *tenant_limits; /* api/identity/tenant_limits.h */
    struct report_cache *report_cache;          /* api/query/report_cache.h: finished reports */
    struct profile_cache *profiles; /* api/share/profile_cache.h: decoded profiles, single flight */
    struct symbol_resolver *symbol_resolver; /* api/report/symbol_resolver.h: names of addresses */
    struct share_runtime *shares; /* api/share/share_runtime.h: counted views, finished responses */
    struct symbol_tables *symbol_tables;     /* api/debuginfo/symbol_tables.h: names of addresses */
    struct missing_symbols *missing_symbols; /* api/debuginfo/missing_symbols.h */
    struct public_tables *public_tables;   /* api/debuginfo/public_tables.h: when they were used */
    struct debuginfo_jobs *debuginfo_jobs; /* api/debuginfo/debuginfo_jobs.h: builds tables */
    struct debuginfo_fetch *debuginfo_fetch; /* api/debuginfo/debuginfo_fetch.h; NULL: disabled */
    struct scrub *scrub;                     /* api/ops/scrub.h; NULL: disabled */
    struct sources *sources;           /* api/ingest/sources.h: services and agents that send */
    struct query_memory *query_memory; /* api/core/query_memory.h: budget of all queries */
    struct export_space *exports;      /* api/query/export_space.h: disk space of exports */
    struct object_readiness *object_readiness;      /* api/ops/object_readiness.h: for /readyz */
    struct concurrency_limit *concurrency;          /* api/http/concurrency_limit.h */
    struct concurrency_limit *agent_concurrency;    /* the same for requests of agents */
    struct concurrency_limit *download_concurrency; /* the same for ROUTE_DOWNLOAD */
    struct concurrency_limit *worker_shares;        /* the workers that each client occupies */
    struct debuginfod_client *debuginfod; /* api/debuginfo/debuginfo_upstreams.h; NULL: disabled */
    struct metrics *metrics;              /* api/core/metrics.h */
    struct gauges *gauges;    /* api/server/gauges.h: sizes and counts of the parts, for metrics */
    struct http_server *http; /* api/server/http_server.h */
};

/* The key of an advisory lock of PostgreSQL. The background work holds it while it deletes objects,
 * a backup while it copies them, so that none is deleted meanwhile. */
#define SERVER_SWEEP_LOCK INT64_C(0x50465357) /* "PFSW" */

#endif
