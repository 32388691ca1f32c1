#include "api/pairing.h"

#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LOCK_NUMBER = 0x50465052 /* "PFPR" */ };

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
    fd_auto fd = os_openat(pair->folder_fd, file_name, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOENT)
        return ERR_NONE;
    ssize_t size = fd < 0 ? -1 : os_pread(fd, text, sizeof(text), 0);
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

static enum err_code insert_row(struct pair *pair, struct pg_connection *connection,
                                struct arena *arena, struct err *err)
{
    struct pg_result *result;
    digest_random_id(pair->in_database);
    return pg_query_values(connection, PG_NO_TENANT, "INSERT INTO object_folder (id) VALUES ($1)",
                           arena, &result, err, PG_TEXT(pair->in_database));
}

/* No paths: they may lead through a descriptor of this process. */
static enum err_code refuse(const struct pair *pair, struct err *err)
{
    if (!*pair->in_database)
        return err_set(err, ERR_CONFLICT,
                       "the data folder belongs to another database than this one, which never had "
                       "a data folder: start with the database that it was used with, or with a "
                       "new --data-dir. If this database is a copy of that one, remove objects/%s "
                       "in the data folder first",
                       file_name);
    return err_set(err, ERR_CONFLICT,
                   "this database belongs to another data folder, so the profiles in it would be "
                   "missing: start with the --data-dir that it was used with. If objects/ in this "
                   "data folder holds those profiles, write %s into objects/%s there first",
                   pair->in_database, file_name);
}

static enum err_code compare(struct pair *pair, struct pg_connection *connection,
                             struct arena *arena, struct err *err)
{
    struct pg_result *result;
    enum err_code code = read_file(pair, err);
    if (!code)
        code = read_row(pair, connection, arena, err);
    if (code)
        return code;
    bool is_equal = strcmp(pair->in_folder, pair->in_database) == 0;
    if (pair->is_confirmed && is_equal)
        return ERR_NONE;
    if (*pair->in_folder ? !is_equal : pair->is_confirmed)
        return refuse(pair, err);
    if (!*pair->in_database)
        code = insert_row(pair, connection, arena, err);
    if (!code && !*pair->in_folder)
        code = write_file(pair, err);
    if (!code)
        code = pg_query(connection, PG_NO_TENANT, "UPDATE object_folder SET is_confirmed = true",
                        NULL, 0, arena, &result, err);
    return code;
}

enum err_code pairing_check(struct pg_connection *connection, const char *data_dir, struct err *err)
{
    struct pair pair = {0};
    struct pg_result *result;
    char path[4096];
    snprintf(path, sizeof(path), "%s/objects", data_dir);
    fd_auto folder_fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (folder_fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open %s", path);
    pair.folder_fd = folder_fd;
    arena_auto arena = arena_create();
    /* Two servers may start at once; the lock goes with the session at the latest. */
    enum err_code code = pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_lock($1)",
                                         arena, &result, err, PG_I64(LOCK_NUMBER));
    if (!code)
        code = compare(&pair, connection, arena, err);
    struct err unlock_err;
    if (pg_query_values(connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)", arena, &result,
                        code ? &unlock_err : err, PG_I64(LOCK_NUMBER)) &&
        !code)
        code = err_add(err, "unlocking");
    return code;
}
