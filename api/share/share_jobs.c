/*
 * Background work of shares.
 *
 * A share is live, then deleting (readers get 410), then gone (a tombstone that keeps what a 410
 * needs). DELETE, expiry and takedown only change the state to deleting. delete_share_objects then
 * deletes the object, and only afterwards the row becomes a tombstone and the tenant gets its bytes
 * back. Every step may be interrupted at any point and repeated: an object is deleted before its
 * key is removed from the row, and deleting a missing object succeeds.
 *
 * Rows that are deleted as a whole (uploads, parts, symbol tables, the shares of a deleted tenant)
 * leave their object keys in object_trash, by triggers; empty_trash deletes those objects. An
 * object that no row names, left by a crash between the put and the commit, is found by
 * sweep_orphans once it is an hour old.
 */
#include "api/share/share.h"

#include "api/core/disk.h"
#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "api/identity/idempotency.h"
#include "api/identity/quota.h"
#include "api/share/share_runtime.h"
#include "api/share/view_counter.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <time.h>

/* Limits of one call, so that a round of the jobs thread takes seconds. */
enum { VIEW_BATCH = 1000, DELETE_BATCH = 200, TRASH_BATCH = 500, SWEEP_BATCH = 500 };
/* PostgreSQL's log gets about as many bytes as the deleted texts have. One transaction writes this
 * many, and with a full disk only one per FULL_PAUSE_S, so that checkpoints, which free the log,
 * keep up: PostgreSQL ends if its log finds no space. */
enum { DELETE_ROW_BYTES = 8 << 20, FULL_PAUSE_S = 1 };
/* Per team. */
enum { MAX_TOMBSTONES = 10000 };
enum { CLOSED_REPORT_DAYS = 30 };
/* After this many failed deletions the store itself is probably unavailable. */
enum { TRASH_FAILURES = 10 };

/* An object of this age without a row is an orphan: its upload ended long ago. */
static const int64_t orphan_age_ns = 3600 * CLOCK_NS_PER_S;
static const int64_t sweep_every_ns = 3600 * CLOCK_NS_PER_S;

struct job {
    struct server *server;
    struct pg_connection *connection;
    struct arena *arena;
    bool has_more; /* a step did as much as one call may do, and made progress */
};

/* "{a,b,c}" for texts without special characters: ids and keys. */
static struct span text_array(struct arena *arena, const char *const *texts, size_t count)
{
    buf_auto buf;
    buf_init(&buf, 16 << 20);
    buf_append_byte(&buf, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(&buf, "%s%s", i ? "," : "", texts[i]);
    buf_append_byte(&buf, '}');
    return span_of(arena_strndup(arena, buf.data, buf.size), buf.size);
}

static enum err_code write_views(struct job *job, const struct view_count *counts, uint32_t count,
                                 struct err *err)
{
    buf_auto ids, numbers;
    buf_init(&ids, 1 << 20);
    buf_init(&numbers, 1 << 20);
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&ids, "%c%s", i ? ',' : '{', counts[i].share_id);
        buf_printf(&numbers, "%c%" PRId64, i ? ',' : '{', counts[i].count);
    }
    buf_append_byte(&ids, '}');
    buf_append_byte(&numbers, '}');
    struct pg_result *result;
    /* expires_at is indexed: it changes only by at least a day, or a tenth of the expiry, so that
     * not every view costs a new index entry. */
    return pg_query_values(
        job->connection, PG_NO_TENANT,
        "WITH held AS (SELECT id FROM tenant WHERE id IN (SELECT tenant_id FROM share"
        "  WHERE id = ANY ($1::text[])) FOR KEY SHARE SKIP LOCKED)"
        " UPDATE share s SET views = s.views + v.count, last_view_at = now(), expires_at ="
        " CASE WHEN s.expires_at < now() + s.idle_expiry_s * interval '1 s'"
        "  - least(interval '1 day', s.idle_expiry_s * interval '0.1 s')"
        " THEN now() + s.idle_expiry_s * interval '1 s' ELSE s.expires_at END"
        " FROM unnest($1::text[], $2::bigint[]) AS v (id, count)"
        " WHERE s.id = v.id AND s.state = 'live' AND s.tenant_id IN (SELECT id FROM held)"
        " AND (s.expires_at IS NULL OR s.expires_at > now())",
        job->arena, &result, err, PG_SPAN(buf_span(&ids)), PG_SPAN(buf_span(&numbers)));
}

