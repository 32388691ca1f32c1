#include "api/server/server_run.h"

#include "api/core/disk.h"
#include "api/core/integrity.h"
#include "api/core/memory_gate.h"
#include "api/core/memory_info.h"
#include "api/core/metrics.h"
#include "api/core/object_store_setup.h"
#include "api/core/query_memory.h"
#include "api/core/server.h"
#include "api/core/server_key.h"
#include "api/core/settings.h"
#include "api/core/store_damage.h"
#include "api/core/worker.h"
#include "api/debuginfo/debuginfo_fetch.h"
#include "api/debuginfo/debuginfo_jobs.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/http/request_limits.h"
#include "api/identity/identity.h"
#include "api/identity/identity_parts.h"
#include "api/ingest/ingest_parts.h"
#include "api/ingest/sources.h"
#include "api/ops/object_readiness.h"
#include "api/ops/scrub.h"
#include "api/query/query_parts.h"
#include "api/report/symbol_resolver.h"
#include "api/server/gauges.h"
#include "api/server/http_server.h"
#include "api/server/routes.h"
#include "api/share/share.h"
#include "api/share/share_runtime.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/object.h"
#include "lib/io/object_s3.h"
#include "lib/io/pg.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    JOBS_CONNECTIONS = 5,
    COPIES_DISK_SHARE = 8, /* copies of blocks of a bucket take at most this part of the disk */
};

/* The server, and the parts that no handler uses. */
struct running {
    struct server server;
    _Atomic(struct store *) copies; /* the store, once its copies of objects can be evicted */
    struct store_damage_log *store_damage;   /* blocks that cannot be read */
    struct gauges *gauges;                   /* sizes and counts of the parts, for metrics */
    struct debuginfo_fetch *debuginfo_fetch; /* NULL: disabled */
    struct scrub *scrub;                     /* NULL: disabled */
};

/* Background work in rounds, every few seconds, on one thread. */
struct jobs {
    struct running *running;
    struct server *server;
    pthread_t thread;
    struct identity_jobs identity; /* used by the thread that does the rounds */
    bool has_more; /* the last round left work to do; used by the thread that does the rounds */
    pthread_mutex_t mutex; /* guards should_stop */
    pthread_cond_t wake;
    bool should_stop;
};

static void run_job(struct jobs *jobs, const char *name,
                    enum err_code (*run)(struct jobs *jobs, struct err *err))
{
    struct err err;
    char text[ERR_MESSAGE_BYTES + 16];
    if (run(jobs, &err))
        log_event(LOG_ERROR, "background work failed", "job=%s code=%s error=%s", name,
                  err_code_name(err.code), log_quote(err.message, text, sizeof(text)));
}

/* Work that deletes objects runs under a lock, which a backup holds while it copies them. The lock
 * belongs to the session, so the same session does the work: if it breaks, both end. */
static enum err_code sweep_objects(struct jobs *jobs, struct err *err)
{
    struct server *server = jobs->server;
    jobs->has_more = false;
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT, "SELECT pg_try_advisory_lock($1)", arena,
                           &result, err, PG_I64(SERVER_SWEEP_LOCK));
    if (code || !pg_get_bool(result, 0, 0))
        return code;
    code = share_jobs_run(server, connection, &jobs->has_more, err);
    struct err unlock_err;
    if (pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)", arena, &result,
                        code ? &unlock_err : err, PG_I64(SERVER_SWEEP_LOCK)) &&
        !code)
        code = err_add(err, "unlocking the sweep");
    return code;
}

static enum err_code write_views(struct jobs *jobs, struct err *err)
{
    return share_jobs_write_views(jobs->server, err);
}

static enum err_code clean_identity(struct jobs *jobs, struct err *err)
{
    return identity_jobs_run(jobs->server, &jobs->identity, err);
}

static enum err_code write_sources(struct jobs *jobs, struct err *err)
{
    return sources_jobs_run(jobs->server, err);
}

/* Copies that no query uses are evicted to make space for profiles, too. */
static enum err_code evict_copies(struct jobs *jobs, struct err *err)
{
    const struct disk *disk = jobs->server->disk;
    struct store *store = atomic_load(&jobs->running->copies);
    (void)err;
    while (store && disk_look_free_bytes(disk) < 2 * disk_min_free_bytes(disk)) {
        if (!store_evict_block(store))
            break;
    }
    return ERR_NONE;
}

