#include "api/core/disk.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 500,
    STALE_MS = 5000, /* if a check takes longer, the disk hangs */
    RETRY_S = 30,
    MIN_FREE_SHARE = 16,     /* the default reserve is this part of the disk: disk.h */
    MIN_FREE_MOST_SHARE = 4, /* for a disk below 256 MiB */
    HELD_SHARE = 2,          /* .held has a half of the reserve; PostgreSQL needs 16 MiB */
    GIVE_UP_SHARE = 8,       /* .held is deleted when less than this part of the reserve is free */
};

#define HELD_NAME "/.held"

/* See disk_has_space_for_copy. */
#define SMALL_COPY_BYTES ((uint64_t)4 << 20)

/* Two segments of PostgreSQL's log. */
#define HELD_MOST ((uint64_t)32 << 20)

#define MIN_FREE_LEAST ((uint64_t)64 << 20)
#define MIN_FREE_MOST ((uint64_t)1 << 30)

enum disk_state { DISK_USABLE, DISK_FULL, DISK_UNWRITABLE };

struct disk {
    char *folder;
    uint64_t min_free_bytes; /* the setting, or 0 */
    pthread_t thread;
    _Atomic enum disk_state state;
    _Atomic uint64_t free_bytes;
    _Atomic uint64_t total_bytes;
    _Atomic uint64_t reserve_bytes;
    _Atomic uint64_t held_bytes;
    _Atomic int64_t looked_ns; /* monotonic */
    char *held_path;
    pthread_mutex_t mutex; /* guards should_stop */
    pthread_cond_t wake;
    bool should_stop;
};

/* Writes one byte into an unnamed file: detects a full disk, a read-only mount, and a failing disk.
 */
static bool can_write(const struct disk *disk)
{
    const int fd = os_openat(AT_FDCWD, disk->folder, O_TMPFILE | O_WRONLY, 0600);
    const bool is_written = fd >= 0 && os_write_all(fd, "x", 1) == 0;
    const int error = errno;
    os_close(fd);
    errno = error;
    return is_written;
}

uint64_t disk_default_reserve(uint64_t total_bytes)
{
    const uint64_t share = total_bytes / MIN_FREE_SHARE;
    const uint64_t most = total_bytes / MIN_FREE_MOST_SHARE;
    if (share < MIN_FREE_LEAST)
        return most < MIN_FREE_LEAST ? most : MIN_FREE_LEAST;
    return share < MIN_FREE_MOST ? share : MIN_FREE_MOST;
}

static uint64_t reserve_of(const struct disk *disk, uint64_t total_bytes)
{
    return disk->min_free_bytes ? disk->min_free_bytes : disk_default_reserve(total_bytes);
}

/* A disk that was full counts as full until an eighth more than the reserve is free, so that the
 * state does not flap. */
static bool is_full(const struct disk *disk, uint64_t free_bytes, uint64_t reserve_bytes)
{
    const bool was_full = atomic_load(&disk->state) == DISK_FULL;
    return free_bytes < reserve_bytes + (was_full ? reserve_bytes / 8 : 0);
}

