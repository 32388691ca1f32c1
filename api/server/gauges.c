#include "api/server/gauges.h"

#include "api/core/disk.h"
#include "api/core/memory_gate.h"
#include "api/core/metrics.h"
#include "api/core/query_memory.h"
#include "api/core/server.h"
#include "api/http/concurrency_limit.h"
#include "api/http/request_limits.h"
#include "api/query/query_parts.h"
#include "api/query/report_cache.h"
#include "api/server/http_server.h"
#include "api/share/profile_cache.h"
#include "api/share/share_runtime.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <stdatomic.h>

enum { COUNT_INTERVAL_S = 60 };

/* Queues of the work for names; in the order of count_queue's columns. */
enum queue { BUILD_WAITS, BUILD_RUNS, FETCH_RUNS, NEED_IS_DUE, NEED_IS_LATER, QUEUE_COUNT };

struct gauges {
    struct server *server;
    atomic_int_least64_t last_round_ns; /* monotonic */
    atomic_int_least64_t share_count;
    atomic_int_least64_t stored_bytes;
    atomic_int_least64_t queue[QUEUE_COUNT];
    int64_t next_count_ns; /* used by the jobs thread */
};

static double profile_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)profile_cache_bytes(gauges->server->shares->profiles);
}

static double cached_response_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)flight_cache_bytes(gauges->server->shares->responses);
}

static double kept_query_bytes(void *context)
{
    const struct gauges *gauges = context;
    const struct server *server = gauges->server;
    return (double)(report_cache_bytes(server->query->report_cache) +
                    (server->store ? store_result_bytes(server->store) : 0));
}

static double block_bytes(void *context)
{
    const struct gauges *gauges = context;
    return gauges->server->store ? (double)store_block_bytes(gauges->server->store) : 0;
}

static double heavy_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)memory_gate_used_bytes(gauges->server->memory_gate);
}

static double heavy_limit_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)memory_gate_max_bytes(gauges->server->memory_gate);
}

static double query_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)query_memory_used_bytes(gauges->server->query_memory);
}

static double query_limit_bytes(void *context)
{
    const struct gauges *gauges = context;
    return (double)query_memory_max_bytes(gauges->server->query_memory);
}

static double waiting_queries(void *context)
{
    const struct gauges *gauges = context;
    return (double)query_memory_waiting_count(gauges->server->query_memory);
}

static double waiting_reports(void *context)
{
    const struct gauges *gauges = context;
    return concurrency_limit_waiting_count(gauges->server->limits->reports);
}

static double running_reports(void *context)
{
    const struct gauges *gauges = context;
    return concurrency_limit_held_count(gauges->server->limits->reports);
}

static double waiting_for_workers(void *context)
{
    const struct gauges *gauges = context;
    return concurrency_limit_waiting_count(gauges->server->limits->workers);
}

static double open_connections(void *pool)
{
    return pg_pool_counts(pool).open;
}

static double free_bytes(void *disk)
{
    return (double)disk_free_bytes(disk);
}

static double min_free_bytes(void *disk)
{
    return (double)disk_min_free_bytes(disk);
}

static double is_responding(void *watch)
{
    return pg_watch_is_responding(watch);
}

static double used_connections(void *pool)
{
    struct pg_pool_counts counts = pg_pool_counts(pool);
    return counts.open - counts.idle;
}

static double share_count(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->share_count);
}

static double stored_bytes(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->stored_bytes);
}

static double jobs_lag_s(void *context)
{
    struct gauges *gauges = context;
    int64_t age_ns = clock_monotonic_ns() - atomic_load(&gauges->last_round_ns);
    return (double)age_ns / (double)CLOCK_NS_PER_S;
}

static double build_waits(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->queue[BUILD_WAITS]);
}

static double build_runs(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->queue[BUILD_RUNS]);
}

static double fetch_runs(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->queue[FETCH_RUNS]);
}

