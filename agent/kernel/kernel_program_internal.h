/*
 * kernel_program_internal: the loaded BPF programs and the functions that the source files of
 * kernel_program share:
 *
 *   kernel_program_load.c       chooses, configures and loads one of the two forms of the programs
 *   kernel_program_memory.c     the memory of unwind tables and mapping lists
 *   kernel_program_sampling.c   attaches the programs to the events of each CPU
 *   kernel_program.c            opens and closes; samples, targets, processes, tallies, counts
 *
 * kernel_program.c calls the other files, which call only kernel_program_load.c. No other file
 * includes this header.
 */
#ifndef AGENT_KERNEL_KERNEL_PROGRAM_INTERNAL_H
#define AGENT_KERNEL_KERNEL_PROGRAM_INTERNAL_H

#include "agent/kernel/kernel_features.h"
#include "agent/kernel/kernel_program.h"
#include "bpf/shared.h"

#include <stddef.h>

struct bpf_link;
struct bpf_object;
struct ring_buffer;

/* Programs that are not attached per CPU: three for processes, one for thread switches. */
enum { KERNEL_PROGRAM_LINKS_MAX = 4 };

/* The window through which shards are written, one piece of one shard at a time. It stays mapped
 * until another piece is written. Whole shards would be most of the agent's resident memory. */
struct shard_window {
    uint8_t *bytes; /* NULL: none is mapped */
    uint32_t shard;
    uint32_t offset; /* a multiple of SHARD_WINDOW_BYTES */
};

/* The perf event of a CPU with the program attached to it. */
struct cpu_sampler {
    uint32_t cpu;
    int fd;                /* owned by link */
    struct bpf_link *link; /* NULL: there is none at present */
};

struct kernel_program {
    struct arena *arena;
    struct kernel_program_options options;
    struct kernel_features features;
    struct bpf_object *object;
    struct ring_buffer *ring;
    uint32_t *cpus;
    uint32_t cpu_count;
    struct cpu_sampler *samplers;
    uint32_t sampler_count;
    uint32_t sampler_capacity;
    /* The links of the programs that are not attached per CPU. */
    struct bpf_link *links[KERNEL_PROGRAM_LINKS_MAX];
    uint32_t link_count;
    int targets_fd;
    int processes_fd;
    struct unwind_rule *rules;   /* mapped memory of the map unwind_rules */
    struct unwind_chunk *chunks; /* mapped memory of the map unwind_chunks */
    struct shard_window window;
    int shard_fds[UNWIND_SHARD_COUNT];   /* -1: there is no such shard */
    uint8_t *shards[UNWIND_SHARD_COUNT]; /* NULL: not mapped for reading */
    uint32_t tally_phase;
    struct kernel_program_counts received; /* only its counts of samples and frames are used */
    int bpf_loop_error; /* errno with which the program with bpf_loop was refused; 0: it was not */
};

/* ---- kernel_program_load.c ---- */

/* Sets an error for a call that failed with this errno, which may be negative. */
enum err_code kernel_program_fail(int error, const char *what, struct err *err);
/* The descriptor of a map. */
int kernel_program_map(const struct kernel_program *program, const char *name);
/* Loads the program with bpf_loop, or the bounded one if the verifier refuses that: different
 * versions of Linux accept different programs. Errors: as kernel_program_open. */
enum err_code kernel_program_load(struct kernel_program *program, struct err *err) MUST_USE;
/* The maps of tallies, by phase. */
extern const char *const kernel_program_tally_maps[2];
/* The program that runs at thread switches; it is loaded only for off-CPU profiling. */
#define KERNEL_PROGRAM_AT_SWITCH "note_switch"

/* ---- kernel_program_memory.c ---- */

/* Maps the rules and chunks of the loaded program. Errors: as kernel_program_open. */
enum err_code kernel_program_open_memory(struct kernel_program *program, struct err *err) MUST_USE;
/* Also closes all shards. */
void kernel_program_close_memory(struct kernel_program *program);

#endif
