#include "api/ops/storage_identity.h"

#include "api/core/object_store_setup.h"
#include "api/core/settings.h"
#include "api/ops/storage_identity_file.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    LOCK_NUMBER = 0x50465052, /* "PFPR" */
    LOOKED_AT = 100,          /* this many objects suffice to recognize a pair */
};

struct pair {
    struct storage_identity_file storage;
    char in_storage[DIGEST_ID_BYTES]; /* "": none */
    char in_database[DIGEST_ID_BYTES];
    bool is_confirmed;
};

static enum err_code read_row(struct pair *pair, struct pg_connection *connection,
                              struct arena *arena, struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, "SELECT id, is_confirmed FROM object_folder", NULL, 0,
                 arena, &result, err);
    if (code || pg_row_count(result) == 0)
        return code;
    snprintf(pair->in_database, sizeof(pair->in_database), "%s", pg_get_text(result, 0, 0));
    pair->is_confirmed = pg_get_bool(result, 0, 1);
    return ERR_NONE;
}

static enum err_code write_row(struct pair *pair, struct pg_connection *connection,
                               struct arena *arena, struct err *err)
{
    struct pg_result *result;
    digest_random_id(pair->in_database);
    return pg_query_values(connection, PG_NO_TENANT,
                           "INSERT INTO object_folder (id) VALUES ($1) "
                           "ON CONFLICT (is_only) DO UPDATE SET id = excluded.id",
                           arena, &result, err, PG_TEXT(pair->in_database));
}

/* ---- refusals, without paths: these may lead through a descriptor of this process ---- */

static enum err_code belong_to_another_database(const struct pair *pair, struct err *err)
{
    const struct storage_identity_file *storage = &pair->storage;
    return err_set(err, ERR_CONFLICT,
                   "%s belongs to another database than this one, which never had %s: start with "
                   "the database that it was used with, or with %s. If this database is a copy of "
                   "that one, remove %s in %s first",
                   storage_identity_file_name(storage),
                   storage->store ? "a bucket" : "a data folder",
                   storage->store ? "another --s3-prefix" : "a new --data-dir",
                   storage_identity_file_id_name(storage), storage_identity_file_name(storage));
}

static enum err_code belong_to_other_storage(const struct pair *pair, struct err *err)
{
    char hint[200] = "";
    const struct storage_identity_file *storage = &pair->storage;
    if (pair->is_confirmed && storage->store)
        snprintf(hint, sizeof(hint),
                 ". If this bucket contains those profiles, first put an object database-id with "
                 "the content %s beside them",
                 pair->in_database);
    else if (pair->is_confirmed)
        snprintf(hint, sizeof(hint),
                 ". If objects/ in this data folder contains those profiles, first write %s into "
                 "objects/.database-id there",
                 pair->in_database);
    return err_set(
        err, ERR_CONFLICT,
        "this database belongs to another %s, so the profiles in it would be missing: "
        "start with the %s that it was used with%s",
        storage->store ? "bucket or data folder" : "data folder",
        storage->store ? "--s3-bucket and --s3-prefix, or the --data-dir," : "--data-dir", hint);
}

/* ---- recognizing a pair without an id ---- */

struct kinship {
    int live_count;   /* objects that the database names, of which LOOKED_AT are checked */
    bool has_objects; /* in the storage */
    bool is_known;    /* one side has an object that the other names */
};

static enum err_code look_for_rows(const struct pair *pair, struct pg_connection *connection,
                                   struct kinship *kinship, struct arena *arena, struct err *err)
{
    struct pg_result *shares;
    const char *keys[LOOKED_AT];
    enum err_code code = pg_query_values(connection, PG_NO_TENANT,
                                         "SELECT object_key FROM ("
                                         "SELECT object_key, created_at FROM share"
                                         " WHERE state = 'live' UNION ALL "
                                         "SELECT object_key, created_at FROM block"
                                         " WHERE swapped_at IS NULL UNION ALL "
                                         "SELECT object_key, created_at FROM segment"
                                         " WHERE swapped_at IS NULL) o "
                                         "ORDER BY created_at DESC LIMIT $1",
                                         arena, &shares, err, PG_I64(LOOKED_AT));
    if (code)
        return code;
    kinship->live_count = pg_row_count(shares);
    for (int row = 0; row < kinship->live_count; row++)
        keys[row] = pg_get_text(shares, row, 0);
    return storage_identity_file_has_any(&pair->storage, keys, (size_t)kinship->live_count,
                                         &kinship->is_known, err);
}

static enum err_code look_for_objects(const struct pair *pair, struct pg_connection *connection,
                                      struct kinship *kinship, struct arena *arena, struct err *err)
{
    struct pg_result *result;
    struct span keys;
    enum err_code code = storage_identity_file_list(&pair->storage, LOOKED_AT, arena, &keys, err);
    if (code)
        return code;
    kinship->has_objects = !span_equal_text(keys, "{}");
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT EXISTS (SELECT FROM share WHERE object_key = ANY ($1::text[])) "
                           "OR EXISTS (SELECT FROM object_trash"
                           " WHERE object_key = ANY ($1::text[]))",
                           arena, &result, err, PG_SPAN(keys));
    if (code)
        return code;
    kinship->is_known |= pg_get_bool(result, 0, 0);
    return ERR_NONE;
}

