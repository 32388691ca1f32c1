#include "lib/io/object_backend.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object_folder_list.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_BYTES = OBJECT_KEY_MAX_BYTES + 1,
    TEMPORARY_NAME_BYTES = 64,
    DURABLE_SLOTS = 1024,
    DIRECT_MIN_BYTES = 128 << 10,
    DIRECT_PIECE_BYTES = 2 << 20,
    DIRECT_ALIGNMENT = 4096 /* a multiple of any disk's sector */
};

struct folder_store {
    struct object_store base;
    int fd;           /* the store's directory */
    int temporary_fd; /* the directory .tmp in the store's directory */
    atomic_uint next_number;
    /* Inodes of directories whose names are synced, a cache: inode i is at index i modulo the size.
     */
    atomic_ullong durable_folders[DURABLE_SLOTS];
    pthread_mutex_t direct_mutex; /* guards direct_memory */
    uint8_t *direct_memory;       /* a buffer for direct I/O; allocated at first use */
    bool has_reader;              /* objects are opened as another user */
    uid_t reader_uid;
    gid_t reader_gid;
};

struct folder_writer {
    struct object_writer base;
    int fd;
    char temporary[TEMPORARY_NAME_BYTES]; /* in .tmp */
    char key[KEY_BYTES];
};

static struct folder_store *folder_of(struct object_store *store)
{
    return (struct folder_store *)store;
}

static struct folder_writer *folder_writer_of(struct object_writer *writer)
{
    return (struct folder_writer *)writer;
}

/*
 * Opens the directory name, creating it if necessary, and makes its name durable: another thread
 * may have just created it without syncing it yet.
 */
