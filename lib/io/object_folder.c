#include "lib/io/object.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MAX_BYTES = 200, KEY_MAX_PARTS = 3, TEMPORARY_NAME_BYTES = 64, DURABLE_SLOTS = 1024 };

struct object_store {
    int fd;           /* of the folder */
    int temporary_fd; /* of .tmp in it */
    atomic_uint next_number;
    /* Inodes of folders whose names are known to be synced, each at its number modulo the size. */
    atomic_ullong durable_folders[DURABLE_SLOTS];
};

struct object_writer {
    struct object_store *store;
    int fd;
    char temporary[TEMPORARY_NAME_BYTES]; /* in .tmp */
    char key[KEY_MAX_BYTES + 1];
};

static bool is_key_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

/* A part that starts with a dot could be "..", or one of our own hidden names. */
static enum err_code check_key(const char *key, struct err *err)
{
    size_t size = strnlen(key, KEY_MAX_BYTES + 1), part_bytes = 0, part_count = 1;
    if (size > KEY_MAX_BYTES)
        return err_set(err, ERR_INVALID, "an object's key is longer than %d bytes", KEY_MAX_BYTES);
    for (size_t i = 0; i < size; i++) {
        if (key[i] == '/' && part_bytes > 0) {
            part_bytes = 0;
            part_count++;
        } else if (is_key_byte(key[i]) && !(part_bytes == 0 && key[i] == '.')) {
            part_bytes++;
        } else {
            return err_set(err, ERR_INVALID, "\"%s\" cannot be an object's key", key);
        }
    }
    if (part_bytes == 0 || part_count > KEY_MAX_PARTS)
        return err_set(err, ERR_INVALID, "\"%s\" cannot be an object's key", key);
    return ERR_NONE;
}

static enum err_code open_folder(int directory_fd, const char *name, int *ret_fd, struct err *err)
{
    int fd = os_openat(directory_fd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                             "cannot open the folder %s", name);
    *ret_fd = fd;
    return ERR_NONE;
}

/*
 * Opens the folder name, creating it if need be, and makes sure that its name is durable: another
 * thread may have created it a moment ago and not have synced it yet.
 */
