/*
 * breaker: a circuit breaker for one remote service that may stop responding without closing its
 * connections.
 *
 * A slow reply does not prove that the service hangs: a statement may wait for a lock. So a caller
 * that has waited for suspiciously long reports that (breaker_suspect), and a thread of the breaker
 * probes the service: it sends two requests that are always quick, at the same time and on
 * different connections, so that one lost packet or one slow session proves nothing. When neither
 * gets a reply, and no caller has received anything since they were sent (breaker_note_reply), the
 * breaker opens: callers stop waiting and new ones fail at once. While it is open, the thread
 * probes again every few hundred milliseconds, and closes the breaker at the first reply. No
 * request of a user serves as a probe.
 *
 * Threads: all functions but create and destroy may be called by any thread at any time.
 */
#ifndef LIB_BASE_BREAKER_H
#define LIB_BASE_BREAKER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct breaker;

enum { BREAKER_PROBE_REQUESTS = 2 };

struct breaker_options {
    /* Sends request number index of a probe, from 0 to BREAKER_PROBE_REQUESTS - 1. True when the
     * service replied in time, be it with an error. The requests of one probe run at the same time
     * on threads of the breaker, and the slowest one decides how long the probe takes. */
    bool (*probe)(void *context, int index);
    /* Called on the breaker's thread when the breaker has opened or closed; or NULL. */
    void (*report)(void *context, bool is_open);
    void *context;
    bool probes_at_start; /* to set up what later probes use */
};

/* Starts the thread. */
enum err_code breaker_create(const struct breaker_options *options, struct breaker **ret_breaker,
                             struct err *err) MUST_USE;
/* Waits for a probe that is running. NULL is a no-op. */
void breaker_destroy(struct breaker *breaker);

/* NULL is a breaker that is never open. */
bool breaker_is_open(const struct breaker *breaker);
/* A caller has waited for a reply for suspiciously long: probe soon. NULL is a no-op. */
void breaker_suspect(struct breaker *breaker);
/* A caller has received something from the service. NULL is a no-op. */
void breaker_note_reply(struct breaker *breaker);
/* How often the breaker has opened. */
uint64_t breaker_open_count(const struct breaker *breaker);

#endif