static double needs_due(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->queue[NEED_IS_DUE]);
}

static double needs_later(void *context)
{
    struct gauges *gauges = context;
    return (double)atomic_load(&gauges->queue[NEED_IS_LATER]);
}

static void register_queue(struct gauges *gauges)
{
    static const char jobs[] = "perfolio_symbol_jobs", needs[] = "perfolio_symbol_needs";
    static const char jobs_help[] =
        "Symbol tables to be built from uploaded files (build) and from files of debuginfod "
        "servers (fetch), of all servers at the database; counted once a minute.";
    static const char needs_help[] =
        "Binaries of teams whose names were requested and are missing, by whether a fetch is due "
        "now; counted once a minute.";
    struct metrics *metrics = gauges->server->metrics;
    metrics_gauge(metrics, jobs, "kind=\"build\",state=\"waiting\"", jobs_help, build_waits,
                  gauges);
    metrics_gauge(metrics, jobs, "kind=\"build\",state=\"running\"", jobs_help, build_runs, gauges);
    metrics_gauge(metrics, jobs, "kind=\"fetch\",state=\"running\"", jobs_help, fetch_runs, gauges);
    metrics_gauge(metrics, needs, "state=\"due\"", needs_help, needs_due, gauges);
    metrics_gauge(metrics, needs, "state=\"later\"", needs_help, needs_later, gauges);
}

static double is_database_up(void *context)
{
    const struct server *server = context;
    return atomic_load(&http_server_readiness(server->http)->is_database_up);
}

static void register_connections(struct server *server)
{
    static const char open_help[] = "Open connections to the database.";
    static const char used_help[] = "Connections to the database that are in use.";
    struct metrics *metrics = server->metrics;
    metrics_gauge(metrics, "perfolio_database_up", "",
                  "1 if the database replied to a statement when these metrics were read.",
                  is_database_up, server);
    metrics_gauge(
        metrics, "perfolio_database_responding", "",
        "0 while the database does not respond and requests are refused at once, otherwise 1.",
        is_responding, server->database_watch);
    metrics_gauge(metrics, "perfolio_database_connections", "pool=\"requests\"", open_help,
                  open_connections, server->database);
    metrics_gauge(metrics, "perfolio_database_connections", "pool=\"jobs\"", open_help,
                  open_connections, server->jobs_database);
    metrics_gauge(metrics, "perfolio_database_connections_used", "pool=\"requests\"", used_help,
                  used_connections, server->database);
    metrics_gauge(metrics, "perfolio_database_connections_used", "pool=\"jobs\"", used_help,
                  used_connections, server->jobs_database);
}

