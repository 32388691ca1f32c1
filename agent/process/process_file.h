/*
 * process_file: opens a file that a process has mapped, as that process sees it.
 *
 * Paths are the process's own words, and by now they may be links to anything that it shows: they
 * are looked up below its root folder and cannot lead out of it, and what is there is looked at
 * before it is opened, which is something that is done to a device or a pipe. Regular files with
 * something in them are opened, and none of procfs, sysfs, debugfs and tracefs: reading takes from
 * some (/proc/kmsg).
 * Threads: any.
 */
#ifndef AGENT_PROCESS_PROCESS_FILE_H
#define AGENT_PROCESS_PROCESS_FILE_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Read-only; -1 when there is no such file, or it has another inode (0: any). */
int process_file_open(uint32_t process_id, struct span path, uint64_t inode);
/* The file of a mapping, by its addresses: finds deleted files, too, where the kernel allows it
 * (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN). -1. */
int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit);
/* Has the process ended? Then it shows its files no more, which others that map them may. */
bool process_file_has_ended(uint32_t process_id);
/* A file that the process's user has written: it is that user's and no link, since its path is one
 * where anybody may put something (/tmp), and by a link or a mount a program could have others'
 * files read. process_id 0: as we see it. -1. */
int process_file_open_written(uint32_t process_id, uint32_t user_id, struct span path);
/* /proc/PID/status, to be parsed (proc_text.h), into text, which is
 * initialised here. False: it has ended. */
bool process_file_read_status(uint32_t process_id, struct buf *text);
/* Whom it belongs to, as a number that is never 0: its user; where it is in a user namespace that
 * another one than root has made, that one; where both are root, the process itself. All of which
 * nothing is to be found out any more, since they have ended, are one owner. */
uint64_t process_file_owner(uint32_t process_id);
/* Is an owner a user, and not a process? */
bool process_file_is_user(uint64_t owner);

#endif
