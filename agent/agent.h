/*
 * agent: samples programs: the engine of perfolio-agent, which runs all the time, and of
 * `perfolio record`, which runs once.
 *
 * It joins what the kernel tells: samples (agent/kernel/kernel_program.h) and what processes do
 * (agent/kernel/perf_sideband.h), in the order of time, and keeps who runs and what is mapped
 * (agent/process/processes.h); what comes out is a window (agent/profile/window.h). Threads: one.
 *
 *     agent_open(&options, &agent, err);
 *     agent_add_target(agent, process_id, err);      where not all are sampled
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
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct process_mapping;

/* A binary, while it is told of. */
struct agent_binary {
    const char *build_id; /* hexadecimal; "": it has none */
    const char *path;     /* as the process has it */
    uint32_t process_id;  /* one that has it mapped, or a thread of it */
    const struct process_mapping *mapping;
};

enum { AGENT_FREQUENCY_MAX_HZ = 10000 };
#define AGENT_OFF_CPU_SHARE_MIN 0.0001

struct agent_options {
    enum window_form form;
    uint32_t frequency_hz; /* 1 to AGENT_FREQUENCY_MAX_HZ */
    enum event_kind event; /* of OTLP EVENT_CPU */
    /* Of all switches of threads this part, from 0 (none) to 1, is followed: how long they wait,
     * and where. What is found stands for all. */
    double off_cpu_share;
    int64_t off_cpu_min_ns; /* shorter waits are left out */
    bool is_wall;           /* for people: processor time and waits are of one type */
    bool has_live_window;   /* agent_take_live is called */
    bool has_targets;       /* only processes that are named, and their children */
    bool has_no_tables;     /* stacks are walked by frame pointers alone */
    bool has_bounded_loops; /* the kernel program for Linux before 5.17, wherever it runs */
    bool has_tallies;       /* equal samples are counted in the kernel; not with has_live_window */
    /* Without the right to load programs: only what is named is sampled, of this user, without the
     * kernel's frames and those of interpreters. */
    bool may_be_unprivileged;
    bool is_forced; /* also on kernels that are known to hang (agent_check_kernel) */
    /* Resident memory of this process and the kernel's of unwind tables: beyond it windows are
     * taken early, one in a second, and no new tables are built, until it is less again; tables get
     * three quarters of what it leaves beside resident memory. 0: no limit. */
    uint64_t memory_limit_bytes;
    const struct label_settings *label_settings; /* OTLP; borrowed */
    /* This binary was sampled, or, with has_targets, one of them mapped it, which may be gone when
     * its first sample is read. Told until it returns true, then not again while the binary is
     * known. NULL: nobody asks. */
    bool (*on_binary)(void *context, const struct agent *agent, const struct agent_binary *binary);
    /* There was no room, or no time, for all of this file's unwind table; once for each. NULL:
     * nobody asks. */
    void (*on_refusal)(void *context, const char *path);
    /* The agent is about to be stopped: what takes long ends soon. NULL: nobody tells. */
    bool (*is_ending)(void *context);
    /* Not all names of this process's code fit a window; once for each window and owner. NULL:
     * nobody asks. */
    void (*on_left_out)(void *context, uint32_t process_id, const char *name);
    void *context;
};

