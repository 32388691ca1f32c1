#include "api/ops/migrate.h"

#include "api/core/assets.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/pg.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SCRIPT_MAX_BYTES = 4 << 20, LOCK_NUMBER = 0x50464d31 /* "PFM1" */ };

struct migration {
    int64_t version;
    struct span name; /* "0001_identity" */
    struct span sql;
    char checksum[DIGEST_HEX_BYTES];
};

/* "migrations/0001_identity.sql"; false for other assets. */
static bool read_migration(const struct asset *asset, struct migration *ret_migration)
{
    struct span file = span_text(asset->name), number, rest;
    static const char prefix[] = "migrations/";
    uint64_t version;
    if (!span_starts_with(file, prefix) || !span_ends_with(file, ".sql"))
        return false;
    struct span name =
        span_of(file.data + sizeof(prefix) - 1, file.size - (sizeof(prefix) - 1) - 4);
    if (!span_split(name, '_', &number, &rest) || !span_parse_u64(number, &version))
        return false;
    uint8_t hash[DIGEST_BYTES];
    digest_sha256(asset->bytes, hash);
    *ret_migration =
        (struct migration){.version = (int64_t)version, .name = name, .sql = asset->bytes};
    digest_hex(span_of(hash, sizeof(hash)), ret_migration->checksum);
    return true;
}

static enum err_code apply_migration(struct pg_connection *connection,
                                     const struct migration *migration, struct err *err)
{
    buf_auto script;
    buf_init(&script, SCRIPT_MAX_BYTES);
    buf_append_span(&script, migration->sql);
    buf_printf(&script,
               "\nINSERT INTO schema_migration (version, name, checksum) VALUES (%lld, '%.*s', "
               "'%s');\n",
               (long long)migration->version, SPAN_PRINT(migration->name), migration->checksum);
    buf_append_byte(&script, 0);
    if (buf_failed(&script))
        return err_set(err, ERR_INTERNAL, "migration %.*s is too large",
                       SPAN_PRINT(migration->name));
    if (pg_script(connection, (const char *)script.data, err))
        return err_add(err, "migration %.*s", SPAN_PRINT(migration->name));
    return ERR_NONE;
}

/* ---- comparison with the database ---- */

static const char applied_sql[] =
    "SELECT version, name, checksum FROM schema_migration ORDER BY version";

enum applied_column { APPLIED_VERSION, APPLIED_NAME, APPLIED_CHECKSUM };

/* The row of schema_migration with this version, or -1. */
static int find_applied(const struct pg_result *applied, int64_t version)
{
    for (int row = 0; row < pg_row_count(applied); row++)
        if (pg_get_i64(applied, row, APPLIED_VERSION) == version)
            return row;
    return -1;
}

/* A migration of a release never changes, so another checksum means a version that was never
 * released. Its tables may differ in any way. */
static enum err_code check_unchanged(const struct pg_result *applied, int row,
                                     const struct migration *migration, struct err *err)
{
    if (strcmp(pg_get_text(applied, row, APPLIED_CHECKSUM), migration->checksum) == 0)
        return ERR_NONE;
    return err_set(
        err, ERR_CONFLICT,
        "the database was created by a development version of Perfolio (its migration %s "
        "differs from %.*s of this version) and cannot be upgraded: export the profiles "
        "that you need with the version that created it, then start with an empty data "
        "folder (--data-dir) or an empty database (--database-url)",
        pg_get_text(applied, row, APPLIED_NAME), SPAN_PRINT(migration->name));
}

/* Compares the rows of schema_migration with the files in the executable. Nothing is applied before
 * all of them are known to fit. */
static enum err_code check_applied(const struct pg_result *applied, int *ret_missing_count,
                                   struct err *err)
{
    size_t asset_count;
    const struct asset *assets = assets_all(&asset_count);
    int64_t newest = 0;
    *ret_missing_count = 0;
    for (size_t i = 0; i < asset_count; i++) {
        struct migration migration;
        if (!read_migration(&assets[i], &migration))
            continue;
        newest = migration.version > newest ? migration.version : newest;
        const int row = find_applied(applied, migration.version);
        const enum err_code code =
            row < 0 ? ERR_NONE : check_unchanged(applied, row, &migration, err);
        *ret_missing_count += row < 0;
        if (code)
            return code;
    }
    const int count = pg_row_count(applied);
    if (count && pg_get_i64(applied, count - 1, APPLIED_VERSION) > newest)
        return err_set(
            err, ERR_CONFLICT,
            "the database was created by a newer perfoliod (migration %lld; this version "
            "has %lld): start that version or a later one",
            (long long)pg_get_i64(applied, count - 1, APPLIED_VERSION), (long long)newest);
    return ERR_NONE;
}

enum err_code migrate_check(struct pg_connection *connection, bool *ret_is_current, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *applied;
    int missing_count;
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, applied_sql, NULL, 0, arena, &applied, err);
    if (!code)
        code = check_applied(applied, &missing_count, err);
    if (!code)
        *ret_is_current = missing_count == 0;
    return code;
}

