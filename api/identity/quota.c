#include "api/identity/quota.h"

#include "api/core/disk_part.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "api/http/request_limits.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t default_max_bytes(const struct server *server, int64_t tenant_id)
{
    return (int64_t)(tenant_id == TENANT_ANONYMOUS ? disk_part_anonymous_bytes(server)
                                                   : disk_part_tenant_bytes(server));
}

static void apply_defaults(const struct server *server, int64_t tenant_id,
                           const struct pg_result *row, struct quota *quota)
{
    const struct settings *settings = server->settings;
    bool is_anonymous = tenant_id == TENANT_ANONYMOUS;
    if (pg_is_null(row, 0, 0))
        quota->max_bytes_stored = default_max_bytes(server, tenant_id);
    if (pg_is_null(row, 0, 1))
        quota->uploads_per_minute = settings->tenant_uploads_per_minute;
    if (pg_is_null(row, 0, 4))
        quota->profile_retention_s = settings->tenant_profile_retention_s;
    if (pg_is_null(row, 0, 2))
        quota->max_upload_bytes = (int64_t)(is_anonymous ? settings->anonymous_max_upload_bytes
                                                         : settings->tenant_max_upload_bytes);
}

#define QUOTA_SELECT(row_bytes)                                                                    \
    "SELECT max_bytes_stored, uploads_per_minute, max_upload_bytes,"                               \
    " (SELECT coalesce(sum(bytes_stored), 0) FROM tenant_usage WHERE tenant_id = $1),"             \
    " profile_retention_s, object_trash_bytes(id), " row_bytes " FROM tenant WHERE id = $1"
#define ROW_BYTES_SELECT                                                                           \
    "(SELECT coalesce(sum(row_bytes), 0)::bigint FROM share"                                       \
    " WHERE tenant_id = $1 AND state = 'live')"

