/*
 * Two threads. The builder claims a job, builds it, and ends or releases it. The keeper renews the
 * lease of the running job, so that a build may take longer than a lease; it also writes the noted
 * needs and uses, and deletes old rows and public tables above their limit. No job is claimed while
 * the disk is full.
 *
 * A claim takes the job of the tenant with the fewest leased jobs; among equals the next one in the
 * order of their numbers, after the tenant that was served last. It increments the fence and the
 * number of tries. Each later statement names the fence, so a server whose lease has expired
 * changes nothing.
 */
#include "api/debuginfo/debuginfo_jobs.h"

#include "api/core/disk.h"
#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/debuginfo/debuginfo_build.h"
#include "api/debuginfo/missing_symbols.h"
#include "api/debuginfo/public_tables.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/wait_limit.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <pthread.h>
#include <time.h>

enum {
    LEASE_S = 60,
    RENEW_S = 15,
    POLL_MS = 2000, /* for jobs added by other servers, and retries */
    KEEPER_MS = 1000,
    RETRY_S = 20, /* doubled with each try */
    EXPIRE_S = 3600,
    KEEP_DAYS = 30,
};

struct debuginfo_jobs {
    struct server *server;
    pthread_t builder, keeper;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t wake;
    bool has_news;
    struct debuginfo_lease lease; /* of the running build; zeroed if there is none */
    int64_t renewed_ns;
    int64_t last_tenant; /* the tenant of the last job; used by the builder thread */
    int64_t expired_ns;  /* used by the keeper thread */
    atomic_bool should_stop;
};

static void log_failure(const char *what, const struct err *err)
{
    char text[ERR_MESSAGE_BYTES + 16];
    log_event(LOG_ERROR, "background work failed", "job=\"%s\" code=%s error=%s", what,
              err_code_name(err->code), log_quote(err->message, text, sizeof(text)));
}

/* False if it is time to end. */
static bool wait_for(struct debuginfo_jobs *jobs, int64_t duration_ms, bool ends_with_news)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += duration_ms / 1000;
    pthread_mutex_lock(&jobs->mutex);
    while (!jobs->should_stop && !(ends_with_news && jobs->has_news)) {
        if (pthread_cond_timedwait(&jobs->wake, &jobs->mutex, &until) != 0)
            break;
    }
    if (ends_with_news)
        jobs->has_news = false;
    pthread_mutex_unlock(&jobs->mutex);
    return !jobs->should_stop;
}

/* ---- building ---- */

static enum err_code claim_job(struct debuginfo_jobs *jobs, struct arena *arena,
                               struct debuginfo_job *ret_job, struct err *err)
{
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs->server->jobs_database, &connection, err);
    if (!code)
        code = pg_query_values(
            connection, PG_NO_TENANT,
            "WITH busy AS (SELECT tenant_id, count(*) AS n FROM symbol_job"
            "  WHERE leased_until > now() GROUP BY tenant_id),"
            " next AS (SELECT j.id FROM symbol_job j LEFT JOIN busy b USING (tenant_id)"
            "  WHERE j.kind = 'build' AND j.run_after <= now()"
            "  AND (j.leased_until IS NULL OR j.leased_until <= now())"
            "  ORDER BY coalesce(b.n, 0), j.tenant_id <= $1, j.tenant_id, j.id LIMIT 1"
            "  FOR UPDATE OF j SKIP LOCKED)"
            " UPDATE symbol_job j SET fence = j.fence + 1, try_count = j.try_count + 1,"
            " leased_until = now() + $2 * interval '1 s' FROM next, debug_file f"
            " WHERE j.id = next.id AND f.id = j.debug_file_id"
            " RETURNING j.id, j.fence, j.tenant_id, j.build_id, j.try_count, f.id, f.object_key,"
            " f.file, f.kind = 'executable', f.bytes, f.sha256",
            arena, &rows, err, PG_I64(jobs->last_tenant), PG_I64(LEASE_S));
    *ret_job = (struct debuginfo_job){0};
    if (code || pg_row_count(rows) == 0)
        return code;
    *ret_job = (struct debuginfo_job){.lease = {pg_get_i64(rows, 0, 0), pg_get_i64(rows, 0, 1)},
                                      .tenant_id = pg_get_i64(rows, 0, 2),
                                      .build_id = pg_get_text(rows, 0, 3),
                                      .try_count = pg_get_i64(rows, 0, 4),
                                      .file_id = pg_get_i64(rows, 0, 5),
                                      .file = pg_get_text(rows, 0, 7),
                                      .is_executable = pg_get_bool(rows, 0, 8)};
    ret_job->object = (struct integrity_object){.kind = INTEGRITY_DEBUG_FILE,
                                                .tenant_id = ret_job->tenant_id,
                                                .row = ret_job->build_id,
                                                .key = pg_get_text(rows, 0, 6),
                                                .bytes = (uint64_t)pg_get_i64(rows, 0, 9),
                                                .sha256 = pg_get_bytes(rows, 0, 10)};
    jobs->last_tenant = ret_job->tenant_id;
    return ERR_NONE;
}

