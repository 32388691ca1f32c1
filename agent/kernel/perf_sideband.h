/*
 * perf_sideband: process events of all CPUs, in the order of time, from perf rings.
 *
 * Records are read in place. The reader of samples first requests all events up to the time of each
 * sample (perf_sideband_read_until), so that each sample is looked up in the mappings that existed
 * when it was taken. Source of the record formats: perf_event_open(2). Paths and names are chosen
 * by processes: they contain any bytes. Threads: one.
 *
 * "Own" in names refers to a user without privileges, who may sample only processes of their own.
 */
#ifndef AGENT_KERNEL_PERF_SIDEBAND_H
#define AGENT_KERNEL_PERF_SIDEBAND_H

#include "agent/kernel/event_kind.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct event_opener;
struct sample_event;
struct perf_sideband;
struct process_event;
struct stack_copy;

struct perf_sideband_options {
    struct event_opener *opener; /* opens the perf events; borrowed; NULL: this process does */
    uint32_t ring_bytes;         /* ring of each CPU; 0: 256 KiB */
    void (*on_event)(void *context, const struct process_event *event);
    void *context;
    /* NULL: the rings contain events of all processes. Otherwise (for users who may not load BPF
     * programs) they contain events and samples of the processes that perf_sideband_watch names.
     * Samples have frame-pointer stacks and, up to 1,000 Hz, a copy of the newest part of each
     * stack; above that frequency copy is NULL. */
    void (*on_sample)(void *context, struct sample_event *event, const struct stack_copy *copy);
    uint32_t frequency_hz;
    enum event_kind event;
    bool has_no_copies; /* no copies of stacks, at any frequency */
};

/* Starts recording on the CPUs that are online. Errors: ERR_FORBIDDEN, ERR_UNSUPPORTED, ERR_IO. */
enum err_code perf_sideband_open(const struct perf_sideband_options *options,
                                 struct perf_sideband **ret_band, struct err *err) MUST_USE;
void perf_sideband_close(struct perf_sideband *band); /* NULL is a no-op */

/* Starts recording on a CPU that came online later, or again on one that has returned. The events
 * of an older ring of this CPU that are not read yet are lost, and the descriptors to poll change.
 * Errors: ERR_NOT_FOUND (the CPU is offline), and as perf_sideband_open. */
enum err_code perf_sideband_open_cpu(struct perf_sideband *band, uint32_t cpu,
                                     struct err *err) MUST_USE;
/* False: events of the CPU are not recorded, because it came online later or was offline since. A
 * call interrupts the CPU. */
bool perf_sideband_records_cpu(const struct perf_sideband *band, uint32_t cpu);

/* With on_sample only: records a process with its threads and future children, until
 * perf_sideband_stop. Errors: ERR_FORBIDDEN (it belongs to another user, or the kernel forbids it
 * to all), ERR_NOT_FOUND, ERR_UNSUPPORTED, ERR_IO. */
enum err_code perf_sideband_watch(struct perf_sideband *band, uint32_t process_id,
                                  struct err *err) MUST_USE;
/* The same on one CPU only: one that perf_sideband_open_cpu added after perf_sideband_watch. */
enum err_code perf_sideband_watch_cpu(struct perf_sideband *band, uint32_t process_id, uint32_t cpu,
                                      struct err *err) MUST_USE;
/* Stops recording the watched processes; their events and samples so far can still be read. Does
 * nothing without on_sample. */
void perf_sideband_stop(struct perf_sideband *band);

/* Passes all new events up to time_ns to on_event, and samples to on_sample, in the order of time.
 */
void perf_sideband_read_until(struct perf_sideband *band, int64_t time_ns);

/* Descriptors to poll for events; ret_fds has space for perf_sideband_fd_count of them. */
uint32_t perf_sideband_fd_count(const struct perf_sideband *band);
void perf_sideband_fds(const struct perf_sideband *band, int *ret_fds);

/* Parses one record of a ring, header included. False: it is malformed or of no interest. Public
 * for tests and fuzzers. */
bool perf_sideband_parse(struct span record, struct process_event *ret_event);

#endif
