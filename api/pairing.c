#include "api/pairing.h"

#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/pg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCK_NUMBER = 0x50465052, /* "PFPR" */
    LOOKED_AT = 100,          /* so many shares, and files, are enough to know a pair by */
};

static const char file_name[] = ".database-id";

struct pair {
    int folder_fd;                   /* D/objects */
    char in_folder[DIGEST_ID_BYTES]; /* "": none */
    char in_database[DIGEST_ID_BYTES];
    bool is_confirmed;
};

static enum err_code read_file(struct pair *pair, struct err *err)
{
    char text[DIGEST_ID_BYTES + 8];
    struct stat status;
    fd_auto fd = os_openat(pair->folder_fd, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT)
        return ERR_NONE;
    bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t size = is_file ? os_pread(fd, text, sizeof(text), 0) : fd < 0 ? -1 : 0;
    if (size < 0)
        return err_set_errno(err, ERR_IO, "cannot read objects/%s", file_name);
    struct span id = span_trim(span_of(text, (size_t)size));
    if (!digest_is_id(id))
        return err_set(err, ERR_CORRUPT, "objects/%s in the data folder holds no id", file_name);
    snprintf(pair->in_folder, sizeof(pair->in_folder), "%.*s", SPAN_PRINT(id));
    return ERR_NONE;
}

