#include "api/ops/backup_source.h"

#include "api/core/object_store_setup.h"
#include "api/core/settings.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DATABASE_CONNECTIONS = 12 };

static void name_cluster(struct backup_source *source)
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

static enum err_code start_cluster(struct backup_source *source, struct err *err)
{
    struct postgres *postgres = &source->postgres;
    enum err_code code = data_folder_make_socket_dir(&source->folder, postgres->socket_dir,
                                                     sizeof(postgres->socket_dir), err);
    if (!code)
        code = postgres_stop_orphan(postgres, err);
    /* PostgreSQL's messages, and those of its programs, go to our log only if they fail. */
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

/* Passes the password in the environment: arguments are readable by every user. */
static enum err_code hide_password(struct backup_source *source, struct err *err)
{
    const char *password;
    enum err_code code = pg_split_password(source->settings->database_url, source->arena,
                                           &source->tools_conninfo, &password, err);
    if (!code && *password)
        setenv("PGPASSWORD", password, 1);
    return code;
}

enum err_code backup_source_open_database(struct backup_source *source, bool is_served,
                                          struct err *err)
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
    if (code)
        return code;
    postgres_conninfo(source->postgres.socket_dir, "perfolio_cluster", source->conninfo);
    return ERR_NONE;
}

/* Copies of objects go through an unnamed file in D, which has the most free space. */
enum err_code backup_source_open_bucket(struct backup_source *source, struct err *err)
{
    struct settings *settings = source->settings;
    if (!object_store_setup_are_in_s3(settings))
        return ERR_NONE;
    enum err_code code = object_store_setup_prepare(settings, err);
    if (!code)
        code = data_folder_make(&source->folder, "copies", &source->folder.server, 0700, err);
    /* Opens the folder by its present path: that of a restore does not have its final name yet. */
    struct settings opened = *settings;
    opened.data_dir = source->folder.path;
    return code ? code : object_store_setup_open(&opened, &source->objects, err);
}

enum err_code backup_source_open(struct settings *settings, struct backup_source *source,
                                 struct err *err)
{
    *source = (struct backup_source){.settings = settings, .has_cluster = !*settings->database_url};
    source->folder.fd = source->folder.lock_fd = -1;
    if (access(settings->data_dir, F_OK) != 0)
        return err_set_errno(err, ERR_NOT_FOUND, "there is no data folder %s (--data-dir names it)",
                             settings->data_dir);
    bool is_served = false;
    enum err_code code =
        data_folder_open(settings->data_dir, source->has_cluster, &source->folder, err);
    if (code == ERR_CONFLICT) {
        is_served = true;
        code =
            data_folder_open_served(settings->data_dir, source->has_cluster, &source->folder, err);
    }
    if (code)
        return code;
    code = backup_source_open_bucket(source, err);
    if (code)
        return code;
    return backup_source_open_database(source, is_served, err);
}

void backup_source_close(struct backup_source *source)
{
    if (source->is_started) {
        postgres_stop(&source->postgres);
        rmdir(source->postgres.socket_dir);
    }
    object_store_close(source->objects);
    data_folder_close(&source->folder);
    arena_destroy(source->arena);
}
