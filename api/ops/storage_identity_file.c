#include "api/ops/storage_identity_file.h"

#include "api/core/object_store_setup.h"
#include "api/core/settings.h"
#include "api/ops/storage_identity.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_ROOM = DIGEST_ID_BYTES + 8, KEY_ROOM = DIGEST_ID_BYTES + 16 };

static const char file_name[] = ".database-id";
static const char object_name[] = OBJECT_STORE_SETUP_IDENTITY_KEY;

const char *storage_identity_file_name(const struct storage_identity_file *storage)
{
    return storage->store ? "the bucket (with --s3-prefix)" : "the data folder";
}

const char *storage_identity_file_id_name(const struct storage_identity_file *storage)
{
    return storage->store ? "the object database-id" : "objects/.database-id";
}

enum err_code storage_identity_file_open(const struct settings *settings,
                                         struct storage_identity_file *ret_storage, struct err *err)
{
    char path[PATH_MAX];
    *ret_storage = (struct storage_identity_file){.folder_fd = -1};
    if (object_store_setup_are_in_s3(settings))
        return object_store_setup_open(settings, &ret_storage->store, err);
    if (snprintf(path, sizeof(path), "%s/objects", settings->data_dir) >= (int)sizeof(path))
        return err_set(err, ERR_INVALID, "the data folder's path is too long");
    ret_storage->folder_fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return ret_storage->folder_fd < 0 ? err_set_errno(err, ERR_IO, "cannot open the folder objects")
                                      : ERR_NONE;
}

void storage_identity_file_close(struct storage_identity_file *storage)
{
    os_close(storage->folder_fd);
    object_store_close(storage->store);
    *storage = (struct storage_identity_file){.folder_fd = -1};
}

/* ---- the id ---- */

static enum err_code read_file(const struct storage_identity_file *storage, struct buf *text,
                               struct err *err)
{
    struct stat status;
    fd_auto fd = os_openat(storage->folder_fd, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no id");
    bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t size = is_file ? os_pread(fd, buf_reserve(text, ID_ROOM), ID_ROOM, 0) : fd < 0 ? -1 : 0;
    if (size < 0)
        return err_set_errno(err, ERR_IO, "cannot read objects/%s", file_name);
    buf_commit(text, (size_t)size);
    return ERR_NONE;
}

enum err_code storage_identity_file_read_id(const struct storage_identity_file *storage,
                                            char ret_id[DIGEST_ID_BYTES], struct err *err)
{
    buf_auto text;
    buf_init(&text, ID_ROOM);
    ret_id[0] = '\0';
    enum err_code code = storage->store ? object_read(storage->store, object_name, &text, err)
                                        : read_file(storage, &text, err);
    if (code == ERR_NOT_FOUND)
        return ERR_NONE;
    if (code && code != ERR_TOO_LARGE)
        return code;
    struct span id = span_trim(buf_span(&text));
    if (code || !digest_is_id(id))
        return err_set(err, ERR_CORRUPT, "%s in %s contains no id",
                       storage_identity_file_id_name(storage), storage_identity_file_name(storage));
    snprintf(ret_id, DIGEST_ID_BYTES, "%.*s", SPAN_PRINT(id));
    return ERR_NONE;
}

static enum err_code write_file(const struct storage_identity_file *storage, const char *text,
                                int size, struct err *err)
{
    static const char partial[] = ".database-id.new";
    int folder_fd = storage->folder_fd;
    fd_auto fd = os_openat(folder_fd, partial, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0 || os_write_all(fd, text, (size_t)size) != 0 || os_fsync(fd) != 0 ||
        os_renameat(folder_fd, partial, folder_fd, file_name) != 0 || os_fsync(folder_fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot write objects/%s", file_name);
    return ERR_NONE;
}

enum err_code storage_identity_file_write_id(const struct storage_identity_file *storage,
                                             const char *id, struct err *err)
{
    char text[DIGEST_ID_BYTES + 1];
    int size = snprintf(text, sizeof(text), "%s\n", id);
    return storage->store
               ? object_put(storage->store, object_name, span_of(text, (size_t)size), err)
               : write_file(storage, text, size, err);
}

/* ---- objects ---- */

static enum err_code has_object(const struct storage_identity_file *storage, const char *key,
                                bool *ret_is_there, struct err *err)
{
    if (!storage->store) {
        *ret_is_there = faccessat(storage->folder_fd, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        return ERR_NONE;
    }
    buf_auto byte;
    buf_init(&byte, 1);
    enum err_code code = object_read_range(storage->store, key, 0, 1, &byte, err);
    if (code && code != ERR_NOT_FOUND && code != ERR_CORRUPT)
        return code;
    *ret_is_there = code != ERR_NOT_FOUND; /* ERR_CORRUPT: it is empty */
    return ERR_NONE;
}

enum err_code storage_identity_file_has_any(const struct storage_identity_file *storage,
                                            const char *const *keys, size_t count,
                                            bool *ret_is_there, struct err *err)
{
    enum err_code code = ERR_NONE;
    *ret_is_there = false;
    for (size_t i = 0; i < count && !code && !*ret_is_there; i++)
        code = has_object(storage, keys[i], ret_is_there, err);
    return code;
}

struct listing {
    struct buf text;
    size_t count, max;
};

static enum err_code add_key(void *context, const char *key, uint64_t size, int64_t modified_ns,
                             struct err *err)
{
    struct listing *listing = context;
    (void)size, (void)modified_ns;
    if (!digest_is_id(span_text(key + strlen("share/"))))
        return ERR_NONE;
    if (listing->count == listing->max)
        return err_set(err, ERR_CANCELLED, "these are enough");
    buf_printf(&listing->text, "%s%s", listing->count++ ? "," : "", key);
    return ERR_NONE;
}

static enum err_code list_files(const struct storage_identity_file *storage,
                                struct listing *listing, struct err *err)
{
    int fd = os_openat(storage->folder_fd, "share", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    enum err_code code = ERR_NONE;
    for (struct dirent *entry; folder && !code && (entry = readdir(folder));) {
        char key[NAME_MAX + 8];
        snprintf(key, sizeof(key), "share/%s", entry->d_name);
        code = add_key(listing, key, 0, 0, err);
    }
    if (folder)
        closedir(folder);
    return code;
}

enum err_code storage_identity_file_list(const struct storage_identity_file *storage, size_t max,
                                         struct arena *arena, struct span *ret_keys,
                                         struct err *err)
{
    struct listing listing = {.max = max};
    buf_init(&listing.text, max * KEY_ROOM);
    buf_append_byte(&listing.text, '{');
    enum err_code code = storage->store
                             ? object_list(storage->store, "share/", add_key, &listing, err)
                             : list_files(storage, &listing, err);
    buf_append_byte(&listing.text, '}');
    if (code == ERR_CANCELLED)
        code = ERR_NONE;
    *ret_keys =
        span_of(arena_strndup(arena, listing.text.data, listing.text.size), listing.text.size);
    buf_fini(&listing.text);
    return code;
}
