/*
 * processes: the table of running processes with the executable mappings of each.
 *
 * It is filled by one scan of /proc at the start and by process events in the order of time from
 * then on; after lost events the scan is repeated. A process number that the kernel reuses is
 * detected by the start time, which each sample carries. An ended process is kept for 3 s, because
 * samples of its last moments may still arrive.
 *
 * Limits on memory: the number of processes (65,536), the mappings of one (65,536), and all
 * mappings together (524,288). Processes and mappings that exceed them are counted as refused, and
 * their addresses have no binary.
 *
 * Limits on work: after 256 map events of one process in a second, further ones only mark the
 * process for a scan of /proc/PID. One process is scanned at most once a second, which takes at
 * most a tenth of the elapsed time. Immediate scans, which a sample triggers, take at most a tenth
 * of the elapsed time for all known processes together; scans by processes_sweep take at most
 * another tenth.
 *
 * Threads: one.
 */
#ifndef AGENT_PROCESS_PROCESSES_H
#define AGENT_PROCESS_PROCESSES_H

#include "agent/process/binaries.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct process;
struct process_event;
struct process_mapping;
struct processes;

struct processes_options {
    bool has_targets; /* only targets and their children are kept */
    /* A process appears, executes another program or changes its mappings. Each callback may be
     * NULL. */
    void (*on_change)(void *context, struct process *process);
    /* A process is about to be freed. */
    void (*on_forget)(void *context, struct process *process);
    /* A file was mapped; mapping has its binary. */
    void (*on_file)(void *context, const struct process *process,
                    const struct process_mapping *mapping);
    /* The program that a process executes ends, by exec or with the process. Frees what modules
     * keep for the program in struct process. */
    void (*on_program_end)(void *context, struct process *process);
    /* child is new and has a copy of the mappings of its parent. */
    void (*on_fork)(void *context, struct process *child, const struct process *parent);
    void *context;
};

struct processes_counts {
    uint32_t processes;
    uint32_t mappings;
    uint64_t refused_processes;
    uint64_t refused_mappings;
    uint64_t scans;        /* of the whole of /proc */
    uint64_t failed_scans; /* included in scans */
};

struct processes *processes_create(struct binaries *binaries,
                                   const struct processes_options *options);
void processes_destroy(struct processes *processes); /* NULL is a no-op */

/* Scans the whole of /proc. has_mappings false: reads parent, start and name of each process; its
 * mappings are read when a sample needs them. Errors: ERR_IO (/proc cannot be read). */
enum err_code processes_scan(struct processes *processes, bool has_mappings,
                             struct err *err) MUST_USE;
/* Makes the process and its future children targets, and reads its mappings. */
void processes_make_target(struct processes *processes, uint32_t process_id);

/* Events must come in the order of time. */
void processes_apply(struct processes *processes, const struct process_event *event);

/*
 * The process of a sample, by number and start time (0: not known); it is read from /proc when it
 * is new. NULL: there are too many processes. Borrowed until processes_apply, processes_sweep or
 * processes_destroy is called, or processes_find with its number and another start time.
 */
struct process *processes_find(struct processes *processes, uint32_t process_id,
                               uint64_t started_ns);
/* The process with that number, without reading /proc; NULL: it is not known. */
const struct process *processes_get(struct processes *processes, uint32_t process_id);
/* Finds the mapping of an address. If there is none, rescans /proc/PID first, unless the last scan
 * is less than a second ago or no time for scans is left. */
const struct process_mapping *processes_find_mapping(struct processes *processes,
                                                     struct process *process, uint64_t address);

/* To be called once a second: frees processes whose first thread ended more than 3 s ago and of
 * which no other thread runs, rescans /proc after lost events, and scans single processes that had
 * too many map events or refused mappings, for at most 50 ms in one call; the next call continues.
 */
void processes_sweep(struct processes *processes, int64_t now_ns);

void processes_count(const struct processes *processes, struct processes_counts *ret_counts);
/* Calls visit for each process. */
void processes_each(struct processes *processes,
                    void (*visit)(void *context, struct process *process), void *context);

#endif
