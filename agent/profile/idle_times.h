/*
 * idle_times: the times for which processes have been idle. Processes with equal labels that were
 * sampled earlier share one idle time.
 *
 * Each window in which none of these processes was sampled extends their idle time. An idle time is
 * reported when it ends (one of them was sampled, all have ended, or the clock was set), and at the
 * latest after six windows or a minute. So a process that stays idle costs a sixth of a profile per
 * window. The number of idle times is bounded: the caller reports those without space itself.
 * Threads: one.
 */
#ifndef AGENT_PROFILE_IDLE_TIMES_H
#define AGENT_PROFILE_IDLE_TIMES_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct idle_times;
struct process_labels;

struct idle_time {
    struct span key; /* process_labels_key */
    const struct batch_text_label *labels;
    size_t label_count;
    uint64_t owner;      /* that of process_id */
    uint32_t process_id; /* one of the processes with these labels */
    int64_t begin_ns;    /* wall clock */
    int64_t end_ns;
};

struct idle_times *idle_times_create(void);
void idle_times_destroy(struct idle_times *times); /* NULL is a no-op */

/* Adds a window in which the processes with these labels were idle. key, labels, owner and
 * process_id are copied; begin_ns and end_ns are those of the window. May be called several times
 * for equal labels. False: there is no space; the caller reports this idle time itself. */
bool idle_times_add(struct idle_times *times, const struct idle_time *window);

/* To be called after the idle processes of a window have been added. Calls report for each idle
 * time that has ended or is long enough; one that continues is reported up to the end of the
 * window. is_last: reports all of them. */
void idle_times_report(struct idle_times *times, int64_t window_begin_ns, int64_t window_end_ns,
                       bool is_last, void (*report)(void *context, const struct idle_time *time),
                       void *context);

#endif