static enum err_code open_durable_folder(struct folder_store *store, int directory_fd,
                                         const char *name, int *ret_fd, struct err *err)
{
    struct stat status;
    if (os_mkdirat(directory_fd, name, 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", name);
    fd_auto fd = -1;
    enum err_code code = object_folder_list_open(directory_fd, name, &fd, err);
    if (code) {
        err->is_unreadable = false; /* nothing was read from it */
        return code;
    }
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

/*
 * Opens the directory that contains the last part of key, and returns that part. Errors:
 * ERR_NOT_FOUND unless create.
 */
static enum err_code open_parent(struct folder_store *store, const char *key, bool create,
                                 int *ret_fd, const char **ret_name, struct err *err)
{
    fd_auto fd = fcntl(store->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open the object store");
    for (const char *slash; (slash = strchr(key, '/')); key = slash + 1) {
        char part[KEY_BYTES];
        int next = -1;
        snprintf(part, sizeof(part), "%.*s", (int)(slash - key), key);
        enum err_code code = create ? open_durable_folder(store, fd, part, &next, err)
                                    : object_folder_list_open(fd, part, &next, err);
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

static enum err_code folder_writer_open(struct object_store *base, const char *key,
                                        struct object_writer **ret_writer, struct err *err)
{
    struct folder_store *store = folder_of(base);
    struct folder_writer *writer = mem_new(struct folder_writer, 1);
    writer->base.store = base;
    snprintf(writer->key, sizeof(writer->key), "%s", key);
    snprintf(writer->temporary, sizeof(writer->temporary), "%lld-%u", (long long)clock_wall_ns(),
             atomic_fetch_add(&store->next_number, 1));
    writer->fd =
        os_openat(store->temporary_fd, writer->temporary, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (writer->fd < 0) {
        mem_free(writer);
        return err_set_errno(err, ERR_IO, "cannot create a file for object %s", key);
    }
    *ret_writer = &writer->base;
    return ERR_NONE;
}

static enum err_code folder_writer_append(struct object_writer *base, struct span bytes,
                                          struct err *err)
{
    const struct folder_writer *writer = folder_writer_of(base);
    if (os_write_all(writer->fd, bytes.data, bytes.size) != 0)
        return err_set_errno(err, ERR_IO, "cannot write object %s", writer->key);
    return ERR_NONE;
}

static void folder_writer_abort(struct object_writer *base)
{
    struct folder_writer *writer = folder_writer_of(base);
    os_close(writer->fd);
    os_unlinkat(folder_of(base->store)->temporary_fd, writer->temporary);
    mem_free(writer);
}

/* Moves the finished file to its name. Keys are never reused, so two threads never use the same
 * name. */
static enum err_code publish(struct folder_writer *writer, struct err *err)
{
    struct folder_store *store = folder_of(writer->base.store);
    fd_auto parent_fd = -1;
    const char *name;
    enum err_code code = open_parent(store, writer->key, true, &parent_fd, &name, err);
    if (code)
        return err_add(err, "storing object %s", writer->key);
    if (faccessat(parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(err, ERR_CONFLICT, "object %s is there already", writer->key);
    if (os_renameat(store->temporary_fd, writer->temporary, parent_fd, name) != 0)
        return err_set_errno(err, ERR_IO, "cannot name object %s", writer->key);
    if (os_fsync(parent_fd) != 0) {
        err_set_errno(err, ERR_IO, "cannot make the name of object %s durable", writer->key);
        os_unlinkat(parent_fd, name);
        return ERR_IO;
    }
    return ERR_NONE;
}

static enum err_code folder_writer_commit(struct object_writer *base, struct err *err)
{
    struct folder_writer *writer = folder_writer_of(base);
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
        folder_writer_abort(base);
        return code;
    }
    mem_free(writer);
    return ERR_NONE;
}

/* ---- direct I/O ---- */

static bool set_direct(int fd, bool is_direct)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

static uint8_t *get_piece(struct folder_store *store)
{
    if (!store->direct_memory)
        store->direct_memory = mem_alloc(DIRECT_PIECE_BYTES + DIRECT_ALIGNMENT, 1);
    const uintptr_t start = (uintptr_t)store->direct_memory + DIRECT_ALIGNMENT - 1;
    return (uint8_t *)(start - start % DIRECT_ALIGNMENT);
}

/* Writes whole pages with direct I/O, as far as the file system supports it; *ret_written is the
 * number of bytes. Data that is not aligned is copied through an aligned buffer. */
static int write_pages(struct folder_store *store, int fd, struct span bytes, size_t *ret_written)
{
    uint8_t *piece = (uintptr_t)bytes.data % DIRECT_ALIGNMENT ? get_piece(store) : NULL;
    size_t written = 0;
    while (bytes.size - written >= DIRECT_ALIGNMENT) {
        size_t size = (bytes.size - written) / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT;
        if (size > DIRECT_PIECE_BYTES)
            size = DIRECT_PIECE_BYTES;
        if (piece)
            memcpy(piece, bytes.data + written, size);
        const ssize_t count = os_write(fd, piece ? piece : bytes.data + written, size);
        if (count < 0 && errno != EINVAL)
            return -1;
        written += count > 0 ? (size_t)count : 0;
        if (count != (ssize_t)size)
            break; /* not supported by this file system, or no longer aligned */
    }
    *ret_written = written;
    return 0;
}

/*
 * Writes an object that the caller has in memory as a whole. It is synced at once, and its writer
 * reads it from memory afterwards, so filling the page cache would be wasted work: it took a ninth
 * of the CPU time of ingestion. O_DIRECT avoids that. Small objects, the end that does not
 * fill a page, and file systems without O_DIRECT are written through the page cache.
 */
static enum err_code write_whole(struct folder_store *store, const struct folder_writer *writer,
                                 struct span bytes, struct err *err)
{
    size_t written = 0;
    /* One at a time; other threads use the page cache instead of waiting. */
    if (bytes.size >= DIRECT_MIN_BYTES && pthread_mutex_trylock(&store->direct_mutex) == 0) {
        int result = 0;
        if (set_direct(writer->fd, true)) {
            result = write_pages(store, writer->fd, bytes, &written);
            result = result == 0 && set_direct(writer->fd, false) ? 0 : -1;
        }
        pthread_mutex_unlock(&store->direct_mutex);
        if (result != 0)
            return err_set_errno(err, ERR_IO, "cannot write object %s", writer->key);
    }
    if (os_write_all(writer->fd, bytes.data + written, bytes.size - written) != 0)
        return err_set_errno(err, ERR_IO, "cannot write object %s", writer->key);
    return ERR_NONE;
}

static enum err_code folder_put(struct object_store *store, const char *key, struct span bytes,
                                struct err *err)
{
    struct object_writer *writer;
    enum err_code code = folder_writer_open(store, key, &writer, err);
    if (code)
        return code;
    code = write_whole(folder_of(store), folder_writer_of(writer), bytes, err);
    if (code) {
        folder_writer_abort(writer);
        return code;
    }
    return folder_writer_commit(writer, err);
}

/* Linux keeps the filesystem ids per thread. Without root's ids, a thread of root is subject to
 * permissions like any other. */
static void assume_reader(const struct folder_store *store)
{
    if (!store->has_reader)
        return;
    setfsgid(store->reader_gid);
    setfsuid(store->reader_uid);
}

static void leave_reader(const struct folder_store *store)
{
    if (!store->has_reader)
        return;
    setfsuid(geteuid());
    setfsgid(getegid());
}

void object_folder_read_as(struct object_store *base, uid_t uid, gid_t gid)
{
    struct folder_store *store = folder_of(base);
    store->has_reader = uid != geteuid();
    store->reader_uid = uid;
    store->reader_gid = gid;
}

static enum err_code open_object(struct folder_store *store, const char *key, int *ret_fd,
                                 uint64_t *ret_size, struct err *err)
{
    fd_auto parent_fd = -1;
    const char *name;
    enum err_code code = open_parent(store, key, false, &parent_fd, &name, err);
    if (code)
        return code == ERR_NOT_FOUND ? err_set(err, code, "there is no object %s", key) : code;
    struct stat status;
    const int fd = os_open_file(parent_fd, name, &status);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no object %s", key);
    if (fd < 0 && (errno == EMEDIUMTYPE || errno == ELOOP || errno == ENXIO))
        return err_set(err, ERR_CORRUPT, "object %s is damaged: it is not a regular file", key);
    if (fd < 0)
        return object_fail_reading(err, "cannot open object", key);
    *ret_fd = fd;
    *ret_size = (uint64_t)status.st_size;
    return ERR_NONE;
}

static enum err_code open_to_read(struct object_store *base, const char *key, int *ret_fd,
                                  uint64_t *ret_size, struct err *err)
{
    struct folder_store *store = folder_of(base);
    assume_reader(store);
    const enum err_code code = open_object(store, key, ret_fd, ret_size, err);
    leave_reader(store);
    return code;
}

/* A disk responds at once, or not at all, and no copy is made. */
static enum err_code folder_open(struct object_store *base, const char *key,
                                 const struct wait_limit *wait_limit, bool is_background,
                                 int *ret_fd, uint64_t *ret_size, struct err *err)
{
    (void)wait_limit, (void)is_background;
    return open_to_read(base, key, ret_fd, ret_size, err);
}

/* Appends size bytes at offset; the object is known to have them. */
static enum err_code read_at(int fd, const char *key, uint64_t offset, uint64_t size,
                             struct buf *buf, struct err *err)
{
    uint8_t *space = size <= SIZE_MAX ? buf_reserve(buf, (size_t)size) : NULL;
    if (!space)
        return err_set(err, ERR_TOO_LARGE, "object %s is %llu bytes, more than is allowed here",
                       key, (unsigned long long)size);
    size_t got = 0;
    while (got < size) {
        ssize_t count = os_pread(fd, space + got, (size_t)size - got, (off_t)(offset + got));
        if (count < 0)
            return object_fail_reading(err, "cannot read object", key);
        if (count == 0)
            return err_set(err, ERR_CORRUPT, "object %s ended early", key);
        got += (size_t)count;
    }
    buf_commit(buf, (size_t)size);
    return ERR_NONE;
}

static enum err_code folder_read(struct object_store *store, const char *key, struct buf *buf,
                                 struct err *err)
{
    fd_auto fd = -1;
    uint64_t size;
    enum err_code code = open_to_read(store, key, &fd, &size, err);
    return code ? code : read_at(fd, key, 0, size, buf, err);
}

static enum err_code folder_read_range(struct object_store *store, const char *key, uint64_t offset,
                                       size_t size, const struct wait_limit *wait_limit,
                                       struct buf *buf, struct err *err)
{
    (void)wait_limit;
    fd_auto fd = -1;
    uint64_t object_bytes;
    enum err_code code = open_to_read(store, key, &fd, &object_bytes, err);
    if (code)
        return code;
    if (offset + size > object_bytes)
        return err_set(err, ERR_CORRUPT, "object %s is %llu bytes, too few for %zu bytes at %llu",
                       key, (unsigned long long)object_bytes, size, (unsigned long long)offset);
    return read_at(fd, key, offset, size, buf, err);
}

/* Evicts the page from the cache before reading it: a failed disk may still have pages in
 * memory. */
static enum err_code folder_probe(struct object_store *store, const char *key,
                                  const struct wait_limit *wait_limit, struct err *err)
{
    (void)wait_limit;
    fd_auto fd = -1;
    uint64_t size;
    uint8_t byte;
    enum err_code code = open_to_read(store, key, &fd, &size, err);
    if (code)
        return code;
    posix_fadvise(fd, 0, DIRECT_ALIGNMENT, POSIX_FADV_DONTNEED);
    return os_pread(fd, &byte, 1, 0) < 0 ? object_fail_reading(err, "cannot read object", key)
                                         : ERR_NONE;
}

/* Whether both keys are in the same directory. */
static bool are_neighbours(const char *a, const char *b)
{
    const char *a_name = strrchr(a, '/'), *b_name = strrchr(b, '/');
    if (!a_name || !b_name)
        return !a_name && !b_name;
    return a_name - a == b_name - b && memcmp(a, b, (size_t)(a_name - a)) == 0;
}

/* Deletes the leading keys that are in one directory, and returns their number. */
static enum err_code delete_neighbours(struct folder_store *store, const char *const *keys,
                                       size_t count, size_t *ret_count, struct err *err)
{
    fd_auto parent_fd = -1;
    const char *name;
    size_t done = 0;
    enum err_code code = open_parent(store, keys[0], false, &parent_fd, &name, err);
    for (; done < count && are_neighbours(keys[0], keys[done]); done++) {
        name = strrchr(keys[done], '/');
        name = name ? name + 1 : keys[done];
        if (!code && os_unlinkat(parent_fd, name) != 0 && errno != ENOENT)
            return err_set_errno(err, ERR_IO, "cannot delete object %s", keys[done]);
    }
    *ret_count = done;
    if (code)
        return code == ERR_NOT_FOUND ? ERR_NONE : code;
    /* The sync is needed even if all objects were absent: an earlier attempt may have ended before
     * its sync. */
    if (os_fsync(parent_fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot make the deletion of object %s durable", keys[0]);
    return ERR_NONE;
}

static enum err_code folder_delete_many(struct object_store *store, const char *const *keys,
                                        size_t count, struct err *err)
{
    for (size_t done = 0; done < count;) {
        size_t deleted = 0;
        enum err_code code =
            delete_neighbours(folder_of(store), keys + done, count - done, &deleted, err);
        if (code)
            return code;
        done += deleted;
    }
    return ERR_NONE;
}

static enum err_code folder_list(struct object_store *store, const char *prefix,
                                 object_visit *visit, void *context, struct err *err)
{
    return object_folder_list_objects(folder_of(store)->fd, prefix, visit, context, err);
}

static enum err_code folder_list_all(struct object_store *store, object_visit *visit, void *context,
                                     struct err *err)
{
    return object_folder_list_all(folder_of(store)->fd, visit, context, err);
}

static enum err_code folder_sweep(struct object_store *store, struct err *err)
{
    return object_folder_list_delete_all(folder_of(store)->temporary_fd, err);
}

static void folder_close(struct object_store *base)
{
    struct folder_store *store = folder_of(base);
    os_close(store->fd);
    os_close(store->temporary_fd);
    pthread_mutex_destroy(&store->direct_mutex);
    mem_free(store->direct_memory);
    mem_free(store);
}

static const struct object_backend folder_backend = {
    .close = folder_close,
    .put = folder_put,
    .writer_open = folder_writer_open,
    .writer_append = folder_writer_append,
    .writer_commit = folder_writer_commit,
    .writer_abort = folder_writer_abort,
    .open = folder_open,
    .read = folder_read,
    .read_range = folder_read_range,
    .probe = folder_probe,
    .delete_many = folder_delete_many,
    .list = folder_list,
    .list_all = folder_list_all,
    .sweep = folder_sweep,
};

static enum err_code open_store(const char *path, bool is_read_only,
                                struct object_store **ret_store, struct err *err)
{
    struct folder_store *store = mem_new(struct folder_store, 1);
    store->base.backend = &folder_backend;
    store->fd = store->temporary_fd = -1;
    pthread_mutex_init(&store->direct_mutex, NULL);
    enum err_code code = object_folder_list_open(AT_FDCWD, path, &store->fd, err);
    if (!code && !is_read_only)
        code = open_durable_folder(store, store->fd, ".tmp", &store->temporary_fd, err);
    if (code) {
        folder_close(&store->base);
        return err_add(err, "object store %s", path);
    }
    *ret_store = &store->base;
    return ERR_NONE;
}

enum err_code object_folder_open(const char *path, struct object_store **ret_store, struct err *err)
{
    if (os_mkdirat(AT_FDCWD, path, 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", path);
    return open_store(path, false, ret_store, err);
}

enum err_code object_folder_open_to_read(const char *path, struct object_store **ret_store,
                                         struct err *err)
{
    return open_store(path, true, ret_store, err);
}