static enum err_code flush_views(struct job *job, struct err *err)
{
    struct view_counter *views = job->server->shares->views;
    const struct view_count *counts;
    uint32_t count = view_counter_take(views, job->arena, &counts);
    for (uint32_t done = 0; done < count; done += VIEW_BATCH) {
        uint32_t batch = count - done < VIEW_BATCH ? count - done : VIEW_BATCH;
        enum err_code code = write_views(job, counts + done, batch, err);
        if (code) {
            view_counter_give(views, counts + done, count - done);
            return err_add(err, "writing views");
        }
    }
    return ERR_NONE;
}

static enum err_code expire_shares(struct job *job, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        job->connection, PG_NO_TENANT,
        "UPDATE share SET state = 'deleting', gone_reason = 'expired', gone_at = now()"
        " WHERE id IN (SELECT id FROM share WHERE state = 'live' AND expires_at <= now()"
        "  LIMIT $1::bigint FOR UPDATE SKIP LOCKED)",
        job->arena, &result, err, PG_I64(DELETE_BATCH));
    if (code)
        return err_add(err, "expiring shares");
    job->has_more = pg_affected(result) == DELETE_BATCH;
    return ERR_NONE;
}

/* Locks the tenants that sql selects, before anything that they have (tenant.h). Tenants that are
 * being deleted are skipped, since their data is deleted anyway. *ret_held becomes their ids as an
 * array of bigint. */
static enum err_code hold_tenants(struct job *job, const char *sql, struct span *ret_held,
                                  struct err *err)
{
    struct pg_result *rows;
    enum err_code code =
        pg_query(job->connection, PG_NO_TENANT, sql, NULL, 0, job->arena, &rows, err);
    if (code)
        return code;
    int count = pg_row_count(rows);
    const char **ids = arena_new(job->arena, const char *, (size_t)count);
    for (int row = 0; row < count; row++)
        ids[row] = pg_get_text(rows, row, 0);
    *ret_held = text_array(job->arena, ids, (size_t)count);
    return ERR_NONE;
}

/* Deletes the oldest tombstones of a team: they count in no quota. Their links get 404 from then
 * on. */
static enum err_code limit_tombstones(struct job *job, int64_t tenant_id, struct err *err)
{
    return pg_queue_values(job->connection, PG_NO_TENANT,
                           "DELETE FROM share WHERE id IN (SELECT id FROM share"
                           " WHERE tenant_id = $1 AND state = 'gone'"
                           " ORDER BY gone_at DESC OFFSET $2)",
                           job->arena, err, PG_I64(tenant_id), PG_I64(MAX_TOMBSTONES));
}

/* Makes the row a tombstone and gives the bytes back to its tenant, one of those held. */
static enum err_code make_tombstone(struct job *job, const char *id, int64_t tenant_id,
                                    int64_t charged_bytes, struct span held, int *count,
                                    struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        job->connection, PG_NO_TENANT,
        "UPDATE share SET state = 'gone', object_key = '', raw_bytes = 0, row_bytes = 0,"
        " title = '', description = '', filename = '', labels = '{}', summary = '{}',"
        " list_summary = '{}', password_hash = NULL"
        " WHERE id = $1::text AND state = 'deleting' AND tenant_id = ANY ($2::bigint[])",
        job->arena, &result, err, PG_TEXT(id), PG_SPAN(held));
    if (code || pg_affected(result) == 0)
        return code;
    ++*count;
    code = limit_tombstones(job, tenant_id, err);
    return code ? code
                : quota_give_back(job->connection, tenant_id, charged_bytes, job->arena, err);
}

/* Deletes the objects of rows; a failed deletion does not block the others. *ret_first is the first
 * failure. */
static bool *delete_objects(struct job *job, const struct pg_result *rows, struct err *ret_first)
{
    int row_count = pg_row_count(rows);
    bool *is_deleted = arena_new(job->arena, bool, (size_t)row_count);
    for (int row = 0; row < row_count; row++) {
        struct err err = {0};
        share_runtime_forget(job->server, pg_get_text(rows, row, 0));
        is_deleted[row] =
            object_delete(job->server->objects, pg_get_text(rows, row, 3), &err) == ERR_NONE;
        if (!is_deleted[row] && !ret_first->code)
            *ret_first = err;
    }
    return is_deleted;
}