static enum err_code refresh_gauges(struct jobs *jobs, struct err *err)
{
    return gauges_refresh(jobs->running->gauges, err);
}

/* Sleeps for the interval, unless there is more to do; false if it is time to end. */
static bool wait_for_round(struct jobs *jobs)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (!jobs->has_more)
        until.tv_sec += jobs->server->settings->jobs_interval_s;
    pthread_mutex_lock(&jobs->mutex);
    while (!jobs->should_stop)
        if (pthread_cond_timedwait(&jobs->wake, &jobs->mutex, &until) != 0)
            break;
    bool goes_on = !jobs->should_stop;
    pthread_mutex_unlock(&jobs->mutex);
    return goes_on;
}

static void *jobs_main(void *context)
{
    struct jobs *jobs = context;
    while (wait_for_round(jobs)) {
        run_job(jobs, "copies", evict_copies);
        run_job(jobs, "views", write_views);
        run_job(jobs, "shares", sweep_objects);
        run_job(jobs, "identity", clean_identity);
        run_job(jobs, "sources", write_sources);
        run_job(jobs, "gauges", refresh_gauges);
    }
    return NULL;
}

static enum err_code jobs_start(struct jobs *jobs, struct running *running, struct err *err)
{
    pthread_condattr_t attributes;
    *jobs = (struct jobs){.running = running, .server = &running->server};
    pthread_mutex_init(&jobs->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&jobs->thread, NULL, jobs_main, jobs) != 0)
        return err_set(err, ERR_INTERNAL, "cannot start the thread for background work");
    return ERR_NONE;
}

static void jobs_stop(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->mutex);
    jobs->should_stop = true;
    pthread_cond_signal(&jobs->wake);
    pthread_mutex_unlock(&jobs->mutex);
    pthread_join(jobs->thread, NULL);
    /* Once more at the end, to write the counts that are only in memory. */
    run_job(jobs, "views", write_views);
    run_job(jobs, "sources", write_sources);
    pthread_cond_destroy(&jobs->wake);
    pthread_mutex_destroy(&jobs->mutex);
}

static void report_bucket(bool is_responding)
{
    if (is_responding)
        log_event(LOG_INFO, "the S3 server responds again", "pid=%d", (int)getpid());
    else
        log_event(LOG_ERROR,
                  "the S3 server does not respond; requests that need it get 503 until it does",
                  "pid=%d", (int)getpid());
}

static enum err_code open_objects(struct server *server, struct err *err)
{
    enum err_code code = object_store_setup_open(server->settings, &server->objects, err);
    if (code)
        return code;
    if (object_store_setup_are_in_s3(server->settings))
        code = object_s3_watch(server->objects, report_bucket, err);
    if (code)
        return code;
    return object_sweep_temporary(server->objects, err);
}

/* Whether the disk has space for a copy of an object. Copies of blocks that no query uses are
 * evicted to make space for it. */
static bool make_space_to_copy(const struct running *running, uint64_t bytes, bool is_background)
{
    struct store *store = atomic_load(&running->copies);
    while (!disk_has_space_for_copy(running->server.disk, bytes, is_background)) {
        if (!store || !store_evict_block(store))
            return false;
    }
    return true;
}

/* Space is allocated, so that several copies that begin at once see each other. */
static bool has_space_to_copy(void *context, int fd, uint64_t bytes, bool is_background)
{
    const struct running *running = context;
    const struct disk *disk = running->server.disk;
    return make_space_to_copy(running, bytes, is_background) &&
           (bytes == 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0 ||
            errno == EOPNOTSUPP) &&
           disk_has_space_for_copy(disk, 0, is_background);
}

/* The data folder exists even if the objects are in a bucket. */
static enum err_code watch_disk(struct running *running, struct err *err)
{
    struct server *server = &running->server;
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/objects", server->settings->data_dir);
    const enum err_code code =
        disk_create(folder, server->settings->min_free_bytes, &server->disk, err);
    if (!code && object_store_setup_are_in_s3(server->settings))
        object_s3_set_space(server->objects, has_space_to_copy, running);
    return code;
}

