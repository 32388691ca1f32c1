/*
 * table_builder: the unwind tables of all mapped binaries: which are built, when, and when a failed
 * build is tried again.
 *
 * A table is planned first: its chunks (unwind_maps) are reserved, so that the mappings of a
 * process can refer to them. Its rows follow later, one table at a time. A build that found no
 * space or could not open the file is tried again after a time that doubles with each failure;
 * table_builder.c has the table of states.
 *
 * Threads: one.
 */
#ifndef AGENT_UNWIND_TABLE_BUILDER_H
#define AGENT_UNWIND_TABLE_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct process;
struct process_mapping;
struct table_builder;
struct unwind_maps;
struct unwind_table_ref;

struct table_builder_host {
    /* There was no space, or no time, for the whole table of a file; called once per file. May be
     * NULL. */
    void (*on_refusal)(void *context, const char *path);
    /* Whether the agent is about to stop: 0.5 s later no more tables are built. May be NULL. */
    bool (*is_ending)(void *context);
    void *context;
};

struct table_builder_counts {
    uint32_t ready;   /* tables with rows, at present */
    uint64_t failed;  /* binaries without readable call frame information */
    uint64_t refused; /* tables without space, or not built for lack of memory; each once */
};

/* Builds the table of the vDSO too. The arguments are borrowed and outlive the builder. */
struct table_builder *table_builder_create(struct unwind_maps *maps,
                                           const struct binaries *binaries);
void table_builder_destroy(struct table_builder *builder);
void table_builder_set_host(struct table_builder *builder, const struct table_builder_host *host);

/* The chunks of the table for a mapping of a binary; plans the table if it has none yet.
 * chunk_count is 0 while none are reserved. Sets *needs_retry to true if the process should be
 * published again in a second, because the table may get chunks or more rules by then; otherwise
 * *needs_retry keeps its value. */
const struct unwind_table_ref *table_builder_request(struct table_builder *builder,
                                                     struct process *process,
                                                     const struct process_mapping *mapping,
                                                     bool *needs_retry);
/* The chunks of the table of the vDSO, which is the same in all processes. */
const struct unwind_table_ref *table_builder_vdso(const struct table_builder *builder);

/* Builds the table that was planned first. False: none is planned, or none may be built now. */
bool table_builder_build_next(struct table_builder *builder);
/* Builds the planned tables of this process now. */
void table_builder_build_process(struct table_builder *builder, const struct process *process);
/* To be called once a second: removes the tables of binaries that nothing has mapped for a while.
 */
void table_builder_sweep(struct table_builder *builder, int64_t now_ns);
/* While it is paused, for lack of memory, no table is built. */
void table_builder_pause(struct table_builder *builder, bool is_paused);

void table_builder_count(const struct table_builder *builder,
                         struct table_builder_counts *ret_counts);

#endif
