/*
 * processes: who runs, and what is mapped where in each.
 *
 * Fed with the events of the side band in the order of time, after one scan of /proc, which tells
 * what was there before; after losses the scan is repeated. A number that is given to another
 * process is noticed by the time when that was started, which each sample carries. Those that ended
 * stay for a moment, since samples of their last steps may still come.
 *
 * Memory is bounded: processes, mappings of each, and all mappings together; what does not fit is
 * counted and has addresses without a binary. So is the work for one process: of more than 256
 * executable mappings in a second it is only noted that there were more, and /proc is asked for all
 * of them, at most once a second and for a tenth of the time. All processes that are known have a
 * tenth together where that is needed at once, and another one in turns. Threads: one.
 */
#ifndef AGENT_PROCESS_PROCESSES_H
#define AGENT_PROCESS_PROCESSES_H

#include "agent/process/binaries.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct process;
struct process_event;
struct process_mapping;
struct processes;

struct processes_options {
    bool has_targets; /* nothing is kept of others */
    /* A process begins to be known or executes another program, gets a mapping, or is about to be
     * forgotten. NULL: nobody asks. */
    void (*on_change)(void *context, struct process *process);
    void (*on_forget)(void *context, struct process *process);
    /* A file is mapped. NULL: nobody asks. */
    void (*on_file)(void *context, const struct process *process,
                    const struct process_mapping *mapping);
    /* The program that a process executes ends, by exec or with the process: frees what its modules
     * keep in struct process. NULL: they keep nothing. */
    void (*on_program_end)(void *context, struct process *process);
    /* child has a copy of what is known of its parent. NULL: nothing else is inherited. */
    void (*on_fork)(void *context, struct process *child, const struct process *parent);
    void *context;
};

struct processes_counts {
    uint32_t processes;
    uint32_t mappings;
    uint64_t refused_processes;
    uint64_t refused_mappings;
    uint64_t scans;        /* of all of /proc */
    uint64_t failed_scans; /* of them */
};

struct processes *processes_create(struct binaries *binaries,
                                   const struct processes_options *options);
void processes_destroy(struct processes *processes); /* NULL is a no-op */

/* Asks /proc of everybody, for mappings, too, or for parents alone: then mappings are asked for
 * when a process is first needed. Handles: ERR_IO (there is no /proc). */
enum err_code processes_scan(struct processes *processes, bool has_mappings,
                             struct err *err) MUST_USE;
/* It and its children to come are targets; its mappings are asked for. */
void processes_make_target(struct processes *processes, uint32_t process_id);

void processes_apply(struct processes *processes, const struct process_event *event);

/*
 * The process of a sample: by number and start (0: not known). What is not known yet is asked of
 * /proc; NULL when there are too many processes. Borrowed until the next call of another function.
 */
struct process *processes_find(struct processes *processes, uint32_t process_id,
                               uint64_t started_ns);
/* What is known of a process; NULL: nothing. */
const struct process *processes_get(struct processes *processes, uint32_t process_id);
/* As process_find_mapping; where there is no mapping, scans /proc/PID first if the last scan was
 * more than a second ago and there is time for it. */
const struct process_mapping *processes_find_mapping(struct processes *processes,
                                                     struct process *process, uint64_t address);

/* Once a second: forgets who ended more than a moment ago, and asks /proc again after losses, and
 * of those that told too much, or of files for which there was no room; of these for 50 ms at a
 * time, in turns. */
void processes_sweep(struct processes *processes, int64_t now_ns);

void processes_count(const struct processes *processes, struct processes_counts *ret_counts);
/* All, for whoever starts to look at them. */
void processes_each(struct processes *processes,
                    void (*visit)(void *context, struct process *process), void *context);

#endif
