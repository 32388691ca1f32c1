/*
 * backup_manifest: copies of files with their SHA-256, and the manifest that lists them.
 *
 * Used by backup.c. One thread.
 */
#ifndef API_OPS_BACKUP_MANIFEST_H
#define API_OPS_BACKUP_MANIFEST_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct os_user;

struct backup_manifest {
    struct buf text; /* lines so far */
    uint64_t file_count;
    uint64_t byte_count;
};

void backup_manifest_init(struct backup_manifest *manifest);
void backup_manifest_fini(struct backup_manifest *manifest);

/* Copies the folder name (with everything below it, except names that start with a dot) from one
 * folder to another, synced, and adds each file to manifest unless that is NULL. The copies belong
 * to owner unless that is NULL. A missing folder counts as empty. */
enum err_code backup_manifest_copy_folder(int from_fd, int to_fd, const char *name,
                                          const struct os_user *owner,
                                          struct backup_manifest *manifest,
                                          struct err *err) MUST_USE;

/* Copies from_fd to the new file path in folder_fd, synced, and adds it. Errors: ERR_IO, with
 * is_unreadable where from_fd cannot be read. */
enum err_code backup_manifest_copy(struct backup_manifest *manifest, int from_fd, int folder_fd,
                                   const char *path, struct err *err) MUST_USE;
/* Adds an existing file. */
enum err_code backup_manifest_add(struct backup_manifest *manifest, int folder_fd, const char *path,
                                  struct err *err) MUST_USE;
/* Writes manifest.txt with its last line, synced. */
enum err_code backup_manifest_write(struct backup_manifest *manifest, int folder_fd,
                                    struct err *err) MUST_USE;
/* Compares all files that manifest.txt names, and counts those that exist. allow_damaged: prints a
 * warning for each object that is missing or differs, and continues. Errors: ERR_CORRUPT (the
 * message names the first file that is missing or differs), ERR_NOT_FOUND (there is no manifest).
 */
enum err_code backup_manifest_check(int folder_fd, bool allow_damaged, uint64_t *ret_file_count,
                                    struct err *err) MUST_USE;

#endif
