/*
 * os: the seam between our code and the file system calls that can fail, be cut short or be lost.
 *
 * Everything that must be durable goes through these functions, which are the system calls of the
 * same name (return -1 and errno; EINTR is retried). Tests can, through os_fault_*:
 *   - make the Nth call of a kind fail with an errno, or cut the Nth write short;
 *   - make one file unreadable;
 *   - report a number of free bytes;
 *   - record what has not been synced yet, and then lose it as a power cut would: contents since
 *     the last fsync or fdatasync of a file go back to what was synced, and names that a folder got
 *     or lost since its last fsync are undone.
 * Threads: any; recording takes a lock, and costs nothing while it is off.
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
/* Opens a regular file to read, and looks at it. Anything else of that name is neither waited for
 * nor followed: -1 with ELOOP (symbolic link), ENXIO (socket) or EMEDIUMTYPE (FIFO, device,
 * folder). */
int os_open_file(int directory_fd, const char *path, struct stat *ret_status);
int os_mkdirat(int directory_fd, const char *path, mode_t mode);
/* May write less than size, as write(2). */
ssize_t os_write(int fd, const void *data, size_t size);
ssize_t os_pread(int fd, void *data, size_t size, off_t offset);
/* These bytes are read soon: the system may bring them from the disk while something else is done.
 */
void os_read_ahead(int fd, off_t offset, off_t size);
int os_fsync(int fd);
int os_fdatasync(int fd);
int os_renameat(int from_directory_fd, const char *from, int to_directory_fd, const char *to);
int os_unlinkat(int directory_fd, const char *path);
/* Bytes that an unprivileged process may still write to path's file system, and its size. */
int os_free_bytes(const char *path, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes);
/* Closes fd; -1 is a no-op. An error of close(2) is returned, the descriptor is gone in any case.
 */
int os_close(int fd);

/* Writes all of data, going on after short writes; -1 and errno on failure. */
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
 * For tests. From now on call number nth (from 1) of that kind fails with error; with error 0 and
 * OS_CALL_WRITE it writes half of its bytes. Where stays_broken, all later calls of that kind fail
 * too. One plan at a time; os_fault_reset ends it and the recording.
 */
void os_fault_plan(enum os_call call, unsigned nth, int error, bool stays_broken);
/* From now on reading the file fails with EIO, as of a bad sector; all others are read. One file at
 * a time, until os_fault_reset. */
void os_fault_spoil(const char *path);
/* From now on so many bytes are free, whatever the file system reports, until os_fault_reset. */
void os_fault_free_bytes(int64_t free_bytes);
/* Calls of that kind since the last plan or reset, to find out how many there are to fail. */
unsigned os_fault_count(enum os_call call);
/* Records what is not synced, for changes below root from now on. */
void os_fault_record(const char *root);
/*
 * Undoes on disk what was not synced since os_fault_record, newest first, and stops recording.
 * Descriptors that are still open keep working but belong to files that may be gone.
 */
void os_fault_lose_unsynced(void);
void os_fault_reset(void);

#endif