enum err_code quota_read(const struct server *server, struct pg_connection *connection,
                         int64_t tenant_id, struct arena *arena, struct quota *ret_quota,
                         struct err *err)
{
    struct pg_result *row;
    const bool has_row_limit = disk_part_row_bytes(server) != UINT64_MAX;
    enum err_code code = pg_query_values(
        connection, tenant_id, has_row_limit ? QUOTA_SELECT(ROW_BYTES_SELECT) : QUOTA_SELECT("0"),
        arena, &row, err, PG_I64(tenant_id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND, "There is no such tenant");
    struct quota quota = {
        .max_bytes_stored = pg_get_i64(row, 0, 0),
        .has_own_max_bytes = !pg_is_null(row, 0, 0),
        .uploads_per_minute = pg_get_i64(row, 0, 1),
        .max_upload_bytes = pg_get_i64(row, 0, 2),
        .bytes_stored = pg_get_i64(row, 0, 3),
        .profile_retention_s = pg_get_i64(row, 0, 4),
        .trash_bytes = pg_get_i64(row, 0, 5),
        .row_bytes = pg_get_i64(row, 0, 6),
    };
    apply_defaults(server, tenant_id, row, &quota);
    *ret_quota = quota;
    return ERR_NONE;
}

/*
 * Anonymous clients share one quota, and each may use only a part of what is left of it: in a day a
 * twentieth, in one upload a quarter. However many clients store for however long, a part is left
 * for others. A site may have many addresses, but only twice the bytes of one.
 */
enum {
    SITE_SHARE = 2,  /* a site has this many times the daily bytes of an address */
    UPLOAD_SHARE = 4 /* one upload may take this part of the bytes that are left */
};

static uint64_t bytes_left(const struct quota *quota)
{
    const int64_t stored = quota->bytes_stored + quota->trash_bytes;
    return stored < quota->max_bytes_stored ? (uint64_t)(quota->max_bytes_stored - stored) : 0;
}

static void set_daily_bytes(struct request *request, const struct quota *quota)
{
    if (request->principal.tenant_id == TENANT_ANONYMOUS)
        request->daily_bytes =
            settings_anonymous_daily_bytes(request->server->settings, bytes_left(quota));
}

/* used: "<stored> of <quota> bytes". The advice differs, because clients without an account cannot
 * delete the shares of others. Clients of one team do not see the stored bytes of another. */
static enum err_code refuse_storage(const struct request *request, int64_t tenant_id,
                                    const char *used, struct err *err)
{
    if (tenant_id != TENANT_ANONYMOUS && tenant_id != request->principal.tenant_id)
        err_set(err, ERR_QUOTA,
                "The storage quota of the share's team is used up; ask its creator to delete"
                " shares that are no longer needed");
    else if (tenant_id == TENANT_ANONYMOUS)
        err_set(
            err, ERR_QUOTA,
            "The storage quota of all anonymous shares together is used up: %s, and an upload may"
            " take a quarter of what is left; sign in, use a token, or wait until some have"
            " expired",
            used);
    else
        err_set(err, ERR_QUOTA,
                "The storage quota is used up: %s; delete shares or ask the operator for more",
                used);
    err->retry_after_s = 3600;
    return ERR_QUOTA;
}

static enum err_code refuse_size(bool is_anonymous, const struct quota *quota, uint64_t bytes,
                                 struct err *err)
{
    const char *setting = is_anonymous ? "anonymous-max-bytes" : "tenant-max-bytes";
    if (quota->has_own_max_bytes)
        setting = "max_bytes_stored of the tenant";
    return err_set(err, ERR_TOO_LARGE,
                   "The upload has %" PRIu64 " bytes; the whole storage quota has %" PRId64
                   " (%s, which the operator can change)",
                   bytes, quota->max_bytes_stored, setting);
}

/* The objects of shares are in a bucket, but their rows are in the database on the disk. */
static enum err_code refuse_rows(const struct quota *quota, struct err *err)
{
    err_set(err, ERR_QUOTA,
            "The texts and summaries of the team's shares take %" PRId64
            " bytes of the server's database, all that one team may have there: delete shares",
            quota->row_bytes);
    err->retry_after_s = 3600;
    return ERR_QUOTA;
}

static enum err_code check_sizes(const struct request *request, const struct quota *quota,
                                 uint64_t bytes, struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    if (quota->max_upload_bytes < 0 || bytes > (uint64_t)quota->max_upload_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "The upload has %" PRIu64 " bytes; the largest allowed has %" PRId64, bytes,
                       quota->max_upload_bytes);
    if (bytes > (uint64_t)quota->max_bytes_stored)
        return refuse_size(tenant_id == TENANT_ANONYMOUS, quota, bytes, err);
    if ((uint64_t)quota->row_bytes > disk_part_row_bytes(request->server))
        return refuse_rows(quota, err);
    const int64_t stored = quota->bytes_stored + quota->trash_bytes;
    const uint64_t left = bytes_left(quota);
    if (bytes <= (tenant_id == TENANT_ANONYMOUS ? left / UPLOAD_SHARE : left))
        return ERR_NONE;
    char used[64];
    snprintf(used, sizeof(used), "%" PRId64 " of %" PRId64 " bytes", stored,
             quota->max_bytes_stored);
    return refuse_storage(request, tenant_id, used, err);
}

/* The uploads of a minute may arrive at once: a benchmark pushes its profiles together. Anonymous
 * uploads count by address only: one flooding address must not use up the uploads of all. */
static enum err_code take_rate(struct request *request, const struct quota *quota, struct err *err)
{
    struct rate_limiter *rate_limiter = request->server->limits->rate_limiter;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS) {
        double rate = request->server->settings->anonymous_uploads_per_minute;
        return rate_limiter_take(rate_limiter, LIMIT_UPLOAD_ADDRESS, span_text(request->address),
                                 rate, rate, err);
    }
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, request->principal.tenant_id);
    double rate = (double)quota->uploads_per_minute;
    return rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, span_text(key), rate, rate, err);
}

struct byte_limit {
    enum limit_kind kind;
    double most;
};
enum { BYTE_LIMIT_COUNT = 2 };
enum { DAY_MINUTES = 24 * 60 };

static void find_byte_limits(const struct request *request,
                             struct byte_limit ret_limits[BYTE_LIMIT_COUNT])
{
    const double most = (double)request->daily_bytes;
    ret_limits[0] = (struct byte_limit){LIMIT_UPLOAD_BYTES_ADDRESS, most};
    ret_limits[1] = (struct byte_limit){LIMIT_UPLOAD_BYTES_SITE, SITE_SHARE * most};
}

static void give_back_bytes(struct request *request, enum limit_kind kind, uint64_t bytes)
{
    rate_limiter_give_back_amount(request->server->limits->rate_limiter, kind,
                                  span_text(request->address), (double)bytes);
}

static void charge_bytes(struct request *request, const struct byte_limit *limit, double bytes)
{
    rate_limiter_charge_amount(request->server->limits->rate_limiter, limit->kind,
                               span_text(request->address), bytes, limit->most / DAY_MINUTES,
                               limit->most);
}

