/*
 * side_band: what processes do, as the kernel writes it down beside samples: executable mappings,
 * names, forks and ends, of all CPUs in the order of time.
 *
 * The rings are read in place; whoever reads samples asks for all that happened before each of them
 * (perf_sideband_read_until), so that a sample meets the mappings of its own moment. Source of the
 * records: perf_event_open(2). Paths and names are those of any process: any bytes.
 * Threads: one.
 */
#ifndef AGENT_KERNEL_PERF_SIDEBAND_H
#define AGENT_KERNEL_PERF_SIDEBAND_H

#include "agent/kernel/event_kind.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct sample_event;
struct perf_sideband;
struct process_event;
struct stack_copy;

struct perf_sideband_options {
    uint32_t ring_bytes; /* of each CPU; 0: 256 KiB */
    void (*on_event)(void *context, const struct process_event *event);
    void *context;
    /* Where no programs may be loaded: the rings have what processes do that perf_sideband_watch
     * names, and samples of them, with stacks by frame pointers and, up to 1,000 Hz, with copies of
     * the newest part of the stacks (else copy is NULL). NULL: what all processes do. */
    void (*on_sample)(void *context, struct sample_event *event, const struct stack_copy *copy);
    uint32_t frequency_hz;
    enum event_kind event;
    bool has_no_copies; /* of stacks, at any frequency */
};

/* Writing down begins. Handles: ERR_FORBIDDEN, ERR_UNSUPPORTED, ERR_IO. */
enum err_code perf_sideband_open(const struct perf_sideband_options *options,
                                 struct perf_sideband **ret_band, struct err *err) MUST_USE;
void perf_sideband_close(struct perf_sideband *band); /* NULL is a no-op */

/* With on_sample: a process, with its threads and children to come, is written down from now on;
 * until perf_sideband_stop. Handles: ERR_FORBIDDEN (another user's, or the kernel lets nobody),
 * ERR_NOT_FOUND, ERR_UNSUPPORTED, ERR_IO. */
enum err_code perf_sideband_watch(struct perf_sideband *band, uint32_t process_id,
                                  struct err *err) MUST_USE;
void perf_sideband_stop(struct perf_sideband *band);

/* Gives on_event all that happened until then and was not given yet, in the order of time. */
void perf_sideband_read_until(struct perf_sideband *band, int64_t time_ns);

/* Descriptors that are readable when there is something; ret_fds has room for
 * perf_sideband_fd_count.
 */
uint32_t perf_sideband_fd_count(const struct perf_sideband *band);
void perf_sideband_fds(const struct perf_sideband *band, int *ret_fds);

/* One record: its header and what is behind it, as in a ring. False when it is malformed or of no
 * interest. For tests and fuzzers, too. */
bool perf_sideband_parse(struct span record, struct process_event *ret_event);

#endif
