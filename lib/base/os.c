#include "lib/base/os.h"

#include "lib/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A file whose content has changed since its last sync. */
struct unsynced_file {
    struct unsynced_file *next;
    dev_t device;
    ino_t inode;
    int fd; /* our own descriptor, which still reaches the file after its last name is gone */
    char *synced;
    size_t synced_bytes;
};

enum name_change { NAME_ADDED, NAME_REMOVED, NAME_MOVED };

/* A change to a directory that was not synced yet. The list starts with the newest. */
struct unsynced_name {
    struct unsynced_name *next;
    enum name_change change;
    dev_t device; /* the directory whose fsync makes the change durable */
    ino_t inode;
    int directory_fd;
    char *name;
    int from_directory_fd; /* MOVED */
    char *from_name;
    int removed_fd; /* REMOVED, and MOVED over another file: the old file; or -1 */
};

/*
 * Process-wide, because it simulates the disk of the machine. Only tests change it; is_active lets
 * all other callers skip the lock.
 */
static struct {
    atomic_bool is_active;
    pthread_mutex_t lock;
    enum os_call call;
    unsigned nth;
    int error;
    bool stays_broken;
    unsigned counts[OS_CALL_COUNT];
    char *root; /* NULL: not recording */
    struct unsynced_file *files;
    struct unsynced_name *names;
    dev_t unreadable_device;    /* the file whose reads fail; */
    ino_t unreadable_inode;     /* 0: none */
    _Atomic int64_t free_bytes; /* -1: use the value of the file system */
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER, .call = OS_CALL_COUNT, .free_bytes = -1};

enum { FAULT_NONE = 0, FAULT_SHORT = -1 }; /* else an errno */

static int next_fault(enum os_call call)
{
    if (!atomic_load_explicit(&fault.is_active, memory_order_relaxed))
        return FAULT_NONE;
    pthread_mutex_lock(&fault.lock);
    unsigned count = ++fault.counts[call];
    bool hits = call == fault.call && fault.nth != 0 &&
                (count == fault.nth || (fault.stays_broken && count > fault.nth));
    int result = hits ? (fault.error ? fault.error : FAULT_SHORT) : FAULT_NONE;
    pthread_mutex_unlock(&fault.lock);
    return result;
}

static int duplicate(int fd)
{
    if (fd == AT_FDCWD)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static bool is_recorded(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t size = fd == AT_FDCWD ? readlink("/proc/self/cwd", path, sizeof(path) - 1)
                                  : readlink(link, path, sizeof(path) - 1);
    if (size < 0)
        return false;
    path[size] = '\0';
    return strncmp(path, fault.root, strlen(fault.root)) == 0;
}

static char *read_whole(int fd, size_t *ret_bytes)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_RDONLY | O_CLOEXEC);
    *ret_bytes = 0;
    if (own < 0 || fstat(own, &status) != 0)
        abort(); /* a test that cannot observe the disk must not pass */
    char *content = mem_alloc((size_t)status.st_size + 1, 1);
    ssize_t got = pread(own, content, (size_t)status.st_size, 0);
    *ret_bytes = got > 0 ? (size_t)got : 0;
    close(own);
    return content;
}

static void record_write(int fd)
{
    struct stat status;
    if (!fault.root || !is_recorded(fd) || fstat(fd, &status) != 0)
        return;
    for (struct unsynced_file *file = fault.files; file; file = file->next)
        if (file->device == status.st_dev && file->inode == status.st_ino)
            return;
    struct unsynced_file *file = mem_new(struct unsynced_file, 1);
    *file = (struct unsynced_file){
        .next = fault.files, .device = status.st_dev, .inode = status.st_ino, .fd = duplicate(fd)};
    file->synced = read_whole(fd, &file->synced_bytes);
    fault.files = file;
}

static void free_file(struct unsynced_file *file)
{
    close(file->fd);
    mem_free(file->synced);
    mem_free(file);
}

