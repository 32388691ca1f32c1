/*
 * proc_text: parsers for files of /proc (proc(5)): a line of maps, stat, status, cgroup.
 *
 * Paths and names in them are chosen by processes: they contain any bytes, with line breaks escaped
 * by the kernel ("\012"). Pure functions; the resulting spans point into the given text.
 * Threads: any.
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
    bool is_deleted;  /* path leads nowhere, or to another file */
    struct span path; /* may be empty; "[vdso]" and the like; without " (deleted)" */
};

/* False: the line is not one of /proc/PID/maps. */
bool proc_text_mapping(struct span line, struct proc_mapping *ret_mapping);

struct proc_status {
    uint32_t parent_id;
    bool is_kernel_thread;
    uint32_t thread_count; /* includes the first thread, until the last thread has ended */
    uint64_t start_ticks;  /* since boot; sysconf(_SC_CLK_TCK) per second */
};

/* Parses /proc/PID/stat. The name in it may contain blanks and parentheses. */
bool proc_text_stat(struct span text, struct proc_status *ret_status);

/* Finds the real and the effective user in /proc/PID/status. */
bool proc_text_users(struct span text, uint32_t *ret_real, uint32_t *ret_effective);

/* Finds in /proc/PID/status the process's number in its own (innermost) PID namespace. */
bool proc_text_own_number(struct span text, uint64_t *ret_number);

/* The path of the unified hierarchy in /proc/PID/cgroup. If there is none, or it is the root, the
 * path of systemd's hierarchy; empty: none. */
struct span proc_text_cgroup(struct span text);

/* The container id in a cgroup path (Docker, Podman, containerd, CRI-O): the last part with 64
 * hexadecimal digits; empty: none. */
struct span proc_text_container(struct span cgroup);
/* The systemd unit in a cgroup path: the last service or scope that is not the scope of a
 * container; empty: none. */
struct span proc_text_unit(struct span cgroup);
/* The innermost systemd slice in a cgroup path; empty: none. */
struct span proc_text_slice(struct span cgroup);

#endif