static enum err_code apply_missing(struct pg_connection *connection,
                                   const struct pg_result *applied, int *ret_applied_count,
                                   struct err *err)
{
    size_t asset_count;
    const struct asset *assets = assets_all(&asset_count);
    int missing_count;
    enum err_code code = check_applied(applied, &missing_count, err);
    *ret_applied_count = 0;
    for (size_t i = 0; i < asset_count && !code; i++) {
        struct migration migration;
        if (!read_migration(&assets[i], &migration) ||
            find_applied(applied, migration.version) >= 0)
            continue;
        code = apply_migration(connection, &migration, err);
        *ret_applied_count += !code;
    }
    return code;
}

/* Private databases are created with page checksums. */
static enum err_code warn_without_checksums(struct pg_connection *connection, struct arena *arena,
                                            struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, "SHOW data_checksums", NULL, 0, arena, &result, err);
    if (!code && strcmp(pg_get_text(result, 0, 0), "on") != 0)
        log_event(LOG_WARN,
                  "the database has no page checksums, so a damaged row may be served: stop "
                  "PostgreSQL and run pg_checksums --enable",
                  "setting=data_checksums value=off");
    return code;
}

/* ---- the run ---- */

enum err_code migrate_run(struct pg_connection *connection, int *ret_applied_count, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *result;
    enum err_code code = pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_lock($1)",
                                         arena, &result, err, PG_I64(LOCK_NUMBER));
    if (code)
        return err_add(err, "waiting for another migration");
    code = pg_script(connection,
                     "CREATE TABLE IF NOT EXISTS schema_migration (version bigint PRIMARY KEY, "
                     "name text NOT NULL, checksum text NOT NULL, "
                     "applied_at timestamptz NOT NULL DEFAULT now())",
                     err);
    if (!code)
        code = pg_query(connection, PG_NO_TENANT, applied_sql, NULL, 0, arena, &result, err);
    if (!code)
        code = apply_missing(connection, result, ret_applied_count, err);
    if (!code)
        code = warn_without_checksums(connection, arena, err);
    struct err unlock_err;
    /* A connection that cannot unlock is broken, and its end releases the lock. */
    enum err_code unlock_code =
        pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)", arena, &result,
                        &unlock_err, PG_I64(LOCK_NUMBER));
    (void)unlock_code;
    return code;
}

/* ---- an external database ---- */

/* PostgreSQL 16 distinguishes membership from the right to SET ROLE. */
static const char login_sql[] =
    "WITH wanted AS (SELECT name, to_regrole(name) AS role FROM unnest(ARRAY['perfolio_owner', "
    "'perfolio_server', 'perfolio_jobs']) AS name), "
    "lacking AS (SELECT name, role FROM wanted WHERE role IS NULL OR NOT pg_has_role(current_user, "
    "role, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' "
    "END)) "
    "SELECT quote_ident(current_user), rolsuper OR rolbypassrls, rolcreaterole, "
    "(SELECT string_agg('CREATE ROLE ' || name || '; ', '') FROM lacking WHERE role IS NULL), "
    "(SELECT string_agg(name, ', ') FROM lacking) FROM pg_roles WHERE rolname = current_user";

enum login_column { LOGIN_USER, LOGIN_SEES_ALL, LOGIN_CREATES_ROLES, LOGIN_CREATE, LOGIN_GRANT };

static enum err_code find_login(struct pg_connection *connection, struct arena *arena,
                                struct pg_result **ret_login, struct err *err)
{
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, login_sql, NULL, 0, arena, ret_login, err);
    if (!code && pg_row_count(*ret_login) != 1)
        code = err_set(err, ERR_DATABASE, "the database does not know its own user");
    return code;
}

/* Requests run after SET ROLE, which an injected statement could undo: the user's own rights are
 * the limit that remains. */
static enum err_code check_power(const struct pg_result *login, struct err *err)
{
    if (!pg_get_bool(login, 0, LOGIN_SEES_ALL))
        return ERR_NONE;
    return err_set(err, ERR_FORBIDDEN,
                   "--database-url names the user %s, a superuser or one that bypasses row-level "
                   "security, which is not allowed. Use an ordinary user that owns the database: "
                   "CREATE ROLE app LOGIN CREATEROLE PASSWORD '...'; CREATE DATABASE app "
                   "OWNER app",
                   pg_get_text(login, 0, LOGIN_USER));
}

static enum err_code check_membership(const struct pg_result *login, struct err *err)
{
    if (pg_is_null(login, 0, LOGIN_GRANT))
        return ERR_NONE;
    const char *user = pg_get_text(login, 0, LOGIN_USER);
    const char *roles = pg_get_text(login, 0, LOGIN_GRANT);
    return err_set(err, ERR_FORBIDDEN,
                   "the database's user %s may not become %s: as a superuser, or as a user who "
                   "manages its roles, run: %sGRANT %s TO %s",
                   user, roles, pg_get_text(login, 0, LOGIN_CREATE), roles, user);
}

enum err_code migrate_run_external(struct pg_connection *connection, int *ret_applied_count,
                                   struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *login;
    enum err_code code = find_login(connection, arena, &login, err);
    if (code)
        return code;
    code = check_power(login, err);
    if (code)
        return code;
    /* The first migration creates the roles, if it may. */
    if (!pg_get_bool(login, 0, LOGIN_CREATES_ROLES))
        code = check_membership(login, err);
    if (code)
        return code;
    code = migrate_run(connection, ret_applied_count, err);
    if (code)
        return code;
    code = find_login(connection, arena, &login, err);
    if (code)
        return code;
    return check_membership(login, err);
}
