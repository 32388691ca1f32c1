/*
 * process_file: opens files of another process safely.
 *
 * Paths come from the process and may by now be links to anything. They are resolved below the
 * process's root folder and cannot leave it. The file is inspected before it is opened, because
 * opening a device or a pipe has effects. Only regular files that are not empty are opened, and
 * none of procfs, sysfs, debugfs and tracefs, where a read can consume data (/proc/kmsg), nor of
 * FUSE, where a read may never end. All paths are looked up in a helper process (helper_process.h).
 * Threads: any.
 */
#ifndef AGENT_PROCESS_PROCESS_FILE_H
#define AGENT_PROCESS_PROCESS_FILE_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens a file read-only, as the process sees path. -1: there is no such file, or its inode differs
 * (inode 0: any inode). The caller closes it. */
int process_file_open(uint32_t process_id, struct span path, uint64_t inode);
/* Opens the file of a mapping by the addresses of the mapping. Finds deleted files too, if the
 * agent has CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. -1: not possible. The caller closes it. */
int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit);
/* Whether the process or thread has ended. Its files are then only reachable through another
 * process that maps them. */
bool process_file_has_ended(uint32_t process_id);
/* Opens a file that the process's user wrote in a folder where any user may create files (/tmp).
 * The file must belong to user_id and be no link: a program could otherwise have the agent read
 * files of other users through a link or a mount. process_id 0: path as the agent sees it. -1: no
 * such file. The caller closes it. */
int process_file_open_written(uint32_t process_id, uint32_t user_id, struct span path);
/* Appends /proc/PID/name to text, at most HELPER_PROCESS_BYTES. name: "cmdline" or "environ", whose
 * text the kernel reads from the memory of the process, so that the read may block. False: the
 * process has ended, or the text cannot be read. */
bool process_file_read_text(uint32_t process_id, const char *name, struct buf *text);
/* Reads /proc/PID/status into text, which it initialises (proc_text.h parses it). False: the
 * process has ended. */
bool process_file_read_status(uint32_t process_id, struct buf *text);
/*
 * The owner that resources of a process are counted for, never 0. It is the user; for a process in
 * a user namespace that a user other than root created, the creator; for a process of root, the
 * process itself. Processes whose status cannot be read because they have ended share one owner.
 */
uint64_t process_file_owner(uint32_t process_id);
/* Whether an owner is a user rather than a process. */
bool process_file_is_user(uint64_t owner);

#endif
