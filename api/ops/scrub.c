#include "api/ops/scrub.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/ops/object_verify.h"
#include "api/ops/scrub_metrics.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    POLL_S = 2,
    LEASE_S = 60,
    RENEW_S = 10,
    SAVE_S = 5,        /* a page, after which the position is saved, ends with the first object that
                          ends later than this after the page began */
    LOG_REPEAT_S = 60, /* the same failure is logged this often */
    LOGGED_PROBLEMS = 1000, /* per pass: a disk that is gone loses all objects */
    PAGE_OBJECTS = 32,
    KEYS_MAX_BYTES = 1 << 20,
    STORE_PAGE_OBJECTS = 1, /* a block is read without a pause, and may be large */
};

static const double min_bytes_per_s = 4 << 20;

struct scrub {
    struct server *server;
    char name[DIGEST_ID_BYTES]; /* in the lease */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards should_stop */
    pthread_cond_t wake;
    bool should_stop;
    bool is_started;
    /* Used by the thread only. */
    bool has_lease;
    bool has_pass; /* kind and cursor are those of the row */
    int64_t renewed_ns;
    int64_t page_start_ns;
    enum err_code logged_code; /* the last failure that was logged, at logged_ns */
    int64_t logged_ns;
    int64_t due_ns; /* the time before which the rate does not allow the next read */
    double bytes_per_s;
    enum integrity_kind kind;
    char cursor[OBJECT_VERIFY_CURSOR_BYTES];
    int logged_count;           /* problems that this server found in this pass */
    enum err_code problem_code; /* result of writing problems to the table */
    struct err *err;
    struct buf read_keys; /* of the current page, as an array of PostgreSQL */
    struct scrub_metrics metrics;
};

/* ---- waiting ---- */

/* False if the thread has to end. */
static bool wait_ns(struct scrub *scrub, int64_t duration_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t end_ns = until.tv_sec * CLOCK_NS_PER_S + until.tv_nsec + duration_ns;
    until =
        (struct timespec){.tv_sec = end_ns / CLOCK_NS_PER_S, .tv_nsec = end_ns % CLOCK_NS_PER_S};
    pthread_mutex_lock(&scrub->mutex);
    while (!scrub->should_stop)
        if (pthread_cond_timedwait(&scrub->wake, &scrub->mutex, &until) != 0)
            break;
    const bool goes_on = !scrub->should_stop;
    pthread_mutex_unlock(&scrub->mutex);
    return goes_on;
}

/* ---- the row ---- */

static enum err_code query_row(struct scrub *scrub, const char *sql, struct arena *arena,
                               struct pg_result **ret_rows, struct err *err)
{
    const double period_s = (double)scrub->server->settings->scrub_period_s;
    pg_auto connection = NULL;
    const enum err_code code = pg_take(scrub->server->jobs_database, &connection, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT, sql, arena, ret_rows, err,
                                  PG_TEXT(scrub->name), PG_I64(LEASE_S), PG_I64((int64_t)period_s));
}

/* Takes or renews the lease of a pass that runs or is due; a paused scrub has no lease. */
static enum err_code renew_lease(struct scrub *scrub, struct arena *arena,
                                 struct pg_result **ret_rows, struct err *err)
{
    const enum err_code code =
        query_row(scrub,
                  "UPDATE scrub SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
                  " WHERE NOT is_paused AND (leased_by = $1 OR leased_until < now())"
                  " AND (started_at IS NOT NULL OR next_pass_at <= now()) AND $3 > 0"
                  " RETURNING started_at IS NOT NULL, kind, cursor, total_bytes",
                  arena, ret_rows, err);
    scrub->has_lease = !code && pg_row_count(*ret_rows) == 1;
    scrub->renewed_ns = clock_monotonic_ns();
    return code;
}

static enum err_code begin_pass(struct scrub *scrub, struct arena *arena,
                                struct pg_result **ret_rows, struct err *err)
{
    return query_row(
        scrub,
        "UPDATE scrub SET started_at = now(), kind = '', cursor = '', objects = 0, bytes = 0,"
        " total_bytes = (SELECT coalesce(sum(bytes), 0)::bigint FROM ("
        "  SELECT raw_bytes AS bytes FROM share WHERE state = 'live'"
        "  UNION ALL SELECT size_bytes FROM upload_part"
        "  UNION ALL SELECT bytes FROM debug_file"
        "  UNION ALL SELECT bytes FROM symbol_table"
        "  UNION ALL SELECT bytes FROM symbol_table_public"
        "  UNION ALL SELECT bytes FROM segment UNION ALL SELECT bytes FROM block) AS object)"
        " WHERE leased_by = $1 AND $2 > 0 AND $3 > 0"
        " RETURNING true, kind, cursor, total_bytes",
        arena, ret_rows, err);
}