static void report_store(void *context, const char *work, const struct err *err)
{
    (void)context;
    char text[ERR_MESSAGE_BYTES + 16];
    log_event(LOG_ERROR, "background work failed", "job=%s code=%s error=%s", work,
              err_code_name(err->code), log_quote(err->message, text, sizeof(text)));
}

static void note_damage(void *context, const struct store_damage *damage)
{
    (void)!store_damage_log_note(context, damage);
}

/* Each waiting request occupies a thread: when nearly all do, no other request can join. */
static int flush_requests(const struct settings *settings)
{
    return settings->ingest_threads > 4 ? settings->ingest_threads - 2
                                        : 1 + settings->ingest_threads / 2;
}

static size_t or_default(uint64_t setting, enum memory_limit limit)
{
    return (size_t)(setting ? setting : memory_info_limit_bytes(limit));
}

/* The ids of batches of a day may take a part of the disk, which has the database. */
static int64_t max_batch_ids(const struct disk *disk)
{
    enum { DISK_SHARE = 32, ID_BYTES = 200, LEAST = 100000 };
    const uint64_t count = disk_total_bytes(disk) / DISK_SHARE / ID_BYTES;
    return count > LEAST ? (int64_t)count : LEAST;
}

/* Whether a merge may write now: merges write their outputs before their inputs are deleted. Below
 * the reserve only merges that remove deleted or expired profiles (is_needed) go on, and none uses
 * the half of the reserve that PostgreSQL's log needs. */
static bool has_space_to_merge(void *context, bool is_needed)
{
    const struct disk *disk = ((const struct server *)context)->disk;
    const uint64_t reserve = disk_min_free_bytes(disk);
    return disk_look_free_bytes(disk) >= (is_needed ? reserve / 2 : reserve);
}

static enum err_code open_store(struct running *running, struct err *err)
{
    struct server *server = &running->server;
    char host[HOST_NAME_MAX + 1] = "";
    char name[HOST_NAME_MAX + 32];
    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "%s process %d", host, (int)getpid());
    const struct store_options options = {
        .objects = server->objects,
        .database = server->database,
        .jobs_database = server->jobs_database,
        .name = name,
        .flush_interval_ms =
            object_store_setup_are_in_s3(server->settings) ? OBJECT_STORE_SETUP_S3_FLUSH_MS : 0,
        .flush_requests =
            object_store_setup_are_in_s3(server->settings) ? flush_requests(server->settings) : 0,
        .retention_s = server->settings->tenant_profile_retention_s,
        .query_time_s = (int64_t)server->settings->tenant_limits[TENANT_LIMIT_QUERY_TIME_S],
        .report = report_store,
        .has_space = object_store_setup_are_in_s3(server->settings) ? NULL : has_space_to_merge,
        .has_space_context = server,
        .damaged = note_damage,
        .damaged_context = running->store_damage,
        .cache_bytes = or_default(server->settings->block_cache_bytes, MEMORY_BLOCK_CACHE),
        .copy_bytes = object_store_setup_are_in_s3(server->settings)
                          ? disk_total_bytes(server->disk) / COPIES_DISK_SHARE
                          : 0,
        .result_cache_bytes = (size_t)server->settings->query_cache_bytes / 2,
        .max_batch_ids = max_batch_ids(server->disk),
        .merge_bytes = or_default(server->settings->max_merge_memory, MEMORY_MERGES),
        .resolver = symbol_resolver_resolver(server->symbol_resolver, symbol_resolver_mode_default),
    };
    const enum err_code code = store_open(&options, &server->store, err);
    if (!code && options.copy_bytes)
        atomic_store(&running->copies, server->store);
    return code;
}

