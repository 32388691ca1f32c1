/*
 * process: one process: its identity, its executable mappings, and the data that other modules keep
 * for it.
 *
 * processes (agent/process/processes.h) creates, fills and frees every struct process; it is
 * borrowed by all others. Several modules keep their state of a process in it, because a table of
 * their own would cost a look-up for each sample; a comment at the members names the module that
 * owns them. One thread.
 */
#ifndef AGENT_PROCESS_PROCESS_H
#define AGENT_PROCESS_PROCESS_H

#include "bpf/unwind_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interpreter;
struct jit_symbols;
struct process_labels;

enum { PROCESS_NAME_BYTES = 16 };

struct process_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint32_t binary; /* number in struct binaries; BINARY_NONE: no file */
    bool is_vdso;
    bool is_refused; /* it has a file, but the table of binaries had no space for it */
};

struct process {
    uint32_t process_id;
    uint32_t parent_id;
    uint32_t shown_id;   /* the thread whose folder in /proc is read: the first one that runs */
    uint64_t started_ns; /* since boot; 0: not known yet */
    bool is_start_exact; /* false: started_ns comes from /proc, which counts hundredths of 1 s */
    char name[PROCESS_NAME_BYTES];
    uint64_t owner;                   /* process_owner(); 0: not determined yet */
    struct process_mapping *mappings; /* ascending, without overlap */
    uint32_t mapping_count;
    uint32_t mapping_capacity;
    uint32_t program; /* binary of the executed program, one of mappings; BINARY_NONE */
    int64_t ended_ns; /* when the first thread ended; 0: it runs */
    bool is_target;   /* children inherit it */
    bool has_threads; /* has or had more than one: others may outlive the first */
    bool is_known;    /* its mappings are known: it was scanned or forked, or has executed */
    bool is_kernel_thread;
    struct process *next; /* in its bucket of struct processes */

    /* Scans of /proc/PID (processes_scan.c). */
    int64_t scan_ns;  /* earliest time of the next scan */
    bool is_scan_due; /* a sweep scans it: too many map events, or no time for a scan */
    bool has_refused; /* a mapping was refused since the last scan, and the next scan tries it again
                       */
    uint32_t left_out;         /* mappings since the last scan that did not fit into `mappings` */
    uint32_t counted_left_out; /* the largest left_out so far, which the counts include */
    int64_t map_second_ns;     /* when the second began in which map_event_count is counted */
    uint32_t map_event_count;

    /* Labels, JIT symbols and the interpreter of the program that the process executes. Their
     * modules create them; processes_options.on_program_end frees them. */
    struct process_labels *labels;   /* NULL: not read yet */
    struct jit_symbols *jit_symbols; /* NULL: not looked for yet */
    struct interpreter *interpreter; /* NULL: none, or not looked for yet */
    int64_t unopened_ns; /* interpreters: files that failed to open are tried again from then on */
    int64_t unopened_pause_ns;

    int64_t sampled_ns; /* window: start of the last window that had a sample; 0: none */

    /* unwind_publisher */
    uint64_t list_owner; /* owner whose quota `list` counts against (unwind_maps.h); 0: none */
    struct unwind_mapping_list list; /* the mappings as the kernel program has them */
    bool has_list;
    int64_t published_ns; /* when `list` was published */
    bool is_queued;       /* in the queue of processes to publish */
    bool is_list_refused; /* there was no space for `list` */
    bool is_retry_queued; /* in the queue of processes to publish again within a second */
    struct process *next_queued;
};

/* The index of the first mapping that ends above address; mapping_count: there is none. */
static inline uint32_t process_mapping_index(const struct process *process, uint64_t address)
{
    uint32_t low = 0, high = process->mapping_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (process->mappings[middle].limit <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mapping that contains address, or NULL. Borrowed until the process changes. */
static inline const struct process_mapping *process_find_mapping(const struct process *process,
                                                                 uint64_t address)
{
    const uint32_t i = process_mapping_index(process, address);
    const bool is_found = i < process->mapping_count && process->mappings[i].start <= address;
    return is_found ? &process->mappings[i] : NULL;
}

/* Whether all known threads have ended: /proc shows nothing of the process any more. */
bool process_has_ended(const struct process *process);
/* Like !process_has_ended, but also queries the kernel, because the exit event can be lost. */
bool process_is_alive(const struct process *process);
/* The owner that its resources are counted for (process_file_owner). Determined once for each
 * program that it executes and for each scan of /proc. */
uint64_t process_owner(struct process *process);

#endif