/* If the file system cannot allocate without writing, nothing is held. */
static void hold_reserve(struct disk *disk, uint64_t reserve_bytes)
{
    const uint64_t share = reserve_bytes / HELD_SHARE;
    const uint64_t bytes = share < HELD_MOST ? share : HELD_MOST;
    fd_auto fd =
        os_openat(AT_FDCWD, disk->held_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
        atomic_store(&disk->held_bytes, bytes);
    else
        os_unlinkat(AT_FDCWD, disk->held_path);
}

static void release_reserve(struct disk *disk)
{
    os_unlinkat(AT_FDCWD, disk->held_path);
    atomic_store(&disk->held_bytes, 0);
}

/* Creates the file only when more than twice the reserve is free, so that the file never makes the
 * disk full. Deletes it when less than an eighth of the reserve is free. */
static void hold_or_release_reserve(struct disk *disk, uint64_t free_bytes, uint64_t reserve_bytes)
{
    /* The supervisor deletes the file when PostgreSQL needs the space for its restart. */
    if (faccessat(AT_FDCWD, disk->held_path, F_OK, 0) != 0)
        atomic_store(&disk->held_bytes, 0);
    const bool is_held = atomic_load(&disk->held_bytes) > 0;
    if (is_held && free_bytes < reserve_bytes / GIVE_UP_SHARE)
        release_reserve(disk);
    else if (!is_held && free_bytes > 2 * reserve_bytes)
        hold_reserve(disk, reserve_bytes);
}

/* The size of the file that an earlier server left behind. A server that was killed while it
 * created the file may have allocated less. */
static uint64_t find_held(const char *path)
{
    struct stat status;
    const bool is_held = fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                         S_ISREG(status.st_mode) && status.st_size > 0;
    if (!is_held)
        os_unlinkat(AT_FDCWD, path);
    return is_held ? (uint64_t)status.st_size : 0;
}

void disk_release_reserve_to_start(const char *folder)
{
    char path[PATH_MAX];
    uint64_t free_bytes, total_bytes;
    snprintf(path, sizeof(path), "%s" HELD_NAME, folder);
    const uint64_t held_bytes = find_held(path);
    if (held_bytes && os_free_bytes(folder, &free_bytes, &total_bytes) == 0 &&
        free_bytes < held_bytes && os_unlinkat(AT_FDCWD, path) == 0)
        log_event(LOG_WARN,
                  "the disk is full: releasing the space that was reserved for this start",
                  "free_bytes=%llu held_bytes=%llu", (unsigned long long)free_bytes,
                  (unsigned long long)held_bytes);
}

static enum disk_state find_state(struct disk *disk)
{
    uint64_t free_bytes, total_bytes;
    if (os_free_bytes(disk->folder, &free_bytes, &total_bytes) != 0)
        return DISK_UNWRITABLE;
    const uint64_t reserve_bytes = reserve_of(disk, total_bytes);
    const bool full = is_full(disk, free_bytes, reserve_bytes);
    atomic_store(&disk->free_bytes, free_bytes);
    atomic_store(&disk->total_bytes, total_bytes);
    atomic_store(&disk->reserve_bytes, reserve_bytes);
    hold_or_release_reserve(disk, free_bytes, reserve_bytes);
    if (can_write(disk))
        return full ? DISK_FULL : DISK_USABLE;
    return errno == ENOSPC || errno == EDQUOT ? DISK_FULL : DISK_UNWRITABLE;
}

static void log_change(const struct disk *disk, enum disk_state state, int error)
{
    const unsigned long long free_bytes = atomic_load(&disk->free_bytes);
    const unsigned long long reserve_bytes = atomic_load(&disk->reserve_bytes);
    if (state == DISK_USABLE)
        log_event(LOG_INFO, "the disk can be written again", "free_bytes=%llu", free_bytes);
    else if (state == DISK_FULL)
        log_event(
            LOG_ERROR,
            "the disk is full: nothing is stored until an eighth more than min-free-bytes is free",
            "free_bytes=%llu min_free_bytes=%llu", free_bytes, reserve_bytes);
    else
        log_event(LOG_ERROR, "files cannot be written in the data folder: nothing is stored",
                  "err=%s", strerrordesc_np(error));
}

static void check_now(struct disk *disk)
{
    const enum disk_state state = find_state(disk);
    const int error = errno;
    if (atomic_exchange(&disk->state, state) != state)
        log_change(disk, state, error);
    atomic_store(&disk->looked_ns, clock_monotonic_ns());
}

static bool wait_for_check(struct disk *disk)
{
    const int64_t until_ns = clock_monotonic_ns() + LOOK_MS * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = until_ns % CLOCK_NS_PER_S};
    pthread_mutex_lock(&disk->mutex);
    while (!disk->should_stop)
        if (pthread_cond_timedwait(&disk->wake, &disk->mutex, &until) != 0)
            break;
    const bool goes_on = !disk->should_stop;
    pthread_mutex_unlock(&disk->mutex);
    return goes_on;
}

static void *disk_main(void *context)
{
    struct disk *disk = context;
    while (wait_for_check(disk))
        check_now(disk);
    return NULL;
}

