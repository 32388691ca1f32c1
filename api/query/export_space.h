/*
 * export_space: the disk space that exports take until their clients have read them.
 *
 * A client may read an export slowly, for hours. Exports therefore leave twice the reserve of the
 * disk (api/core/disk.h), so that data can still be stored; all of them take at most an eighth of
 * the disk, and those of one team half of that. Threads: any; a file belongs to one request.
 */
#ifndef API_QUERY_EXPORT_SPACE_H
#define API_QUERY_EXPORT_SPACE_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct disk;
struct export_space;

struct export_space *export_space_create(const struct disk *disk);
void export_space_destroy(struct export_space *space); /* NULL is a no-op */

/* A file that an export is written to. */
struct export_file {
    struct export_space *space;
    int64_t tenant_id;
    int fd;
    uint64_t bytes; /* allocated; changed by the functions below only */
    struct export_file *previous, *next;
};

/* Registers a file without bytes; set the first three members before. */
void export_space_begin(struct export_file *file);
/* Allocates the file up to `bytes`, beyond its end, which is unchanged. Errors: ERR_BUSY (other
 * exports or other data take the space), ERR_TOO_LARGE (no export of that size fits). */
enum err_code export_space_extend(struct export_file *file, uint64_t bytes,
                                  struct err *err) MUST_USE;
/* Frees what was allocated beyond the end of the file. Errors: ERR_IO. */
enum err_code export_space_trim(struct export_file *file, uint64_t bytes, struct err *err) MUST_USE;
/* The file is closed, or is about to be. */
void export_space_end(struct export_file *file);

#endif
