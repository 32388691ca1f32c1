#include "api/ops/backup_bucket.h"

#include "api/core/os_user.h"
#include "api/ops/backup_manifest.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, PATH_ROOM = OBJECT_KEY_MAX_BYTES + 16, DELETE_AT_ONCE = 1000 };

/* The prefixes that perfoliod uses; a bucket without a prefix may contain other objects. */
static const char *const kinds[] = {"share/", "part/",    "segment/",
                                    "block/", "symbols/", "debuginfo/"};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static enum err_code list_all(struct object_store *objects, object_visit *visit, void *context,
                              struct err *err)
{
    enum err_code code = ERR_NONE;
    for (int i = 0; i < KIND_COUNT && !code; i++)
        code = object_list(objects, kinds[i], visit, context, err);
    return code;
}

/* ---- into the backup ---- */

struct taking {
    struct object_store *objects;
    const struct os_user *server;
    int target_fd;
    struct backup_manifest *manifest;
};

static enum err_code make_folders(int target_fd, const char *path, struct err *err)
{
    char folder[PATH_ROOM];
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        if (os_mkdirat(target_fd, folder, 0700) != 0 && errno != EEXIST)
            return err_set_errno(err, ERR_IO, "cannot create %s", folder);
    }
    return ERR_NONE;
}

/* An object that root can read and the server cannot is not lost, but users cannot read it. */
static enum err_code open_as_root(const struct taking *taking, const char *key, int *ret_fd,
                                  struct err *err)
{
    uint64_t size;
    object_folder_read_as(taking->objects, geteuid(), getegid());
    const enum err_code code = object_open(taking->objects, key, ret_fd, &size, err);
    object_folder_read_as(taking->objects, taking->server->uid, taking->server->gid);
    if (code)
        return code;
    fprintf(stderr,
            "perfoliod: warning: the backup contains object %s, but the server's user %s cannot "
            "read it: give the file to that user with chown and chmod 600\n",
            key, taking->server->name);
    return ERR_NONE;
}

static enum err_code open_object(const struct taking *taking, const char *key, int *ret_fd,
                                 struct err *err)
{
    uint64_t size;
    const enum err_code code = object_open(taking->objects, key, ret_fd, &size, err);
    return code && err->is_unreadable && taking->server ? open_as_root(taking, key, ret_fd, err)
                                                        : code;
}

/* Leaves out an object that is gone (its request failed meanwhile) or unreadable. The caller's
 * comparison with the database reports those that are missing. */
static enum err_code take_object(void *context, const char *key, uint64_t size, int64_t modified_ns,
                                 struct err *err)
{
    const struct taking *taking = context;
    char path[PATH_ROOM];
    fd_auto from_fd = -1;
    (void)size, (void)modified_ns;
    enum err_code code = open_object(taking, key, &from_fd, err);
    if (code == ERR_NOT_FOUND || code == ERR_CORRUPT || (code && err->is_unreadable))
        return ERR_NONE;
    if (code)
        return code;
    snprintf(path, sizeof(path), "objects/%s", key);
    code = make_folders(taking->target_fd, path, err);
    if (code)
        return code;
    code = backup_manifest_copy(taking->manifest, from_fd, taking->target_fd, path, err);
    if (!code || !err->is_unreadable)
        return code;
    return os_unlinkat(taking->target_fd, path) == 0
               ? ERR_NONE
               : err_set_errno(err, ERR_IO, "cannot remove the incomplete copy %s", path);
}