/* An upload that is larger than the bytes of a day is stored, and later ones are refused until as
 * many bytes are free again. */
static enum err_code take_bytes(struct request *request, int64_t tenant_id, uint64_t bytes,
                                struct err *err)
{
    struct byte_limit limits[BYTE_LIMIT_COUNT];
    if (tenant_id != TENANT_ANONYMOUS)
        return ERR_NONE;
    find_byte_limits(request, limits);
    for (int i = 0; i < BYTE_LIMIT_COUNT; i++) {
        enum err_code code = rate_limiter_take_amount(
            request->server->limits->rate_limiter, limits[i].kind, span_text(request->address),
            (double)bytes, limits[i].most / DAY_MINUTES, limits[i].most, err);
        if (code) {
            for (int taken = 0; taken < i; taken++)
                give_back_bytes(request, limits[taken].kind, bytes);
            return code;
        }
        if ((double)bytes > limits[i].most)
            charge_bytes(request, &limits[i], (double)bytes - limits[i].most);
    }
    return ERR_NONE;
}

static enum err_code read_own(struct request *request, struct quota *ret_quota, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (!code)
        code = quota_read(request->server, connection, request->principal.tenant_id, request->arena,
                          ret_quota, err);
    if (!code)
        set_daily_bytes(request, ret_quota);
    return code;
}

enum err_code quota_take_upload(struct request *request, uint64_t bytes, struct err *err)
{
    struct quota quota;
    enum err_code code = read_own(request, &quota, err);
    if (code)
        return code;
    code = check_sizes(request, &quota, bytes, err);
    if (code)
        return code;
    code = take_rate(request, &quota, err);
    return code ? code : take_bytes(request, request->principal.tenant_id, bytes, err);
}

enum err_code quota_check_size(struct request *request, uint64_t bytes, struct err *err)
{
    struct quota quota;
    enum err_code code = read_own(request, &quota, err);
    if (code)
        return code;
    code = check_sizes(request, &quota, bytes, err);
    return code ? code : take_bytes(request, request->principal.tenant_id, bytes, err);
}

enum err_code quota_take_completion(struct request *request, struct err *err)
{
    struct quota quota;
    enum err_code code = read_own(request, &quota, err);
    return code ? code : take_rate(request, &quota, err);
}

enum err_code quota_charge_tenant(const struct server *server, struct pg_connection *connection,
                                  int64_t tenant_id, int64_t bytes, struct arena *arena,
                                  struct err *err)
{
    return pg_queue_values(
        connection, tenant_id, "SELECT tenant_usage_charge($1::bigint, $2::bigint, $3::bigint)",
        arena, err, PG_I64(tenant_id), PG_I64(bytes), PG_I64(default_max_bytes(server, tenant_id)));
}

enum err_code quota_charge(struct request *request, struct pg_connection *connection, int64_t bytes,
                           struct err *err)
{
    return quota_charge_tenant(request->server, connection, request->principal.tenant_id, bytes,
                               request->arena, err);
}

enum err_code quota_replace(const struct server *server, struct pg_connection *connection,
                            int64_t tenant_id, int64_t replaced_bytes, int64_t bytes,
                            struct arena *arena, struct err *err)
{
    return pg_queue_values(
        connection, tenant_id,
        "SELECT tenant_usage_replace($1::bigint, $2::bigint, $3::bigint, $4::bigint)", arena, err,
        PG_I64(tenant_id), PG_I64(replaced_bytes), PG_I64(bytes),
        PG_I64(default_max_bytes(server, tenant_id)));
}

void quota_count_row_bytes(struct request *request, uint64_t bytes)
{
    struct byte_limit limits[BYTE_LIMIT_COUNT];
    if (request->principal.tenant_id != TENANT_ANONYMOUS)
        return;
    find_byte_limits(request, limits);
    for (int i = 0; i < BYTE_LIMIT_COUNT; i++)
        charge_bytes(request, &limits[i], (double)bytes);
}

/* The share of an anonymous client may be changed by a request with credentials. */
static enum err_code take_changed_bytes(struct request *request, struct pg_connection *connection,
                                        uint64_t bytes, struct err *err)
{
    struct quota quota;
    enum err_code code =
        quota_read(request->server, connection, TENANT_ANONYMOUS, request->arena, &quota, err);
    if (code)
        return code;
    request->daily_bytes =
        settings_anonymous_daily_bytes(request->server->settings, bytes_left(&quota));
    return take_bytes(request, TENANT_ANONYMOUS, bytes, err);
}