/* Gives the job back: for a retry later or, if this server stops, for another server at once. A
 * failure of the host, such as a full disk, does not count as a try. */
static void release_job(struct debuginfo_jobs *jobs, const struct debuginfo_job *job,
                        enum err_code code_of_job)
{
    arena_auto arena = arena_create();
    struct err err;
    pg_auto connection = NULL;
    const int64_t pause_s = code_of_job == ERR_CANCELLED
                                ? 0
                                : (int64_t)RETRY_S << (job->try_count < 6 ? job->try_count : 6);
    enum err_code code = pg_take(jobs->server->jobs_database, &connection, &err);
    if (!code)
        code =
            pg_query_values(connection, PG_NO_TENANT,
                            "UPDATE symbol_job SET leased_until = NULL,"
                            " run_after = now() + $3 * interval '1 s',"
                            " try_count = try_count - CASE WHEN $4 THEN 1 ELSE 0 END"
                            " WHERE id = $1 AND fence = $2",
                            arena, NULL, &err, PG_I64(job->lease.job_id), PG_I64(job->lease.fence),
                            PG_I64(pause_s), PG_BOOL(debuginfo_build_can_wait(code_of_job)));
    if (code)
        log_failure("putting back a symbol table", &err); /* the lease expires by itself */
}

static void set_running(struct debuginfo_jobs *jobs, const struct debuginfo_job *job)
{
    pthread_mutex_lock(&jobs->mutex);
    jobs->lease = job ? job->lease : (struct debuginfo_lease){0};
    jobs->renewed_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&jobs->mutex);
}

static void count_outcome(struct debuginfo_jobs *jobs, const char *labels)
{
    metric_add(metrics_counter(jobs->server->metrics, "perfolio_symbol_builds_total", labels,
                               "Debug files of teams that were processed, by outcome."),
               1);
}

static bool run_one(struct debuginfo_jobs *jobs)
{
    struct debuginfo_job job;
    struct err err;
    arena_auto arena = arena_create();
    const struct wait_limit wait_limit = {.is_cancelled = &jobs->should_stop};
    if (disk_check(jobs->server->disk, &err)) /* its change is logged */
        return false;
    enum err_code code = claim_job(jobs, arena, &job, &err);
    if (code)
        log_failure("claiming a symbol table", &err);
    if (code || !job.lease.job_id)
        return false;
    set_running(jobs, &job);
    bool is_built = false;
    code = debuginfo_build(jobs->server, &job, &wait_limit, arena, &is_built, &err);
    set_running(jobs, NULL);
    count_outcome(jobs, code       ? "outcome=\"again\""
                        : is_built ? "outcome=\"built\""
                                   : "outcome=\"failed\"");
    if (code == ERR_CONFLICT || code == ERR_NONE)
        return true;
    if (code != ERR_CANCELLED)
        log_failure("building a symbol table", &err);
    release_job(jobs, &job, code);
    return true;
}

static void *builder_main(void *context)
{
    struct debuginfo_jobs *jobs = context;
    while (!jobs->should_stop) {
        if (!run_one(jobs) && !wait_for(jobs, POLL_MS, true))
            break;
    }
    return NULL;
}

/* ---- the keeper thread ---- */

static void renew_if_due(struct debuginfo_jobs *jobs)
{
    struct err err;
    bool is_ours; /* if not, the end of the job detects it */
    pthread_mutex_lock(&jobs->mutex);
    const int64_t now_ns = clock_monotonic_ns();
    const struct debuginfo_lease lease = jobs->lease;
    const bool is_due = lease.job_id && now_ns - jobs->renewed_ns >= RENEW_S * CLOCK_NS_PER_S;
    if (is_due)
        jobs->renewed_ns = now_ns;
    pthread_mutex_unlock(&jobs->mutex);
    if (is_due && debuginfo_lease_renew(jobs->server, &lease, LEASE_S, &is_ours, &err))
        log_failure("renewing the lease of a symbol table", &err);
}