struct agent_counts {
    uint64_t samples;
    uint64_t tallied;      /* of them, counted in the kernel */
    uint64_t off_cpu;      /* of threads, chosen to be followed */
    uint64_t lost_samples; /* the ring was full */
    uint64_t lost_events;  /* of processes: /proc was read again */
    uint64_t unwanted;     /* left out by rules */
    uint64_t foreign;      /* of processes outside of our PID namespace */
    uint64_t kernel_frames;
    uint64_t user_frames;
    uint64_t interpreted_frames;
    struct interpreter_counts interpreters;
    uint32_t processes;
    uint32_t mappings;
    uint64_t refused; /* all of these, that did not fit, or for want of memory: */
    uint64_t refused_processes;
    uint64_t refused_mappings;
    uint64_t refused_waits;
    uint64_t refused_tables; /* for walks: of binaries, or a process's mappings among them */
    uint64_t refused_names;  /* processes: not all names of their code are kept */
    uint64_t left_out_names; /* owners of processes of which not all fit a window, by window */
    uint64_t memory_bytes;   /* resident */
    bool is_short_of_memory;
    uint64_t short_seconds; /* looks, one a second, that found more than the limit */
    uint32_t binaries;
    uint32_t unread_binaries;
    uint32_t tables; /* of binaries, for walks without frame pointers */
    uint64_t failed_tables;
    uint64_t shard_bytes;              /* memory taken for them */
    uint64_t stops[UNWIND_STOP_COUNT]; /* of walks, by reason */
    enum event_kind event;             /* what samples are taken by */
    bool has_bounded_loops;            /* the kernel program is that for Linux before 5.17 */
    bool is_unprivileged;              /* as agent_options.may_be_unprivileged says */
    int loop_error; /* since the kernel refused the other one, with this errno; 0: it did not */
};

/* Handles: ERR_FORBIDDEN (the message says what to grant), ERR_UNSUPPORTED (the kernel cannot, or
 * would hang), ERR_CONFLICT (/proc is another PID namespace's), ERR_IO. */
enum err_code agent_open(const struct agent_options *options, struct agent **ret_agent,
                         struct err *err) MUST_USE;
void agent_close(struct agent *agent); /* NULL is a no-op */

/* With its children; before the start or later. Handles: ERR_TOO_LARGE. */
enum err_code agent_add_target(struct agent *agent, uint32_t process_id, struct err *err) MUST_USE;

enum err_code agent_start(struct agent *agent, struct err *err) MUST_USE;
void agent_stop(struct agent *agent);

/* Waits up to that long, takes what has come. */
void agent_poll(struct agent *agent, int timeout_ms);
/* No process has begun, mapped anything or ended for seconds, and none runs scripts, whose code may
 * be gone at any time: there is no hurry to look at what samples name. */
bool agent_is_settled(const struct agent *agent);
/* There is so much that it should be taken before its time. */
bool agent_is_full(const struct agent *agent);
/* Handles: ERR_TOO_LARGE. */
enum err_code agent_take(struct agent *agent, struct window_result *ret_result,
                         struct err *err) MUST_USE;
/* What came since the last time, while agent_take goes on from its own. Handles: ERR_TOO_LARGE. */
enum err_code agent_take_live(struct agent *agent, struct window_result *ret_result,
                              struct err *err) MUST_USE;
void agent_count(const struct agent *agent, struct agent_counts *ret_counts);

/* on_binary is asked of all that is sampled from now on, as if it had taken none yet. */
void agent_tell_binaries_again(struct agent *agent);
/* The binary's file, of exactly that build id, or the very one where there is none; -1: it is gone,
 * or another. The caller closes it. */
int agent_open_binary(const struct agent *agent, const struct agent_binary *binary);

/* Why walks ended before the root of their stack: "3 frame-pointer, 1 stack-read"; appended, the
 * most frequent first. Returns how many. */
uint64_t agent_append_stops(const struct agent_counts *counts, struct buf *text);
/* Where: "12 frame-pointer /lib/ld.so, 3 register /bin/x", the most frequent, at most limit. */
void agent_append_stop_places(const struct agent *agent, uint32_t limit, struct buf *text);

/* ERR_UNSUPPORTED for versions of Linux on which programs at perf events can hang the machine:
 * 5.19 to 6.0. release as of uname(2). */
enum err_code agent_check_kernel(const char *release, struct err *err) MUST_USE;

/* ERR_CONFLICT where /proc is another PID namespace's, or is not there: numbers of processes
 * mean others there, and nothing that is sampled would have a name. */
enum err_code agent_check_proc(struct err *err) MUST_USE;

static inline void agent_cleanup(struct agent **agent)
{
    agent_close(*agent);
}
#define agent_auto __attribute__((cleanup(agent_cleanup))) struct agent *

#endif