static enum err_code open_durable_folder(struct object_store *store, int directory_fd,
                                         const char *name, int *ret_fd, struct err *err)
{
    struct stat status;
    if (os_mkdirat(directory_fd, name, 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", name);
    fd_auto fd = -1;
    enum err_code code = open_folder(directory_fd, name, &fd, err);
    if (code)
        return code;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot look at the folder %s", name);
    atomic_ullong *slot = &store->durable_folders[status.st_ino % DURABLE_SLOTS];
    if (atomic_load(slot) != status.st_ino) {
        if (os_fsync(directory_fd) != 0)
            return err_set_errno(err, ERR_IO, "cannot make the folder %s durable", name);
        atomic_store(slot, status.st_ino);
    }
    *ret_fd = fd;
    fd = -1;
    return ERR_NONE;
}

enum err_code object_folder_open(const char *path, struct object_store **ret_store, struct err *err)
{
    if (os_mkdirat(AT_FDCWD, path, 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", path);
    struct object_store *store = mem_new(struct object_store, 1);
    store->fd = store->temporary_fd = -1;
    enum err_code code = open_folder(AT_FDCWD, path, &store->fd, err);
    if (!code)
        code = open_durable_folder(store, store->fd, ".tmp", &store->temporary_fd, err);
    if (code) {
        object_store_close(store);
        return err_add(err, "object store %s", path);
    }
    *ret_store = store;
    return ERR_NONE;
}

void object_store_close(struct object_store *store)
{
    if (!store)
        return;
    os_close(store->fd);
    os_close(store->temporary_fd);
    mem_free(store);
}

/*
 * The folder that holds key's last part, and that part. Handles: ERR_NOT_FOUND unless create.
 */
static enum err_code open_parent(struct object_store *store, const char *key, bool create,
                                 int *ret_fd, const char **ret_name, struct err *err)
{
    fd_auto fd = fcntl(store->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open the object store");
    for (const char *slash; (slash = strchr(key, '/')); key = slash + 1) {
        char part[KEY_MAX_BYTES + 1];
        int next = -1;
        snprintf(part, sizeof(part), "%.*s", (int)(slash - key), key);
        enum err_code code = create ? open_durable_folder(store, fd, part, &next, err)
                                    : open_folder(fd, part, &next, err);
        if (code)
            return code;
        os_close(fd);
        fd = next;
    }
    *ret_fd = fd;
    *ret_name = key;
    fd = -1;
    return ERR_NONE;
}

enum err_code object_writer_open(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err)
{
    enum err_code code = check_key(key, err);
    if (code)
        return code;
    struct object_writer *writer = mem_new(struct object_writer, 1);
    writer->store = store;
    snprintf(writer->key, sizeof(writer->key), "%s", key);
    snprintf(writer->temporary, sizeof(writer->temporary), "%lld-%u", (long long)clock_wall_ns(),
             atomic_fetch_add(&store->next_number, 1));
    writer->fd =
        os_openat(store->temporary_fd, writer->temporary, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (writer->fd < 0) {
        mem_free(writer);
        return err_set_errno(err, ERR_IO, "cannot create a file for object %s", key);
    }
    *ret_writer = writer;
    return ERR_NONE;
}

enum err_code object_writer_append(struct object_writer *writer, struct span bytes, struct err *err)
{
    if (os_write_all(writer->fd, bytes.data, bytes.size) != 0)
        return err_set_errno(err, ERR_IO, "cannot write object %s", writer->key);
    return ERR_NONE;
}

void object_writer_abort(struct object_writer *writer)
{
    if (!writer)
        return;
    os_close(writer->fd);
    os_unlinkat(writer->store->temporary_fd, writer->temporary);
    mem_free(writer);
}

/* Moves the finished file to its name. Keys are never reused, so nobody races for the same one. */
static enum err_code publish(struct object_writer *writer, struct err *err)
{
    fd_auto parent_fd = -1;
    const char *name;
    enum err_code code = open_parent(writer->store, writer->key, true, &parent_fd, &name, err);
    if (code)
        return err_add(err, "storing object %s", writer->key);
    if (faccessat(parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(err, ERR_CONFLICT, "object %s is there already", writer->key);
    if (os_renameat(writer->store->temporary_fd, writer->temporary, parent_fd, name) != 0)
        return err_set_errno(err, ERR_IO, "cannot name object %s", writer->key);
    if (os_fsync(parent_fd) != 0) {
        err_set_errno(err, ERR_IO, "cannot make the name of object %s durable", writer->key);
        os_unlinkat(parent_fd, name);
        return ERR_IO;
    }
    return ERR_NONE;
}

enum err_code object_writer_commit(struct object_writer *writer, struct err *err)
{
    enum err_code code = ERR_NONE;
    if (os_fdatasync(writer->fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make object %s durable", writer->key);
    int closed = os_close(writer->fd);
    writer->fd = -1;
    if (!code && closed != 0)
        code = err_set_errno(err, ERR_IO, "cannot finish object %s", writer->key);
    if (!code)
        code = publish(writer, err);
    if (code) {
        object_writer_abort(writer);
        return code;
    }
    mem_free(writer);
    return ERR_NONE;
}

enum err_code object_put(struct object_store *store, const char *key, struct span bytes,
                         struct err *err)
{
    struct object_writer *writer;
    enum err_code code = object_writer_open(store, key, &writer, err);
    if (code)
        return code;
    code = object_writer_append(writer, bytes, err);
    if (code) {
        object_writer_abort(writer);
        return code;
    }
    return object_writer_commit(writer, err);
}

enum err_code object_open(struct object_store *store, const char *key, int *ret_fd,
                          uint64_t *ret_size, struct err *err)
{
    fd_auto parent_fd = -1;
    const char *name;
    enum err_code code = check_key(key, err);
    if (!code)
        code = open_parent(store, key, false, &parent_fd, &name, err);
    if (code)
        return code == ERR_NOT_FOUND ? err_set(err, code, "there is no object %s", key) : code;
    struct stat status;
    int fd = os_openat(parent_fd, name, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no object %s", key);
    if (fd < 0 || fstat(fd, &status) != 0) {
        err_set_errno(err, ERR_IO, "cannot open object %s", key);
        os_close(fd);
        return ERR_IO;
    }
    if (!S_ISREG(status.st_mode)) {
        os_close(fd);
        return err_set(err, ERR_NOT_FOUND, "there is no object %s", key);
    }
    *ret_fd = fd;
    *ret_size = (uint64_t)status.st_size;
    return ERR_NONE;
}

enum err_code object_read(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err)
{
    fd_auto fd = -1;
    uint64_t size;
    enum err_code code = object_open(store, key, &fd, &size, err);
    if (code)
        return code;
    uint8_t *room = size <= SIZE_MAX ? buf_reserve(buf, (size_t)size) : NULL;
    if (!room)
        return err_set(err, ERR_TOO_LARGE, "object %s is %llu bytes, more than is allowed here",
                       key, (unsigned long long)size);
    size_t got = 0;
    while (got < size) {
        ssize_t count = os_pread(fd, room + got, (size_t)size - got, (off_t)got);
        if (count < 0)
            return err_set_errno(err, ERR_IO, "cannot read object %s", key);
        if (count == 0)
            return err_set(err, ERR_CORRUPT, "object %s ended early", key);
        got += (size_t)count;
    }
    buf_commit(buf, (size_t)size);
    return ERR_NONE;
}

enum err_code object_delete(struct object_store *store, const char *key, struct err *err)
{
    fd_auto parent_fd = -1;
    const char *name;
    enum err_code code = check_key(key, err);
    if (!code)
        code = open_parent(store, key, false, &parent_fd, &name, err);
    if (code)
        return code == ERR_NOT_FOUND ? ERR_NONE : code;
    if (os_unlinkat(parent_fd, name) != 0 && errno != ENOENT)
        return err_set_errno(err, ERR_IO, "cannot delete object %s", key);
    /* Also when it was gone already: an earlier try may have ended before this sync. */
    if (os_fsync(parent_fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot make the deletion of object %s durable", key);
    return ERR_NONE;
}

struct listing {
    const char *prefix;
    enum err_code (*visit)(void *context, const char *key, uint64_t size, int64_t modified_ns,
                           struct err *err);
    void *context;
};

/* Could something below this key, or the key itself, start with the prefix? */
static bool may_match(const char *key, const char *prefix)
{
    size_t key_bytes = strlen(key), prefix_bytes = strlen(prefix);
    return strncmp(key, prefix, key_bytes < prefix_bytes ? key_bytes : prefix_bytes) == 0;
}

static enum err_code list_folder(const struct listing *listing, int folder_fd, const char *path,
                                 int depth, struct err *err);

static enum err_code list_entry(const struct listing *listing, int folder_fd, const char *name,
                                const char *key, int depth, struct err *err)
{
    struct stat status;
    if (!may_match(key, listing->prefix))
        return ERR_NONE;
    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ERR_NONE /* deleted meanwhile */
                               : err_set_errno(err, ERR_IO, "cannot look at object %s", key);
    if (S_ISREG(status.st_mode)) {
        if (strncmp(key, listing->prefix, strlen(listing->prefix)) != 0)
            return ERR_NONE;
        int64_t modified_ns = status.st_mtim.tv_sec * CLOCK_NS_PER_S + status.st_mtim.tv_nsec;
        return listing->visit(listing->context, key, (uint64_t)status.st_size, modified_ns, err);
    }
    if (!S_ISDIR(status.st_mode) || depth + 1 >= KEY_MAX_PARTS)
        return ERR_NONE;
    int inner_fd = -1;
    enum err_code code = open_folder(folder_fd, name, &inner_fd, err);
    return code ? code : list_folder(listing, inner_fd, key, depth + 1, err);
}

/* Takes folder_fd over. */
static enum err_code list_folder(const struct listing *listing, int folder_fd, const char *path,
                                 int depth, struct err *err)
{
    DIR *folder = fdopendir(folder_fd);
    if (!folder) {
        os_close(folder_fd);
        return err_set_errno(err, ERR_IO, "cannot list the folder %s", path);
    }
    enum err_code code = ERR_NONE;
    for (struct dirent *entry; !code && (entry = readdir(folder));) {
        char key[KEY_MAX_BYTES + 1];
        if (entry->d_name[0] == '.')
            continue;
        int size = snprintf(key, sizeof(key), "%s%s%s", path, *path ? "/" : "", entry->d_name);
        if (size >= 0 && size <= KEY_MAX_BYTES)
            code = list_entry(listing, dirfd(folder), entry->d_name, key, depth, err);
    }
    closedir(folder);
    return code;
}

enum err_code object_list(struct object_store *store, const char *prefix,
                          enum err_code (*visit)(void *context, const char *key, uint64_t size,
                                                 int64_t modified_ns, struct err *err),
                          void *context, struct err *err)
{
    const struct listing listing = {.prefix = prefix, .visit = visit, .context = context};
    int fd = -1;
    enum err_code code = open_folder(store->fd, ".", &fd, err);
    return code ? code : list_folder(&listing, fd, "", 0, err);
}

enum err_code object_sweep_temporary(struct object_store *store, struct err *err)
{
    int fd = -1;
    enum err_code code = open_folder(store->temporary_fd, ".", &fd, err);
    if (code)
        return code;
    DIR *folder = fdopendir(fd);
    if (!folder) {
        os_close(fd);
        return err_set_errno(err, ERR_IO, "cannot list unfinished objects");
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        if (os_unlinkat(dirfd(folder), entry->d_name) != 0 && errno != ENOENT)
            code =
                err_set_errno(err, ERR_IO, "cannot delete the unfinished object %s", entry->d_name);
    }
    closedir(folder);
    return code;
}