/* Deletes needs that are no longer requested, and old failures. */
static enum err_code expire_needs(struct debuginfo_jobs *jobs, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "DELETE FROM symbol_need WHERE ctid IN (SELECT ctid FROM symbol_need"
                           " WHERE last_at < now() - $1 * interval '1 day' LIMIT 10000"
                           " FOR UPDATE SKIP LOCKED)",
                           arena, NULL, err, PG_I64(KEEP_DAYS));
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "DELETE FROM debug_file WHERE ctid IN (SELECT ctid FROM debug_file"
                           " WHERE state = 'failed' AND created_at < now() -"
                           " $1 * interval '1 day' LIMIT 10000 FOR UPDATE SKIP LOCKED)",
                           arena, NULL, err, PG_I64(KEEP_DAYS));
    if (code)
        return code;
    /* Jobs of servers that died, whose results are no longer needed. */
    code = pg_query(connection, PG_NO_TENANT,
                    "DELETE FROM symbol_job WHERE ctid IN (SELECT ctid FROM symbol_job"
                    " WHERE kind = 'fetch' AND leased_until < now() - interval '1 hour'"
                    " LIMIT 10000 FOR UPDATE SKIP LOCKED)",
                    NULL, 0, arena, NULL, err);
    /* The setting may be smaller than at the last start. */
    return code ? code : public_tables_free_space(jobs->server, connection, arena, err);
}

static void expire_if_due(struct debuginfo_jobs *jobs)
{
    struct err err;
    const int64_t now_ns = clock_monotonic_ns();
    if (jobs->expired_ns && now_ns - jobs->expired_ns < EXPIRE_S * CLOCK_NS_PER_S)
        return;
    jobs->expired_ns = now_ns;
    if (expire_needs(jobs, &err))
        log_failure("expiring symbol needs", &err);
}

static void *keeper_main(void *context)
{
    struct debuginfo_jobs *jobs = context;
    do {
        struct err err;
        renew_if_due(jobs);
        expire_if_due(jobs);
        if (missing_symbols_write(jobs->server, &err))
            log_failure("symbol needs", &err);
        if (public_tables_write_uses(jobs->server, &err))
            log_failure("uses of symbol tables", &err);
    } while (wait_for(jobs, KEEPER_MS, false));
    return NULL;
}

/* ---- life ---- */

void debuginfo_jobs_wake(struct debuginfo_jobs *jobs)
{
    if (!jobs)
        return;
    pthread_mutex_lock(&jobs->mutex);
    jobs->has_news = true;
    pthread_cond_broadcast(&jobs->wake);
    pthread_mutex_unlock(&jobs->mutex);
}

static void stop_threads(struct debuginfo_jobs *jobs)
{
    pthread_mutex_lock(&jobs->mutex);
    jobs->should_stop = true;
    pthread_cond_broadcast(&jobs->wake);
    pthread_mutex_unlock(&jobs->mutex);
}

static void destroy_jobs(struct debuginfo_jobs *jobs)
{
    pthread_cond_destroy(&jobs->wake);
    pthread_mutex_destroy(&jobs->mutex);
    mem_free(jobs);
}

enum err_code debuginfo_jobs_start(struct server *server, struct debuginfo_jobs **ret_jobs,
                                   struct err *err)
{
    pthread_condattr_t attributes;
    struct debuginfo_jobs *jobs = mem_new(struct debuginfo_jobs, 1);
    jobs->server = server;
    pthread_mutex_init(&jobs->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    bool has_keeper = pthread_create(&jobs->keeper, NULL, keeper_main, jobs) == 0;
    if (has_keeper && pthread_create(&jobs->builder, NULL, builder_main, jobs) == 0) {
        *ret_jobs = jobs;
        return ERR_NONE;
    }
    stop_threads(jobs);
    if (has_keeper)
        pthread_join(jobs->keeper, NULL);
    destroy_jobs(jobs);
    return err_set(err, ERR_INTERNAL, "cannot start the threads that build symbol tables");
}

void debuginfo_jobs_stop(struct debuginfo_jobs *jobs)
{
    if (!jobs)
        return;
    stop_threads(jobs);
    pthread_join(jobs->builder, NULL);
    pthread_join(jobs->keeper, NULL);
    destroy_jobs(jobs);
}