enum err_code disk_create(const char *folder, uint64_t min_free_bytes, struct disk **ret_disk,
                          struct err *err)
{
    struct disk *disk = mem_new(struct disk, 1);
    pthread_condattr_t attributes;
    disk->folder = mem_strdup(folder);
    disk->min_free_bytes = min_free_bytes;
    disk->held_path = mem_alloc(strlen(folder) + sizeof(HELD_NAME), 1);
    snprintf(disk->held_path, strlen(folder) + sizeof(HELD_NAME), "%s" HELD_NAME, folder);
    atomic_store(&disk->held_bytes, find_held(disk->held_path));
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&disk->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    check_now(disk);
    if (pthread_create(&disk->thread, NULL, disk_main, disk) != 0) {
        mem_free(disk->held_path);
        mem_free(disk->folder);
        mem_free(disk);
        return err_set(err, ERR_INTERNAL, "cannot start the thread that watches the disk");
    }
    *ret_disk = disk;
    return ERR_NONE;
}

void disk_destroy(struct disk *disk)
{
    if (!disk)
        return;
    pthread_mutex_lock(&disk->mutex);
    disk->should_stop = true;
    pthread_cond_signal(&disk->wake);
    pthread_mutex_unlock(&disk->mutex);
    pthread_join(disk->thread, NULL);
    pthread_cond_destroy(&disk->wake);
    pthread_mutex_destroy(&disk->mutex);
    mem_free(disk->held_path);
    mem_free(disk->folder);
    mem_free(disk);
}

static enum err_code refuse_storing(struct err *err, const char *what)
{
    err_set(err, ERR_BUSY, "%s; nothing can be stored now, try again later", what);
    err->retry_after_s = RETRY_S;
    return ERR_BUSY;
}

enum err_code disk_check(const struct disk *disk, struct err *err)
{
    const int64_t age_ns = clock_monotonic_ns() - atomic_load(&disk->looked_ns);
    if (age_ns > (int64_t)STALE_MS * CLOCK_NS_PER_MS)
        return refuse_storing(err, "the server's disk does not respond");
    switch (atomic_load(&disk->state)) {
    case DISK_USABLE:
        return ERR_NONE;
    case DISK_FULL:
        return refuse_storing(err, "the server's disk is full");
    case DISK_UNWRITABLE:
        break;
    }
    return refuse_storing(err, "the server's disk cannot be written");
}

static bool has_reserves(const struct disk *disk, uint64_t bytes, uint64_t count)
{
    const uint64_t free_bytes = disk_look_free_bytes(disk);
    return free_bytes >= bytes && free_bytes - bytes >= count * disk_min_free_bytes(disk);
}

/* Several threads may see the same free space; after the allocation each sees those of others. */
enum err_code disk_allocate(const struct disk *disk, int fd, uint64_t bytes, uint64_t reserve_count,
                            struct err *err)
{
    enum { STAT_BLOCK_BYTES = 512 };
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "reading the size of a file in the data folder");
    const uint64_t allocated = (uint64_t)status.st_blocks * STAT_BLOCK_BYTES;
    bool is_allocated =
        bytes <= INT64_MAX &&
        has_reserves(disk, bytes > allocated ? bytes - allocated : 0, reserve_count);
    if (is_allocated && bytes)
        is_allocated =
            fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0 || errno == EOPNOTSUPP;
    if (is_allocated && has_reserves(disk, 0, reserve_count))
        return ERR_NONE;
    /* Frees what was allocated beyond the end. */
    if (ftruncate(fd, status.st_size) != 0)
        return err_set_errno(err, ERR_IO, "freeing space in the data folder");
    return err_set(err, ERR_LIMIT, "the server's disk has no space for it beside its reserve");
}

uint64_t disk_look_free_bytes(const struct disk *disk)
{
    uint64_t free_bytes, total_bytes;
    return os_free_bytes(disk->folder, &free_bytes, &total_bytes) == 0 ? free_bytes : 0;
}

bool disk_has_space_for_copy(const struct disk *disk, uint64_t bytes, bool is_background)
{
    const uint64_t free_bytes = disk_look_free_bytes(disk), reserve = disk_min_free_bytes(disk);
    return free_bytes >= bytes &&
           free_bytes - bytes >=
               (is_background || bytes <= SMALL_COPY_BYTES ? reserve / 2 : 2 * reserve);
}

uint64_t disk_free_bytes(const struct disk *disk)
{
    return atomic_load(&disk->free_bytes);
}

uint64_t disk_total_bytes(const struct disk *disk)
{
    return atomic_load(&disk->total_bytes);
}

uint64_t disk_min_free_bytes(const struct disk *disk)
{
    return atomic_load(&disk->reserve_bytes);
}

uint64_t disk_held_bytes(const struct disk *disk)
{
    return atomic_load(&disk->held_bytes);
}
