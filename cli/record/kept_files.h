/*
 * kept_files: the files that a recording needs names from. By the time they are looked for their
 * paths may lead to nothing, or to another file: of a container, deleted or replaced while it was
 * recorded or before, in memory alone.
 *
 * They are kept open from when a program maps them, or from the first sample in them, on: as many
 * as a quarter of what this process may open. Beyond that those of the system are let go of first,
 * whose paths lead to them still, and then new ones are not kept; of all it is remembered which
 * they were. A file that was written to in between is none any more. Threads: any.
 */
#ifndef CLI_RECORD_KEPT_FILES_H
#define CLI_RECORD_KEPT_FILES_H

#include "lib/base/buf.h"

struct kept_files;

/* Raises how many files this process may have open: what inherits that is started before. */
struct kept_files *kept_files_create(void);
void kept_files_destroy(struct kept_files *files); /* NULL is a no-op */

/* Takes fd. build_id is hexadecimal, "": the file has none, and is known by its path. */
void kept_files_add(struct kept_files *files, const char *build_id, const char *path, int fd);

enum kept_state {
    KEPT_NONE,    /* nothing is known of it */
    KEPT_AT_PATH, /* its path leads to it */
    KEPT_OPEN,    /* *ret_fd, which the caller closes */
    KEPT_CHANGED, /* its bytes are others by now, or it was let go of and its path does not lead to
                     it */
    KEPT_SEVERAL, /* without a build id: more than one file has been at that path */
};
enum kept_state kept_files_find(struct kept_files *files, struct span build_id, struct span path,
                                int *ret_fd);

#endif
