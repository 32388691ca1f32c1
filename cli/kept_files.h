/*
 * kept_files: files that a recording needs names from, and that their paths may not lead to on this
 * machine, or no more: of a container, deleted or replaced since a program began, in memory alone.
 *
 * They are kept open from the first sample in them on, known by build id. Threads: any.
 */
#ifndef CLI_KEPT_FILES_H
#define CLI_KEPT_FILES_H

#include "lib/base/buf.h"

struct kept_files;

struct kept_files *kept_files_create(void);
void kept_files_destroy(struct kept_files *files); /* NULL is a no-op */

/* Takes fd; what path leads to is not kept, nor more than a process may comfortably have open. */
void kept_files_add(struct kept_files *files, const char *build_id, const char *path, int fd);

/* Borrowed; -1: none. */
int kept_files_find(struct kept_files *files, struct span build_id);

#endif
