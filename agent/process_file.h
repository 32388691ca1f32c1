/*
 * process_file: opens a file that a process has mapped, as that process sees it.
 *
 * Paths are the process's own words: they are looked up below its root folder and cannot lead out
 * of it, and whatever is no regular file is not opened (a pipe would keep us waiting).
 * Threads: any.
 */
#ifndef AGENT_PROCESS_FILE_H
#define AGENT_PROCESS_FILE_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Read-only; -1 when there is no such file. */
int process_file_open(uint32_t process_id, struct span path);
/* The file of a mapping, by its addresses: finds deleted files, too, where the kernel allows it
 * (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN). -1. */
int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit);
/* Does the file belong to the process's user, or to root? */
bool process_file_is_trusted(uint32_t process_id, int fd);

#endif