static enum err_code create_http(struct server *server, const struct server_start *start,
                                 struct err *err)
{
    const struct settings *settings = server->settings;
    struct http_listener listeners[SERVER_MAX_LISTENERS];
    for (int i = 0; i < start->listener_count; i++)
        listeners[i] = (struct http_listener){.fd = start->listeners[i], .is_tls = true};
    const struct http_options options = {
        .routes = &routes_all,
        .listeners = listeners,
        .listener_count = (size_t)start->listener_count,
        .certificate_path = settings->tls_cert,
        .key_path = settings->tls_key,
        .access_log_path = *settings->access_log ? settings->access_log : NULL,
        .public_url = settings->public_url,
        .enable_http2 = settings->http2,
        .trust_forwarded_for = settings->trust_forwarded_for,
        .loop_count = settings->loop_threads,
        .worker_count = settings->worker_threads,
        .ingest_count = settings->ingest_threads,
        .max_queued_requests = settings->worker_queue,
        .max_buffered_bytes = or_default(settings->max_buffered_bytes, MEMORY_BUFFERS),
        .max_queued_bytes = (size_t)memory_info_limit_bytes(MEMORY_QUEUES),
        .max_connections = settings->max_connections,
        .max_connections_per_address = settings->max_connections_per_address,
        .max_new_connections_per_address = settings->max_new_connections_per_address,
        .reserved_connections = settings->reserved_connections,
        .idle_timeout_s = settings->idle_timeout_s,
        .slow_timeout_s = settings->request_timeout_s,
        .send_timeout_s = settings->idle_timeout_s,
    };
    if (settings->http2)
        log_event(LOG_WARN,
                  "HTTP/2 is on: through faults of libh2o 2.2 a client can end the server or take "
                  "its memory; use it with trusted clients only",
                  "setting=http2");
    return http_server_create(server, &options, &server->http, err);
}

static void report_database(bool is_responding)
{
    if (is_responding)
        log_event(LOG_INFO, "the database responds again", "pid=%d", (int)getpid());
    else
        log_event(LOG_ERROR, "the database does not respond; requests get 503 until it does",
                  "pid=%d", (int)getpid());
}

/* The connections that one team may have in use, so that it cannot keep them all from others. */
static int most_of_team(const struct settings *settings)
{
    return settings->database_connections > 1 ? settings->database_connections / 2 : 1;
}

/* Both pools use the same database. */
static enum err_code watch_database(struct server *server, const struct server_start *start,
                                    struct err *err)
{
    enum err_code code =
        pg_watch_create(start->conninfo, report_database, &server->database_watch, err);
    if (code)
        return code;
    pg_pool_set_connect_wait(server->database, SERVER_DATABASE_WAIT_MS);
    pg_pool_set_client_limit(server->database, most_of_team(server->settings));
    pg_pool_set_connect_wait(server->jobs_database, SERVER_DATABASE_WAIT_MS);
    pg_pool_set_deadlines(server->database, SERVER_STATEMENT_MS, server->database_watch);
    pg_pool_set_deadlines(server->jobs_database, SERVER_JOBS_STATEMENT_MS, server->database_watch);
    return ERR_NONE;
}

static enum err_code open_databases(struct server *server, const struct server_start *start,
                                    struct err *err)
{
    server->database = pg_pool_create(start->conninfo, start->set_roles ? "perfolio_server" : NULL,
                                      server->settings->database_connections);
    server->jobs_database = pg_pool_create(
        start->jobs_conninfo, start->set_roles ? "perfolio_jobs" : NULL, JOBS_CONNECTIONS);
    return watch_database(server, start, err);
}

/* The parts of api/core, in the order in which they need each other. */
static enum err_code build_core(struct running *running, const struct server_start *start,
                                struct err *err)
{
    struct server *server = &running->server;
    const struct settings *settings = server->settings;
    enum err_code code = open_objects(server, err);
    if (code)
        return code;
    code = watch_disk(running, err);
    if (code)
        return code;
    code = object_readiness_create(server->objects, &server->object_readiness, err);
    if (code)
        return code;
    /* One for each thread that may handle an upload. */
    server->writers =
        worker_pool_create(settings->worker_threads, settings->worker_threads, SIZE_MAX);
    code = open_databases(server, start, err);
    if (code)
        return code;
    server->metrics = metrics_create();
    server->integrity = integrity_create(server->metrics);
    server->key = server_key_create();
    server->memory_gate = memory_gate_create(settings->max_heavy_memory);
    server->query_memory = query_memory_create(settings->max_query_memory);
    return server_key_load(server, err);
}