/* In one transaction: the tombstones of the shares in rows whose objects are deleted. */
static enum err_code commit_tombstones(struct job *job, const struct pg_result *rows,
                                       const bool *is_deleted, int *count, struct err *err)
{
    struct span held;
    enum err_code code = pg_begin(job->connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = hold_tenants(job,
                        "SELECT id FROM tenant WHERE id IN (SELECT tenant_id FROM share"
                        " WHERE state = 'deleting') ORDER BY id FOR KEY SHARE SKIP LOCKED",
                        &held, err);
    if (code)
        return code;
    for (int row = 0; row < pg_row_count(rows); row++) {
        if (!is_deleted[row])
            continue;
        code = make_tombstone(job, pg_get_text(rows, row, 0), pg_get_i64(rows, row, 1),
                              pg_get_i64(rows, row, 2), held, count, err);
        if (code)
            return code;
    }
    return pg_commit(job->connection, err);
}

static const char deleting_sql[] =
    "SELECT id, tenant_id, charged_bytes, object_key, found FROM ("
    "SELECT id, tenant_id, raw_bytes + row_bytes AS charged_bytes, object_key,"
    " count(*) OVER () AS found, sum(row_bytes) OVER (ORDER BY n) - row_bytes AS before_bytes"
    " FROM (SELECT *, row_number() OVER () AS n FROM ("
    "SELECT id, tenant_id, raw_bytes, row_bytes, object_key FROM share WHERE state = 'deleting'"
    " ORDER BY random() LIMIT $1::bigint) AS drawn) AS numbered) AS summed"
    " WHERE before_bytes < $2::bigint";

static void pause_on_full_disk(const struct job *job)
{
    const struct timespec pause = {.tv_sec = FULL_PAUSE_S};
    struct err err;
    if (disk_check(job->server->disk, &err))
        nanosleep(&pause, NULL);
}

static enum err_code delete_share_objects(struct job *job, struct err *err)
{
    struct pg_result *rows;
    enum err_code code =
        pg_query_values(job->connection, PG_NO_TENANT, deleting_sql, job->arena, &rows, err,
                        PG_I64(DELETE_BATCH), PG_I64(DELETE_ROW_BYTES));
    if (code || pg_row_count(rows) == 0)
        return code;
    struct err first = {0};
    const bool *is_deleted = delete_objects(job, rows, &first);
    int tombstone_count = 0;
    code = commit_tombstones(job, rows, is_deleted, &tombstone_count, err);
    if (code) {
        pg_rollback(job->connection);
        return err_add(err, "deleting bytes of shares");
    }
    if (first.code) {
        *err = first;
        return err_add(err, "deleting bytes of shares");
    }
    /* Rows of a tenant that is being deleted stay: if there are no others, the next call need not
     * follow at once. */
    const int64_t found = pg_get_i64(rows, 0, 4);
    job->has_more = tombstone_count > 0 && (found == DELETE_BATCH || found > pg_row_count(rows));
    pause_on_full_disk(job);
    return ERR_NONE;
}

/* Deletes abandoned uploads and gives their charge back; their parts go to object_trash by trigger.
 */
static enum err_code delete_expired_uploads(struct job *job, struct pg_result **ret_uploads,
                                            struct err *err)
{
    struct pg_result *uploads;
    struct span held;
    enum err_code code = pg_begin(job->connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = hold_tenants(job,
                        "SELECT id FROM tenant WHERE id IN (SELECT tenant_id FROM upload"
                        " WHERE expires_at <= now()) ORDER BY id FOR KEY SHARE SKIP LOCKED",
                        &held, err);
    if (code)
        return code;
    code = pg_query_values(
        job->connection, PG_NO_TENANT,
        "DELETE FROM upload WHERE id IN (SELECT id FROM upload WHERE expires_at <= now()"
        "  AND (completing_until IS NULL OR completing_until <= now())"
        "  AND tenant_id = ANY ($2::bigint[])"
        "  LIMIT $1::bigint FOR UPDATE SKIP LOCKED)"
        " RETURNING tenant_id, CASE WHEN share_id IS NULL THEN size_bytes ELSE 0 END",
        job->arena, &uploads, err, PG_I64(DELETE_BATCH), PG_SPAN(held));
    if (code)
        return code;
    for (int row = 0; row < pg_row_count(uploads); row++) {
        if (pg_get_i64(uploads, row, 1))
            code = quota_give_back(job->connection, pg_get_i64(uploads, row, 0),
                                   pg_get_i64(uploads, row, 1), job->arena, err);
        if (code)
            return code;
    }
    *ret_uploads = uploads;
    return ERR_NONE;
}

static enum err_code expire_uploads(struct job *job, struct err *err)
{
    struct pg_result *uploads;
    enum err_code code = delete_expired_uploads(job, &uploads, err);
    if (code) {
        pg_rollback(job->connection);
        return err_add(err, "expiring uploads");
    }
    code = pg_commit(job->connection, err);
    job->has_more = !code && pg_row_count(uploads) == DELETE_BATCH;
    return code;
}

static enum err_code forget_reports(struct job *job, struct err *err)
{
    enum err_code code =
        pg_query_values(job->connection, PG_NO_TENANT,
                        "DELETE FROM abuse_report WHERE id IN (SELECT id FROM abuse_report"
                        " WHERE closed_at < now() - $1::bigint * interval '1 day'"
                        " LIMIT $2::bigint)",
                        job->arena, NULL, err, PG_I64(CLOSED_REPORT_DAYS), PG_I64(DELETE_BATCH));
    return code ? err_add(err, "forgetting closed reports") : ERR_NONE;
}

static enum err_code forget_keys(struct job *job, struct err *err)
{
    enum err_code code = pg_query_values(job->connection, PG_NO_TENANT,
                                         "WITH old AS (SELECT tenant_id, key_hash FROM idempotency"
                                         "  WHERE created_at < now() -"
                                         "  $1::bigint * interval '1 hour'),"
                                         " held AS (SELECT id FROM tenant WHERE id IN"
                                         "  (SELECT tenant_id FROM old) FOR KEY SHARE SKIP LOCKED)"
                                         " DELETE FROM idempotency i USING old o, held h"
                                         " WHERE h.id = o.tenant_id AND i.tenant_id = o.tenant_id"
                                         " AND i.key_hash = o.key_hash",
                                         job->arena, NULL, err, PG_I64(IDEMPOTENCY_KEEP_HOURS));
    return code ? err_add(err, "forgetting idempotency keys") : ERR_NONE;
}

/* A failed deletion is retried after a minute, after all others, so it does not block them. */
static enum err_code empty_trash(struct job *job, struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query_values(job->connection, PG_NO_TENANT,
                        "SELECT object_key FROM object_trash"
                        " WHERE tried_at IS NULL OR tried_at < now() - interval '1 minute'"
                        " ORDER BY tried_at NULLS FIRST, added_at LIMIT $1::bigint",
                        job->arena, &result, err, PG_I64(TRASH_BATCH));
    if (code)
        return err_add(err, "emptying the trash");
    const int count = pg_row_count(result);
    const char **gone = arena_new(job->arena, const char *, (size_t)count);
    const char *kept[TRASH_FAILURES];
    size_t gone_count = 0, kept_count = 0;
    struct err failure = {0};
    for (int row = 0; row < count && kept_count < TRASH_FAILURES; row++) {
        const char *key = pg_get_text(result, row, 0);
        if (object_delete(job->server->objects, key, &failure)) /* the last failure is reported */
            kept[kept_count++] = key;
        else
            gone[gone_count++] = key;
    }
    if (gone_count)
        code = pg_query_values(job->connection, PG_NO_TENANT,
                               "DELETE FROM object_trash WHERE object_key = ANY ($1::text[])",
                               job->arena, &result, err,
                               PG_SPAN(text_array(job->arena, gone, gone_count)));
    if (!code && kept_count)
        code = pg_query_values(job->connection, PG_NO_TENANT,
                               "UPDATE object_trash SET tried_at = now()"
                               " WHERE object_key = ANY ($1::text[])",
                               job->arena, &result, err,
                               PG_SPAN(text_array(job->arena, kept, kept_count)));
    if (!code && kept_count) {
        *err = failure;
        code = failure.code;
    }
    job->has_more = !code && count == TRASH_BATCH;
    return code ? err_add(err, "emptying the trash") : ERR_NONE;
}

struct sweep {
    struct job *job;
    int64_t before_ns; /* wall clock */
    const char *keys[SWEEP_BATCH];
    size_t key_count;
    struct arena *arena; /* contains the keys */
};

/* Deletes those of the collected keys that no row names. The key of a share is "share/<id>", that
 * of a part of an upload "part/<id>.<part>.<random>"; the other tables are found by the whole key.
 * The id is compared too, because it has the index. */
static enum err_code sweep_batch(struct sweep *sweep, struct err *err)
{
    struct pg_result *result;
    struct job *job = sweep->job;
    if (sweep->key_count == 0)
        return ERR_NONE;
    enum err_code code = pg_query_values(
        job->connection, PG_NO_TENANT,
        "SELECT key FROM unnest($1::text[]) AS key"
        " WHERE NOT EXISTS (SELECT 1 FROM share s WHERE s.id = split_part(key, '/', 2)"
        "  AND s.object_key = key)"
        " AND NOT EXISTS (SELECT 1 FROM upload_part p"
        "  WHERE p.upload_id = split_part(split_part(key, '/', 2), '.', 1) AND p.object_key = key)"
        " AND NOT EXISTS (SELECT 1 FROM upload u WHERE key LIKE 'share/%'"
        "  AND u.completing_until > now())"
        " AND NOT EXISTS (SELECT 1 FROM symbol_table t WHERE t.object_key = key)"
        " AND NOT EXISTS (SELECT 1 FROM symbol_table_public t WHERE t.object_key = key)"
        " AND NOT EXISTS (SELECT 1 FROM debug_file f WHERE f.object_key = key)",
        sweep->arena, &result, err,
        PG_SPAN(text_array(sweep->arena, sweep->keys, sweep->key_count)));
    for (int row = 0; !code && row < pg_row_count(result); row++)
        code = object_delete(job->server->objects, pg_get_text(result, row, 0), err);
    arena_destroy(sweep->arena);
    sweep->arena = arena_create();
    sweep->key_count = 0;
    return code;
}

static enum err_code visit_object(void *context, const char *key, uint64_t size,
                                  int64_t modified_ns, struct err *err)
{
    struct sweep *sweep = context;
    (void)size;
    if (modified_ns > sweep->before_ns)
        return ERR_NONE;
    sweep->keys[sweep->key_count++] = arena_strdup(sweep->arena, key);
    return sweep->key_count == SWEEP_BATCH ? sweep_batch(sweep, err) : ERR_NONE;
}

static enum err_code sweep_orphans(struct job *job, struct err *err)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns < job->server->shares->next_sweep_ns)
        return ERR_NONE;
    struct sweep *sweep = arena_new(job->arena, struct sweep, 1);
    *sweep = (struct sweep){.job = job, .before_ns = clock_wall_ns() - orphan_age_ns};
    sweep->arena = arena_create();
    static const char *const prefixes[] = {"share/", "part/", "symbols/", "debuginfo/"};
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        code = object_list(job->server->objects, prefixes[i], visit_object, sweep, err);
    if (!code)
        code = sweep_batch(sweep, err);
    /* In a bucket, unfinished uploads of dead writers are recognized by their age; in a folder,
     * only at a start. */
    if (!code && object_store_setup_are_in_s3(job->server->settings))
        code = object_sweep_temporary(job->server->objects, err);
    arena_destroy(sweep->arena);
    if (code)
        return err_add(err, "sweeping objects");
    job->server->shares->next_sweep_ns = now_ns + sweep_every_ns;
    return ERR_NONE;
}

enum err_code share_jobs_write_views(struct server *server, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    struct job job = {.server = server, .connection = connection, .arena = arena};
    return code ? code : flush_views(&job, err);
}

enum err_code share_jobs_run(struct server *server, struct pg_connection *connection,
                             bool *ret_has_more, struct err *err)
{
    static enum err_code (*const steps[])(struct job *, struct err *) = {
        expire_shares,  delete_share_objects, expire_uploads, forget_keys,
        forget_reports, empty_trash,          sweep_orphans};
    enum err_code first = ERR_NONE;
    *ret_has_more = false;
    /* A failing step does not prevent the others. */
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        arena_auto arena = arena_create();
        struct err step_err = {0};
        struct job job = {.server = server, .connection = connection, .arena = arena};
        enum err_code code = steps[i](&job, &step_err);
        *ret_has_more |= job.has_more;
        if (code && !first) {
            first = code;
            *err = step_err;
        }
    }
    return first;
}
