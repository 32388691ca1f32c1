/*
 * unwinding: gives the walk in the kernel what it needs: a table of each binary that is mapped
 * somewhere, and the mappings of each process, with how an interpreter's frames lie in it.
 *
 * A process that changed waits until unwind_publisher_publish, so that the mappings of a program
 * that starts are published once. Mappings go first and name the place of a table that is built
 * afterwards: what is common, as libc, is walked by tables from a program's first sample on, also
 * while the table of a large library that is new is made. What has no table (yet, or JIT code, no
 * room, an unreadable file) is walked by frame pointers. Threads: one.
 */
#ifndef AGENT_UNWIND_UNWIND_PUBLISHER_H
#define AGENT_UNWIND_UNWIND_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct interpreters;
struct kernel_program;
struct process;
struct unwind_publisher;

struct unwind_publisher_counts {
    uint32_t tables;
    uint64_t failed_tables;  /* binaries without: no call frame information */
    uint64_t table_bytes;    /* of rows and runs */
    uint64_t shard_bytes;    /* memory taken for them */
    uint64_t refused;        /* processes without room, each once */
    uint64_t refused_tables; /* that had no room, each once, or were not built for want of memory */
};

/* program NULL: the walk is in this process, in that memory, and by the runs of struct process. */
struct unwind_memory;
struct unwind_publisher *unwind_publisher_create(struct kernel_program *program,
                                                 const struct unwind_memory *memory,
                                                 const struct binaries *binaries,
                                                 struct interpreters *interpreters);
void unwind_publisher_destroy(
    struct unwind_publisher *publisher); /* NULL is a no-op; before the program */

struct unwind_publisher_host {
    /* There was no room, or no time, for all of a file's table; once for each. NULL: nobody asks.
     */
    void (*on_refusal)(void *context, const char *path);
    /* The agent is to stop: a moment later no more tables are built. NULL: it is not. */
    bool (*is_ending)(void *context);
    void *context;
};
void unwind_publisher_set_host(struct unwind_publisher *publisher,
                               const struct unwind_publisher_host *host);

/* It has other mappings now. */
void unwind_publisher_note(struct unwind_publisher *publisher, struct process *process);
/* It is about to be freed. */
void unwind_publisher_forget(struct unwind_publisher *publisher, struct process *process);
/* What was noted of one process becomes true for the walk, or, when none waits, one table is built;
 * false when there is nothing to do. One at a time, since meanwhile events want to be read. */
bool unwind_publisher_publish(struct unwind_publisher *publisher);
/* What was noted of this one, before its turn. */
void unwind_publisher_publish_process(struct unwind_publisher *publisher, struct process *process);
/* Its tables that are not built yet: a stack that came with a sample is walked once. */
void unwind_publisher_build_process(struct unwind_publisher *publisher,
                                    const struct process *process);
/* Once a second: frees what nobody reads any more. */
void unwind_publisher_sweep(struct unwind_publisher *publisher, int64_t now_ns);

/* While it is closed no table is built: there is too little memory. They are afterwards. */
void unwind_publisher_close(struct unwind_publisher *publisher, bool is_closed);
/* Tables and mappings shall take so much memory at most; a shard they have always. */
void unwind_publisher_limit(struct unwind_publisher *publisher, uint64_t bytes);

void unwind_publisher_count(const struct unwind_publisher *publisher,
                            struct unwind_publisher_counts *ret_counts);

#endif
