/*
 * window: aggregates samples until they are taken, as one profile.
 *
 * Samples with equal stacks and labels are added up. Addresses are ELF addresses, and mappings
 * start at the ELF address of their first byte, so that equal code has equal addresses in all
 * processes; names are found later, by build id. Functions of the kernel, of the vDSO and of JIT
 * code are named here and have no address: the address would reveal where this kernel is loaded,
 * and has no meaning on other hosts. JIT code without a name is looked up once more when the window
 * is taken.
 *
 * Sample types: `samples` and, for people, the event: cpu in nanoseconds, or the counted events
 * since the last sample. Off-CPU intervals have the type off_cpu, in nanoseconds, and for people
 * also the type waits, their number. With WINDOW_OFF_CPU_AS_WALL they are added to CPU time
 * instead, and the sum has the type wall.
 *
 * Labels of a sample: thread, process (names) and pid for people; thread.name and the number of the
 * process's label set for OTLP. Names that processes chose are cut after 512 bytes. For OTLP, the
 * window also contains profiles without samples: for processes that ran earlier and are idle now
 * (idle_times.h; not for kernel threads), and for sample types of which a resource has no samples.
 *
 * For OTLP the names, paths, labels, functions, locations and mappings of all owners
 * (process_owner) together are limited to 6 MiB, of which each owner has a quota (window_quota.h).
 * Names that exceed the quota are replaced by WINDOW_NAME_LEFT_OUT. Memory is bounded:
 * window_is_full reports when the window has to be taken before its time. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_H
#define AGENT_PROFILE_WINDOW_H

#include "agent/kernel/event_kind.h"
#include "lib/base/err_code.h"
#include "lib/profile/otlp/otlp_encode.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct jit_budget;
struct kernel_symbols;
struct label_source;
struct process;
struct process_mapping;
struct processes;
struct profile;
struct sample_event;
struct sample_tally;
struct window;

/* The function of all JIT code without a name. */
#define WINDOW_CODE_WITHOUT_NAME "[code without a name]"

/* The function of code whose name or location exceeds its owner's quota, here or in jit_symbols,
 * and the service of processes whose labels exceed it. */
#define WINDOW_NAME_LEFT_OUT "[name left out]"

enum window_form { WINDOW_FOR_PEOPLE, WINDOW_FOR_OTLP };

/* How off-CPU time is shown: not at all, as a type of its own, or in one type with CPU time.
 */
enum window_off_cpu { WINDOW_OFF_CPU_NONE, WINDOW_OFF_CPU_SEPARATE, WINDOW_OFF_CPU_AS_WALL };

struct window_options {
    enum window_form form;
    uint32_t frequency_hz;
    enum event_kind event;
    enum window_off_cpu off_cpu;
    double off_cpu_fraction; /* recorded fraction of the intervals: each stands for 1 /
                                off_cpu_fraction */
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct jit_budget *jit_budget; /* outlives all processes */
    struct label_source *label_source;
    /* An address in a binary is new to this window. on_binary and on_left_out may be NULL. */
    void (*on_binary)(void *context, const struct process *process,
                      const struct process_mapping *mapping);
    /* Names of this process are left out; once for each window and owner. */
    void (*on_left_out)(void *context, uint32_t process_id);
    void *context;
};

struct window *window_create(const struct window_options *options);
void window_destroy(struct window *window); /* NULL is a no-op */

/* Adds a sample. Samples of processes that a relabelling rule drops are counted and left out. */
void window_add(struct window *window, struct process *process, const struct sample_event *event);
/* Adds counts to the sample of this window that has the key. If window_add dropped or never got
 * that sample, nothing is added; counts of a dropped one count as window_unwanted. */
void window_add_tally(struct window *window, uint64_t key, const struct sample_tally *tally);
/* Adds an off-CPU interval: where the thread left its CPU, and for how long. */
void window_add_off_cpu(struct window *window, struct process *process,
                        const struct sample_event *event, int64_t duration_ns);
/* Samples that relabelling rules dropped, in all windows. */
uint64_t window_unwanted(const struct window *window);
bool window_has_samples(const struct window *window);
/* Whether the window should be taken before its time: it has too many entries, a limit of the
 * profile was exceeded, or three quarters of the quotas for text are used and the window began more
 * than 10 s ago. */
bool window_is_full(const struct window *window);

/* Set the start or end of the window to now. By default a window lasts from its creation, or from
 * when the last one was taken, until it is taken. If the wall clock is set or the machine suspended
 * meanwhile, the window is as long as the monotonic clock ran (window_time.h). */
void window_begin_time(struct window *window);
void window_end_time(struct window *window);

/* A window that was taken; the caller frees it with window_result_fini. */
struct window_result {
    struct profile *profile;
    const struct otlp_resource *resources; /* OTLP; in the profile's arena */
    uint32_t resource_count;
    int64_t start_ns; /* wall clock */
    int64_t end_ns;
    uint64_t samples;
};

/* Takes the content and starts the next window. For people, the first mapping is the program of the
 * process main, or the first one seen if main is NULL or has none. Errors: ERR_TOO_LARGE (the
 * window exceeded a limit of profiles; its content is lost, and the next window starts
 * nevertheless). */
enum err_code window_take(struct window *window, const struct process *main,
                          struct window_result *ret_result, struct err *err) MUST_USE;
void window_result_fini(struct window_result *result);

#endif
