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
 * A service that is slow and works must not be taken for one that hangs, so the breaker learns how
 * long a probe takes: it keeps the maximum of recent probes. The deadline of a probe is three times
 * that, between probe_ms and most_probe_ms. A probe that fails although a caller has received
 * something counts as one that took its whole deadline. While the breaker is open, its probes have
 * the short deadline, so that recovery is noticed early, and one patient request runs beside them
 * with the longest deadline, so that a service that became slow is noticed, too. Each reply of a
 * probe or to a caller (breaker_note_duration) that took less than the maximum lowers it by up to
 * an eighth: after a dozen quick replies a hang is detected as early as before.
 *
 * Threads: all functions but create and destroy may be called by any thread at any time.
 */
#ifndef LIB_BASE_BREAKER_H
#define LIB_BASE_BREAKER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct breaker;

enum { BREAKER_PROBE_REQUESTS = 2, BREAKER_PATIENT_REQUEST = BREAKER_PROBE_REQUESTS };

struct breaker_options {
    /* Sends request number index of a probe, from 0 to BREAKER_PROBE_REQUESTS - 1, or the patient
     * one. True when the service replied within deadline_ms, be it with an error. The requests of
     * one probe run at the same time on threads of the breaker, and the slowest one decides how
     * long the probe takes. */
    bool (*probe)(void *context, int index, int64_t deadline_ms);
    int64_t probe_ms;      /* the shortest deadline of a probe */
    int64_t most_probe_ms; /* the longest; equal: all probes have that one, none is patient */
    /* Called on the breaker's thread when the breaker has opened or closed; or NULL. */
    void (*report)(void *context, bool is_open);
    void *context;
    bool probes_at_start; /* to set up what later probes use */
};

/* Starts the thread. */
enum err_code breaker_create(const struct breaker_options *options, struct breaker **ret_breaker,
                             struct err *err) MUST_USE;
/* Waits for the requests that are running: a caller that cannot wait for most_probe_ms makes its
 * probe function return early. NULL is a no-op. */
void breaker_destroy(struct breaker *breaker);

/* NULL is a breaker that is never open. */
bool breaker_is_open(const struct breaker *breaker);
/* A caller has waited for a reply for suspiciously long: probe soon. NULL is a no-op. */
void breaker_suspect(struct breaker *breaker);
/* A caller has received something from the service. NULL is a no-op. */
void breaker_note_reply(struct breaker *breaker);
/* A caller has received a whole reply after so long. NULL is a no-op. */
void breaker_note_duration(struct breaker *breaker, int64_t duration_ns);
/* The deadline of a probe while the breaker is closed; other small requests may use it too. For
 * NULL it is 0. */
int64_t breaker_deadline_ms(const struct breaker *breaker);
/* How often the breaker has opened. */
uint64_t breaker_open_count(const struct breaker *breaker);

#endif
