/*
 * server: the context of a running perfoliod, built once (api/server/server_run.h) and passed down;
 * there are no globals.
 *
 * The first group is used by all folders of api/. Each member of the second group is declared by
 * the folder that owns it: a file that uses it includes the header in the comment. A member that
 * only one folder uses belongs to the struct of that folder, not here.
 */
#ifndef API_CORE_SERVER_H
#define API_CORE_SERVER_H

#include <stdint.h>

struct debuginfo_parts;
struct disk;
struct http_server;
struct identity_parts;
struct ingest_parts;
struct integrity;
struct memory_gate;
struct metrics;
struct object_readiness;
struct object_store;
struct pg_pool;
struct pg_watch;
struct query_memory;
struct query_parts;
struct request_limits;
struct server_key;
struct settings;
struct share_runtime;
struct store;
struct symbol_resolver;
struct worker_pool;

struct server {
    const struct settings *settings;   /* api/core/settings.h */
    struct metrics *metrics;           /* api/core/metrics.h */
    struct pg_watch *database_watch;   /* lib/io/pg.h: whether the database responds */
    struct pg_pool *database;          /* role perfolio_server: row-level security applies */
    struct pg_pool *jobs_database;     /* role perfolio_jobs: background work, operator routes */
    struct object_store *objects;      /* lib/io/object.h */
    struct store *store;               /* store/store.h: continuous profiles */
    struct disk *disk;                 /* api/core/disk.h: whether data can be stored */
    struct integrity *integrity;       /* api/core/integrity.h: damaged and lost objects */
    struct server_key *key;            /* api/core/server_key.h: signs cookies and tokens */
    struct memory_gate *memory_gate;   /* api/core/memory_gate.h: budget of heavy work */
    struct query_memory *query_memory; /* api/core/query_memory.h: budget of all queries */
    struct worker_pool *writers;       /* api/core/object_writer_thread.h */

    struct request_limits *limits;             /* api/http/request_limits.h */
    struct identity_parts *identity;           /* api/identity/identity_parts.h */
    struct object_readiness *object_readiness; /* api/ops/object_readiness.h: for /readyz */
    struct debuginfo_parts *debuginfo;         /* api/debuginfo/debuginfo_parts.h */
    struct symbol_resolver *symbol_resolver; /* api/report/symbol_resolver.h: names of addresses */
    struct share_runtime *shares;            /* api/share/share_runtime.h */
    struct ingest_parts *ingest;             /* api/ingest/ingest_parts.h */
    struct query_parts *query;               /* api/query/query_parts.h */
    struct http_server *http;                /* api/server/http_server.h */
};

/* The key of an advisory lock of PostgreSQL. The background work holds it while it deletes objects,
 * a backup while it copies them, so that none is deleted meanwhile. */
#define SERVER_SWEEP_LOCK INT64_C(0x50465357) /* "PFSW" */

#endif
