/*
 * kernel_program: loads and attaches the BPF programs (bpf/); the wrapper of libbpf.
 *
 * One program takes a sample at every tick of a perf event on each CPU and writes it to a ring
 * buffer, which kernel_program_read empties. CPU time is sampled by a timer of the kernel
 * (the reason is in event_kind.h), other events by their counters.
 *
 * Threads: one. The ring buffer contains what our own program wrote, so only sizes are checked;
 * names and addresses in it come from any process.
 */
#ifndef AGENT_KERNEL_KERNEL_PROGRAM_H
#define AGENT_KERNEL_KERNEL_PROGRAM_H

#include "agent/kernel/event_kind.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct event_opener;
struct kernel_program;
struct sample_event;

struct kernel_program_options {
    uint32_t frequency_hz; /* samples per second on each CPU */
    enum event_kind event;
    bool has_targets; /* sample only processes of kernel_program_add_target and their children */
    /* The fraction of thread switches, from 0 to 1, that is recorded; 0: none. */
    double off_cpu_fraction;
    bool has_no_tables;     /* unwind by frame pointers only */
    bool has_bounded_loops; /* use the program without bpf_loop, for kernels before 5.17, even if
                               this kernel has bpf_loop */
    bool has_tallies;       /* equal samples are counted in the kernel */
    uint32_t ring_bytes;    /* 0: chosen by CPUs and frequency */
    struct event_opener *opener; /* opens the perf events; borrowed; NULL: this process does */
    /* Receives each record of the ring buffer, during kernel_program_read; event is borrowed. */
    void (*on_sample)(void *context, const struct sample_event *event);
    void *context; /* passed to on_sample */
};

/*
 * Loads the programs; nothing is sampled yet. Errors: ERR_FORBIDDEN (the message names the missing
 * capabilities), ERR_UNSUPPORTED (the message names what the kernel lacks), ERR_INTERNAL.
 */
enum err_code kernel_program_open(const struct kernel_program_options *options,
                                  struct kernel_program **ret_program, struct err *err) MUST_USE;
void kernel_program_close(struct kernel_program *program); /* NULL is a no-op */

/* Starts sampling on the CPUs that were online at kernel_program_open. Errors: as
 * kernel_program_open. */
enum err_code kernel_program_start(struct kernel_program *program, struct err *err) MUST_USE;
/* Starts sampling on a CPU that came online later, or again on one that has returned. Errors:
 * ERR_NOT_FOUND (it is offline), and as kernel_program_open. */
enum err_code kernel_program_start_cpu(struct kernel_program *program, uint32_t cpu,
                                       struct err *err) MUST_USE;
/* False: sampling was not started on the CPU, or the CPU was offline since. A call interrupts the
 * CPU. */
bool kernel_program_samples_cpu(const struct kernel_program *program, uint32_t cpu);
/* Stops sampling; the ring buffer can still be read. */
void kernel_program_stop(struct kernel_program *program);

/* Samples a process until its last thread ends. *ret_is_new: false if it was a target before.
 * Errors: ERR_TOO_LARGE (more than SAMPLE_TARGETS_MAX; before Linux 6.1 more than 16,384), ERR_IO.
 */
enum err_code kernel_program_add_target(struct kernel_program *program, uint32_t process_id,
                                        bool *ret_is_new, struct err *err) MUST_USE;

/* The memory from which the BPF programs read unwind tables and mapping lists (struct
 * unwind_mapping_list: the published mappings of a process); pass it to unwind_maps_create.
 * `program` owns the memory.
 */
struct unwind_memory;
void kernel_program_unwind_memory(struct kernel_program *program, struct unwind_memory *ret_memory);
/* Gives user_unwinder read access to this memory. Shards that are read or written stay mapped in
 * this process until kernel_program_unmap_shards. */
struct unwind_memory_reader;
void kernel_program_tables(struct kernel_program *program, struct unwind_memory_reader *ret_tables);
void kernel_program_unmap_shards(struct kernel_program *program);
/* Publishes the mappings of a process and the layout of its interpreter. started_ns as in struct
 * sample_event, 0: not known. False: there are too many processes. */
struct interpreter_process;
struct unwind_mapping_list;
bool kernel_program_put_process(struct kernel_program *program, uint32_t process_id,
                                uint64_t started_ns, const struct unwind_mapping_list *list,
                                const struct interpreter_process *interpreter);
/* Removes a process that has ended, unless another mapping list was published for its number
 * meanwhile: then the number belongs to a new process. */
void kernel_program_remove_process(struct kernel_program *program, uint32_t process_id,
                                   const struct unwind_mapping_list *list);

/*
 * With has_tallies: ends the phase of the tallies and begins the next one, in the other of two maps
 * (bpf/tally.bpf.h). From then on the first sample of each stack is sent again. Returns the phase
 * that has ended, 0 or 1, which is the lowest bit of its keys. Call kernel_program_read first and
 * then kernel_program_take_tallies, because the ring may still contain samples of that phase.
 */
uint32_t kernel_program_switch_tallies(struct kernel_program *program);
struct sample_tally;
/* Calls take for each key with counts in the map of a phase that has ended, and empties the map. */
void kernel_program_take_tallies(struct kernel_program *program, uint32_t phase,
                                 void (*take)(void *context, uint64_t key,
                                              const struct sample_tally *tally),
                                 void *context);

/* A descriptor to poll. It becomes readable once a CPU has written its share of the ring since it
 * last woke the agent; the ring is then at most half full. Borrowed. */
int kernel_program_fd(const struct kernel_program *program);
/* Passes all records of the ring buffer to on_sample, approximately in the order of time. */
void kernel_program_read(struct kernel_program *program);

struct kernel_program_counts {
    uint64_t samples; /* all ticks, whether passed to on_sample, tallied or lost */
    uint64_t tallied; /* ticks that were counted in the kernel */
    uint64_t lost;    /* ticks and off-CPU intervals for which the ring buffer had no space */
    uint64_t off_cpu; /* off-CPU intervals that were selected for recording */
    uint64_t refused_off_cpu; /* off-CPU intervals for which the map had no space */
    uint64_t foreign;         /* ticks of processes outside of our PID namespace */
    uint64_t user_frames;     /* this and the next two: frames of the records passed to on_sample */
    uint64_t kernel_frames;
    uint64_t interpreted_frames;
};

/* Sums over all CPUs since the start. */
void kernel_program_count(const struct kernel_program *program,
                          struct kernel_program_counts *ret_counts);
/* Whether the program with bpf_loop is loaded. */
bool kernel_program_has_loop(const struct kernel_program *program);
/* The errno with which the kernel refused the program with bpf_loop; 0: it did not. */
int kernel_program_loop_error(const struct kernel_program *program);

#endif
