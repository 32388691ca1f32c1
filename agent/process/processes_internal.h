/*
 * processes_internal: the state of the table of processes (processes.h) and the functions that its
 * source files share:
 *
 *   processes_table.c      finds and adds processes
 *   processes_mappings.c   the mappings of one process: insertion, replacement, limits
 *   processes_scan.c       reads /proc, and limits how often
 *   processes.c            samples, sweeps
 *   processes_events.c     applies process events
 *
 * Each file calls only those above it. No other file includes this header.
 */
#ifndef AGENT_PROCESS_PROCESSES_INTERNAL_H
#define AGENT_PROCESS_PROCESSES_INTERNAL_H

#include "agent/process/process.h"
#include "agent/process/processes.h"

enum { PROCESSES_BUCKET_COUNT = 4096 };

struct processes {
    struct binaries *binaries;
    struct processes_options options;
    struct process *buckets[PROCESSES_BUCKET_COUNT];
    struct processes_counts counts;
    uint64_t ns_per_tick;  /* of the start times in /proc */
    int64_t next_all_ns;   /* earliest scan of the whole of /proc after a loss */
    int64_t next_scan_ns;  /* earliest immediate scan of a known process */
    int64_t next_sweep_ns; /* earliest scan of a waiting process in a sweep */
    uint32_t swept_bucket; /* bucket of the last scan in a sweep */
    bool is_scan_due;      /* events were lost since the last scan of the whole of /proc */
};

/* ---- processes_table.c ---- */

/* Where the process of that number is linked in its bucket; *slot is NULL if it is not known. */
struct process **processes_slot(struct processes *processes, uint32_t process_id);
/* The process of that number, which is added if it is not known. NULL: there are too many. */
struct process *processes_get_or_add(struct processes *processes, uint32_t process_id);
void processes_notify_change(struct processes *processes, struct process *process);
/* The owner that binaries of the process are counted for; 0: nothing is counted yet. */
uint64_t processes_counted_owner(const struct processes *processes, struct process *process);

/* ---- processes_mappings.c ---- */

/* Adds a mapping as mmap does: it replaces whatever was at its addresses. is_scan: it was read from
 * /proc, which repeats known mappings; otherwise it is from an event. */
void processes_add_mapping(struct processes *processes, struct process *process,
                           const struct binary_source *source, uint64_t file_offset, bool is_scan);
/* Gives a new child the mappings of its parent. */
void processes_copy_mappings(struct processes *processes, struct process *to,
                             const struct process *from);
void processes_drop_mappings(struct processes *processes, struct process *process);
/* Drops everything that belongs to the program that the process has executed until now. */
void processes_drop_program(struct processes *processes, struct process *process);

/* ---- processes_scan.c ---- */

/* Reads identity and mappings of a process from /proc/PID now. */
void processes_scan_process(struct processes *processes, struct process *process);
/* Scans a known process now if its pauses are over, otherwise in a sweep. */
void processes_scan_soon(struct processes *processes, struct process *process, int64_t now_ns);
/* Scans the whole of /proc if events were lost and the pause since the last such scan is over. */
void processes_scan_after_loss(struct processes *processes, int64_t now_ns);
/* Scans processes that wait for a scan, for at most 50 ms. */
void processes_scan_waiting(struct processes *processes, int64_t now_ns);
/* Looks for the thread whose folder in /proc shows the process (shown_id). True: the previous one
 * has ended, and another thread replaces it. */
bool processes_find_other_thread(struct process *process);
/* For a process whose first thread ended more than 3 s ago: whether no other thread runs. If one
 * does, the process is kept for another 3 s. */
bool processes_has_no_threads(struct process *process, int64_t now_ns);

/* ---- processes.c ---- */

void processes_forget(struct processes *processes, struct process **slot);

#endif
