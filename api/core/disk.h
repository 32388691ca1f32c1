/*
 * disk: watches the file system of the data folder: whether files can be written, and how much
 * space is free.
 *
 * A thread checks twice a second, so a request needs no system call and never waits for a
 * disk that hangs. Requests that store data or change rows are refused when less than a reserve is
 * free (api/server/http_job.c). Deletions need the reserve: PostgreSQL writes its log before it
 * deletes a row, and profiles are deleted by writing blocks without them. A part of the reserve, at
 * most 32 MiB, is allocated in the file .held, which is deleted when another program has filled the
 * disk nevertheless. The file outlives the server, so that the next start can delete it on a full
 * disk: PostgreSQL writes files before it accepts connections. Threads: any.
 */
#ifndef API_CORE_DISK_H
#define API_CORE_DISK_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct disk;

/* Deletes .held in folder if less than its size is free. Call it before PostgreSQL is started. */
void disk_release_reserve_to_start(const char *folder);

/* Watches folder, in which it creates .held and unnamed files. min_free_bytes 0:
 * disk_default_reserve of the file system. The first check is done before this returns. */
enum err_code disk_create(const char *folder, uint64_t min_free_bytes, struct disk **ret_disk,
                          struct err *err) MUST_USE;
void disk_destroy(struct disk *disk); /* NULL is a no-op */

/* The reserve for a file system of total_bytes: a sixteenth of it, but at least 64 MiB and at most
 * 1 GiB; at most a quarter of a small one. */
uint64_t disk_default_reserve(uint64_t total_bytes);

/* Whether data may be stored now. A disk that was full counts as full until an eighth more than the
 * reserve is free. Errors: ERR_BUSY with retry_after_s (the disk is full, cannot be written or does
 * not respond; the message states which). */
enum err_code disk_check(const struct disk *disk, struct err *err) MUST_USE;

/* Allocates space for the first `bytes` bytes of fd, a file of the same file system, without
 * changing the file's size; space that the file already has does not count again. reserve_count
 * times the reserve must stay free. Used for temporary files of requests that store nothing. Unlike
 * disk_check, it reads the free space of the disk now. Errors: ERR_LIMIT (too little would stay
 * free; then nothing beyond the file's end is allocated), ERR_IO. */
enum err_code disk_allocate(const struct disk *disk, int fd, uint64_t bytes, uint64_t reserve_count,
                            struct err *err) MUST_USE;

/* Whether the disk has space for a copy of an object of a bucket, which a request reads and then
 * deletes. The copy must leave twice the reserve free, so that data can be stored meanwhile. A copy
 * of at most 4 MiB, such as a share, must leave only half of the reserve, so that profiles are
 * shown on a full disk; so must a copy for background work, which deletes profiles and verifies
 * blocks. */
bool disk_has_space_for_copy(const struct disk *disk, uint64_t bytes, bool is_background);

/* Returns the bytes that are free now, by a system call, which waits for a disk that hangs; 0 after
 * an error. */
uint64_t disk_look_free_bytes(const struct disk *disk);

/* The size of the file system. */
uint64_t disk_total_bytes(const struct disk *disk);
/* The free bytes at the last check, and the reserve, below which nothing is stored. */
uint64_t disk_free_bytes(const struct disk *disk);
uint64_t disk_min_free_bytes(const struct disk *disk);
/* The size of .held; 0 when it was deleted. */
uint64_t disk_held_bytes(const struct disk *disk);

#endif
