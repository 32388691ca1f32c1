/*
 * mapped_files: open descriptors of the binaries that a recording needs for symbolization. When the
 * recording ends, a path may no longer lead to the recorded file: it may belong to a container, be
 * deleted or replaced, or exist only in memory.
 *
 * A file is kept open from the time a program maps it, or from its first sample. At most a quarter
 * of the descriptor limit is used. Above that, system files are closed first, since their paths
 * still lead to them; then new files are not kept open. The identity of each file is remembered in
 * all cases, up to 65,536 files; further files are ignored. A file that is modified meanwhile is
 * not used. Threads: any.
 */
#ifndef CLI_RECORD_MAPPED_FILES_H
#define CLI_RECORD_MAPPED_FILES_H

#include "lib/base/buf.h"

struct mapped_files;

/* Also raises the descriptor limit of this process to 8192, if its hard limit allows that. Start
 * child processes before: they would inherit the raised limit. */
struct mapped_files *mapped_files_create(void);
void mapped_files_destroy(struct mapped_files *files); /* NULL is a no-op */

/* Takes ownership of fd. build_id is hexadecimal; "" means that the file has none and is identified
 * by its path. */
void mapped_files_add(struct mapped_files *files, const char *build_id, const char *path, int fd);

enum mapped_file_state {
    MAPPED_FILE_NONE,    /* unknown file */
    MAPPED_FILE_AT_PATH, /* the path still leads to the file */
    MAPPED_FILE_OPEN,    /* *ret_fd is set; the caller closes it */
    MAPPED_FILE_CHANGED, /* modified, or closed and its path leads to another file */
    MAPPED_FILE_SEVERAL, /* no build id, and several files were at that path */
};
/* Finds the recorded file with this build id or, if build_id is empty, with this path. */
enum mapped_file_state mapped_files_find(struct mapped_files *files, struct span build_id,
                                         struct span path, int *ret_fd);

#endif
