/*
 * process_event: a change of a process as the kernel reports it: an executable mapping, a name, a
 * fork or an exit (agent/kernel/perf_sideband.h reads them, agent/process/processes.h applies
 * them). Paths and names are chosen by the process: they contain any bytes.
 */
#ifndef AGENT_PROCESS_PROCESS_EVENT_H
#define AGENT_PROCESS_PROCESS_EVENT_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum process_event_kind {
    PROCESS_EVENT_MAP,  /* an executable mapping */
    PROCESS_EVENT_NAME, /* a thread has a new name */
    PROCESS_EVENT_FORK, /* a new process, or a new thread, whose process is that of its parent */
    PROCESS_EVENT_EXIT, /* a thread has ended */
    PROCESS_EVENT_LOST, /* the kernel dropped events: the known state may be wrong */
};

enum { PROCESS_EVENT_BUILD_ID_MAX_BYTES = 20 };

struct process_event {
    enum process_event_kind kind;
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t process_id;
    uint32_t thread_id;
    uint32_t parent_id; /* FORK */

    /* MAP */
    uint64_t start;
    uint64_t bytes;
    uint64_t file_offset;
    uint64_t inode; /* 0 when there is a build id */
    uint32_t device_major;
    uint32_t device_minor;
    uint8_t build_id[PROCESS_EVENT_BUILD_ID_MAX_BYTES];
    uint32_t build_id_bytes; /* 0: no file, a file without build id, or a kernel before 5.12 */
    struct span path;        /* also "[vdso]", "//anon"; valid until the next event */

    struct span name; /* NAME; valid until the next event */
    bool is_exec;     /* NAME: the process executed another program */

    uint64_t lost_count; /* LOST */
};

#endif