static enum err_code build_parts(struct running *running, const struct server_start *start,
                                 struct err *err)
{
    struct server *server = &running->server;
    const struct settings *settings = server->settings;
    enum err_code code = build_core(running, start, err);
    if (code)
        return code;
    running->store_damage = store_damage_log_create(server->metrics, clock_monotonic_ns);
    server->limits = request_limits_create(settings, HTTP_DOWNLOAD_THREADS);
    server->identity = identity_parts_create(settings);
    server->ingest = ingest_parts_create();
    server->symbol_resolver = symbol_resolver_create(server, 0);
    server->shares = share_runtime_create((size_t)settings->profile_cache_bytes);
    server->query = query_parts_create(settings, server->disk);
    running->gauges = gauges_create(server);
    code = debuginfo_parts_create(settings, &server->debuginfo, err);
    if (code)
        return code;
    code = open_store(running, err);
    if (code)
        return code;
    return create_http(server, start, err);
}

static void destroy_parts(struct running *running)
{
    struct server *server = &running->server;
    http_server_destroy(server->http);
    scrub_stop(running->scrub);
    debuginfo_fetch_stop(running->debuginfo_fetch);
    if (server->debuginfo)
        debuginfo_jobs_stop(server->debuginfo->jobs);
    store_close(server->store);
    gauges_destroy(running->gauges);
    query_parts_destroy(server->query);
    share_runtime_destroy(server->shares);
    symbol_resolver_destroy(server->symbol_resolver);
    ingest_parts_destroy(server->ingest);
    debuginfo_parts_destroy(server->debuginfo);
    identity_parts_destroy(server->identity);
    request_limits_destroy(server->limits);
    store_damage_log_destroy(running->store_damage);
    query_memory_destroy(server->query_memory);
    memory_gate_destroy(server->memory_gate);
    server_key_destroy(server->key);
    integrity_destroy(server->integrity);
    metrics_destroy(server->metrics);
    if (server->jobs_database)
        pg_pool_destroy(server->jobs_database);
    if (server->database)
        pg_pool_destroy(server->database);
    pg_watch_destroy(server->database_watch);
    worker_pool_destroy(server->writers);
    disk_destroy(server->disk);
    object_readiness_destroy(server->object_readiness);
    object_store_close(server->objects);
}

static void reload(struct server *server)
{
    struct err err;
    char text[ERR_MESSAGE_BYTES + 16];
    if (http_server_reload(server->http, &err))
        log_event(LOG_ERROR, "reload failed, the old settings stay in use", "error=%s",
                  log_quote(err.message, text, sizeof(text)));
    else
        log_event(LOG_INFO, "reloaded certificate and access log", "pid=%d", (int)getpid());
}

static void serve_until_stopped(struct server *server, const sigset_t *signals)
{
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGHUP)
            reload(server);
        else if (number == SIGTERM || number == SIGINT)
            return;
    }
}

static void report_ready(int fd)
{
    if (fd < 0)
        return;
    ssize_t written = write(fd, "R", 1);
    (void)written; /* if the supervisor is gone, this process will end too */
    close(fd);
}

static enum err_code start_parts(struct running *running, const struct server_start *start,
                                 struct jobs *jobs, struct err *err)
{
    struct server *server = &running->server;
    enum err_code code = build_parts(running, start, err);
    if (code)
        return code;
    code = http_server_start(server->http, err);
    if (code)
        return code;
    code = debuginfo_jobs_start(server, &server->debuginfo->jobs, err);
    if (code)
        return code;
    code = debuginfo_fetch_start(server, &running->debuginfo_fetch, err);
    if (code)
        return code;
    code = scrub_start(server, &running->scrub, err);
    if (code)
        return code;
    return jobs_start(jobs, running, err);
}

enum err_code server_run(const struct settings *settings, const struct server_start *start,
                         struct err *err)
{
    struct running running = {.server.settings = settings};
    struct jobs jobs;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    /* Before the first thread, so that all inherit it and only sigwaitinfo below gets them. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    enum err_code code = start_parts(&running, start, &jobs, err);
    if (!code) {
        report_ready(start->ready_fd);
        serve_until_stopped(&running.server, &signals);
        bool was_quiet = http_server_stop(running.server.http, settings->shutdown_timeout_s * 1000);
        jobs_stop(&jobs);
        log_event(LOG_INFO, "stopped", "requests_cut_off=%s", was_quiet ? "none" : "some");
    }
    destroy_parts(&running);
    return code;
}