/* Names of files are durable once their folders are synced. */
static enum err_code sync_folders(int parent_fd, const char *name, int depth, struct err *err)
{
    fd_auto fd = os_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int list_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *folder = list_fd < 0 ? NULL : fdopendir(list_fd);
    enum err_code code = ERR_NONE;
    if (!folder || os_fsync(fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make the folder %s durable", name);
    for (struct dirent *entry; !code && depth < OBJECT_KEY_MAX_PARTS && (entry = readdir(folder));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            code = sync_folders(fd, entry->d_name, depth + 1, err);
    if (folder)
        closedir(folder);
    else
        os_close(list_fd);
    return code;
}

enum err_code backup_bucket_take(struct object_store *objects, const struct os_user *server,
                                 int target_fd, struct backup_manifest *manifest, struct err *err)
{
    struct taking taking = {
        .objects = objects, .server = server, .target_fd = target_fd, .manifest = manifest};
    if (os_mkdirat(target_fd, "objects", 0700) != 0)
        return err_set_errno(err, ERR_IO, "cannot create objects");
    const enum err_code code = list_all(objects, take_object, &taking, err);
    return code ? code : sync_folders(target_fd, "objects", 0, err);
}

/* ---- into the bucket ---- */

static enum err_code refuse_existing(void *context, const char *key, uint64_t size,
                                     int64_t modified_ns, struct err *err)
{
    (void)context, (void)size, (void)modified_ns;
    return err_set(err, ERR_CONFLICT,
                   "the bucket contains profiles already, as %s under the prefix: restore to "
                   "another --s3-prefix, or remove them first if they are not needed",
                   key);
}

static enum err_code put_file(struct object_store *objects, int fd, const char *key,
                              struct err *err)
{
    struct object_writer *writer;
    buf_auto piece;
    buf_init(&piece, PIECE_BYTES);
    uint8_t *bytes = buf_reserve(&piece, PIECE_BYTES);
    enum err_code code = object_writer_open(objects, key, &writer, err);
    if (code)
        return code;
    off_t offset = 0;
    ssize_t size = 0;
    while (!code && (size = os_pread(fd, bytes, PIECE_BYTES, offset)) > 0) {
        code = object_writer_append(writer, span_of(bytes, (size_t)size), err);
        offset += size;
    }
    if (!code && size < 0)
        code = err_set_errno(err, ERR_IO, "cannot read objects/%s", key);
    if (!code)
        return object_writer_commit(writer, err);
    object_writer_abort(writer);
    return code;
}

/* Puts all files below the folder; key is the prefix of their keys, with a slash, or "". */
static enum err_code put_folder(struct object_store *objects, int folder_fd, const char *key,
                                int depth, uint64_t *count, struct err *err);

static enum err_code put_entry(struct object_store *objects, int folder_fd, const char *key,
                               const char *name, int depth, uint64_t *count, struct err *err)
{
    char inner[PATH_ROOM];
    struct stat status;
    fd_auto fd = os_openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot open objects/%s%s", key, name);
    bool is_folder = S_ISDIR(status.st_mode) && depth < OBJECT_KEY_MAX_PARTS;
    if (!is_folder && !S_ISREG(status.st_mode))
        return err_set(err, ERR_INVALID, "objects/%s%s is neither a file nor a folder of objects",
                       key, name);
    if (snprintf(inner, sizeof(inner), "%s%s%s", key, name, is_folder ? "/" : "") >=
        (int)sizeof(inner))
        return err_set(err, ERR_INVALID, "the name objects/%s%s is too long", key, name);
    if (is_folder)
        return put_folder(objects, fd, inner, depth + 1, count, err);
    ++*count;
    return put_file(objects, fd, inner, err);
}

static enum err_code put_folder(struct object_store *objects, int folder_fd, const char *key,
                                int depth, uint64_t *count, struct err *err)
{
    int list_fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
    DIR *folder = list_fd < 0 ? NULL : fdopendir(list_fd);
    if (!folder) {
        os_close(list_fd);
        return err_set_errno(err, ERR_IO, "cannot list objects/%s", key);
    }
    enum err_code code = ERR_NONE;
    for (struct dirent *entry; !code && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            code = put_entry(objects, folder_fd, key, entry->d_name, depth, count, err);
    closedir(folder);
    return code;
}

enum err_code backup_bucket_give(struct object_store *objects, int source_fd, uint64_t *ret_count,
                                 struct err *err)
{
    uint64_t count = 0;
    enum err_code code = list_all(objects, refuse_existing, NULL, err);
    if (code)
        return code;
    code = object_list(objects, "database-id", refuse_existing, NULL, err);
    fd_auto fd = os_openat(source_fd, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (code)
        return code;
    if (fd < 0 && errno != ENOENT)
        code = err_set_errno(err, ERR_IO, "cannot open objects");
    if (code)
        return code;
    if (fd >= 0)
        code = put_folder(objects, fd, "", 1, &count, err);
    struct err ignored;
    if (code && backup_bucket_clear(objects, &ignored))
        return err_add(err, "and the bucket now contains a part of the backup");
    *ret_count = count;
    return code;
}

struct clearing {
    struct object_store *objects;
    struct arena *arena;
    const char *keys[DELETE_AT_ONCE];
    size_t count;
};

static enum err_code clear_gathered(struct clearing *clearing, struct err *err)
{
    size_t count = clearing->count;
    clearing->count = 0;
    return count ? object_delete_many(clearing->objects, clearing->keys, count, err) : ERR_NONE;
}

static enum err_code gather_key(void *context, const char *key, uint64_t size, int64_t modified_ns,
                                struct err *err)
{
    struct clearing *clearing = context;
    (void)size, (void)modified_ns;
    clearing->keys[clearing->count++] = arena_strdup(clearing->arena, key);
    return clearing->count == DELETE_AT_ONCE ? clear_gathered(clearing, err) : ERR_NONE;
}

enum err_code backup_bucket_clear(struct object_store *objects, struct err *err)
{
    arena_auto arena = arena_create();
    struct clearing clearing = {.objects = objects, .arena = arena};
    enum err_code code = list_all(objects, gather_key, &clearing, err);
    return code ? code : clear_gathered(&clearing, err);
}