static enum err_code write_file(struct pair *pair, struct err *err)
{
    static const char partial[] = ".database-id.new";
    char text[DIGEST_ID_BYTES + 1];
    int size = snprintf(text, sizeof(text), "%s\n", pair->in_database);
    fd_auto fd =
        os_openat(pair->folder_fd, partial, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0 || os_write_all(fd, text, (size_t)size) != 0 || os_fsync(fd) != 0 ||
        os_renameat(pair->folder_fd, partial, pair->folder_fd, file_name) != 0 ||
        os_fsync(pair->folder_fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot write objects/%s", file_name);
    return ERR_NONE;
}

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

/* ---- refusals; without paths: they may lead through a descriptor of this process ---- */

static enum err_code belong_to_another_database(struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "the data folder belongs to another database than this one, which never had a "
                   "data folder: start with the database that it was used with, or with a new "
                   "--data-dir. If this database is a copy of that one, remove objects/%s in the "
                   "data folder first",
                   file_name);
}

static enum err_code belong_to_another_folder(const struct pair *pair, struct err *err)
{
    char hint[200] = "";
    if (pair->is_confirmed)
        snprintf(hint, sizeof(hint),
                 ". If objects/ in this data folder holds those profiles, write %s into objects/%s "
                 "there first",
                 pair->in_database, file_name);
    return err_set(err, ERR_CONFLICT,
                   "this database belongs to another data folder, so the profiles in it would be "
                   "missing: start with the --data-dir that it was used with%s",
                   hint);
}

/* ---- do they belong together, without an id? ---- */

struct kinship {
    int live_count;   /* shares of the database, of which LOOKED_AT are looked at */
    bool has_objects; /* in the folder */
    bool is_known;    /* one side has what the other names */
};

static enum err_code look_for_shares(const struct pair *pair, struct pg_connection *connection,
                                     struct kinship *kinship, struct arena *arena, struct err *err)
{
    struct pg_result *shares;
    enum err_code code = pg_query_values(connection, PG_NO_TENANT,
                                         "SELECT object_key FROM share WHERE state = 'live' "
                                         "ORDER BY created_at DESC LIMIT $1",
                                         arena, &shares, err, PG_I64(LOOKED_AT));
    if (code)
        return code;
    kinship->live_count = pg_row_count(shares);
    for (int row = 0; row < kinship->live_count; row++)
        kinship->is_known |=
            faccessat(pair->folder_fd, pg_get_text(shares, row, 0), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    return ERR_NONE;
}

/* "{share/<id>,…}" of some files of the folder. */
static struct span list_files(const struct pair *pair, struct kinship *kinship, struct arena *arena)
{
    struct buf list;
    int fd = os_openat(pair->folder_fd, "share", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    buf_init(&list, LOOKED_AT * (DIGEST_ID_BYTES + 16));
    buf_append_byte(&list, '{');
    int count = 0;
    for (struct dirent *entry; folder && count < LOOKED_AT && (entry = readdir(folder));)
        if (digest_is_id(span_text(entry->d_name)))
            buf_printf(&list, "%sshare/%s", count++ ? "," : "", entry->d_name);
    buf_append_byte(&list, '}');
    if (folder)
        closedir(folder);
    kinship->has_objects = count > 0;
    struct span copy = span_of(arena_strndup(arena, list.data, list.size), list.size);
    buf_fini(&list);
    return copy;
}

static enum err_code look_for_objects(const struct pair *pair, struct pg_connection *connection,
                                      struct kinship *kinship, struct arena *arena, struct err *err)
{
    struct pg_result *result;
    struct span files = list_files(pair, kinship, arena);
    enum err_code code =
        pg_query_values(connection, PG_NO_TENANT,
                        "SELECT EXISTS (SELECT FROM share WHERE object_key = ANY ($1::text[])) OR "
                        "EXISTS (SELECT FROM object_trash WHERE object_key = ANY ($1::text[]))",
                        arena, &result, err, PG_SPAN(files));
    if (!code)
        kinship->is_known |= pg_get_bool(result, 0, 0);
    return code;
}

static enum err_code check_kinship(const struct pair *pair, struct pg_connection *connection,
                                   struct arena *arena, struct err *err)
{
    struct kinship kinship = {0};
    enum err_code code = look_for_shares(pair, connection, &kinship, arena, err);
    if (!code)
        code = look_for_objects(pair, connection, &kinship, arena, err);
    if (code || kinship.is_known || (kinship.live_count == 0 && !kinship.has_objects))
        return code;
    return kinship.live_count ? belong_to_another_folder(pair, err)
                              : belong_to_another_database(err);
}

/* *ret_is_new: they may become a pair. */
static enum err_code compare(struct pair *pair, struct pg_connection *connection, bool *ret_is_new,
                             struct arena *arena, struct err *err)
{
    *ret_is_new = false;
    enum err_code code = read_file(pair, err);
    if (!code)
        code = read_row(pair, connection, arena, err);
    if (code)
        return code;
    if (*pair->in_folder && !*pair->in_database)
        return belong_to_another_database(err);
    if (*pair->in_folder || pair->is_confirmed)
        return strcmp(pair->in_folder, pair->in_database) == 0
                   ? ERR_NONE
                   : belong_to_another_folder(pair, err);
    *ret_is_new = true;
    return check_kinship(pair, connection, arena, err);
}

static enum err_code compare_and_write(struct pair *pair, struct pg_connection *connection,
                                       struct arena *arena, struct err *err)
{
    bool is_new;
    struct pg_result *result;
    enum err_code code = compare(pair, connection, &is_new, arena, err);
    if (!code && is_new)
        code = write_row(pair, connection, arena, err);
    if (!code && is_new)
        code = write_file(pair, err);
    if (!code && !pair->is_confirmed)
        code = pg_query(connection, PG_NO_TENANT, "UPDATE object_folder SET is_confirmed = true",
                        NULL, 0, arena, &result, err);
    return code;
}

static enum err_code open_folder(const char *data_dir, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/objects", data_dir) >= (int)sizeof(path))
        return err_set(err, ERR_INVALID, "the data folder's path is too long");
    *ret_fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return *ret_fd < 0 ? err_set_errno(err, ERR_IO, "cannot open the folder objects") : ERR_NONE;
}

enum err_code pairing_check(struct pg_connection *connection, const char *data_dir, struct err *err)
{
    fd_auto fd = -1;
    enum err_code code = open_folder(data_dir, &fd, err);
    if (code)
        return code;
    struct pair pair = {.folder_fd = fd};
    struct pg_result *result;
    arena_auto arena = arena_create();
    /* Two servers may start at once; the lock goes with the session at the latest. */
    code = pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_lock($1)", arena, &result,
                           err, PG_I64(LOCK_NUMBER));
    if (!code)
        code = compare_and_write(&pair, connection, arena, err);
    struct err unlock_err;
    if (pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)", arena, &result,
                        code ? &unlock_err : err, PG_I64(LOCK_NUMBER)) &&
        !code)
        code = err_add(err, "unlocking");
    return code;
}

enum err_code pairing_verify(struct pg_connection *connection, const char *data_dir,
                             struct err *err)
{
    bool is_new;
    fd_auto fd = -1;
    arena_auto arena = arena_create();
    struct pg_result *result;
    enum err_code code =
        pg_query(connection, PG_NO_TENANT, "SELECT to_regclass('object_folder') IS NOT NULL", NULL,
                 0, arena, &result, err);
    if (code || !pg_get_bool(result, 0, 0))
        return code;
    code = open_folder(data_dir, &fd, err);
    struct pair pair = {.folder_fd = fd};
    return code ? code : compare(&pair, connection, &is_new, arena, err);
}