struct gauges *gauges_create(struct server *server)
{
    struct gauges *gauges = mem_new(struct gauges, 1);
    struct metrics *metrics = server->metrics;
    gauges->server = server;
    atomic_store(&gauges->last_round_ns, clock_monotonic_ns());
    metrics_gauge(metrics, "perfolio_cache_bytes", "cache=\"profiles\"", "Memory used by caches.",
                  profile_bytes, gauges);
    metrics_gauge(metrics, "perfolio_cache_bytes", "cache=\"results\"", "Memory used by caches.",
                  cached_response_bytes, gauges);
    metrics_gauge(metrics, "perfolio_cache_bytes", "cache=\"queries\"", "Memory used by caches.",
                  kept_query_bytes, gauges);
    metrics_gauge(metrics, "perfolio_cache_bytes", "cache=\"blocks\"", "Memory used by caches.",
                  block_bytes, gauges);
    metrics_gauge(metrics, "perfolio_heavy_memory_bytes", "",
                  "Memory taken by work on large profiles.", heavy_bytes, gauges);
    metrics_gauge(metrics, "perfolio_heavy_memory_limit_bytes", "",
                  "Limit of the memory taken by work on large profiles (--max-heavy-memory).",
                  heavy_limit_bytes, gauges);
    metrics_gauge(metrics, "perfolio_query_memory_bytes", "",
                  "Memory taken by queries of continuous profiles.", query_bytes, gauges);
    metrics_gauge(metrics, "perfolio_query_memory_limit_bytes", "",
                  "Limit of the memory of all queries together (--max-query-memory).",
                  query_limit_bytes, gauges);
    metrics_gauge(metrics, "perfolio_queries_waiting", "", "Queries that wait for memory.",
                  waiting_queries, gauges);
    metrics_gauge(metrics, "perfolio_reports_running", "",
                  "Reports, queries and uploads that workers compute.", running_reports, gauges);
    metrics_gauge(metrics, "perfolio_reports_waiting", "",
                  "Reports, queries and uploads put aside until a worker may compute them.",
                  waiting_reports, gauges);
    metrics_gauge(metrics, "perfolio_requests_waiting", "",
                  "Requests put aside because their team or address occupies its share of workers.",
                  waiting_for_workers, gauges);
    metrics_gauge(metrics, "perfolio_shares", "", "Shares stored, counted once a minute.",
                  share_count, gauges);
    metrics_gauge(metrics, "perfolio_stored_bytes", "", "Bytes charged to all tenants.",
                  stored_bytes, gauges);
    metrics_gauge(metrics, "perfolio_jobs_lag_seconds", "",
                  "Seconds since the last round of background work.", jobs_lag_s, gauges);
    metrics_gauge(metrics, "perfolio_disk_free_bytes", "", "Free space of the data folder's disk.",
                  free_bytes, server->disk);
    metrics_gauge(metrics, "perfolio_disk_min_free_bytes", "",
                  "Free space below which nothing is stored (--min-free-bytes).", min_free_bytes,
                  server->disk);
    register_queue(gauges);
    register_connections(server);
    return gauges;
}

void gauges_destroy(struct gauges *gauges)
{
    mem_free(gauges);
}

static enum err_code count_stored(struct gauges *gauges, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *row;
    enum err_code code = pg_take(gauges->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    "SELECT (SELECT count(*) FROM share WHERE state = 'live'),"
                    " (SELECT coalesce(sum(bytes_stored), 0)::bigint FROM tenant_usage)",
                    NULL, 0, arena, &row, err);
    if (code)
        return code;
    atomic_store(&gauges->share_count, pg_get_i64(row, 0, 0));
    atomic_store(&gauges->stored_bytes, pg_get_i64(row, 0, 1));
    return ERR_NONE;
}

static enum err_code count_queue(struct gauges *gauges, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *row;
    enum err_code code = pg_take(gauges->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    "SELECT count(*) FILTER (WHERE kind = 'build' AND NOT is_run),"
                    " count(*) FILTER (WHERE kind = 'build' AND is_run),"
                    " count(*) FILTER (WHERE kind = 'fetch' AND is_run),"
                    " (SELECT count(*) FROM symbol_need WHERE next_try_at <= now()),"
                    " (SELECT count(*) FROM symbol_need WHERE next_try_at IS NULL"
                    "  OR next_try_at > now())"
                    " FROM (SELECT kind, coalesce(leased_until > now(), false) AS is_run"
                    "  FROM symbol_job) AS job",
                    NULL, 0, arena, &row, err);
    if (code)
        return code;
    for (int i = 0; !code && i < QUEUE_COUNT; i++)
        atomic_store(&gauges->queue[i], pg_get_i64(row, 0, i));
    return code;
}

enum err_code gauges_refresh(struct gauges *gauges, struct err *err)
{
    int64_t now_ns = clock_monotonic_ns();
    atomic_store(&gauges->last_round_ns, now_ns);
    if (now_ns < gauges->next_count_ns)
        return ERR_NONE;
    gauges->next_count_ns = now_ns + COUNT_INTERVAL_S * CLOCK_NS_PER_S;
    enum err_code code = count_stored(gauges, err);
    return code ? code : count_queue(gauges, err);
}
