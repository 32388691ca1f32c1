/*
 * unwind_publisher: gives the unwinder what it needs: an unwind table for each mapped binary, and
 * for each process the list of its mappings (bpf/unwind_format.h) and the memory layout of its
 * interpreter. The unwinder is the kernel program, or user_unwinder in this process.
 *
 * A changed process is queued, so that the many mappings of a starting program are published once.
 * A process is published before its missing tables are built: its mapping list refers to the
 * reserved chunks of each such table. Code of common libraries, whose tables exist, can therefore
 * be unwound from the program's first sample on, also while the table of a large new library is
 * being built. Code without a table (not built yet, JIT code, no space, an unreadable file) is
 * unwound by frame pointers.
 *
 * A process is published again a second later while one of its tables may still improve or there
 * was no space for it; unwind_publisher.c has the table of states. table_builder decides which
 * tables are built and when a failed build is tried again. Threads: one.
 */
#ifndef AGENT_UNWIND_UNWIND_PUBLISHER_H
#define AGENT_UNWIND_UNWIND_PUBLISHER_H

#include "agent/unwind/table_builder.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct interpreters;
struct kernel_program;
struct process;
struct unwind_publisher;

struct unwind_publisher_counts {
    uint32_t tables;
    uint64_t failed_tables;  /* binaries without call frame information */
    uint64_t table_bytes;    /* size of all table rows and mapping lists */
    uint64_t shard_bytes;    /* memory of the shards that contain rows and mapping lists */
    uint64_t refused;        /* processes for which there was no space, each once */
    uint64_t refused_tables; /* tables without space, or not built for lack of memory; each once */
};

/* program NULL: the unwinder is user_unwinder in this process, which reads `memory` and the mapping
 * lists in struct process. All arguments are borrowed and outlive the publisher. */
struct unwind_memory;
struct unwind_publisher *unwind_publisher_create(struct kernel_program *program,
                                                 const struct unwind_memory *memory,
                                                 const struct binaries *binaries,
                                                 struct interpreters *interpreters);
void unwind_publisher_destroy(
    struct unwind_publisher *publisher); /* NULL is a no-op; before the program */

void unwind_publisher_set_host(struct unwind_publisher *publisher,
                               const struct table_builder_host *host);

/* Queues a process whose mappings have changed. */
void unwind_publisher_enqueue(struct unwind_publisher *publisher, struct process *process);
/* The process is about to be freed. */
void unwind_publisher_forget(struct unwind_publisher *publisher, struct process *process);
/* Publishes one queued process or, if the queue is empty, builds one table. False: there was
 * nothing to do. One step at a time, so that the caller can read events in between. */
bool unwind_publisher_publish(struct unwind_publisher *publisher);
/* Publishes this process now if it is queued. */
void unwind_publisher_publish_process(struct unwind_publisher *publisher, struct process *process);
/* Builds the planned tables of this process now. A copied stack is unwound only once, so its tables
 * cannot wait until those planned before them are built. */
void unwind_publisher_build_process(struct unwind_publisher *publisher,
                                    const struct process *process);
/* To be called once a second: frees unused tables and queues the processes that are to be published
 * again. */
void unwind_publisher_sweep(struct unwind_publisher *publisher, int64_t now_ns);

/* While it is paused, for lack of memory, no table is built. */
void unwind_publisher_pause(struct unwind_publisher *publisher, bool is_paused);
/* Limits the memory of tables and mapping lists; one shard is always allowed. */
void unwind_publisher_limit(struct unwind_publisher *publisher, uint64_t bytes);

void unwind_publisher_count(const struct unwind_publisher *publisher,
                            struct unwind_publisher_counts *ret_counts);

#endif
