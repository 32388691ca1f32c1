/*
 * agent: the sampling engine of perfolio-agent, which runs all the time, and of `perfolio record`,
 * which runs once.
 *
 * It combines samples (agent/kernel/kernel_program.h) and process events
 * (agent/kernel/perf_sideband.h) in the order of time, keeps the running processes and their
 * mappings (agent/process/processes.h), and produces windows (agent/profile/window.h). Threads:
 * one.
 *
 *     agent_open(&options, &agent, err);
 *     agent_add_target(agent, process_id, err);      unless all processes are sampled
 *     agent_start(agent, err);
 *     while (…) agent_poll(agent, agent_is_settled(agent) ? 1000 : 200);
 *     agent_stop(agent);
 *     agent_take(agent, &result, err);
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/interpreter/interpreter.h"
#include "agent/kernel/event_kind.h"
#include "agent/profile/window.h"
#include "bpf/unwind_format.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct process_mapping;

/* The argument of on_binary; valid during the call. */
struct agent_binary {
    const char *build_id; /* hexadecimal; "": none */
    const char *path;     /* as the process sees it */
    uint32_t process_id;  /* a process that maps it, or one of its threads */
    const struct process_mapping *mapping;
};

enum { AGENT_FREQUENCY_MAX_HZ = 10000 };
#define AGENT_OFF_CPU_FRACTION_MIN 0.0001

struct agent_options {
    enum window_form form;
    uint32_t frequency_hz; /* 1 to AGENT_FREQUENCY_MAX_HZ */
    enum event_kind event; /* with WINDOW_FOR_OTLP: EVENT_CPU */
    /* The fraction of thread switches, from 0 (none) to 1, for which the off-CPU interval and its
     * stack are recorded. Values are scaled up to all switches. */
    double off_cpu_fraction;
    int64_t off_cpu_min_ns; /* shorter off-CPU intervals are left out */
    bool is_wall;           /* WINDOW_FOR_PEOPLE: CPU time and off-CPU time are one sample type */
    bool has_live_window;   /* agent_take_live is called */
    bool has_targets;       /* only agent_add_target's processes and their children */
    bool has_no_tables;     /* unwind by frame pointers only */
    bool has_bounded_loops; /* use the kernel program for Linux before 5.17 on any kernel */
    bool has_tallies;       /* equal samples are counted in the kernel; not with has_live_window */
    /* Without the right to load programs, sample only targets of this user, without kernel and
     * interpreted frames, instead of failing. */
    bool may_be_unprivileged;
    /* The caller drops CAP_PERFMON after agent_start. A process that keeps it then opens the perf
     * events of CPUs that come online later (agent/kernel/event_opener.h). */
    bool will_drop_rights;
    bool is_forced; /* run even on kernels that can hang (agent_check_kernel) */
    /* Limit of this process's resident memory and the kernel memory of unwind tables together.
     * Above it windows are taken early, one a second, and no tables are built. Tables may use three
     * quarters of (limit - resident memory). 0: no limit. */
    uint64_t memory_limit_bytes;
    const struct label_settings *label_settings; /* OTLP; borrowed */
    /* A binary was sampled or, with has_targets, mapped by a target, which may have ended when its
     * first sample is read. Called until it returns true, then not again as long as the binary is
     * known. This and the following callbacks may be NULL. */
    bool (*on_binary)(void *context, const struct agent *agent, const struct agent_binary *binary);
    /* The whole unwind table of a file did not fit, or building it took too long; called once per
     * file. */
    void (*on_refusal)(void *context, const char *path);
    /* Whether the agent is about to be stopped, so that long operations should end. */
    bool (*is_ending)(void *context);
    /* Names of a process were left out because its owner's quota of a window is used up. Called
     * once for each window and owner. */
    void (*on_left_out)(void *context, uint32_t process_id, const char *name);
    /* In the last second, sampling began on `count` CPUs that came online or returned. why: the
     * error for one online CPU on which it could not begin, which is tried again every second;
     * NULL: there is none. */
    void (*on_cpus)(void *context, uint32_t count, const char *why);
    void *context; /* passed to all callbacks */
};

