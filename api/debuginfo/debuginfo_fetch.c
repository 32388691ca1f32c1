/*
 * The path of one need (a row of symbol_need), on one of the threads:
 *
 *   claim_job           find_due chooses the need, take_job inserts or takes over its job
 *                       (symbol_job) with a lease of LEASE_S, in one transaction
 *   fetch_any_file      requests the debug file from the servers in order; if none has it, the
 *                       executable. may_go_on renews the lease while bytes arrive
 *   build_table         perfolio-symbolize reads the file and publishes first names, then the full
 *                       table. If the file refers to a shared file of dwz, find_shared fetches it
 *   settle_need         one transaction ends the job and deletes the need, or stores the reason and
 *                       the time of the next attempt
 *
 * Example: two servers are configured, the need is new (try_count 0). Server 1 responds with 404,
 * server 2 sends a file that is not ELF: the outcome is REFUSED with the reason "server 2 sent an
 * unusable file", try_count becomes 1, and the next attempt is in 24 h (debuginfod_later_s). If
 * both respond with 404 to the debug file and to the executable, the outcome is ABSENT, and the
 * next attempt is in 10 min, then in 1 h. If server 2 sends a file with symbols but without line
 * numbers, its table is stored and used, and the need stays, with the next attempt in 24 h
 * (SYMBOLS_ALONE_S): a better file may appear.
 *
 * If the process dies, its lease ends after LEASE_S (BUILD_LEASE_S during a build) and another
 * server takes the job: its fence grows, so that a process that was only slow cannot settle the
 * need any more (ERR_CONFLICT of debuginfo_lease_end).
 */
#include "api/debuginfo/debuginfo_fetch.h"

#include "api/core/disk.h"
#include "api/core/disk_part.h"
#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/debuginfo_builder.h"
#include "api/debuginfo/debuginfo_lease.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/debuginfo/debuginfo_table.h"
#include "api/debuginfo/debuginfo_upstreams.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/wait_limit.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_builder.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    LEASE_S = 60,
    RENEW_S = 15,
    /* More than RENEW_S and the elapsed time of both builders, which is four times their CPU time
     * of FIRST_NAMES_S and CPU_MAX_S (debuginfo_builder.c). */
    BUILD_LEASE_S = 300,
    POLL_S = 1,
    THREADS = 4,
    /* So that slow servers of teams do not occupy all threads: a team has two for the public
     * servers and one for its own, and three are for the own servers of all teams. */
    PUBLIC_AT_ONCE = 2,
    OWN_AT_ONCE = 1,
    ALL_OWN_AT_ONCE = THREADS - 1,
    FETCH_S = 600, /* for one binary, whatever its servers do */
    SYMBOLS_ALONE_S = 86400,
    REASON_BYTES = 500
};

struct debuginfo_fetch {
    struct server *server;
    pthread_t threads[THREADS];
    int thread_count;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    _Atomic int64_t last_tenant; /* the tenant of the last claimed job */
    atomic_bool should_stop;
};

/* One binary whose debug file is being fetched. */
struct fetch_task {
    struct debuginfo_fetch *fetch;
    struct arena *arena;
    struct debuginfo_lease lease; /* job_id 0: nothing is due */
    int64_t tenant_id;
    const char *build_id;
    const char *file;
    unsigned try_count; /* attempts before this one */
    int64_t renewed_ns;
    int64_t deadline_ns;
    bool is_lost; /* another server has the job by now */
    bool is_public;
    enum debuginfod_outcome outcome;
    int retry_after_s;
    char reason[REASON_BYTES];
    const struct debuginfo_upstreams *upstreams;
    bool lacks_shared; /* some names of the file are in dwz's shared file, which was not available;
                          the next members state why */
    enum debuginfod_outcome shared_outcome;
    char shared_reason[REASON_BYTES];
};

static void log_failure(const char *what, const struct err *err)
{
    char text[ERR_MESSAGE_BYTES + 16];
    log_event(LOG_ERROR, "background work failed", "job=\"%s\" code=%s error=%s", what,
              err_code_name(err->code), log_quote(err->message, text, sizeof(text)));
}

