/*
 * kernel_program: what runs in the kernel, loaded and attached: the door to libbpf.
 *
 * One program takes a sample at every tick of a perf event of each CPU and puts it into a ring,
 * which kernel_program_read empties. The event is the processor's cycle counter where there is one,
 * which ticks in code that has interrupts off, too, else a timer of the kernel.
 *
 * Threads: one. What comes out of the ring was written by our own program and is checked for its
 * size alone; names and addresses in it are those of any process.
 */
#ifndef AGENT_KERNEL_KERNEL_PROGRAM_H
#define AGENT_KERNEL_KERNEL_PROGRAM_H

#include "agent/kernel/event_kind.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct kernel_program;
struct sample_event;

struct kernel_program_options {
    uint32_t frequency_hz; /* of each CPU */
    enum event_kind event;
    bool has_targets; /* only what kernel_program_add_target names, and its children */
    /* Of all switches of threads this part, from 0 (none) to 1, is told, too: SAMPLE_WAIT. */
    double off_cpu_share;
    bool has_no_tables; /* stacks are walked by frame pointers alone */
    bool
        has_bounded_loops; /* the program for kernels before 5.17, also where the other could run */
    bool has_tallies;      /* samples that are like one before them are counted in the kernel */
    uint32_t ring_bytes;   /* 0: by CPUs and frequency */
    void (*on_sample)(void *context, const struct sample_event *event);
    void *context;
};

/*
 * Loads the programs; nothing is sampled yet. Handles: ERR_FORBIDDEN (says which right is missing),
 * ERR_UNSUPPORTED (the kernel cannot: says what), ERR_INTERNAL.
 */
enum err_code kernel_program_open(const struct kernel_program_options *options,
                                  struct kernel_program **ret_program, struct err *err) MUST_USE;
void kernel_program_close(struct kernel_program *program); /* NULL is a no-op */

/* Sampling begins on all CPUs. Handles: as kernel_program_open. */
enum err_code kernel_program_start(struct kernel_program *program, struct err *err) MUST_USE;
/* It ends; what is in the ring can still be read. */
void kernel_program_stop(struct kernel_program *program);

/* Until its last thread ends. *ret_is_new is false where it was named before. Handles:
 * ERR_TOO_LARGE (more than SAMPLE_TARGETS_MAX; before Linux 6.1 more than 16,384), ERR_IO. */
enum err_code kernel_program_add_target(struct kernel_program *program, uint32_t process_id,
                                        bool *ret_is_new, struct err *err) MUST_USE;

/* Where tables and mappings go for the walk: memory that the programs see. Of the program, to be
 * given to unwind_maps_create. */
struct unwind_memory;
void kernel_program_unwind_memory(struct kernel_program *program, struct unwind_memory *ret_memory);
/* The same, to be read, for a walk in this process; NULL: there is none of this number. What
 * is read or written is in this process's memory until kernel_program_unmap_shards. */
struct unwind_memory_reader;
void kernel_program_tables(struct kernel_program *program, struct unwind_memory_reader *ret_tables);
void kernel_program_unmap_shards(struct kernel_program *program);
/* The mappings of a process from now on, and how an interpreter's frames lie in it; started_ns as
 * in struct sample_event, 0: not known. False when there are too many processes. */
struct interpreter_process;
struct unwind_run;
bool kernel_program_put_process(struct kernel_program *program, uint32_t process_id,
                                uint64_t started_ns, const struct unwind_run *run,
                                const struct interpreter_process *interpreter);
/* It has ended: if those are still its mappings in the kernel, nobody has its number by now. */
void kernel_program_remove_process(struct kernel_program *program, uint32_t process_id,
                                   const struct unwind_run *run);

/*
 * With has_tallies: from now on samples are counted anew, and each stack is sent once more. Returns
 * the turn that has ended, the lowest bit of its keys. A moment later, when all of its first
 * samples were read, what was counted after them can be taken.
 */
uint32_t kernel_program_turn_tallies(struct kernel_program *program);
struct sample_tally;
void kernel_program_take_tallies(struct kernel_program *program, uint32_t turn,
                                 void (*take)(void *context, uint64_t key,
                                              const struct sample_tally *tally),
                                 void *context);

/* Readable once the ring is half full. */
int kernel_program_fd(const struct kernel_program *program);
/* Gives all that is in the ring to on_sample, in about the order of time. */
void kernel_program_read(struct kernel_program *program);

struct kernel_program_counts {
    uint64_t samples; /* ticks: given to on_sample, tallied or lost */
    uint64_t tallied; /* counted in the kernel */
    uint64_t lost;    /* samples and waits: the ring was full */
    uint64_t off_cpu; /* that were chosen */
    uint64_t refused_waits;
    uint64_t foreign;     /* samples of processes that our PID namespace does not have */
    uint64_t user_frames; /* of what was given to on_sample, as the next two */
    uint64_t kernel_frames;
    uint64_t interpreted_frames;
};

/* Of all CPUs, since the start. */
void kernel_program_count(const struct kernel_program *program,
                          struct kernel_program_counts *ret_counts);
/* Once started; of EVENT_CPU, CYCLES or CPU_CLOCK. */
enum event_kind kernel_program_event(const struct kernel_program *program);
/* The program is that with bpf_loop. */
bool kernel_program_has_loop(const struct kernel_program *program);
/* It would be, but the kernel refused it; why, as errno has it, 0: it did not. */
int kernel_program_loop_error(const struct kernel_program *program);
uint32_t kernel_program_cpus(const struct kernel_program *program);

#endif