static enum integrity_kind find_kind(const char *name)
{
    for (int kind = 0; kind < INTEGRITY_KIND_COUNT; kind++)
        if (strcmp(integrity_kind_name((enum integrity_kind)kind), name) == 0)
            return (enum integrity_kind)kind;
    return 0;
}

/* Reads all bytes in a quarter of the period. */
static double rate_of(const struct scrub *scrub, int64_t total_bytes)
{
    const double rate = 4 * (double)total_bytes / (double)scrub->server->settings->scrub_period_s;
    return rate > min_bytes_per_s ? rate : min_bytes_per_s;
}

/* Whether the lease was renewed recently, so that the position in the row equals that of scrub. */
static bool is_fresh(const struct scrub *scrub)
{
    return scrub->has_lease && scrub->has_pass &&
           clock_monotonic_ns() - scrub->renewed_ns < RENEW_S * CLOCK_NS_PER_S;
}

/* *ret_has_pass: this server has the lease of a pass, whose position is in scrub. */
static enum err_code take_pass(struct scrub *scrub, bool *ret_has_pass, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    *ret_has_pass = is_fresh(scrub);
    if (*ret_has_pass)
        return ERR_NONE;
    scrub->has_pass = false;
    enum err_code code = renew_lease(scrub, arena, &rows, err);
    if (code || !scrub->has_lease)
        return code;
    if (!pg_get_bool(rows, 0, 0))
        code = begin_pass(scrub, arena, &rows, err);
    if (code || !scrub->has_lease || pg_row_count(rows) == 0)
        return code;
    if (!*pg_get_text(rows, 0, 1))
        scrub->logged_count = 0;
    scrub->kind = find_kind(pg_get_text(rows, 0, 1));
    snprintf(scrub->cursor, sizeof(scrub->cursor), "%s", pg_get_text(rows, 0, 2));
    scrub->bytes_per_s = rate_of(scrub, pg_get_i64(rows, 0, 3));
    *ret_has_pass = scrub->has_pass = true;
    return ERR_NONE;
}

static enum err_code save_position(struct scrub *scrub, const struct object_verify_result *result,
                                   struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = pg_take(scrub->server->jobs_database, &connection, err);
    if (!code)
        code = pg_query_values(
            connection, PG_NO_TENANT,
            "UPDATE scrub SET kind = $2, cursor = $3, objects = objects + $4,"
            " bytes = bytes + $5 WHERE leased_by = $1 AND started_at IS NOT NULL",
            arena, &rows, err, PG_TEXT(scrub->name), PG_TEXT(integrity_kind_name(scrub->kind)),
            PG_TEXT(scrub->cursor), PG_I64((int64_t)object_verify_objects(result)),
            PG_I64((int64_t)result->byte_count));
    scrub->has_lease &=
        !code && pg_affected(rows) == 1; /* the pass was paused, or the lease expired */
    return code;
}

static void log_pass(const struct pg_result *rows)
{
    const int64_t problems = pg_get_i64(rows, 0, 2);
    log_event(problems ? LOG_ERROR : LOG_INFO, "the scrub has read all stored objects",
              "objects=%" PRId64 " bytes=%" PRId64 " problems=%" PRId64 " seconds=%" PRId64,
              pg_get_i64(rows, 0, 0), pg_get_i64(rows, 0, 1), problems, pg_get_i64(rows, 0, 3));
}

/* Problems of earlier passes that this one did not find are solved: the object is intact or gone.
 */
static enum err_code end_pass(struct scrub *scrub, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    enum err_code code = query_row(
        scrub,
        "WITH pass AS (SELECT started_at FROM scrub WHERE leased_by = $1 AND started_at IS "
        "NOT NULL),"
        " solved AS (DELETE FROM object_problem USING pass WHERE seen_at < started_at)"
        " UPDATE scrub SET last_started_at = scrub.started_at, last_ended_at = now(),"
        " last_objects = objects, last_bytes = bytes, last_problems ="
        "  (SELECT count(*) FROM object_problem WHERE seen_at >= scrub.started_at),"
        " next_pass_at = greatest(scrub.started_at + $3 * interval '0.5 s', now()),"
        " started_at = NULL, kind = '', cursor = '', leased_until = '-infinity' FROM pass"
        " WHERE $2 > 0 RETURNING last_objects, last_bytes, last_problems,"
        " extract(epoch FROM last_ended_at - last_started_at)::bigint",
        arena, &rows, err);
    if (!code && pg_row_count(rows))
        log_pass(rows);
    return code;
}

/* ---- a page ---- */