/* ---- choosing a job ---- */

/* All teams of the public servers share a job: their key contains no team. */
#define KEY_OF_NEED                                                                                \
    "'fetch ' || CASE WHEN p.mode = 'custom' THEN n.tenant_id::text ELSE 'public' END"             \
    " || ' ' || n.build_id"

static enum err_code find_due(struct debuginfo_fetch *fetch, struct pg_connection *connection,
                              struct arena *arena, struct pg_result **ret_rows, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT n.tenant_id, n.build_id, n.file, n.try_count, " KEY_OF_NEED " FROM symbol_need n"
        " LEFT JOIN debuginfo_policy p USING (tenant_id)"
        " WHERE n.next_try_at <= now() AND NOT EXISTS (SELECT FROM symbol_job j"
        "  WHERE j.key = " KEY_OF_NEED " AND j.leased_until > now())"
        " AND (SELECT count(*) FROM symbol_job j WHERE j.tenant_id = n.tenant_id"
        "  AND j.kind = 'fetch' AND j.leased_until > now())"
        "  < CASE WHEN p.mode = 'custom' THEN $6::bigint ELSE $2::bigint END"
        " AND (p.mode IS DISTINCT FROM 'custom' OR (SELECT count(*) FROM symbol_job j"
        "  JOIN debuginfo_policy q ON q.tenant_id = j.tenant_id WHERE q.mode = 'custom'"
        "  AND j.kind = 'fetch' AND j.leased_until > now()) < $5)"
        /* Deleted public tables still occupy the disk, as long as a backup is being made. */
        " AND (p.mode = 'custom' OR (SELECT object_trash_bytes($3)) <= $4)"
        /* New needs come before repeated attempts, the latest first, because a viewer may be
         * waiting for them. */
        " ORDER BY n.tenant_id <= $1, n.tenant_id, n.try_count > 0,"
        " CASE WHEN n.try_count = 0 THEN n.first_at END DESC, n.next_try_at LIMIT 1",
        arena, ret_rows, err, PG_I64(fetch->last_tenant), PG_I64(PUBLIC_AT_ONCE),
        PG_I64(DEBUGINFO_PUBLIC), PG_I64((int64_t)disk_part_table_bytes(fetch->server)),
        PG_I64(ALL_OWN_AT_ONCE), PG_I64(OWN_AT_ONCE));
}

/* The tenant's row is locked first (api/identity/tenant.h); a tenant that is being deleted gets no
 * job any more. */
static enum err_code take_job(struct pg_connection *connection, const struct pg_result *due,
                              struct arena *arena, struct pg_result **ret_rows, struct err *err)
{
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT, "SELECT id FROM tenant WHERE id = $1 FOR KEY SHARE SKIP LOCKED",
        arena, ret_rows, err, PG_I64(pg_get_i64(due, 0, 0)));
    if (code || pg_row_count(*ret_rows) == 0)
        return code;
    return pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO symbol_job AS j (tenant_id, kind, key, build_id, fence, leased_until)"
        " VALUES ($1, 'fetch', $2, $3, 1, now() + $4 * interval '1 s')"
        " ON CONFLICT (key) DO UPDATE SET fence = j.fence + 1, tenant_id = excluded.tenant_id,"
        " leased_until = excluded.leased_until WHERE j.leased_until <= now()"
        " RETURNING id, fence",
        arena, ret_rows, err, PG_I64(pg_get_i64(due, 0, 0)), PG_TEXT(pg_get_text(due, 0, 4)),
        PG_TEXT(pg_get_text(due, 0, 1)), PG_I64(LEASE_S));
}

/* Whether the need is still due: another server may have fetched the file and ended its job since
 * find_due. As this server has the job now, no other server can. */
static enum err_code check_still_due(struct pg_connection *connection, const struct pg_result *due,
                                     struct arena *arena, bool *ret_is_due, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT FROM symbol_need WHERE tenant_id = $1 AND build_id = $2 AND next_try_at <= now()",
        arena, &rows, err, PG_I64(pg_get_i64(due, 0, 0)), PG_TEXT(pg_get_text(due, 0, 1)));
    *ret_is_due = !code && pg_row_count(rows) > 0;
    return code;
}

