/*
 * agent_internal: the state of the engine (agent.h) and the functions that its source files share:
 *
 *   agent.c          opens, starts, polls, stops; takes windows
 *   agent_input.c    samples and process events as they arrive, in the order of time
 *   agent_memory.c   the memory limit
 *   agent_cpus.c     CPUs that come online or return; the perf rings to wait for
 *   agent_counts.c   counts and unwind failures
 *
 * Only these files include it.
 */
#ifndef AGENT_AGENT_INTERNAL_H
#define AGENT_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "agent/symbols/jit_symbols.h"

#include <poll.h>

struct process;
struct process_event;
struct sample_event;
struct sample_tally;
struct stack_copy;

/* A sample that is kept for the next window (agent_input.c). */
struct deferred_sample {
    struct deferred_sample *next;
    uint8_t event[]; /* a struct sample_event */
};

struct agent {
    struct agent_options options;
    struct event_opener *opener; /* NULL: perf events are opened by this process */
    struct label_source *label_source;
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct perf_sideband *sideband;
    struct user_unwinder *unwinder;     /* NULL: stacks are unwound by frame pointers only */
    struct kernel_program *program;     /* NULL: unprivileged */
    struct unwind_publisher *publisher; /* NULL: frame pointers only, no interpreted frames */
    struct interpreters *interpreters;
    struct jit_budget jit_budget;
    struct window *window;
    struct window *live;     /* NULL: no live display */
    struct off_cpu *off_cpu; /* NULL: off-CPU intervals are not recorded */
    struct unwind_failures *failures;

    struct pollfd *polled; /* the ring buffer of samples, then the perf rings */
    uint32_t polled_count;
    int64_t swept_ns;             /* when the last sweep began */
    int64_t gathered_ns;          /* when agent_poll last found process events */
    int64_t event_ns;             /* when the last process event was read */
    uint32_t first_target;        /* process number; 0: there is no target yet */
    bool is_publishing_due;       /* process changes are left that are not published */
    bool has_stopped;             /* agent_stop was called */
    struct sample_event *unwound; /* buffer for a sample whose stack was unwound here */

    /* CPUs. */
    uint32_t *sampled_cpus; /* ascending */
    uint32_t sampled_cpu_count;
    uint32_t sampled_cpu_capacity;
    int64_t cpus_checked_ns; /* when each sampled CPU was last checked */
    int64_t suspended_ns;    /* how long the host was suspended since its start */
    uint64_t restarted_cpus; /* CPUs on which sampling began after agent_start */
    uint32_t unsampled_cpus; /* online CPUs on which sampling failed to begin, in the last sweep */

    uint64_t *reported_serials; /* [binary number]: serial that on_binary accepted; 0: none */
    uint32_t reported_count;

    /* Samples that the kernel counts (bpf/tally.bpf.h). */
    bool is_collecting; /* the counts of ended_phase are being read */
    uint32_t ended_phase;
    struct deferred_sample *deferred;
    struct deferred_sample **deferred_end;

    /* The memory limit. */
    uint64_t memory_bytes;   /* resident memory when it was last measured */
    uint64_t short_seconds;  /* number of seconds above the limit */
    bool is_short_of_memory; /* above the limit when it was last measured */
    bool is_early_due;       /* take the window early; set once in each second above the limit */

    /* Counts for agent_count. */
    uint64_t lost_events;
    uint64_t left_out_names;
    uint64_t unprivileged_samples;
    uint64_t stops[UNWIND_STOP_COUNT];
};

/* ---- agent_input.c ---- */

/* Callbacks; context is the struct agent. */
void agent_input_event(void *context, const struct process_event *event);
void agent_input_sample(void *context, const struct sample_event *event);
void agent_input_unprivileged_sample(void *context, struct sample_event *event,
                                     const struct stack_copy *copy);
void agent_input_off_cpu(void *context, const struct sample_event *event, int64_t duration_ns);
void agent_input_tally(void *context, uint64_t key, const struct sample_tally *tally);
/* Adds the deferred samples; to be called after a window was taken. */
void agent_input_deferred(struct agent *agent);

/* ---- agent_memory.c ---- */

/* The memory for names of JIT code, and as much again for names of interpreted code. */
uint64_t agent_memory_name_bytes(const struct agent *agent);
/* Adapts the memory of unwind tables to the limit. */
void agent_memory_limit_tables(struct agent *agent);
/* To be called once a second: measures the memory and acts if it exceeds the limit. */
void agent_memory_watch(struct agent *agent);

/* ---- agent_cpus.c ---- */

/* To be called when sampling has begun on the online CPUs. */
void agent_cpus_begin(struct agent *agent);
/* To be called once a second: begins sampling on CPUs that came online or returned. The perf rings
 * may change. */
void agent_cpus_watch(struct agent *agent);
/* Lists the descriptors that agent_poll waits for; again after the perf rings have changed. */
void agent_cpus_prepare_polling(struct agent *agent);

#endif