enum err_code quota_change(struct request *request, struct pg_connection *connection,
                           int64_t tenant_id, int64_t delta, struct err *err)
{
    if (delta == 0)
        return ERR_NONE;
    if (delta < 0)
        return quota_give_back(connection, tenant_id, -delta, request->arena, err);
    if (tenant_id == TENANT_ANONYMOUS) {
        enum err_code code = take_changed_bytes(request, connection, (uint64_t)delta, err);
        if (code)
            return code;
        request->uncommitted_bytes += (uint64_t)delta;
    }
    return quota_charge_tenant(request->server, connection, tenant_id, delta, request->arena, err);
}

void quota_return_uncommitted(struct request *request)
{
    if (request->uncommitted_bytes) {
        give_back_bytes(request, LIMIT_UPLOAD_BYTES_ADDRESS, request->uncommitted_bytes);
        give_back_bytes(request, LIMIT_UPLOAD_BYTES_SITE, request->uncommitted_bytes);
    }
    request->uncommitted_bytes = 0;
}

/* The bytes that the subscriber has announced and not sent. Other announcements wait for this
 * transaction. */
static enum err_code read_announced(struct request *request, struct pg_connection *connection,
                                    const char *subscriber, int64_t *ret_bytes, struct err *err)
{
    struct pg_result *row;
    enum err_code code =
        pg_queue_values(connection, TENANT_ANONYMOUS,
                        "SELECT pg_advisory_xact_lock(hashtextextended('upload ' || $1::text, 0))",
                        request->arena, err, PG_TEXT(subscriber));
    if (code)
        return code;
    code =
        pg_query_values(connection, TENANT_ANONYMOUS,
                        "SELECT coalesce(sum(u.size_bytes - (SELECT coalesce(sum("
                        "p.size_bytes), 0) FROM upload_part p WHERE p.upload_id = u.id)),"
                        " 0)::bigint FROM upload u WHERE u.tenant_id = $1::bigint"
                        " AND u.address = $2::text AND u.address <> ''"
                        " AND u.share_id IS NULL",
                        request->arena, &row, err, PG_I64(TENANT_ANONYMOUS), PG_TEXT(subscriber));
    if (code)
        return code;
    *ret_bytes = pg_get_i64(row, 0, 0);
    return ERR_NONE;
}

enum err_code quota_check_announcement(struct request *request, struct pg_connection *connection,
                                       int64_t bytes, const char **ret_subscriber, struct err *err)
{
    const struct settings *settings = request->server->settings;
    int64_t announced, max_bytes = (int64_t)settings->anonymous_max_announced_bytes;
    char subscriber[RATE_LIMITER_SUBSCRIBER_BYTES];
    rate_limiter_subscriber(span_text(request->address), subscriber);
    enum err_code code = read_announced(request, connection, subscriber, &announced, err);
    if (code)
        return code;
    if (announced > 0 && bytes > max_bytes - announced) {
        err_set(err, ERR_QUOTA,
                "Your address has announced %" PRId64
                " bytes that have not arrived yet, and %" PRId64 " more would pass %" PRId64
                " (anonymous-max-announced-bytes): finish or delete"
                " those uploads, sign in, use a token, or wait until they end",
                announced, bytes, max_bytes);
        err->retry_after_s = (int)settings_anonymous_upload_lifetime_s(settings);
        return ERR_QUOTA;
    }
    *ret_subscriber = arena_strdup(request->arena, subscriber);
    return ERR_NONE;
}

enum err_code quota_give_back(struct pg_connection *connection, int64_t tenant_id, int64_t bytes,
                              struct arena *arena, struct err *err)
{
    return pg_queue_values(connection, tenant_id,
                           "INSERT INTO tenant_usage AS u (tenant_id, slot, bytes_stored)"
                           " VALUES ($1, pg_backend_pid() % 32, -$2::bigint)"
                           " ON CONFLICT (tenant_id, slot)"
                           " DO UPDATE SET bytes_stored = u.bytes_stored + excluded.bytes_stored",
                           arena, err, PG_I64(tenant_id), PG_I64(bytes));
}

enum err_code quota_refuse(struct request *request, int64_t tenant_id, enum err_code code,
                           struct err *err)
{
    if (code == ERR_NONE)
        request->uncommitted_bytes = 0;
    if (code != ERR_QUOTA)
        return code;
    char used[64];
    snprintf(used, sizeof(used), "%s", err->message);
    return refuse_storage(request, tenant_id, used, err);
}
