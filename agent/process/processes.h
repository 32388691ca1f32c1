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
#include "bpf/unwind_format.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct interpreter;
struct jit_symbols;
struct process_labels;
struct processes;
struct perf_sideband_event;

enum { PROCESS_NAME_BYTES = 16 };

struct process_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint32_t binary; /* BINARY_NONE: no file */
    bool is_vdso;
    bool is_refused; /* it has a file, for which there was no room */
};

struct process {
    uint32_t process_id;
    uint32_t parent_id;
    uint32_t shown_id;   /* of the thread by which /proc shows its files: the first that is left */
    uint64_t started_ns; /* since boot; 0: not known yet */
    bool is_start_exact; /* else it is known to a hundredth of a second */
    char name[PROCESS_NAME_BYTES];
    uint64_t owner;                   /* process_owner(); 0: not asked yet */
    struct process_mapping *mappings; /* ascending, none over another */
    uint32_t mapping_count;
    uint32_t mapping_capacity;
    int64_t ended_ns;  /* 0: its first thread runs */
    int64_t scan_ns;   /* /proc may be asked again from then on, where there is time for it */
    bool has_refused;  /* mappings, since it was asked: they are tried again */
    uint32_t left_out; /* of them without a place here, since then */
    uint32_t counted_left_out; /* the most that there were, which are counted */
    bool is_scan_due; /* /proc is asked in a while: it told too much, or there was no time */
    int64_t told_ns;  /* when the second began in which it told */
    uint32_t told_count;
    bool is_target;   /* inherited by children */
    bool has_threads; /* or had: some may outlive the first one */
    bool is_known;    /* its mappings are: it was scanned, forked or has executed */
    bool is_kernel_thread;
    uint32_t program; /* the binary that it executes, of its mappings; BINARY_NONE */
    struct process *next;

    /* For who uses them; freed with the process. */
    struct process_labels *labels;   /* NULL: not asked yet, or no longer true (exec) */
    int64_t sampled_ns;              /* begin of the window that last had a sample; 0: none */
    struct jit_symbols *jit_symbols; /* NULL: not looked for yet */
    struct interpreter *interpreter; /* NULL: there is none, or not looked for yet */
    int64_t unopened_ns; /* files that did not open are looked at for one again from then on */
    int64_t unopened_pause_ns;
    uint64_t run_owner;    /* whose it is, where that is counted (unwind_space.h) */
    struct unwind_run run; /* its mappings as the kernel program has them */
    bool has_run;
    int64_t published_ns; /* when it was made */
    bool is_waiting;      /* for its run to be made anew */
    bool is_refused;      /* there was no room for it */
    bool is_starved;      /* and so it is in a second, if nothing changes before */
    struct process *next_waiting;
};

struct processes_options {
    bool has_targets; /* nothing is kept of others */
    /* A process begins to be known or executes another program, gets a mapping, or is about to be
     * forgotten. NULL: nobody asks. */
    void (*on_change)(void *context, struct process *process);
    void (*on_forget)(void *context, struct process *process);
    /* A file is mapped. NULL: nobody asks. */
    void (*on_file)(void *context, const struct process *process,
                    const struct process_mapping *mapping);
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

void processes_apply(struct processes *processes, const struct perf_sideband_event *event);

/*
 * The process of a sample: by number and start (0: not known). What is not known yet is asked of
 * /proc; NULL when there are too many processes. Borrowed until the next call of another function.
 */
struct process *processes_find(struct processes *processes, uint32_t process_id,
                               uint64_t started_ns);
/* Has it, as far as is known? Then /proc shows nothing more of it. */
bool process_has_ended(const struct process *process);
/* Asks the kernel as well, since the event of an end can be lost. */
bool process_is_alive(const struct process *process);
/* Whom it belongs to (process_file_owner): asked once for each program that it executes, and anew
 * when /proc is asked for its mappings. */
uint64_t process_owner(struct process *process);
/* What is known of a process; NULL: nothing. */
const struct process *processes_get(struct processes *processes, uint32_t process_id);
/* The mapping at an address, or NULL; the second one asks /proc again where that was not done
 * within the last second, and there is time for it. */
const struct process_mapping *process_find_mapping(const struct process *process, uint64_t address);
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