struct agent_counts {
    uint64_t samples;
    uint64_t tallied;      /* samples counted in the kernel */
    uint64_t off_cpu;      /* recorded off-CPU intervals */
    uint64_t lost_samples; /* the ring buffer was full */
    uint64_t lost_events;  /* process events; /proc was scanned again */
    uint64_t unwanted;     /* dropped by relabelling rules */
    uint64_t foreign;      /* samples of processes outside of our PID namespace */
    uint64_t kernel_frames;
    uint64_t user_frames;
    uint64_t interpreted_frames;
    struct interpreter_counts interpreters;
    uint64_t restarted_cpus; /* CPUs that came online or returned, and are sampled since */
    uint32_t unsampled_cpus; /* online CPUs on which sampling could not begin */
    uint32_t processes;
    uint32_t mappings;
    uint64_t refused; /* sum of the next five, which had no space or no memory */
    uint64_t refused_processes;
    uint64_t refused_mappings;
    uint64_t refused_off_cpu;
    uint64_t refused_tables; /* unwind tables of binaries, and mappings of processes */
    uint64_t refused_names;  /* processes not all of whose JIT names are kept */
    uint64_t left_out_names; /* owners whose names did not all fit a window, summed over windows */
    uint64_t memory_bytes;   /* resident */
    bool is_short_of_memory;
    uint64_t short_seconds; /* seconds in which memory was above the limit */
    uint32_t binaries;
    uint32_t unread_binaries;
    uint32_t tables; /* unwind tables of binaries */
    uint64_t failed_tables;
    uint64_t shard_bytes;              /* kernel memory of unwind tables */
    uint64_t stops[UNWIND_STOP_COUNT]; /* ends of stacks, by reason */
    enum event_kind event;             /* the sampled event */
    bool has_bounded_loops;            /* the kernel program for Linux before 5.17 is used */
    bool is_unprivileged;              /* see agent_options.may_be_unprivileged */
    int loop_error; /* errno with which the kernel refused the program with bpf_loop; 0: none */
};

/* Errors: ERR_FORBIDDEN (the message names the rights to grant), ERR_UNSUPPORTED (the kernel lacks
 * a feature, or would hang), ERR_CONFLICT (/proc belongs to another PID namespace), ERR_IO. */
enum err_code agent_open(const struct agent_options *options, struct agent **ret_agent,
                         struct err *err) MUST_USE;
void agent_close(struct agent *agent); /* NULL is a no-op */

/* Samples a process and its children; before agent_start or later. Errors: ERR_TOO_LARGE (too many
 * targets); without privileges the codes of perf_sideband_watch. */
enum err_code agent_add_target(struct agent *agent, uint32_t process_id, struct err *err) MUST_USE;

/* Publishes the running processes, which may take a while, and then starts sampling; the first
 * window begins then. Errors: as kernel_program_open (agent/kernel/kernel_program.h). */
enum err_code agent_start(struct agent *agent, struct err *err) MUST_USE;
/* Ends sampling and the window, and reads the samples that are left; agent_take then returns them.
 */
void agent_stop(struct agent *agent);

/* Waits for input up to timeout_ms (less if an interpreter or a publication is due) and processes
 * it. */
void agent_poll(struct agent *agent, int timeout_ms);
/* True if for 5 s no process has begun, ended or mapped a file, and if no process runs scripts,
 * whose code may disappear at any time. The agent may then be polled less often. */
bool agent_is_settled(const struct agent *agent);
/* Whether the window should be taken before its time. */
bool agent_is_full(const struct agent *agent);
/* Takes the window and begins the next one. The caller frees *ret_result with window_result_fini.
 * Errors: ERR_TOO_LARGE (the window exceeded a limit of profiles and is lost). */
enum err_code agent_take(struct agent *agent, struct window_result *ret_result,
                         struct err *err) MUST_USE;
/* Takes the live window, which is independent of agent_take's. Errors: ERR_TOO_LARGE. */
enum err_code agent_take_live(struct agent *agent, struct window_result *ret_result,
                              struct err *err) MUST_USE;
void agent_count(const struct agent *agent, struct agent_counts *ret_counts);

/* Calls on_binary for all binaries sampled from now on, as if it had accepted none yet. */
void agent_report_binaries_again(struct agent *agent);
/* Opens the file of a binary: the one with that build id or, without build id, the same inode. -1:
 * it is gone or replaced. The caller closes it. */
int agent_open_binary(const struct agent *agent, const struct agent_binary *binary);

/* Appends why stacks ended before their root, "3 frame-pointer, 1 stack-read", the most frequent
 * first. Returns the number of such stacks. */
uint64_t agent_append_stops(const struct agent_counts *counts, struct buf *text);
/* Appends the binaries in which stacks ended before their root, "12 frame-pointer /lib/ld.so, 3
 * register /bin/x": the most frequent ones, at most limit. */
void agent_append_failure_sites(const struct agent *agent, uint32_t limit, struct buf *text);

/* ERR_UNSUPPORTED for Linux 5.19 to 6.0, which BPF programs at perf events can hang. release: as
 * from uname(2). */
enum err_code agent_check_kernel(const char *release, struct err *err) MUST_USE;

/* ERR_CONFLICT if /proc is missing or belongs to another PID namespace, where process numbers mean
 * other processes and samples would have no names. */
enum err_code agent_check_proc(struct err *err) MUST_USE;

static inline void agent_cleanup(struct agent **agent)
{
    agent_close(*agent);
}
#define agent_auto __attribute__((cleanup(agent_cleanup))) struct agent *

#endif
