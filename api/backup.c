#include "api/backup.h"

#include "api/backup_bucket.h"
#include "api/backup_files.h"
#include "api/data_folder.h"
#include "api/objects.h"
#include "api/pairing.h"
#include "api/postgres.h"
#include "api/server.h"
#include "api/settings.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
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

enum { LOCK_WAIT_S = 120, DATABASE_CONNECTIONS = 12, NAME_BYTES = PATH_MAX };

extern char **environ;

/* A data folder, and its database made reachable. */
struct source {
    struct settings *settings;
    struct data_folder folder;
    struct postgres postgres;
    bool has_cluster;
    bool is_started; /* by us: the server does not run */
    char conninfo[POSTGRES_CONNINFO_BYTES];
    struct arena *arena;          /* of what follows */
    const char *tools_conninfo;   /* for PostgreSQL's programs: without a password */
    struct object_store *objects; /* the bucket; NULL: they are in the folder */
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
}

static void name_cluster(struct source *source)
{
    struct postgres *postgres = &source->postgres;
    const struct data_folder *folder = &source->folder;
    *postgres = (struct postgres){.account = folder->database,
                                  .server_account = folder->server,
                                  .kept_fd = folder->needs_fd ? folder->fd : -1,
                                  .max_connections = DATABASE_CONNECTIONS};
    snprintf(postgres->path, sizeof(postgres->path), "%s/pg", folder->path);
    snprintf(postgres->child_path, sizeof(postgres->child_path), "%s/pg", folder->child_path);
}

static enum err_code start_cluster(struct source *source, struct err *err)
{
    struct postgres *postgres = &source->postgres;
    enum err_code code = data_folder_make_socket_dir(&source->folder, postgres->socket_dir,
                                                     sizeof(postgres->socket_dir), err);
    if (!code)
        code = postgres_stop_orphan(postgres, err);
    /* PostgreSQL's own messages, and those of its programs, go where ours go only when they fail.
     */
    postgres->log_fd = openat(source->folder.fd, "postgres.log",
                              O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!code)
        code = postgres_prepare(postgres, err);
    if (!code)
        code = postgres_start(postgres, err);
    if (postgres->log_fd > 0)
        close(postgres->log_fd);
    postgres->log_fd = 0;
    if (code)
        return code;
    source->is_started = true;
    postgres_conninfo(postgres->socket_dir, "perfolio_cluster", source->conninfo);
    return ERR_NONE;
}

/* The password travels in the environment: arguments are for everyone to read. */
static enum err_code hide_password(struct source *source, struct err *err)
{
    const char *password;
    enum err_code code = pg_split_password(source->settings->database_url, source->arena,
                                           &source->tools_conninfo, &password, err);
    if (!code && *password)
        setenv("PGPASSWORD", password, 1);
    return code;
}

static enum err_code open_database(struct source *source, bool is_served, struct err *err)
{
    source->arena = arena_create();
    source->tools_conninfo = source->conninfo;
    if (!source->has_cluster && hide_password(source, err))
        return err->code;
    if (!source->has_cluster) {
        source->postgres =
            (struct postgres){.account = source->folder.ours, .kept_fd = -1, .log_fd = 0};
        return postgres_find_newest_programs(&source->postgres, err);
    }
    name_cluster(source);
    if (!is_served)
        return start_cluster(source, err);
    enum err_code code = postgres_find_running(&source->postgres, err);
    if (!code)
        postgres_conninfo(source->postgres.socket_dir, "perfolio_cluster", source->conninfo);
    return code;
}

/* Copies of objects go through a file of D, which has the room if anything has. */
static enum err_code open_bucket(struct source *source, struct err *err)
{
    struct settings *settings = source->settings;
    if (!objects_are_in_s3(settings))
        return ERR_NONE;
    enum err_code code = objects_prepare(settings, err);
    if (!code)
        code = data_folder_make(&source->folder, "copies", &source->folder.server, 0700, err);
    return code ? code : objects_open(settings, &source->objects, err);
}

static enum err_code open_source(struct settings *settings, struct source *source, struct err *err)
{
    *source = (struct source){.settings = settings, .has_cluster = !*settings->database_url};
    source->folder.fd = source->folder.lock_fd = -1;
    if (access(settings->data_dir, F_OK) != 0)
        return err_set_errno(err, ERR_NOT_FOUND, "cannot back up %s", settings->data_dir);
    bool is_served = false;
    enum err_code code =
        data_folder_open(settings->data_dir, source->has_cluster, &source->folder, err);
    if (code == ERR_CONFLICT) {
        is_served = true;
        code =
            data_folder_open_served(settings->data_dir, source->has_cluster, &source->folder, err);
    }
    if (!code)
        code = open_bucket(source, err);
    return code ? code : open_database(source, is_served, err);
}

