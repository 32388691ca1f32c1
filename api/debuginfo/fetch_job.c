#include "api/debuginfo/fetch_job.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/builder_process.h"
#include "api/debuginfo/job_lease.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/debuginfo/table_store.h"
#include "api/debuginfo/upstreams.h"
#include "api/identity/tenant.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
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
    BUILD_LEASE_S = 300, /* more than both builders may take in elapsed time */
    POLL_S = 1,
    THREADS = 4,
    TENANT_AT_ONCE = 2, /* so that a team's slow servers do not occupy all threads */
    HUNT_S = 600,       /* for one binary, whatever its servers do */
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
struct hunt {
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

static void report(const char *what, const struct err *err)
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
        "  AND j.kind = 'fetch' AND j.leased_until > now()) < $2"
        " ORDER BY n.tenant_id <= $1, n.tenant_id, n.next_try_at LIMIT 1",
        arena, ret_rows, err, PG_I64(fetch->last_tenant), PG_I64(TENANT_AT_ONCE));
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

/* Whether it is still due: another server may have fetched it and ended its job since find_due. Now
 * that the job is this server's, no other can. */
static enum err_code look_again(struct pg_connection *connection, const struct pg_result *due,
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

/* hunt->lease stays zeroed if nothing is due. */
static enum err_code claim(struct hunt *hunt, struct err *err)
{
    struct debuginfo_fetch *fetch = hunt->fetch;
    struct pg_result *due, *job = NULL;
    bool is_due = false;
    pg_auto connection = NULL;
    enum err_code code = pg_take(fetch->server->jobs_database, &connection, err);
    if (!code)
        code = pg_begin(connection, PG_NO_TENANT, err);
    if (!code)
        code = find_due(fetch, connection, hunt->arena, &due, err);
    if (!code && pg_row_count(due) > 0)
        code = take_job(connection, due, hunt->arena, &job, err);
    if (!code && job && pg_row_count(job) > 0)
        code = look_again(connection, due, hunt->arena, &is_due, err);
    if (code || !is_due)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    fetch->last_tenant = hunt->tenant_id = pg_get_i64(due, 0, 0);
    hunt->build_id = pg_get_text(due, 0, 1);
    hunt->file = pg_get_text(due, 0, 2);
    hunt->try_count = (unsigned)pg_get_i64(due, 0, 3);
    hunt->lease = (struct debuginfo_lease){pg_get_i64(job, 0, 0), pg_get_i64(job, 0, 1)};
    hunt->renewed_ns = clock_monotonic_ns();
    hunt->deadline_ns = hunt->renewed_ns + HUNT_S * CLOCK_NS_PER_S;
    return ERR_NONE;
}

static void renew(struct hunt *hunt, int lease_s)
{
    struct err err;
    bool is_ours = !hunt->is_lost;
    hunt->renewed_ns = clock_monotonic_ns();
    if (debuginfo_lease_renew(hunt->fetch->server, &hunt->lease, lease_s, &is_ours, &err))
        report("renewing the lease of a fetch", &err);
    hunt->is_lost = !is_ours;
}

static bool is_late(const struct hunt *hunt)
{
    return clock_monotonic_ns() > hunt->deadline_ns;
}

static bool may_go_on(void *context)
{
    struct hunt *hunt = context;
    if (clock_monotonic_ns() - hunt->renewed_ns > RENEW_S * CLOCK_NS_PER_S)
        renew(hunt, LEASE_S);
    return !hunt->fetch->should_stop && !hunt->is_lost && !is_late(hunt);
}

/* ---- from a file to a table ---- */

static enum err_code begin_store(struct hunt *hunt, struct pg_connection **ret_connection,
                                 struct err *err)
{
    struct server *server = hunt->fetch->server;
    enum err_code code =
        pg_take(hunt->is_public ? server->jobs_database : server->database, ret_connection, err);
    if (code)
        return code;
    return hunt->is_public ? pg_begin(*ret_connection, PG_NO_TENANT, err)
                           : tenant_begin(*ret_connection, hunt->tenant_id, hunt->arena, err);
}

static enum err_code keep(void *context, const struct debuginfo_table *table, bool *ret_is_stored,
                          struct err *err)
{
    struct hunt *hunt = context;
    pg_auto connection = NULL;
    enum err_code code = begin_store(hunt, &connection, err);
    if (code)
        return code;
    code = debuginfo_table_store(hunt->fetch->server, connection, table, hunt->arena, ret_is_stored,
                                 err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

static enum err_code publish(void *context, const struct debuginfo_built *built, struct err *err)
{
    struct hunt *hunt = context;
    struct server *server = hunt->fetch->server;
    struct debuginfo_table table = {.tenant_id =
                                        hunt->is_public ? DEBUGINFO_PUBLIC : hunt->tenant_id,
                                    .id = hunt->build_id,
                                    .source = "upstream",
                                    .file = hunt->file,
                                    .problem = built->problem,
                                    .bytes = built->bytes,
                                    .is_short_lived = built->is_first_names};
    enum err_code code = debuginfo_table_publish(server, &table, keep, hunt, err);
    symbol_tables_forget(server, hunt->tenant_id);
    hunt->lacks_shared = table.facts.quality & SYMBOL_LACKS_SHARED;
    return code;
}

/* ---- fetching ---- */

static void count(const struct hunt *hunt, const char *name, const char *labels, const char *help,
                  int64_t amount)
{
    metric_add(metrics_counter(hunt->fetch->server->metrics, name, labels, help), amount);
}

/* Counts by result, never by host: teams name theirs, and other users of the metrics must not see
 * them. */
static void count_outcome(const struct hunt *hunt, bool is_given_up)
{
    static const char *const outcomes[] = {[DEBUGINFOD_FOUND] = "found",
                                           [DEBUGINFOD_ABSENT] = "absent",
                                           [DEBUGINFOD_UNREACHABLE] = "unreachable",
                                           [DEBUGINFOD_REFUSED] = "refused"};
    char labels[64];
    snprintf(labels, sizeof(labels), "upstreams=\"%s\",outcome=\"%s\"",
             hunt->is_public ? "public" : "custom",
             is_given_up ? "again" : outcomes[hunt->outcome]);
    count(hunt, "perfolio_symbol_fetches_total", labels,
          "Binaries requested from debuginfod servers, by outcome.", 1);
}

static bool is_of_the_file(enum err_code code)
{
    return code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE ||
           code == ERR_NOT_FOUND || code == ERR_TIMEOUT;
}

static void conclude(struct hunt *hunt, enum debuginfod_outcome outcome, const char *reason)
{
    hunt->outcome = outcome;
    snprintf(hunt->reason, sizeof(hunt->reason), "%s", reason);
}

/* Neither this server nor this job failed: the time of the fetch is over. */
static bool is_out_of_time(const struct hunt *hunt)
{
    return is_late(hunt) && !hunt->fetch->should_stop && !hunt->is_lost;
}

static void conclude_shared(struct hunt *hunt, enum debuginfod_outcome outcome, const char *reason)
{
    hunt->shared_outcome = outcome;
    snprintf(hunt->shared_reason, sizeof(hunt->shared_reason), "the shared file: %s", reason);
}

static void count_bytes(const struct hunt *hunt, uint64_t bytes)
{
    count(hunt, "perfolio_debuginfod_bytes_total", "",
          "Size of the debug files that debuginfod servers sent.", (int64_t)bytes);
}

/* Tries all servers, whichever had the file that refers to it. The builder checks that it is the
 * right one. */
static enum err_code find_shared(void *context, const char *build_id, int *ret_fd, struct err *err)
{
    struct hunt *hunt = context;
    uint8_t id[SYMBOL_BUILDER_ID_BYTES / 2];
    const size_t id_bytes = strlen(build_id) / 2;
    struct debuginfod_response answer;
    if (!digest_parse_hex(span_text(build_id), id, id_bytes))
        return err_set(err, ERR_INTERNAL, "no build id: %.80s", build_id);
    const struct debuginfod_request request = {
        .upstreams = hunt->upstreams->upstreams,
        .upstream_count = hunt->upstreams->count,
        .build_id = span_of(id, id_bytes),
        .kind = DEBUGINFOD_DEBUGINFO,
        .max_bytes = hunt->fetch->server->settings->debuginfod_max_bytes,
        .may_go_on = may_go_on,
        .context = hunt};
    enum err_code code = debuginfod_fetch(hunt->fetch->server->debuginfod, &request, &answer, err);
    if (code == ERR_CANCELLED && is_out_of_time(hunt)) {
        conclude_shared(hunt, DEBUGINFOD_UNREACHABLE, "the debuginfod servers took too long");
        return ERR_NONE;
    }
    if (code)
        return code;
    hunt->retry_after_s = answer.retry_after_s;
    conclude_shared(hunt, answer.outcome, answer.reason);
    if (answer.outcome == DEBUGINFOD_FOUND) {
        conclude_shared(hunt, DEBUGINFOD_REFUSED, "a debuginfod server sent an unusable file");
        count_bytes(hunt, answer.bytes);
        renew(hunt, BUILD_LEASE_S);
        *ret_fd = answer.fd;
    }
    return ERR_NONE;
}

static enum err_code build(struct hunt *hunt, int input, struct err *err)
{
    const struct wait_limit wait_limit = {.is_cancelled = &hunt->fetch->should_stop};
    const struct debuginfo_reader reader = {
        .publish = publish, .find_shared = find_shared, .context = hunt};
    struct symbol_builder_report report;
    renew(hunt, BUILD_LEASE_S);
    conclude_shared(hunt, DEBUGINFOD_REFUSED,
                    "its build id is not sent to public servers"); /* until a request sets another reason */
    return debuginfo_builder_run(hunt->fetch->server, input, &wait_limit, &reader, &report, err);
}

/* Tries the servers in order; after a useless file the next one is tried. */
static enum err_code ask(struct hunt *hunt, const struct debuginfo_upstreams *upstreams,
                         enum debuginfod_kind kind, struct err *err)
{
    uint8_t id[DEBUGINFOD_MAX_ID_BYTES * 4];
    const size_t id_bytes = strlen(hunt->build_id) / 2;
    const char *useless = NULL;
    if (id_bytes > sizeof(id) || !digest_parse_hex(span_text(hunt->build_id), id, id_bytes))
        return err_set(err, ERR_INTERNAL, "no build id: %.80s", hunt->build_id);
    for (size_t first = 0; first < upstreams->count;) {
        struct debuginfod_response answer;
        const struct debuginfod_request request = {
            .upstreams = upstreams->upstreams + first,
            .upstream_count = upstreams->count - first,
            .build_id = span_of(id, id_bytes),
            .kind = kind,
            .max_bytes = hunt->fetch->server->settings->debuginfod_max_bytes,
            .may_go_on = may_go_on,
            .context = hunt};
        enum err_code code =
            debuginfod_fetch(hunt->fetch->server->debuginfod, &request, &answer, err);
        if (code)
            return code;
        hunt->retry_after_s = answer.retry_after_s;
        conclude(hunt, answer.outcome, answer.reason);
        if (answer.outcome != DEBUGINFOD_FOUND)
            break;
        count_bytes(hunt, answer.bytes);
        code = build(hunt, answer.fd, err);
        os_close(answer.fd);
        if (!code || !is_of_the_file(code))
            return code;
        useless = arena_printf(hunt->arena, "%s sent an unusable file: %s",
                               request.upstreams[answer.upstream].url, err_public_text(err));
        conclude(hunt, DEBUGINFOD_REFUSED, useless);
        first += answer.upstream + 1;
    }
    if (useless && hunt->outcome == DEBUGINFOD_ABSENT)
        conclude(hunt, DEBUGINFOD_REFUSED, useless);
    return ERR_NONE;
}

/* The debug file; if no server has it, the binary itself, which may have names of its own. */
static enum err_code ask_for_both(struct hunt *hunt, const struct debuginfo_upstreams *upstreams,
                                  struct err *err)
{
    hunt->upstreams = upstreams;
    enum err_code code = ask(hunt, upstreams, DEBUGINFOD_DEBUGINFO, err);
    if (code || hunt->outcome != DEBUGINFOD_ABSENT)
        return code;
    return ask(hunt, upstreams, DEBUGINFOD_EXECUTABLE, err);
}

/* ---- storing the result ---- */

/* Teams that share a fetch share its result: the team, or all teams of the public servers. */
#define SHARERS                                                                                    \
    " build_id = $1 AND (tenant_id = $2 OR ($3 AND coalesce((SELECT mode FROM debuginfo_policy p"  \
    "  WHERE p.tenant_id = symbol_need.tenant_id), 'public') = 'public'))"

/* A table of symbols only does not end the need, but is not retried every hour; nor does one
 * without dwz's shared file, which is retried like a missing one. */
static enum err_code settle_found(struct hunt *hunt, struct pg_connection *connection,
                                  struct err *err)
{
    const char *reason =
        hunt->lacks_shared ? hunt->shared_reason : "the servers have only symbols, no line numbers";
    const int64_t later_s =
        hunt->lacks_shared
            ? debuginfod_later_s(hunt->shared_outcome, hunt->try_count + 1, hunt->retry_after_s)
            : SYMBOLS_ALONE_S;
    enum err_code code = pg_queue_values(
        connection, PG_NO_TENANT,
        "DELETE FROM symbol_need WHERE" SHARERS " AND EXISTS (SELECT FROM"
        "  (SELECT quality FROM symbol_table_public WHERE build_id = $1 UNION ALL"
        "   SELECT quality FROM symbol_table t WHERE t.tenant_id = symbol_need.tenant_id"
        "   AND t.build_id = $1) AS tables WHERE quality & $4::bigint::integer <> 0"
        "  AND quality & $5::bigint::integer = 0)",
        hunt->arena, err, PG_TEXT(hunt->build_id), PG_I64(hunt->tenant_id),
        PG_BOOL(hunt->is_public), PG_I64(SYMBOL_TABLES_GOOD), PG_I64(SYMBOL_LACKS_SHARED));
    if (code)
        return code;
    return pg_queue_values(connection, PG_NO_TENANT,
                           "UPDATE symbol_need SET try_count = try_count + 1,"
                           " reason = left($4, 600), next_try_at = now() + $5 * interval '1 s'"
                           " WHERE" SHARERS,
                           hunt->arena, err, PG_TEXT(hunt->build_id), PG_I64(hunt->tenant_id),
                           PG_BOOL(hunt->is_public), PG_TEXT(reason), PG_I64(later_s));
}

/* is_asked_no_more: until the team's servers change. */
static enum err_code settle(struct hunt *hunt, bool is_asked_no_more, struct err *err)
{
    const int64_t later_s =
        debuginfod_later_s(hunt->outcome, hunt->try_count + 1, hunt->retry_after_s);
    pg_auto connection = NULL;
    enum err_code code = pg_take(hunt->fetch->server->jobs_database, &connection, err);
    if (!code)
        code = pg_begin(connection, PG_NO_TENANT, err);
    if (!code)
        code = debuginfo_lease_end(connection, PG_NO_TENANT, &hunt->lease, hunt->arena, err);
    if (!code && hunt->outcome == DEBUGINFOD_FOUND)
        code = settle_found(hunt, connection, err);
    else if (!code)
        code = pg_queue_values(
            connection, PG_NO_TENANT,
            "UPDATE symbol_need SET try_count = try_count + 1, reason = left($4, 600), next_try_at "
            "="
            " CASE WHEN $6 THEN NULL ELSE now() + $5 * interval '1 s' END WHERE" SHARERS,
            hunt->arena, err, PG_TEXT(hunt->build_id), PG_I64(hunt->tenant_id),
            PG_BOOL(hunt->is_public), PG_TEXT(hunt->reason), PG_I64(later_s),
            PG_BOOL(is_asked_no_more));
    return code ? code : pg_commit(connection, err);
}

static enum err_code find_upstreams(struct hunt *hunt, struct debuginfo_upstreams *ret_upstreams,
                                    struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(hunt->fetch->server->jobs_database, &connection, err);
    return code ? code
                : debuginfo_upstreams_of(hunt->fetch->server, connection, hunt->tenant_id,
                                         hunt->arena, ret_upstreams, err);
}

static enum err_code run(struct hunt *hunt, struct err *err)
{
    struct debuginfo_upstreams upstreams;
    enum err_code code = find_upstreams(hunt, &upstreams, err);
    hunt->is_public = upstreams.is_public;
    if (!code && upstreams.count == 0) {
        conclude(hunt, DEBUGINFOD_ABSENT,
                 "its debug information was not uploaded, and the team uses no debuginfod server");
        return settle(hunt, true, err);
    }
    if (!code && strlen(hunt->build_id) / 2 > DEBUGINFOD_MAX_ID_BYTES) { /* Go's own */
        conclude(hunt, DEBUGINFOD_ABSENT,
                 "debuginfod servers know only GNU build ids, and this is another kind of id");
        return settle(hunt, true, err);
    }
    if (!code)
        code = ask_for_both(hunt, &upstreams, err);
    if (code == ERR_CANCELLED && !is_out_of_time(hunt))
        return code;
    if (code == ERR_CANCELLED) {
        conclude(hunt, DEBUGINFOD_UNREACHABLE, "the debuginfod servers took too long");
    } else if (code) { /* a failure of this host, or the team's quota */
        report("fetching debug files", err);
        conclude(hunt, DEBUGINFOD_UNREACHABLE,
                 code == ERR_QUOTA ? "the team's storage quota has no space for its symbol table"
                                   : "the server failed to process it and will try again");
    }
    code = settle(hunt, false, err);
    count_outcome(hunt, code != ERR_NONE);
    return code;
}

/* Another server continues at once, or this one after its next start. */
static void give_back(struct hunt *hunt)
{
    struct err err;
    pg_auto connection = NULL;
    enum err_code code = pg_take(hunt->fetch->server->jobs_database, &connection, &err);
    if (!code)
        code = debuginfo_lease_end(connection, PG_NO_TENANT, &hunt->lease, hunt->arena, &err);
    if (code && code != ERR_CONFLICT)
        report("giving back a fetch", &err); /* the lease expires by itself */
}

static bool run_one(struct debuginfo_fetch *fetch)
{
    struct err err;
    arena_auto arena = arena_create();
    struct hunt hunt = {.fetch = fetch, .arena = arena};
    enum err_code code = claim(&hunt, &err);
    if (code)
        report("looking for debug files to fetch", &err);
    if (code || !hunt.lease.job_id)
        return false;
    code = run(&hunt, &err);
    if (code && code != ERR_CONFLICT && code != ERR_CANCELLED)
        report("fetching debug files", &err);
    if (code && code != ERR_CONFLICT)
        give_back(&hunt);
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

static void destroy(struct debuginfo_fetch *fetch)
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
    if (!server->debuginfod)
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
        destroy(fetch);
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
    destroy(fetch);
}
