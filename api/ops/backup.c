#include "api/ops/backup.h"

#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/ops/backup_bucket.h"
#include "api/ops/backup_manifest.h"
#include "api/ops/backup_source.h"
#include "api/ops/backup_verify.h"
#include "api/ops/data_folder.h"
#include "api/ops/migrate.h"
#include "api/ops/postgres.h"
#include "api/ops/storage_identity.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCK_WAIT_S = 120, NAME_BYTES = PATH_MAX };

extern char **environ;

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
}

/* The server holds the lock for short sweeps every few seconds, so this seldom waits. */
static enum err_code hold_sweep(struct pg_connection *connection, struct err *err)
{
    arena_auto arena = arena_create();
    int64_t deadline_ns = clock_monotonic_ns() + LOCK_WAIT_S * CLOCK_NS_PER_S;
    for (;;) {
        struct pg_result *result;
        enum err_code code =
            pg_query_values(connection, PG_NO_TENANT, "SELECT pg_try_advisory_lock($1)", arena,
                            &result, err, PG_I64(SERVER_SWEEP_LOCK));
        if (code || pg_get_bool(result, 0, 0))
            return code;
        if (clock_monotonic_ns() > deadline_ns)
            return err_set(err, ERR_BUSY,
                           "the server has been deleting objects for %d s, or another backup is "
                           "running; try again later",
                           LOCK_WAIT_S);
        clock_sleep_ms(100);
    }
}

/* If the session ended, its lock was released, and objects may have been deleted while they were
 * copied. */
static enum err_code check_sweep_is_held(struct pg_connection *connection, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *result;
    if (pg_query(connection, PG_NO_TENANT, "SELECT 1", NULL, 0, arena, &result, err) == ERR_NONE)
        return ERR_NONE;
    return err_set(err, ERR_BUSY,
                   "the database ended the session that kept the server from deleting objects, so "
                   "profiles may be missing in this backup: run it again");
}