static void close_source(struct source *source)
{
    if (source->is_started) {
        postgres_stop(&source->postgres);
        rmdir(source->postgres.socket_dir);
    }
    object_store_close(source->objects);
    data_folder_close(&source->folder);
    arena_destroy(source->arena);
}

/* The server sweeps for a moment every few seconds, so that this seldom waits. */
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
                           "the server has been deleting for %d s, or another backup runs; try "
                           "again later",
                           LOCK_WAIT_S);
        clock_sleep_ms(100);
    }
}

/* The lock lives and dies with the session, and so does what was copied meanwhile. */
static enum err_code check_sweep_is_held(struct pg_connection *connection, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *result;
    if (pg_query(connection, PG_NO_TENANT, "SELECT 1", NULL, 0, arena, &result, err) == ERR_NONE)
        return ERR_NONE;
    return err_set(err, ERR_BUSY,
                   "the database ended the session that kept the server from deleting, so that "
                   "profiles may be missing from this backup: run it again");
}

static enum err_code dump(const struct source *source, int target_fd, struct err *err)
{
    /* What is restored goes with a folder of its own: api/pairing.h. */
    const char *arguments[8] = {NULL, "--format=custom", "--no-password",
                                "--exclude-table-data=object_folder"};
    int count = 4;
    /* RLS is forced on the owner too, but the policies for perfolio_owner, whose member it is, show
     * every row. */
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

static enum err_code copy_objects(const struct source *source, struct pg_connection *connection,
                                  int target_fd, struct manifest *manifest, struct err *err)
{
    if (!source->objects)
        return backup_copy_folder(source->folder.fd, target_fd, "objects", NULL, manifest, err);
    return backup_take_from_bucket(source->objects, connection, target_fd, manifest, err);
}

static enum err_code fill_backup(const struct source *source, int target_fd,
                                 struct manifest *manifest, struct err *err)
{
    struct pg_connection *connection = NULL;
    struct pg_pool *pool = pg_pool_create(
        source->has_cluster ? source->conninfo : source->settings->database_url, NULL, 1);
    enum err_code code = pg_take(pool, &connection, err);
    if (!code)
        code = pairing_verify(connection, source->settings, err);
    if (!code)
        code = hold_sweep(connection, err);
    if (!code)
        code = dump(source, target_fd, err);
    if (!code)
        code = manifest_add(manifest, target_fd, "database.dump", err);
    if (!code)
        code = copy_objects(source, connection, target_fd, manifest, err);
    if (!code)
        code = check_sweep_is_held(connection, err);
    if (!code)
        code = backup_copy_folder(source->folder.fd, target_fd, "tls", NULL, manifest, err);
    /* With the pool goes the session, and with it the lock. */
    pg_give(connection);
    pg_pool_destroy(pool);
    return code ? code : manifest_write(manifest, target_fd, err);
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

/* "…/name/" to "…/name.partial" beside it. */
static enum err_code name_partial(const char *path, char *target, char *partial, struct err *err)
{
    int size = snprintf(target, NAME_BYTES, "%s", path);
    while (size > 1 && size < NAME_BYTES && target[size - 1] == '/')
        target[--size] = '\0';
    if (size <= 0 || snprintf(partial, NAME_BYTES, "%s.partial", target) >= NAME_BYTES)
        return err_set(err, ERR_INVALID, "\"%s\" cannot be the name of a folder", path);
    return ERR_NONE;
}

static enum err_code publish(const char *partial, const char *target, struct err *err)
{
    if (os_renameat(AT_FDCWD, partial, AT_FDCWD, target) != 0)
        return err_set_errno(err, ERR_IO, "cannot name %s", target);
    return sync_parent(target, err);
}

enum err_code backup_run(struct settings *settings, const char *target, struct err *err)
{
    char name[NAME_BYTES], partial[NAME_BYTES];
    struct source source;
    struct manifest manifest;
    enum err_code code = name_partial(target, name, partial, err);
    if (code)
        return code;
    if (access(name, F_OK) == 0)
        return err_set(err, ERR_CONFLICT, "%s is there already; backups go to a new folder", name);
    remove_folder(partial);
    if (os_mkdirat(AT_FDCWD, partial, 0700) != 0)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", partial);
    fd_auto fd = os_openat(AT_FDCWD, partial, O_RDONLY | O_DIRECTORY, 0);
    manifest_init(&manifest);
    code = open_source(settings, &source, err);
    if (!code)
        code = fill_backup(&source, fd, &manifest, err);
    close_source(&source);
    if (!code)
        code = publish(partial, name, err);
    if (code)
        remove_folder(partial);
    else
        printf("%s: %llu files, %llu bytes\n", name, (unsigned long long)manifest.file_count,
               (unsigned long long)manifest.byte_count);
    manifest_fini(&manifest);
    return code;
}

/* ---- restore ---- */

/* What the migrations would make, for a database that has never seen any. */
static const char roles_sql[] =
    "DO $$ DECLARE name text; BEGIN "
    "FOREACH name IN ARRAY ARRAY['perfolio_owner', 'perfolio_server', 'perfolio_jobs'] LOOP "
    "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN "
    "EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', name); "
    "END IF; END LOOP; "
    "IF NOT pg_has_role(current_user, 'perfolio_owner', 'USAGE') THEN "
    "EXECUTE format('GRANT perfolio_owner, perfolio_server, perfolio_jobs TO %I', current_user); "
    "END IF; END $$";

static enum err_code make_roles(const struct source *source, struct err *err)
{
    struct pg_connection *connection = NULL;
    struct pg_pool *pool = pg_pool_create(source->settings->database_url, NULL, 1);
    enum err_code code = pg_take(pool, &connection, err);
    if (!code)
        code = pg_script(connection, roles_sql, err);
    pg_give(connection);
    pg_pool_destroy(pool);
    return code;
}

static enum err_code load_dump(const struct source *source, int backup_fd, struct err *err)
{
    /* Whoever owned the tables where the dump was made; here the schema's owner does, or the URL's
     * user. */
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

static enum err_code fill_data_folder(struct source *source, int backup_fd, uint64_t file_count,
                                      bool *ret_has_put, struct err *err)
{
    struct manifest copied;
    const struct data_folder *folder = &source->folder;
    manifest_init(&copied);
    enum err_code code =
        source->objects
            ? backup_give_to_bucket(source->objects, backup_fd, &copied.file_count, err)
            : backup_copy_folder(backup_fd, folder->fd, "objects", &folder->server, &copied, err);
    *ret_has_put = source->objects && !code;
    if (!code)
        code = backup_copy_folder(backup_fd, folder->fd, "tls", NULL, &copied, err);
    /* The dump is the one more. Others would be files that nothing vouches for. */
    if (!code && copied.file_count + 1 != file_count)
        code = err_set(err, ERR_CORRUPT, "the backup holds files that its manifest does not name");
    if (!code)
        code = open_database(source, false, err);
    if (!code)
        code = load_dump(source, backup_fd, err);
    manifest_fini(&copied);
    return code;
}

/* A bucket that was empty is so again when the rest fails. */
static enum err_code restore_into(struct source *source, int backup_fd, uint64_t file_count,
                                  struct err *err)
{
    bool has_put = false;
    enum err_code code = open_bucket(source, err);
    if (!code)
        code = fill_data_folder(source, backup_fd, file_count, &has_put, err);
    struct err ignored;
    if (code && has_put && backup_clear_bucket(source->objects, &ignored))
        return err_add(err, "and the bucket keeps what was put");
    return code;
}

static enum err_code check_target(const char *name, struct err *err)
{
    /* Gone for a moment, if it is there and empty. */
    if (rmdir(name) == 0 || errno == ENOENT)
        return ERR_NONE;
    return err_set_errno(err, ERR_CONFLICT, "cannot restore to %s, which must be absent or empty",
                         name);
}

enum err_code backup_restore(struct settings *settings, const char *source_path, struct err *err)
{
    char name[NAME_BYTES], partial[NAME_BYTES];
    struct source source = {.settings = settings, .has_cluster = !*settings->database_url};
    source.folder.fd = source.folder.lock_fd = -1;
    uint64_t file_count;
    fd_auto backup_fd = os_openat(AT_FDCWD, source_path, O_RDONLY | O_DIRECTORY, 0);
    if (backup_fd < 0)
        return err_set_errno(err, ERR_NOT_FOUND, "cannot open the backup %s", source_path);
    enum err_code code = manifest_check(backup_fd, &file_count, err);
    if (!code)
        code = name_partial(settings->data_dir, name, partial, err);
    if (!code)
        code = check_target(name, err);
    if (code)
        return err_add(err, "restoring %s", source_path);
    remove_folder(partial);
    code = data_folder_open(partial, source.has_cluster, &source.folder, err);
    if (!code)
        code = restore_into(&source, backup_fd, file_count, err);
    close_source(&source);
    if (!code)
        code = publish(partial, name, err);
    if (code)
        remove_folder(partial);
    else
        printf("%s is restored; start it with: perfoliod serve --data-dir %s%s%s\n", name, name,
               source.has_cluster ? "" : " --database-url URL (the same as here)",
               objects_are_in_s3(settings) ? " and the settings of S3 that this had" : "");
    return code;
}
