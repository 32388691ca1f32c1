/*
 * os: wrappers of the file system calls that can fail, write less than requested, or be lost.
 *
 * Everything that must be durable goes through these functions. Each is the system call of the same
 * name, unless its comment says otherwise: it returns -1 and sets errno on failure. EINTR is
 * retried. With os_fault_*, tests can:
 *
 *   - make the Nth call of a kind fail with an errno, or cut the Nth write short;
 *   - make one file unreadable;
 *   - report a number of free bytes;
 *   - record what has not been synced yet and discard it, as a power failure would: a file gets the
 *     content of its last fsync or fdatasync, and a directory the names of its last fsync.
 *
 * Threads: any. Recording takes a lock, and costs nothing while it is off.
 */
#ifndef LIB_BASE_OS_H
#define LIB_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* Opens relative to directory_fd (or AT_FDCWD), always with O_CLOEXEC. */
int os_openat(int directory_fd, const char *path, int flags, mode_t mode);
/* Opens a regular file for reading and returns its status. Never blocks on, or follows, anything
 * else of that name: returns -1 with ELOOP (symbolic link), ENXIO (socket) or EMEDIUMTYPE (FIFO,
 * device, directory). */
int os_open_file(int directory_fd, const char *path, struct stat *ret_status);
int os_mkdirat(int directory_fd, const char *path, mode_t mode);
/* May write less than size, as write(2). */
ssize_t os_write(int fd, const void *data, size_t size);
ssize_t os_pread(int fd, void *data, size_t size, off_t offset);
/* Announces that these bytes are read soon, so that the kernel can load them in the background.
 * Failures are ignored. */
void os_read_ahead(int fd, off_t offset, off_t size);
int os_fsync(int fd);
int os_fdatasync(int fd);
int os_renameat(int from_directory_fd, const char *from, int to_directory_fd, const char *to);
int os_unlinkat(int directory_fd, const char *path);
/* The bytes that an unprivileged process may still write to the file system of path, and its
 * size. */
int os_free_bytes(const char *path, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes);
/* Closes fd; -1 is a no-op. Returns an error of close(2); the descriptor is closed in any case. */
int os_close(int fd);

/* Writes all of data, continuing after short writes; -1 and errno on failure. */
int os_write_all(int fd, const void *data, size_t size);

static inline void fd_cleanup(int *fd)
{
    if (*fd >= 0)
        os_close(*fd);
}
/* fd_auto fd = -1;   closed at the end of the scope */
#define fd_auto __attribute__((cleanup(fd_cleanup))) int

enum os_call {
    OS_CALL_OPEN,
    OS_CALL_MKDIR,
    OS_CALL_WRITE,
    OS_CALL_READ,
    OS_CALL_SYNC, /* fsync and fdatasync */
    OS_CALL_RENAME,
    OS_CALL_UNLINK,
    OS_CALL_CLOSE,
    OS_CALL_COUNT
};

/*
 * For tests. Call number nth (from 1) of that kind fails with error from now on; with error 0 and
 * OS_CALL_WRITE it writes half of its bytes. With stays_broken, all later calls of that kind fail
 * too. Only one plan is active at a time; os_fault_reset ends it and the recording.
 */
void os_fault_plan(enum os_call call, unsigned nth, int error, bool stays_broken);
/* Makes reads of one file fail with EIO, like a bad sector, until os_fault_reset. All other
 * files are read normally. */
void os_fault_unreadable(const char *path);
/* Sets the number of free bytes that os_free_bytes reports, until os_fault_reset. */
void os_fault_free_bytes(int64_t free_bytes);
/* The number of calls of that kind since the last plan or reset; tests use it to learn how many
 * calls can fail. */
unsigned os_fault_count(enum os_call call);
/* Starts recording unsynced changes below root. */
void os_fault_record(const char *root);
/*
 * Undoes on disk what was not synced since os_fault_record, newest change first, and stops
 * recording. Open descriptors keep working but belong to files that may be gone.
 */
void os_fault_lose_unsynced(void);
void os_fault_reset(void);

#endif