static enum err_code dump_database(const struct backup_source *source, int target_fd,
                                   struct err *err)
{
    /* A restore creates an id of its own: api/ops/storage_identity.h. */
    const char *arguments[8] = {NULL, "--format=custom", "--no-password",
                                "--exclude-table-data=object_folder"};
    int count = 4;
    /* RLS is forced on the owner too, but the policies for perfolio_owner, of which this user is a
     * member, show every row. */
    if (!source->has_cluster)
        arguments[count++] = "--enable-row-security";
    arguments[count++] = source->tools_conninfo;
    fd_auto fd = os_openat(target_fd, "database.dump", O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot create database.dump");
    enum err_code code =
        postgres_run_tool(&source->postgres, "pg_dump", arguments,
                          source->has_cluster ? NULL : (const char *const *)environ, -1, fd, err);
    if (!code && os_fsync(fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make database.dump durable");
    return code;
}

static struct pg_pool *create_pool(const struct backup_source *source, int connections)
{
    return pg_pool_create(source->has_cluster ? source->conninfo : source->settings->database_url,
                          NULL, connections);
}

/* *ret_objects is closed by the caller; NULL if the data folder has none yet. */
static enum err_code open_folder_objects(const struct backup_source *source,
                                         struct object_store **ret_objects, struct err *err)
{
    const struct os_user *server = &source->folder.server;
    struct object_store *objects = NULL;
    enum err_code code = object_store_setup_open_to_read(source->settings, server, &objects, err);
    if (code && code != ERR_NOT_FOUND)
        return code;
    *ret_objects = objects;
    return ERR_NONE;
}

static enum err_code copy_objects(const struct backup_source *source, struct object_store *own,
                                  int target_fd, struct backup_manifest *manifest, struct err *err)
{
    if (source->objects)
        return backup_bucket_take(source->objects, NULL, target_fd, manifest, err);
    return own ? backup_bucket_take(own, &source->folder.server, target_fd, manifest, err)
               : ERR_NONE;
}

/* Reads the rows after the dump, so that they name every object that the dump names, and before the
 * objects are copied, so that every object that they name is in the store when the copy begins. The
 * lock prevents its deletion until the copy is complete. */
static enum err_code copy_and_compare(const struct backup_source *source, struct pg_pool *pool,
                                      int target_fd, const struct backup_options *options,
                                      struct backup_manifest *manifest, struct err *err)
{
    arena_auto arena = arena_create();
    struct object_snapshot snapshot;
    object_store_auto own = NULL;
    enum err_code code = object_verify_read_snapshot(pool, arena, &snapshot, err);
    if (code)
        return code;
    if (!source->objects)
        code = open_folder_objects(source, &own, err);
    if (code)
        return code;
    code = copy_objects(source, own, target_fd, manifest, err);
    if (code)
        return code;
    return backup_verify_copy(&snapshot, own ? own : source->objects, target_fd, options, err);
}

/* Copies everything while one connection holds the lock that keeps the server from deleting
 * objects. The end of the pool ends the session, and with it the lock. */
static enum err_code copy_under_lock(const struct backup_source *source, int target_fd,
                                     const struct backup_options *options,
                                     struct backup_manifest *manifest, struct err *err)
{
    pg_pool_auto pool = create_pool(source, 2);
    pg_auto connection = NULL;
    enum err_code code = pg_take(pool, &connection, err);
    if (code)
        return code;
    code = storage_identity_verify(connection, source->settings, err);
    if (code)
        return code;
    code = hold_sweep(connection, err);
    if (code)
        return code;
    code = dump_database(source, target_fd, err);
    if (code)
        return code;
    code = backup_manifest_add(manifest, target_fd, "database.dump", err);
    if (code)
        return code;
    code = copy_and_compare(source, pool, target_fd, options, manifest, err);
    if (code)
        return code;
    code = check_sweep_is_held(connection, err);
    if (code)
        return code;
    return backup_manifest_copy_folder(source->folder.fd, target_fd, "tls", NULL, manifest, err);
}

static enum err_code fill_backup(const struct backup_source *source, int target_fd,
                                 const struct backup_options *options,
                                 struct backup_manifest *manifest, struct err *err)
{
    enum err_code code = copy_under_lock(source, target_fd, options, manifest, err);
    return code ? code : backup_manifest_write(manifest, target_fd, err);
}

static enum err_code sync_parent(const char *path, struct err *err)
{
    char parent[NAME_BYTES];
    snprintf(parent, sizeof(parent), "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    fd_auto fd = os_openat(AT_FDCWD, slash ? parent : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || os_fsync(fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot make %s durable", path);
    return ERR_NONE;
}

/* "…/name/" becomes "…/name.partial" beside it. */
static enum err_code name_partial(const char *path, char *target, char *partial, struct err *err)
{
    int size = snprintf(target, NAME_BYTES, "%s", path);
    while (size > 1 && size < NAME_BYTES && target[size - 1] == '/')
        target[--size] = '\0';
    if (size <= 0 || snprintf(partial, NAME_BYTES, "%s.partial", target) >= NAME_BYTES)
        return err_set(err, ERR_INVALID, "\"%s\" cannot be the name of a folder", path);
    return ERR_NONE;
}

static enum err_code publish_backup(const char *partial, const char *target, struct err *err)
{
    if (os_renameat(AT_FDCWD, partial, AT_FDCWD, target) != 0)
        return err_set_errno(err, ERR_IO, "cannot name %s", target);
    return sync_parent(target, err);
}

/* Compares the files of an existing backup with its manifest. */
static enum err_code verify_backup(const char *path, struct err *err)
{
    uint64_t file_count = 0;
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_NOT_FOUND, "cannot open the backup %s", path);
    if (backup_manifest_check(fd, false, &file_count, err))
        return err_add(err, "backup %s", path);
    printf("%s: %llu files are unchanged since the backup was made\n", path,
           (unsigned long long)file_count);
    return ERR_NONE;
}

static enum err_code check_identity(const struct backup_source *source, struct pg_pool *pool,
                                    struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(pool, &connection, err);
    return code ? code : storage_identity_verify(connection, source->settings, err);
}

static enum err_code verify_database_objects(const struct backup_source *source,
                                             const struct backup_options *options, struct err *err)
{
    pg_pool_auto pool = create_pool(source, 2);
    object_store_auto own = NULL;
    enum err_code code = check_identity(source, pool, err);
    if (code)
        return code;
    if (!source->objects)
        code = object_store_setup_open_to_read(source->settings, &source->folder.server, &own, err);
    if (code)
        return code;
    return backup_verify_live(pool, own ? own : source->objects, false, options, err);
}

static enum err_code verify_data_folder(struct settings *settings,
                                        const struct backup_options *options, struct err *err)
{
    struct backup_source source;
    enum err_code code = backup_source_open(settings, &source, err);
    if (!code)
        code = verify_database_objects(&source, options, err);
    backup_source_close(&source);
    return code;
}

enum err_code backup_run(struct settings *settings, const char *target,
                         const struct backup_options *options, struct err *err)
{
    if (options->verify_only)
        return target ? verify_backup(target, err) : verify_data_folder(settings, options, err);
    char name[NAME_BYTES], partial[NAME_BYTES];
    struct backup_source source;
    struct backup_manifest manifest;
    enum err_code code = name_partial(target, name, partial, err);
    if (code)
        return code;
    if (access(name, F_OK) == 0)
        return err_set(err, ERR_CONFLICT, "%s exists already; a backup needs a new folder", name);
    remove_folder(partial);
    if (os_mkdirat(AT_FDCWD, partial, 0700) != 0)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", partial);
    fd_auto fd = os_openat(AT_FDCWD, partial, O_RDONLY | O_DIRECTORY, 0);
    backup_manifest_init(&manifest);
    code = backup_source_open(settings, &source, err);
    if (!code)
        code = fill_backup(&source, fd, options, &manifest, err);
    backup_source_close(&source);
    if (!code)
        code = publish_backup(partial, name, err);
    if (code)
        remove_folder(partial);
    else
        printf("%s: %llu files, %llu bytes\n", name, (unsigned long long)manifest.file_count,
               (unsigned long long)manifest.byte_count);
    backup_manifest_fini(&manifest);
    return code;
}

/* ---- restore ---- */

/* The roles that the migrations would create, for a database that has never been migrated. */
static const char roles_sql[] =
    "DO $$ DECLARE name text; BEGIN "
    "FOREACH name IN ARRAY ARRAY['perfolio_owner', 'perfolio_server', 'perfolio_jobs'] LOOP "
    "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN "
    "EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', name); "
    "END IF; END LOOP; "
    "IF NOT pg_has_role(current_user, 'perfolio_owner', 'USAGE') THEN "
    "EXECUTE format('GRANT perfolio_owner, perfolio_server, perfolio_jobs TO %I', current_user); "
    "END IF; END $$";

static enum err_code make_roles(const struct backup_source *source, struct err *err)
{
    pg_pool_auto pool = pg_pool_create(source->settings->database_url, NULL, 1);
    pg_auto connection = NULL;
    enum err_code code = pg_take(pool, &connection, err);
    return code ? code : pg_script(connection, roles_sql, err);
}

static enum err_code load_dump(const struct backup_source *source, int backup_fd, struct err *err)
{
    /* Ignores the owners in the dump: here the schema's owner, or the URL's user, owns the tables.
     */
    const char *arguments[10] = {NULL, "--exit-on-error", "--single-transaction", "--no-password",
                                 "--no-owner"};
    int count = 5;
    if (source->has_cluster)
        arguments[count++] = "--role=perfolio_owner";
    arguments[count++] = "--dbname";
    arguments[count++] = source->tools_conninfo;
    if (!source->has_cluster && make_roles(source, err))
        return err->code;
    fd_auto fd = os_openat(backup_fd, "database.dump", O_RDONLY, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open database.dump");
    return postgres_run_tool(&source->postgres, "pg_restore", arguments,
                             source->has_cluster ? NULL : (const char *const *)environ, fd, -1,
                             err);
}

/* Compares the objects only if the backup has the present schema, which object_verify needs: the
 * first start applies the migrations that a backup of an older version lacks. Refuses a backup that
 * no start would accept. */
static enum err_code verify_restored(struct pg_pool *pool, struct object_store *objects,
                                     const struct backup_options *options, struct err *err)
{
    pg_auto connection = NULL;
    bool is_current = false;
    enum err_code code = pg_take(pool, &connection, err);
    if (code)
        return code;
    code = migrate_check(connection, &is_current, err);
    if (code)
        return code;
    if (is_current) {
        pg_give(connection);
        connection = NULL;
        return backup_verify_live(pool, objects, true, options, err);
    }
    fprintf(stderr,
            "perfoliod: warning: the backup is of an older version, so its objects were not "
            "compared with its database: run perfoliod store verify after the first start\n");
    return ERR_NONE;
}

/* The data folder does not have its final name yet, so its objects are opened through its
 * descriptor. */
static enum err_code compare_restored(const struct backup_source *source,
                                      const struct backup_options *options, struct err *err)
{
    char path[NAME_BYTES];
    pg_pool_auto pool = create_pool(source, 2);
    object_store_auto own = NULL;
    if (source->objects)
        return verify_restored(pool, source->objects, options, err);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/objects", source->folder.fd);
    enum err_code code = object_folder_open_to_read(path, &own, err);
    if (code)
        return code;
    object_folder_read_as(own, source->folder.server.uid, source->folder.server.gid);
    return verify_restored(pool, own, options, err);
}

/* *ret_has_put: the objects are in the bucket, also if a later step fails. */
static enum err_code copy_files(const struct backup_source *source, int backup_fd,
                                struct backup_manifest *copied, bool *ret_has_put, struct err *err)
{
    const struct data_folder *folder = &source->folder;
    enum err_code code =
        source->objects ? backup_bucket_give(source->objects, backup_fd, &copied->file_count, err)
                        : backup_manifest_copy_folder(backup_fd, folder->fd, "objects",
                                                      &folder->server, copied, err);
    *ret_has_put = source->objects && !code;
    if (code)
        return code;
    return backup_manifest_copy_folder(backup_fd, folder->fd, "tls", NULL, copied, err);
}

static enum err_code fill_data_folder(struct backup_source *source, int backup_fd,
                                      const struct backup_options *options, uint64_t file_count,
                                      bool *ret_has_put, struct err *err)
{
    struct backup_manifest copied;
    backup_manifest_init(&copied);
    enum err_code code = copy_files(source, backup_fd, &copied, ret_has_put, err);
    const uint64_t copied_count = copied.file_count;
    backup_manifest_fini(&copied);
    if (code)
        return code;
    /* The dump is the only existing file of the manifest that copy_files does not copy. A copied
     * file that the manifest does not name would not have been verified. */
    if (copied_count + 1 != file_count)
        return err_set(err, ERR_CORRUPT,
                       "the backup contains files that its manifest does not name");
    code = backup_source_open_database(source, false, err);
    if (code)
        return code;
    code = load_dump(source, backup_fd, err);
    if (code)
        return code;
    return compare_restored(source, options, err);
}

/* Empties the bucket again if the rest fails. */
static enum err_code restore_into(struct backup_source *source, int backup_fd,
                                  const struct backup_options *options, uint64_t file_count,
                                  struct err *err)
{
    bool has_put = false;
    enum err_code code = backup_source_open_bucket(source, err);
    if (!code)
        code = fill_data_folder(source, backup_fd, options, file_count, &has_put, err);
    struct err ignored;
    if (code && has_put && backup_bucket_clear(source->objects, &ignored))
        return err_add(err, "and the bucket still contains the copied objects");
    return code;
}

static enum err_code check_target(const char *name, struct err *err)
{
    /* Removes an empty folder; the restored folder is moved to its name later. */
    if (rmdir(name) == 0 || errno == ENOENT)
        return ERR_NONE;
    return err_set_errno(err, ERR_CONFLICT, "cannot restore to %s, which must be absent or empty",
                         name);
}

/* Checks the backup and the target, and sets the names of the target and of the folder that is
 * renamed to it at the end. */
static enum err_code prepare_restore(const struct settings *settings, int backup_fd,
                                     const struct backup_options *options, char name[NAME_BYTES],
                                     char partial[NAME_BYTES], uint64_t *ret_file_count,
                                     struct err *err)
{
    enum err_code code =
        backup_manifest_check(backup_fd, options->allow_damaged, ret_file_count, err);
    if (code == ERR_CORRUPT && !options->allow_damaged) {
        const struct err first = *err;
        return err_set(err, code,
                       "%s; with --allow-damaged, the rest is restored where only objects are "
                       "missing or damaged",
                       first.message);
    }
    if (code)
        return code;
    code = name_partial(settings->data_dir, name, partial, err);
    return code ? code : check_target(name, err);
}

enum err_code backup_restore(struct settings *settings, const char *backup_path,
                             const struct backup_options *options, struct err *err)
{
    char name[NAME_BYTES], partial[NAME_BYTES];
    struct backup_source source = {.settings = settings, .has_cluster = !*settings->database_url};
    source.folder.fd = source.folder.lock_fd = -1;
    uint64_t file_count;
    fd_auto backup_fd = os_openat(AT_FDCWD, backup_path, O_RDONLY | O_DIRECTORY, 0);
    if (backup_fd < 0)
        return err_set_errno(err, ERR_NOT_FOUND, "cannot open the backup %s", backup_path);
    enum err_code code =
        prepare_restore(settings, backup_fd, options, name, partial, &file_count, err);
    if (code)
        return err_add(err, "restoring %s", backup_path);
    remove_folder(partial);
    code = data_folder_open(partial, source.has_cluster, &source.folder, err);
    if (!code)
        code = restore_into(&source, backup_fd, options, file_count, err);
    backup_source_close(&source);
    if (!code)
        code = publish_backup(partial, name, err);
    if (code)
        remove_folder(partial);
    else
        printf("%s is restored; start it with: perfoliod serve --data-dir %s%s%s\n", name, name,
               source.has_cluster ? "" : " --database-url URL (the same as here)",
               object_store_setup_are_in_s3(settings) ? " and the settings of S3 that this had"
                                                      : "");
    return code;
}
