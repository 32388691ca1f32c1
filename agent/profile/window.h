/*
 * window: what was sampled between two sendings, as one profile.
 *
 * Samples with equal stacks and labels are added up. Addresses of binaries are ELF addresses, and
 * their mappings say so: start is the address that the mapping's first byte has in the file, so
 * that equal code has equal addresses whatever process ran it; names come later, by build id.
 * The kernel's functions, those of its vdso and code made at run time are named at once, and have
 * no address: that would tell where this kernel lies, and means nothing elsewhere. Code that has no
 * name yet is looked up once more when the window is taken.
 *
 * Value types: samples, and for people the event: cpu in nanoseconds, or as many as were counted
 * from sample to sample. Waits are of the type off_cpu, in nanoseconds, and for people counted in
 * waits; as wall time they are added to processor time, and both are called wall. A sample's
 * labels: thread, process (their names) and pid in the form for people, thread.name and the number
 * of its process's labels in the form for OTLP. Names that processes chose are cut after 512 bytes.
 * In the form for OTLP processes that live, were seen running earlier and are idle now are
 * resources too, from time to time (idle_times.h), with profiles without samples, as are the value
 * types of which a resource's samples have nothing. Threads of the kernel are not. In that form
 * each owner (process_owner) has a share of 6 MiB of
 * them, and of paths, labels, functions, places and mappings (window_quota.h); what does not fit is
 * called WINDOW_NAME_LEFT_OUT. Memory is bounded: window_is_full says when to take early, for the
 * sake of text after 10 seconds at the soonest. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_H
#define AGENT_PROFILE_WINDOW_H

#include "agent/kernel/event_kind.h"
#include "lib/base/err.h"
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
struct window;

/* The function of code that was made at run time and that nothing on this machine names. */
#define WINDOW_CODE_WITHOUT_NAME "[code without a name]"

/* The function of code whose name, or place, had no room here or where names are kept, as its owner
 * has too many; and the service of processes whose labels had none. */
#define WINDOW_NAME_LEFT_OUT "[name left out]"

enum window_form { WINDOW_FOR_PEOPLE, WINDOW_FOR_OTLP };

/* Time that threads wait: not known, of types of its own, or of one type with processor time. */
enum window_waits { WINDOW_NO_WAITS, WINDOW_WAITS_BESIDE, WINDOW_WAITS_AS_WALL };

struct window_options {
    enum window_form form;
    uint32_t frequency_hz;
    enum event_kind event;
    enum window_waits off_cpu;
    double off_cpu_share; /* of all waits are told: each stands for 1 / share */
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct jit_budget *jit_budget; /* outlives all processes */
    struct label_source *label_source;
    /* An address of a binary is new to this window. NULL: nobody asks. */
    void (*on_binary)(void *context, const struct process *process,
                      const struct process_mapping *mapping);
    /* Names of this process are left out; once for each window and owner. NULL: nobody asks. */
    void (*on_left_out)(void *context, uint32_t process_id);
    void *context;
};

struct window *window_create(const struct window_options *options);
void window_destroy(struct window *window); /* NULL is a no-op */

/* Left out, and counted, where a rule says that the process is not wanted. */
void window_add(struct window *window, struct process *process, const struct sample_event *event);
/* More samples like one of this window that had a key. */
struct sample_tally;
void window_add_tally(struct window *window, uint64_t key, const struct sample_tally *tally);
/* A thread that left its CPU there, for so long. */
void window_add_wait(struct window *window, struct process *process,
                     const struct sample_event *event, int64_t waited_ns);
uint64_t window_unwanted(const struct window *window);
bool window_has_samples(const struct window *window);
bool window_is_full(const struct window *window);

/* Sampling begins only now, or has ended: else a window's time goes from its creation, or the last
 * taking, until it is taken. */
void window_begin_time(struct window *window);
void window_end_time(struct window *window);

/* What a window was; the caller frees it with window_result_fini. */
struct window_result {
    struct profile *profile;
    const struct otlp_resource *resources; /* OTLP; in the profile's arena */
    uint32_t resource_count;
    int64_t start_ns; /* wall clock */
    int64_t end_ns;
    uint64_t samples;
};

/* Takes what there is and begins anew. For people, the program of the process main is the first of
 * the mappings; where it is NULL or has none, the first that was seen. Handles: ERR_TOO_LARGE. */
enum err_code window_take(struct window *window, const struct process *main,
                          struct window_result *ret_result, struct err *err) MUST_USE;
void window_result_fini(struct window_result *result);

#endif