/* *ret_is_new: the problem is new in this pass. */
static enum err_code write_problem(struct scrub *scrub, const struct object_problem *problem,
                                   bool *ret_is_new, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = pg_take(scrub->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, PG_NO_TENANT,
        "WITH known AS (SELECT 1 FROM object_problem, scrub WHERE object_key = $1"
        "  AND problem = $3 AND seen_at >= started_at),"
        " written AS (INSERT INTO object_problem AS p"
        "  (object_key, kind, problem, tenant, detail) VALUES ($1, $2, $3, $4, $5)"
        "  ON CONFLICT (object_key) DO UPDATE SET problem = excluded.problem,"
        "  detail = excluded.detail, seen_at = now())"
        " SELECT NOT EXISTS (SELECT FROM known)",
        arena, &rows, err, PG_TEXT(problem->key), PG_TEXT(integrity_kind_name(problem->kind)),
        PG_TEXT(object_verify_problem_name(problem->problem)),
        problem->tenant_id ? PG_I64(problem->tenant_id) : PG_NULL, PG_TEXT(problem->detail));
    if (code)
        return code;
    *ret_is_new = pg_get_bool(rows, 0, 0);
    return ERR_NONE;
}

static void note_problem(void *context, const struct object_problem *problem)
{
    struct scrub *scrub = context;
    bool is_new = true;
    char text[ERR_MESSAGE_BYTES * 2];
    if (!scrub->problem_code)
        scrub->problem_code = write_problem(scrub, problem, &is_new, scrub->err);
    if (!is_new || scrub->logged_count > LOGGED_PROBLEMS)
        return;
    if (scrub->logged_count++ == LOGGED_PROBLEMS) {
        log_event(LOG_ERROR, "the scrub found more damaged or lost objects, which are not logged",
                  "logged=%d", LOGGED_PROBLEMS);
        return;
    }
    log_event(LOG_ERROR,
              problem->problem == STORE_PROBLEM_MISSING ? "the scrub found a lost object"
                                                        : "the scrub found a damaged object",
              "kind=%s problem=%s object=%s tenant=%" PRId64 " error=%s",
              integrity_kind_name(problem->kind), object_verify_problem_name(problem->problem),
              problem->key, problem->tenant_id, log_quote(problem->detail, text, sizeof(text)));
}

/* Keys contain no character that needs quoting. */
static void note_read(void *context, const char *key)
{
    struct scrub *scrub = context;
    buf_printf(&scrub->read_keys, "%c%s", scrub->read_keys.size ? ',' : '{', key);
}

/* Problems of earlier passes that this one did not find in the objects of the page are solved. They
 * are removed now, since an object with a problem is not used, and the pass may take days. */
static enum err_code forget_solved(struct scrub *scrub, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    pg_auto connection = NULL;
    if (!scrub->read_keys.size)
        return ERR_NONE;
    buf_append_byte(&scrub->read_keys, '}');
    const enum err_code code = pg_take(scrub->server->jobs_database, &connection, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT,
                                  "DELETE FROM object_problem USING scrub"
                                  " WHERE object_key = ANY ($1::text[]) AND seen_at < started_at"
                                  " AND leased_by = $2",
                                  arena, &rows, err, PG_SPAN(buf_span(&scrub->read_keys)),
                                  PG_TEXT(scrub->name));
}

/* Renews the lease while a page is read, which may take longer than the lease lasts. */
static bool keep_lease(struct scrub *scrub)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    struct err ignored;
    if (clock_monotonic_ns() - scrub->renewed_ns < RENEW_S * CLOCK_NS_PER_S)
        return true;
    return renew_lease(scrub, arena, &rows, &ignored) == ERR_NONE && scrub->has_lease;
}

/* Called after each piece that was read: waits until the bytes are within the rate. */
static bool pace_reading(void *context, uint64_t bytes)
{
    struct scrub *scrub = context;
    const int64_t now_ns = clock_monotonic_ns();
    if (scrub->due_ns < now_ns)
        scrub->due_ns = now_ns; /* idle time is not made up for */
    scrub->due_ns += (int64_t)((double)bytes / scrub->bytes_per_s * CLOCK_NS_PER_S);
    for (;;) {
        const int64_t left_ns = scrub->due_ns - clock_monotonic_ns();
        const int64_t slice_ns = left_ns < CLOCK_NS_PER_S ? left_ns : CLOCK_NS_PER_S;
        if (!wait_ns(scrub, slice_ns > 0 ? slice_ns : 0) || !keep_lease(scrub))
            return false;
        if (left_ns <= CLOCK_NS_PER_S)
            return true;
    }
}

static bool ends_page(void *context)
{
    const struct scrub *scrub = context;
    return clock_monotonic_ns() - scrub->page_start_ns >= SAVE_S * CLOCK_NS_PER_S;
}

static bool is_of_store(enum integrity_kind kind)
{
    return kind == INTEGRITY_SEGMENT || kind == INTEGRITY_BLOCK;
}