static enum err_code check_kinship(const struct pair *pair, struct pg_connection *connection,
                                   struct arena *arena, struct err *err)
{
    struct kinship kinship = {0};
    enum err_code code = look_for_rows(pair, connection, &kinship, arena, err);
    if (!code)
        code = look_for_objects(pair, connection, &kinship, arena, err);
    if (code || kinship.is_known || (kinship.live_count == 0 && !kinship.has_objects))
        return code;
    return kinship.live_count ? belong_to_other_storage(pair, err)
                              : belong_to_another_database(pair, err);
}

/* *ret_is_new: the database and the storage may become a pair. */
static enum err_code compare_ids(struct pair *pair, struct pg_connection *connection,
                                 bool *ret_is_new, struct arena *arena, struct err *err)
{
    *ret_is_new = false;
    enum err_code code = storage_identity_file_read_id(&pair->storage, pair->in_storage, err);
    if (code)
        return code;
    code = read_row(pair, connection, arena, err);
    if (code)
        return code;
    if (*pair->in_storage && !*pair->in_database)
        return belong_to_another_database(pair, err);
    if (*pair->in_storage || pair->is_confirmed)
        return strcmp(pair->in_storage, pair->in_database) == 0
                   ? ERR_NONE
                   : belong_to_other_storage(pair, err);
    *ret_is_new = true;
    return check_kinship(pair, connection, arena, err);
}

static enum err_code compare_and_write(struct pair *pair, struct pg_connection *connection,
                                       struct arena *arena, struct err *err)
{
    bool is_new;
    struct pg_result *result;
    enum err_code code = compare_ids(pair, connection, &is_new, arena, err);
    if (code)
        return code;
    if (is_new)
        code = write_row(pair, connection, arena, err);
    if (code)
        return code;
    if (is_new)
        code = storage_identity_file_write_id(&pair->storage, pair->in_database, err);
    if (code)
        return code;
    if (!pair->is_confirmed)
        code = pg_query(connection, PG_NO_TENANT, "UPDATE object_folder SET is_confirmed = true",
                        NULL, 0, arena, &result, err);
    return code;
}

/* Two servers may start at once, so a lock is held; it ends with the session at the latest. */
static enum err_code check_alone(struct pair *pair, struct pg_connection *connection,
                                 struct err *err)
{
    struct pg_result *result;
    arena_auto arena = arena_create();
    enum err_code code = pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_lock($1)",
                                         arena, &result, err, PG_I64(LOCK_NUMBER));
    if (!code)
        code = compare_and_write(pair, connection, arena, err);
    struct err unlock_err;
    if (pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)", arena, &result,
                        code ? &unlock_err : err, PG_I64(LOCK_NUMBER)) &&
        !code)
        code = err_add(err, "unlocking");
    return code;
}

/* A private cluster and its own folder need no id, a cluster and a bucket do. */
static bool needs_id(const struct settings *settings)
{
    return *settings->database_url || object_store_setup_are_in_s3(settings);
}

static enum err_code check_private(struct pg_connection *connection, struct err *err)
{
    struct pair pair = {0};
    arena_auto arena = arena_create();
    enum err_code code = read_row(&pair, connection, arena, err);
    if (code || !*pair.in_database)
        return code;
    return err_set(err, ERR_CONFLICT,
                   "the profiles of this data folder's database are in an S3 store: start with "
                   "the --s3-bucket and --s3-prefix that it was used with");
}

enum err_code storage_identity_check(struct pg_connection *connection,
                                     const struct settings *settings, struct err *err)
{
    struct pair pair = {0};
    if (!needs_id(settings))
        return check_private(connection, err);
    enum err_code code = storage_identity_file_open(settings, &pair.storage, err);
    if (!code)
        code = check_alone(&pair, connection, err);
    storage_identity_file_close(&pair.storage);
    return code;
}

enum err_code storage_identity_verify(struct pg_connection *connection,
                                      const struct settings *settings, struct err *err)
{
    bool is_new;
    struct pair pair = {0};
    arena_auto arena = arena_create();
    struct pg_result *result;
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, "SELECT to_regclass('object_folder') IS NOT NULL", NULL,
                 0, arena, &result, err);
    if (code || !pg_get_bool(result, 0, 0))
        return code;
    if (!needs_id(settings))
        return check_private(connection, err);
    code = storage_identity_file_open(settings, &pair.storage, err);
    if (!code)
        code = compare_ids(&pair, connection, &is_new, arena, err);
    storage_identity_file_close(&pair.storage);
    return code;
}