/* task->lease stays zeroed if nothing is due. */
static enum err_code claim_job(struct fetch_task *task, struct err *err)
{
    struct debuginfo_fetch *fetch = task->fetch;
    struct pg_result *due, *job = NULL;
    bool is_due = false;
    pg_auto connection = NULL;
    enum err_code code = pg_take(fetch->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = find_due(fetch, connection, task->arena, &due, err);
    if (code || pg_row_count(due) == 0)
        return code;
    code = take_job(connection, due, task->arena, &job, err);
    if (code || pg_row_count(job) == 0)
        return code;
    code = check_still_due(connection, due, task->arena, &is_due, err);
    if (code || !is_due)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    fetch->last_tenant = task->tenant_id = pg_get_i64(due, 0, 0);
    task->build_id = pg_get_text(due, 0, 1);
    task->file = pg_get_text(due, 0, 2);
    task->try_count = (unsigned)pg_get_i64(due, 0, 3);
    task->lease = (struct debuginfo_lease){pg_get_i64(job, 0, 0), pg_get_i64(job, 0, 1)};
    task->renewed_ns = clock_monotonic_ns();
    task->deadline_ns = task->renewed_ns + FETCH_S * CLOCK_NS_PER_S;
    return ERR_NONE;
}

static void renew_lease(struct fetch_task *task, int lease_s)
{
    struct err err;
    bool is_ours = !task->is_lost;
    task->renewed_ns = clock_monotonic_ns();
    if (debuginfo_lease_renew(task->fetch->server, &task->lease, lease_s, &is_ours, &err))
        log_failure("renewing the lease of a fetch", &err);
    task->is_lost = !is_ours;
}

static bool is_late(const struct fetch_task *task)
{
    return clock_monotonic_ns() > task->deadline_ns;
}

/* The disk module logs it when the disk becomes full. */
static bool has_disk(const struct debuginfo_fetch *fetch)
{
    struct err ignored;
    return disk_check(fetch->server->disk, &ignored) == ERR_NONE;
}

static bool may_go_on(void *context)
{
    struct fetch_task *task = context;
    if (clock_monotonic_ns() - task->renewed_ns > RENEW_S * CLOCK_NS_PER_S)
        renew_lease(task, LEASE_S);
    return !task->fetch->should_stop && !task->is_lost && !is_late(task) && has_disk(task->fetch);
}

/* A builder may wait for the memory of others (builder_queue.h) for longer than a lease lasts. */
static bool may_wait_for_builders(void *context)
{
    struct fetch_task *task = context;
    if (clock_monotonic_ns() - task->renewed_ns > RENEW_S * CLOCK_NS_PER_S)
        renew_lease(task, BUILD_LEASE_S);
    return !task->fetch->should_stop && !task->is_lost;
}

/* ---- from a file to a table ---- */

static enum err_code begin_store(struct fetch_task *task, struct pg_connection **ret_connection,
                                 struct err *err)
{
    struct server *server = task->fetch->server;
    enum err_code code =
        pg_take(task->is_public ? server->jobs_database : server->database, ret_connection, err);
    if (code)
        return code;
    return task->is_public ? pg_begin(*ret_connection, PG_NO_TENANT, err)
                           : tenant_begin(*ret_connection, task->tenant_id, task->arena, err);
}

static enum err_code keep_table(void *context, const struct debuginfo_table *table,
                                bool *ret_is_stored, struct err *err)
{
    struct fetch_task *task = context;
    pg_auto connection = NULL;
    enum err_code code = begin_store(task, &connection, err);
    if (code)
        return code;
    code = debuginfo_table_store(task->fetch->server, connection, table, task->arena, ret_is_stored,
                                 err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

static enum err_code publish_table(void *context, const struct debuginfo_built *built,
                                   struct err *err)
{
    struct fetch_task *task = context;
    struct server *server = task->fetch->server;
    struct debuginfo_table table = {.tenant_id =
                                        task->is_public ? DEBUGINFO_PUBLIC : task->tenant_id,
                                    .id = task->build_id,
                                    .source = "upstream",
                                    .file = task->file,
                                    .problem = built->problem,
                                    .bytes = built->bytes,
                                    .is_short_lived = built->is_first_names};
    enum err_code code = disk_check(server->disk, err);
    if (code)
        return code;
    code = debuginfo_table_publish(server, &table, keep_table, task, err);
    symbol_tables_forget(server, task->tenant_id);
    task->lacks_shared = table.facts.quality & SYMBOL_LACKS_SHARED;
    return code;
}

/* ---- fetching ---- */

static void count_metric(const struct fetch_task *task, const char *name, const char *labels,
                         const char *help, int64_t amount)
{
    metric_add(metrics_counter(task->fetch->server->metrics, name, labels, help), amount);
}

/* Counts by result, never by host: teams name theirs, and other users of the metrics must not see
 * them. */
static void count_outcome(const struct fetch_task *task, bool is_given_up)
{
    static const char *const outcomes[] = {[DEBUGINFOD_FOUND] = "found",
                                           [DEBUGINFOD_ABSENT] = "absent",
                                           [DEBUGINFOD_UNREACHABLE] = "unreachable",
                                           [DEBUGINFOD_REFUSED] = "refused"};
    char labels[64];
    snprintf(labels, sizeof(labels), "upstreams=\"%s\",outcome=\"%s\"",
             task->is_public ? "public" : "custom",
             is_given_up ? "again" : outcomes[task->outcome]);
    count_metric(task, "perfolio_symbol_fetches_total", labels,
                 "Binaries requested from debuginfod servers, by outcome.", 1);
}

static bool is_of_the_file(enum err_code code)
{
    return code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE ||
           code == ERR_NOT_FOUND || code == ERR_TIMEOUT;
}

static void conclude_attempt(struct fetch_task *task, enum debuginfod_outcome outcome,
                             const char *reason)
{
    task->outcome = outcome;
    snprintf(task->reason, sizeof(task->reason), "%s", reason);
}

/* Whether the deadline of the fetch has passed and nothing else ended it: then its servers were too
 * slow. */
static bool is_out_of_time(const struct fetch_task *task)
{
    return is_late(task) && !task->fetch->should_stop && !task->is_lost;
}

static void conclude_shared(struct fetch_task *task, enum debuginfod_outcome outcome,
                            const char *reason)
{
    task->shared_outcome = outcome;
    snprintf(task->shared_reason, sizeof(task->shared_reason), "the shared file: %s", reason);
}

static void count_bytes(const struct fetch_task *task, uint64_t bytes)
{
    count_metric(task, "perfolio_debuginfod_bytes_total", "",
                 "Size of the debug files that debuginfod servers sent.", (int64_t)bytes);
}

/* Fetches the file of dwz that a debug file refers to. Any server may have it, also another one
 * than that of the debug file, so all are tried. The builder checks that it is the right file. */
static enum err_code find_shared(void *context, const char *build_id, int *ret_fd, struct err *err)
{
    struct fetch_task *task = context;
    uint8_t id[SYMBOL_BUILDER_ID_BYTES / 2];
    const size_t id_bytes = strlen(build_id) / 2;
    struct debuginfod_response response;
    if (!digest_parse_hex(span_text(build_id), id, id_bytes))
        return err_set(err, ERR_INTERNAL, "no build id: %.80s", build_id);
    const struct debuginfod_request request = {
        .upstreams = task->upstreams->upstreams,
        .upstream_count = task->upstreams->count,
        .owner = task->upstreams->owner,
        .build_id = span_of(id, id_bytes),
        .kind = DEBUGINFOD_DEBUGINFO,
        .max_bytes = task->fetch->server->settings->debuginfod_max_bytes,
        .may_go_on = may_go_on,
        .context = task};
    enum err_code code =
        debuginfod_fetch(task->fetch->server->debuginfo->client, &request, &response, err);
    if (code == ERR_CANCELLED && is_out_of_time(task)) {
        conclude_shared(task, DEBUGINFOD_UNREACHABLE, "the debuginfod servers took too long");
        return ERR_NONE;
    }
    if (code)
        return code;
    task->retry_after_s = response.retry_after_s;
    conclude_shared(task, response.outcome, response.reason);
    if (response.outcome == DEBUGINFOD_FOUND) {
        conclude_shared(task, DEBUGINFOD_REFUSED, "a debuginfod server sent an unusable file");
        count_bytes(task, response.bytes);
        renew_lease(task, BUILD_LEASE_S);
        *ret_fd = response.fd;
    }
    return ERR_NONE;
}

static enum err_code build_table(struct fetch_task *task, int input, struct err *err)
{
    const struct wait_limit wait_limit = {.is_cancelled = &task->fetch->should_stop};
    const struct debuginfo_reader reader = {.publish = publish_table,
                                            .find_shared = find_shared,
                                            .may_wait = may_wait_for_builders,
                                            .context = task};
    struct symbol_builder_report report;
    renew_lease(task, BUILD_LEASE_S);
    conclude_shared(
        task, DEBUGINFOD_REFUSED,
        "its build id is not sent to public servers"); /* until a request sets another reason */
    return debuginfo_builder_run(task->fetch->server, input, &wait_limit, &reader, &report, err);
}

/* Tries the servers in order; after a useless file the next one is tried. */
static enum err_code fetch_from_servers(struct fetch_task *task,
                                        const struct debuginfo_upstreams *upstreams,
                                        enum debuginfod_kind kind, struct err *err)
{
    uint8_t id[DEBUGINFOD_MAX_ID_BYTES * 4];
    const size_t id_bytes = strlen(task->build_id) / 2;
    const char *useless = NULL;
    if (id_bytes > sizeof(id) || !digest_parse_hex(span_text(task->build_id), id, id_bytes))
        return err_set(err, ERR_INTERNAL, "no build id: %.80s", task->build_id);
    for (size_t first = 0; first < upstreams->count;) {
        struct debuginfod_response response;
        const struct debuginfod_request request = {
            .upstreams = upstreams->upstreams + first,
            .upstream_count = upstreams->count - first,
            .owner = upstreams->owner,
            .build_id = span_of(id, id_bytes),
            .kind = kind,
            .max_bytes = task->fetch->server->settings->debuginfod_max_bytes,
            .may_go_on = may_go_on,
            .context = task};
        enum err_code code =
            debuginfod_fetch(task->fetch->server->debuginfo->client, &request, &response, err);
        if (code)
            return code;
        task->retry_after_s = response.retry_after_s;
        conclude_attempt(task, response.outcome, response.reason);
        if (response.outcome != DEBUGINFOD_FOUND)
            break;
        count_bytes(task, response.bytes);
        code = build_table(task, response.fd, err);
        os_close(response.fd);
        if (!code || !is_of_the_file(code))
            return code;
        useless = arena_printf(task->arena, "%s sent an unusable file: %s",
                               request.upstreams[response.upstream].url, err_public_text(err));
        conclude_attempt(task, DEBUGINFOD_REFUSED, useless);
        first += response.upstream + 1;
    }
    if (useless && task->outcome == DEBUGINFOD_ABSENT)
        conclude_attempt(task, DEBUGINFOD_REFUSED, useless);
    return ERR_NONE;
}

/* The debug file; if no server has it, the binary itself, which may have names of its own. */
static enum err_code fetch_any_file(struct fetch_task *task,
                                    const struct debuginfo_upstreams *upstreams, struct err *err)
{
    task->upstreams = upstreams;
    enum err_code code = fetch_from_servers(task, upstreams, DEBUGINFOD_DEBUGINFO, err);
    if (code || task->outcome != DEBUGINFOD_ABSENT)
        return code;
    return fetch_from_servers(task, upstreams, DEBUGINFOD_EXECUTABLE, err);
}

/* ---- storing the result ---- */

/* Teams that share a fetch share its result: the team, or all teams of the public servers. */
#define SHARERS                                                                                    \
    " build_id = $1 AND (tenant_id = $2 OR ($3 AND coalesce((SELECT mode FROM debuginfo_policy p"  \
    "  WHERE p.tenant_id = symbol_need.tenant_id), 'public') = 'public'))"

/* A good table ends the need. A table of symbols only does not, and is retried after
 * SYMBOLS_ALONE_S. A table made without the shared file of dwz does not end it either, and is
 * retried as if the file were missing. */
static enum err_code settle_found(struct fetch_task *task, struct pg_connection *connection,
                                  struct err *err)
{
    const char *reason =
        task->lacks_shared ? task->shared_reason : "the servers have only symbols, no line numbers";
    const int64_t later_s =
        task->lacks_shared
            ? debuginfod_later_s(task->shared_outcome, task->try_count + 1, task->retry_after_s)
            : SYMBOLS_ALONE_S;
    enum err_code code = pg_queue_values(
        connection, PG_NO_TENANT,
        "DELETE FROM symbol_need WHERE" SHARERS " AND EXISTS (SELECT FROM"
        "  (SELECT quality FROM symbol_table_public WHERE build_id = $1 UNION ALL"
        "   SELECT quality FROM symbol_table t WHERE t.tenant_id = symbol_need.tenant_id"
        "   AND t.build_id = $1) AS tables WHERE quality & $4::bigint::integer <> 0"
        "  AND quality & $5::bigint::integer = 0)",
        task->arena, err, PG_TEXT(task->build_id), PG_I64(task->tenant_id),
        PG_BOOL(task->is_public), PG_I64(SYMBOL_TABLES_GOOD), PG_I64(SYMBOL_LACKS_SHARED));
    if (code)
        return code;
    return pg_queue_values(connection, PG_NO_TENANT,
                           "UPDATE symbol_need SET try_count = try_count + 1,"
                           " reason = left($4, 600), next_try_at = now() + $5 * interval '1 s'"
                           " WHERE" SHARERS,
                           task->arena, err, PG_TEXT(task->build_id), PG_I64(task->tenant_id),
                           PG_BOOL(task->is_public), PG_TEXT(reason), PG_I64(later_s));
}

/* Stores the outcome and the time of the next attempt. is_final: there is no further attempt until
 * the team's servers change. */
static enum err_code settle_need(struct fetch_task *task, bool is_final, struct err *err)
{
    const int64_t later_s =
        debuginfod_later_s(task->outcome, task->try_count + 1, task->retry_after_s);
    pg_auto connection = NULL;
    enum err_code code = pg_take(task->fetch->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = debuginfo_lease_end(connection, PG_NO_TENANT, &task->lease, task->arena, err);
    if (code)
        return code;
    if (task->outcome == DEBUGINFOD_FOUND)
        code = settle_found(task, connection, err);
    else
        code = pg_queue_values(
            connection, PG_NO_TENANT,
            "UPDATE symbol_need SET try_count = try_count + 1, reason = left($4, 600), next_try_at "
            "="
            " CASE WHEN $6 THEN NULL ELSE now() + $5 * interval '1 s' END WHERE" SHARERS,
            task->arena, err, PG_TEXT(task->build_id), PG_I64(task->tenant_id),
            PG_BOOL(task->is_public), PG_TEXT(task->reason), PG_I64(later_s), PG_BOOL(is_final));
    return code ? code : pg_commit(connection, err);
}

static enum err_code find_upstreams(struct fetch_task *task,
                                    struct debuginfo_upstreams *ret_upstreams, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(task->fetch->server->jobs_database, &connection, err);
    return code ? code
                : debuginfo_upstreams_of(task->fetch->server, connection, task->tenant_id,
                                         task->arena, ret_upstreams, err);
}

static enum err_code fetch_binary(struct fetch_task *task, struct err *err)
{
    struct debuginfo_upstreams upstreams;
    enum err_code code = find_upstreams(task, &upstreams, err);
    task->is_public = upstreams.is_public;
    if (!code && upstreams.count == 0) {
        conclude_attempt(
            task, DEBUGINFOD_ABSENT,
            "its debug information was not uploaded, and the team uses no debuginfod server");
        return settle_need(task, true, err);
    }
    if (!code && strlen(task->build_id) / 2 > DEBUGINFOD_MAX_ID_BYTES) { /* Go's own */
        conclude_attempt(
            task, DEBUGINFOD_ABSENT,
            "debuginfod servers know only GNU build ids, and this is another kind of id");
        return settle_need(task, true, err);
    }
    if (!code)
        code = fetch_any_file(task, &upstreams, err);
    if (code == ERR_CANCELLED && !is_out_of_time(task))
        return code;
    if (code == ERR_CANCELLED) {
        conclude_attempt(task, DEBUGINFOD_UNREACHABLE, "the debuginfod servers took too long");
    } else if (code) { /* a failure of this host, or the team's quota */
        log_failure("fetching debug files", err);
        conclude_attempt(task, DEBUGINFOD_UNREACHABLE,
                         code == ERR_QUOTA
                             ? "the team's storage quota has no space for its symbol table"
                             : "the server failed to process it and will try again");
    }
    code = settle_need(task, false, err);
    count_outcome(task, code != ERR_NONE);
    return code;
}

/* Another server continues at once, or this one after its next start. */
static void release_job(struct fetch_task *task)
{
    struct err err;
    pg_auto connection = NULL;
    enum err_code code = pg_take(task->fetch->server->jobs_database, &connection, &err);
    if (!code)
        code = debuginfo_lease_end(connection, PG_NO_TENANT, &task->lease, task->arena, &err);
    if (code && code != ERR_CONFLICT)
        log_failure("giving back a fetch", &err); /* the lease expires by itself */
}

static bool run_one(struct debuginfo_fetch *fetch)
{
    struct err err;
    arena_auto arena = arena_create();
    struct fetch_task task = {.fetch = fetch, .arena = arena};
    if (!has_disk(fetch))
        return false;
    enum err_code code = claim_job(&task, &err);
    if (code)
        log_failure("looking for debug files to fetch", &err);
    if (code || !task.lease.job_id)
        return false;
    code = fetch_binary(&task, &err);
    if (code && code != ERR_CONFLICT && code != ERR_CANCELLED)
        log_failure("fetching debug files", &err);
    if (code && code != ERR_CONFLICT)
        release_job(&task);
    return !code;
}

static void *fetch_main(void *context)
{
    struct debuginfo_fetch *fetch = context;
    while (!fetch->should_stop) {
        if (run_one(fetch))
            continue;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += POLL_S;
        pthread_mutex_lock(&fetch->mutex);
        if (!fetch->should_stop)
            pthread_cond_timedwait(&fetch->wake, &fetch->mutex, &until);
        pthread_mutex_unlock(&fetch->mutex);
    }
    return NULL;
}

/* ---- life ---- */

static void destroy_fetch(struct debuginfo_fetch *fetch)
{
    pthread_cond_destroy(&fetch->wake);
    pthread_mutex_destroy(&fetch->mutex);
    mem_free(fetch);
}

enum err_code debuginfo_fetch_start(struct server *server, struct debuginfo_fetch **ret_fetch,
                                    struct err *err)
{
    pthread_condattr_t attributes;
    *ret_fetch = NULL;
    if (!server->debuginfo->client)
        return ERR_NONE;
    struct debuginfo_fetch *fetch = mem_new(struct debuginfo_fetch, 1);
    fetch->server = server;
    pthread_mutex_init(&fetch->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fetch->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    while (fetch->thread_count < THREADS &&
           pthread_create(&fetch->threads[fetch->thread_count], NULL, fetch_main, fetch) == 0)
        fetch->thread_count++;
    if (fetch->thread_count == 0) {
        destroy_fetch(fetch);
        return err_set(err, ERR_INTERNAL, "cannot start the threads that fetch debug files");
    }
    *ret_fetch = fetch;
    return ERR_NONE;
}

void debuginfo_fetch_stop(struct debuginfo_fetch *fetch)
{
    if (!fetch)
        return;
    pthread_mutex_lock(&fetch->mutex);
    fetch->should_stop = true;
    pthread_cond_broadcast(&fetch->wake);
    pthread_mutex_unlock(&fetch->mutex);
    for (int i = 0; i < fetch->thread_count; i++)
        pthread_join(fetch->threads[i], NULL);
    destroy_fetch(fetch);
}