/* Reads a page and moves the position; *ret_is_end: the pass is complete. */
static enum err_code read_page(struct scrub *scrub, bool *ret_is_end, struct err *err)
{
    bool is_end = false;
    struct object_verify_result result = {0};
    const struct object_verify verify = {.database = scrub->server->jobs_database,
                                         .objects = scrub->server->objects,
                                         .found = note_problem,
                                         .read = note_read,
                                         .pace = pace_reading,
                                         .ends_page = ends_page,
                                         .context = scrub};
    scrub->problem_code = ERR_NONE;
    scrub->err = err;
    buf_clear(&scrub->read_keys);
    scrub->page_start_ns = clock_monotonic_ns();
    enum err_code code = object_verify_page(
        &verify, scrub->kind, scrub->cursor,
        is_of_store(scrub->kind) ? STORE_PAGE_OBJECTS : PAGE_OBJECTS, &is_end, &result, err);
    if (!code)
        code = scrub->problem_code;
    if (!code)
        code = forget_solved(scrub, err);
    scrub->has_pass &= !code; /* otherwise the page is read again */
    if (code)
        return code;
    scrub_metrics_count(&scrub->metrics, scrub->kind, &result);
    *ret_is_end = is_end && scrub->kind + 1 == INTEGRITY_KIND_COUNT;
    if (is_end && !*ret_is_end) {
        scrub->kind++;
        *scrub->cursor = '\0';
    }
    return save_position(scrub, &result, err);
}

/* ---- the thread ---- */

/* While the store or the database is unavailable, each poll fails: the same failure is logged once
 * a minute. */
static void log_failure(struct scrub *scrub, const struct err *err)
{
    char text[ERR_MESSAGE_BYTES + 16];
    const int64_t now_ns = clock_monotonic_ns();
    if (err->code == scrub->logged_code &&
        now_ns - scrub->logged_ns < LOG_REPEAT_S * CLOCK_NS_PER_S)
        return;
    scrub->logged_code = err->code;
    scrub->logged_ns = now_ns;
    log_event(LOG_ERROR, "background work failed", "job=scrub code=%s error=%s",
              err_code_name(err->code), log_quote(err->message, text, sizeof(text)));
}

/* Runs until the pass is complete, paused, or another server's. */
static enum err_code run_pass(struct scrub *scrub, struct err *err)
{
    bool has_pass, is_end = false;
    enum err_code code;
    do {
        code = take_pass(scrub, &has_pass, err);
        if (!code && has_pass)
            code = read_page(scrub, &is_end, err);
    } while (!code && has_pass && !is_end && wait_ns(scrub, 0));
    scrub->has_pass = false;
    return !code && is_end ? end_pass(scrub, err) : code;
}

static void *scrub_main(void *context)
{
    struct scrub *scrub = context;
    do {
        struct err err = {0};
        enum err_code code = run_pass(scrub, &err);
        if (!code)
            code = scrub_metrics_refresh(&scrub->metrics, scrub->server, &err);
        if (code && code != ERR_CANCELLED)
            log_failure(scrub, &err);
    } while (wait_ns(scrub, POLL_S * CLOCK_NS_PER_S));
    return NULL;
}

static void give_lease_back(struct scrub *scrub)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    struct err ignored;
    if (query_row(scrub,
                  "UPDATE scrub SET leased_until = '-infinity'"
                  " WHERE leased_by = $1 AND $2 > 0 AND $3 > 0",
                  arena, &rows, &ignored))
        return; /* the lease expires by itself */
}

enum err_code scrub_start(struct server *server, struct scrub **ret_scrub, struct err *err)
{
    pthread_condattr_t attributes;
    if (server->settings->scrub_period_s == 0)
        return ERR_NONE;
    struct scrub *scrub = mem_new(struct scrub, 1);
    scrub->server = server;
    digest_random_id(scrub->name);
    scrub_metrics_register(&scrub->metrics, server);
    buf_init(&scrub->read_keys, KEYS_MAX_BYTES);
    pthread_mutex_init(&scrub->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&scrub->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_scrub = scrub; /* set even without a thread: the metrics read it until scrub_stop */
    scrub->is_started = pthread_create(&scrub->thread, NULL, scrub_main, scrub) == 0;
    return scrub->is_started ? ERR_NONE
                             : err_set(err, ERR_INTERNAL, "cannot start the scrub's thread");
}

void scrub_stop(struct scrub *scrub)
{
    if (!scrub)
        return;
    pthread_mutex_lock(&scrub->mutex);
    scrub->should_stop = true;
    pthread_cond_signal(&scrub->wake);
    pthread_mutex_unlock(&scrub->mutex);
    if (scrub->is_started) {
        pthread_join(scrub->thread, NULL);
        give_lease_back(scrub);
    }
    pthread_cond_destroy(&scrub->wake);
    pthread_mutex_destroy(&scrub->mutex);
    buf_fini(&scrub->read_keys);
    mem_free(scrub);
}