static void free_name(struct unsynced_name *name)
{
    close(name->directory_fd);
    if (name->from_directory_fd >= 0)
        close(name->from_directory_fd);
    if (name->removed_fd >= 0)
        close(name->removed_fd);
    mem_free(name->name);
    mem_free(name->from_name);
    mem_free(name);
}

/* A rename between directories counts as durable once the target directory is synced. */
static void record_sync(int fd)
{
    struct stat status;
    if (!fault.root || fstat(fd, &status) != 0)
        return;
    for (struct unsynced_file **at = &fault.files; *at;) {
        struct unsynced_file *file = *at;
        if (file->device != status.st_dev || file->inode != status.st_ino) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        free_file(file);
    }
    for (struct unsynced_name **at = &fault.names; *at;) {
        struct unsynced_name *name = *at;
        if (name->device != status.st_dev || name->inode != status.st_ino) {
            at = &name->next;
            continue;
        }
        *at = name->next;
        free_name(name);
    }
}

static void record_name(enum name_change change, int directory_fd, const char *path,
                        int from_directory_fd, const char *from, int removed_fd)
{
    struct unsynced_name *name = mem_new(struct unsynced_name, 1);
    *name = (struct unsynced_name){
        .next = fault.names, .change = change, .from_directory_fd = -1, .removed_fd = removed_fd};
    /* The directory that contains the name may itself be part of path. */
    const char *slash = strrchr(path, '/');
    if (slash) {
        char folder[4096];
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        name->directory_fd =
            openat(directory_fd, slash == path ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        name->name = mem_strdup(slash + 1);
    } else {
        name->directory_fd = duplicate(directory_fd);
        name->name = mem_strdup(path);
    }
    struct stat status;
    if (name->directory_fd < 0 || fstat(name->directory_fd, &status) != 0)
        abort();
    name->device = status.st_dev;
    name->inode = status.st_ino;
    if (from) {
        name->from_directory_fd = duplicate(from_directory_fd);
        name->from_name = mem_strdup(from);
    }
    if (is_recorded(name->directory_fd)) {
        fault.names = name;
    } else {
        free_name(name);
    }
}

static void lock_if_active(bool *ret_is_active)
{
    *ret_is_active = atomic_load_explicit(&fault.is_active, memory_order_relaxed);
    if (*ret_is_active)
        pthread_mutex_lock(&fault.lock);
}

static void unlock_if_active(const bool *is_active)
{
    if (*is_active)
        pthread_mutex_unlock(&fault.lock);
}

/* Holds the lock for the rest of the scope, so that a call and its record are one atomic step. */
#define hold_record(name)                                                                          \
    __attribute__((cleanup(unlock_if_active))) bool name;                                          \
    lock_if_active(&name)

static bool is_recording(bool holds_lock)
{
    return holds_lock && fault.root;
}

int os_openat(int directory_fd, const char *path, int flags, mode_t mode)
{
    int error = next_fault(OS_CALL_OPEN);
    if (error > 0) {
        errno = error;
        return -1;
    }
    hold_record(is_held);
    bool existed = true;
    if (is_recording(is_held) && (flags & O_CREAT))
        existed = faccessat(directory_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    int fd;
    do
        fd = openat(directory_fd, path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 && !existed)
        record_name(NAME_ADDED, directory_fd, path, -1, NULL, -1);
    return fd;
}

int os_open_file(int directory_fd, const char *path, struct stat *ret_status)
{
    /* Without O_NONBLOCK, opening a FIFO blocks until a writer opens it. */
    const int fd = os_openat(directory_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = fstat(fd, ret_status) != 0 ? errno : S_ISREG(ret_status->st_mode) ? 0 : EMEDIUMTYPE;
    if (!error)
        return fd;
    os_close(fd);
    errno = error;
    return -1;
}

int os_mkdirat(int directory_fd, const char *path, mode_t mode)
{
    int error = next_fault(OS_CALL_MKDIR);
    if (error > 0) {
        errno = error;
        return -1;
    }
    hold_record(is_held);
    int result = mkdirat(directory_fd, path, mode);
    if (result == 0 && is_recording(is_held))
        record_name(NAME_ADDED, directory_fd, path, -1, NULL, -1);
    return result;
}

ssize_t os_write(int fd, const void *data, size_t size)
{
    int error = next_fault(OS_CALL_WRITE);
    if (error > 0) {
        errno = error;
        return -1;
    }
    if (error == FAULT_SHORT && size > 1)
        size /= 2;
    hold_record(is_held);
    if (is_held)
        record_write(fd);
    ssize_t written;
    do
        written = write(fd, data, size);
    while (written < 0 && errno == EINTR);
    return written;
}

static bool is_spoiled(int fd)
{
    struct stat status;
    if (!atomic_load_explicit(&fault.is_active, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&fault.lock);
    const bool is = fault.unreadable_inode && fstat(fd, &status) == 0 &&
                    status.st_ino == fault.unreadable_inode &&
                    status.st_dev == fault.unreadable_device;
    pthread_mutex_unlock(&fault.lock);
    return is;
}

ssize_t os_pread(int fd, void *data, size_t size, off_t offset)
{
    int error = next_fault(OS_CALL_READ);
    if (error <= 0 && is_spoiled(fd))
        error = EIO;
    if (error > 0) {
        errno = error;
        return -1;
    }
    ssize_t got;
    do
        got = pread(fd, data, size, offset);
    while (got < 0 && errno == EINTR);
    return got;
}

void os_read_ahead(int fd, off_t offset, off_t size)
{
    /* A failure only makes later reads slower. */
    (void)posix_fadvise(fd, offset, size, POSIX_FADV_WILLNEED);
}

static int sync_with(int (*sync_call)(int fd), int fd)
{
    int error = next_fault(OS_CALL_SYNC);
    if (error > 0) {
        errno = error;
        return -1;
    }
    hold_record(is_held);
    int result;
    do
        result = sync_call(fd);
    while (result != 0 && errno == EINTR);
    if (result == 0 && is_held)
        record_sync(fd);
    return result;
}

int os_fsync(int fd)
{
    return sync_with(fsync, fd);
}

int os_fdatasync(int fd)
{
    return sync_with(fdatasync, fd);
}

int os_renameat(int from_directory_fd, const char *from, int to_directory_fd, const char *to)
{
    int error = next_fault(OS_CALL_RENAME);
    if (error > 0) {
        errno = error;
        return -1;
    }
    hold_record(is_held);
    int removed_fd = -1;
    if (is_recording(is_held))
        removed_fd = openat(to_directory_fd, to, O_RDONLY | O_CLOEXEC);
    int result = renameat(from_directory_fd, from, to_directory_fd, to);
    if (result == 0 && is_recording(is_held))
        record_name(NAME_MOVED, to_directory_fd, to, from_directory_fd, from, removed_fd);
    else if (removed_fd >= 0)
        close(removed_fd);
    return result;
}

int os_unlinkat(int directory_fd, const char *path)
{
    int error = next_fault(OS_CALL_UNLINK);
    if (error > 0) {
        errno = error;
        return -1;
    }
    hold_record(is_held);
    int removed_fd = -1;
    if (is_recording(is_held))
        removed_fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
    int result = unlinkat(directory_fd, path, 0);
    if (result == 0 && is_recording(is_held))
        record_name(NAME_REMOVED, directory_fd, path, -1, NULL, removed_fd);
    else if (removed_fd >= 0)
        close(removed_fd);
    return result;
}

int os_free_bytes(const char *path, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes)
{
    struct statvfs status;
    if (statvfs(path, &status) != 0)
        return -1;
    const int64_t faked_bytes = atomic_load(&fault.free_bytes);
    *ret_free_bytes = faked_bytes >= 0 ? (uint64_t)faked_bytes
                                       : (uint64_t)status.f_bavail * (uint64_t)status.f_frsize;
    *ret_total_bytes = (uint64_t)status.f_blocks * (uint64_t)status.f_frsize;
    return 0;
}

int os_close(int fd)
{
    if (fd < 0)
        return 0;
    int error = next_fault(OS_CALL_CLOSE);
    int result = close(fd);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return result;
}

int os_write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t written = os_write(fd, at, size);
        if (written < 0)
            return -1;
        at += written;
        size -= (size_t)written;
    }
    return 0;
}

void os_fault_plan(enum os_call call, unsigned nth, int error, bool stays_broken)
{
    pthread_mutex_lock(&fault.lock);
    fault.call = call;
    fault.nth = nth;
    fault.error = error;
    fault.stays_broken = stays_broken;
    memset(fault.counts, 0, sizeof(fault.counts));
    atomic_store(&fault.is_active, true);
    pthread_mutex_unlock(&fault.lock);
}

void os_fault_unreadable(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return;
    pthread_mutex_lock(&fault.lock);
    fault.unreadable_device = status.st_dev;
    fault.unreadable_inode = status.st_ino;
    atomic_store(&fault.is_active, true);
    pthread_mutex_unlock(&fault.lock);
}

void os_fault_free_bytes(int64_t free_bytes)
{
    atomic_store(&fault.free_bytes, free_bytes);
}

unsigned os_fault_count(enum os_call call)
{
    pthread_mutex_lock(&fault.lock);
    unsigned count = fault.counts[call];
    pthread_mutex_unlock(&fault.lock);
    return count;
}

static void forget_records(void)
{
    for (struct unsynced_file *file = fault.files, *next; file; file = next) {
        next = file->next;
        free_file(file);
    }
    for (struct unsynced_name *name = fault.names, *next; name; name = next) {
        next = name->next;
        free_name(name);
    }
    fault.files = NULL;
    fault.names = NULL;
    free(fault.root);
    fault.root = NULL;
}

void os_fault_record(const char *root)
{
    pthread_mutex_lock(&fault.lock);
    forget_records();
    fault.root = realpath(root, NULL);
    if (!fault.root)
        abort();
    atomic_store(&fault.is_active, true);
    pthread_mutex_unlock(&fault.lock);
}

static void put_back(int fd, const char *content, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (own < 0 || write(own, content, size) != (ssize_t)size)
        abort();
    close(own);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_name(const struct unsynced_name *name)
{
    char link[64], folder[2048], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", name->directory_fd);
    ssize_t size = readlink(link, folder, sizeof(folder) - 1);
    if (size < 0)
        abort();
    folder[size] = '\0';
    snprintf(path, sizeof(path), "%s/%s", folder, name->name);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void restore_removed(const struct unsynced_name *name)
{
    if (name->removed_fd < 0)
        return;
    size_t size;
    char *content = read_whole(name->removed_fd, &size);
    int fd = openat(name->directory_fd, name->name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, content, size) != (ssize_t)size)
        abort();
    close(fd);
    mem_free(content);
}

static void undo_name(const struct unsynced_name *name)
{
    if (name->change == NAME_ADDED)
        remove_name(name);
    if (name->change == NAME_MOVED)
        renameat(name->directory_fd, name->name, name->from_directory_fd, name->from_name);
    if (name->change != NAME_ADDED)
        restore_removed(name);
}

void os_fault_lose_unsynced(void)
{
    pthread_mutex_lock(&fault.lock);
    for (struct unsynced_file *file = fault.files; file; file = file->next)
        put_back(file->fd, file->synced, file->synced_bytes);
    for (struct unsynced_name *name = fault.names; name; name = name->next)
        undo_name(name);
    forget_records();
    pthread_mutex_unlock(&fault.lock);
}

void os_fault_reset(void)
{
    pthread_mutex_lock(&fault.lock);
    forget_records();
    fault.call = OS_CALL_COUNT;
    fault.unreadable_inode = 0;
    atomic_store(&fault.free_bytes, -1);
    memset(fault.counts, 0, sizeof(fault.counts));
    atomic_store(&fault.is_active, false);
    pthread_mutex_unlock(&fault.lock);
}
