/*
 * side_band: what processes do, as the kernel writes it down beside samples: executable mappings,
 * names, forks and ends, of all CPUs in the order of time.
 *
 * The rings are read in place; whoever reads samples asks for all that happened before each of them
 * (side_band_read_until), so that a sample meets the mappings of its own moment. Source of the
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
struct side_band;
struct stack_copy;

enum side_band_kind {
    SIDE_BAND_MAP,  /* an executable mapping */
    SIDE_BAND_NAME, /* a thread calls itself so */
    SIDE_BAND_FORK, /* of a process, or of a thread, which has its parent's process */
    SIDE_BAND_EXIT, /* of a thread */
    SIDE_BAND_LOST, /* the ring was full: what is known may be wrong */
};

enum { SIDE_BAND_BUILD_ID_MAX_BYTES = 20 };

struct side_band_event {
    enum side_band_kind kind;
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t process_id;
    uint32_t thread_id;
    uint32_t parent_id; /* FORK */

    /* MAP */
    uint64_t start;
    uint64_t bytes;
    uint64_t file_offset;
    uint64_t inode; /* 0 where there is a build id */
    uint32_t device_major;
    uint32_t device_minor;
    uint8_t build_id[SIDE_BAND_BUILD_ID_MAX_BYTES];
    uint32_t build_id_bytes; /* 0: no file, or a file without, or a kernel before 5.12 */
    struct span path;        /* MAP; also "[vdso]", "//anon"; until the next event */

    struct span name; /* NAME; until the next event */
    bool is_exec;     /* NAME: of a new program */

    uint64_t lost_count; /* LOST */
};

struct side_band_options {
    uint32_t ring_bytes; /* of each CPU; 0: 256 KiB */
    void (*on_event)(void *context, const struct side_band_event *event);
    void *context;
    /* Where no programs may be loaded: the rings have what processes do that side_band_watch names,
     * and samples of them, with stacks by frame pointers and, up to 1,000 Hz, with copies of the
     * newest part of the stacks (else copy is NULL). NULL: what all processes do. */
    void (*on_sample)(void *context, struct sample_event *event, const struct stack_copy *copy);
    uint32_t frequency_hz;
    enum event_kind event;
    bool has_no_copies; /* of stacks, at any frequency */
};

/* Writing down begins. Handles: ERR_FORBIDDEN, ERR_UNSUPPORTED, ERR_IO. */
enum err_code side_band_open(const struct side_band_options *options, struct side_band **ret_band,
                             struct err *err) MUST_USE;
void side_band_close(struct side_band *band); /* NULL is a no-op */

/* With on_sample: a process, with its threads and children to come, is written down from now on;
 * until side_band_stop. Handles: ERR_FORBIDDEN (another user's, or the kernel lets nobody),
 * ERR_NOT_FOUND, ERR_UNSUPPORTED, ERR_IO. */
enum err_code side_band_watch(struct side_band *band, uint32_t process_id,
                              struct err *err) MUST_USE;
void side_band_stop(struct side_band *band);

/* Gives on_event all that happened until then and was not given yet, in the order of time. */
void side_band_read_until(struct side_band *band, int64_t time_ns);

/* Descriptors that are readable when there is something; ret_fds has room for side_band_fd_count.
 */
uint32_t side_band_fd_count(const struct side_band *band);
void side_band_fds(const struct side_band *band, int *ret_fds);

/* One record: its header and what is behind it, as in a ring. False when it is malformed or of no
 * interest. For tests and fuzzers, too. */
bool side_band_parse(struct span record, struct side_band_event *ret_event);

#endif
