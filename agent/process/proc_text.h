/*
 * proc_text: the formats of /proc that the agent reads (proc(5)): a line of maps, stat, status,
 * cgroup.
 *
 * Paths and names in them are of any process: any bytes, line breaks as the kernel writes them
 * ("\012"). Pure functions; spans point into the text given. Threads: any.
 */
#ifndef AGENT_PROCESS_PROC_TEXT_H
#define AGENT_PROCESS_PROC_TEXT_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct proc_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint64_t inode; /* 0: no file */
    uint32_t device_major;
    uint32_t device_minor;
    bool is_executable;
    bool is_deleted;  /* its path leads nowhere, or to another file */
    struct span path; /* may be empty; "[vdso]" and the like; without " (deleted)" */
};

/* False when the line is none of maps. */
bool proc_text_mapping(struct span line, struct proc_mapping *ret_mapping);

struct proc_status {
    uint32_t parent_id;
    bool is_kernel_thread;
    uint32_t thread_count; /* with the first one, until the last one has ended */
    uint64_t start_ticks;  /* since boot, of sysconf(_SC_CLK_TCK) a second */
};

/* Of /proc/PID/stat, where the name may hold blanks and parentheses. */
bool proc_text_stat(struct span text, struct proc_status *ret_status);

/* The users that /proc/PID/status says: the real one, and the one that it acts as. */
bool proc_text_users(struct span text, uint32_t *ret_real, uint32_t *ret_effective);

/* Its number as it knows itself, in the innermost PID namespace. */
bool proc_text_own_number(struct span text, uint64_t *ret_number);

/* The path of the unified hierarchy in /proc/PID/cgroup, else, or where that is at its root, that
 * of systemd's; empty: none. */
struct span proc_text_cgroup(struct span text);

/* What a cgroup's path says, for containers of Docker, Podman, containerd and CRI-O and for units
 * of systemd: the last part that looks like a container's id (64 hexadecimal digits), and the last
 * that is a service or scope; empty: none. */
struct span proc_text_container(struct span cgroup);
struct span proc_text_unit(struct span cgroup);
/* The innermost slice of systemd; empty: none. */
struct span proc_text_slice(struct span cgroup);

#endif
