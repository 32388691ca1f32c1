/*
 * breaker: a circuit breaker for one remote service that may stop responding without closing its
 * connections.
 *
 * A slow reply does not prove that the service hangs: a statement may wait for a lock. So a caller
 * that has waited for suspiciously long reports that (breaker_suspect), and a thread of the breaker
 * probes the service: it sends two requests that are always quick, at the same time and on
 * different connections, so that one lost packet or one slow session proves nothing. When neither
 * request gets a reply, and no caller has received anything since they were sent
 * (breaker_note_reply), the breaker opens: callers stop waiting and new ones fail at once. While it
 * is open, the thread probes again every few hundred milliseconds, and closes the breaker at the
 * first reply. No request of a user serves as a probe.
 *
 * A slow service must not be mistaken for one that hangs, so the breaker remembers the duration of
 * the slowest recent probe. The deadline of a probe is three times that duration, but at least
 * probe_ms and at most max_probe_ms. A probe that fails although a caller has received something
 * counts as one that took its whole deadline. While the breaker is open, its probes have the short
 * deadline, so that recovery is noticed early, and one further request runs beside them with the
 * longest deadline, so that a service that became slow is noticed, too. Each reply to a
 * probe or to a caller (breaker_note_duration) that took less than the remembered duration lowers
 * that by up to an eighth: after a dozen quick replies a hang is detected as early as before.
 *
 * Threads: all functions but create and destroy may be called by any thread at any time.
 */
#ifndef LIB_BASE_BREAKER_H
#define LIB_BASE_BREAKER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct breaker;

enum { BREAKER_PROBE_REQUESTS = 2, BREAKER_LONG_REQUEST = BREAKER_PROBE_REQUESTS };

struct breaker_options {
    /* Sends one request and returns true when the service replied within deadline_ms, even with
     * an error. index is 0 to BREAKER_PROBE_REQUESTS - 1 for the requests of a probe, or
     * BREAKER_LONG_REQUEST. The requests of one probe run at the same time on threads of the
     * breaker. The breaker waits for all of them; the fastest reply counts as the duration of the
     * probe, because one reply proves that the service works. */
    bool (*probe)(void *context, int index, int64_t deadline_ms);
    int64_t probe_ms;     /* the shortest deadline of a probe */
    int64_t max_probe_ms; /* the longest; if equal to probe_ms, all probes have that deadline and
                             no request has a longer one */
    /* Called on the breaker's thread when the breaker has opened or closed. May be NULL. */
    void (*report)(void *context, bool is_open);
    void *context;        /* passed to probe and report */
    bool probes_at_start; /* probe at once, to set up the connections that later probes use */
};

/* Creates a closed breaker and starts its thread. */
enum err_code breaker_create(const struct breaker_options *options, struct breaker **ret_breaker,
                             struct err *err) MUST_USE;
/* Waits for the requests that are running. A caller that cannot wait for max_probe_ms has to
 * make its probe function return early. NULL is a no-op. */
void breaker_destroy(struct breaker *breaker);

/* A NULL breaker is never open. */
bool breaker_is_open(const struct breaker *breaker);
/* Reports that a caller has waited suspiciously long for a reply; the breaker probes soon. NULL
 * is a no-op. */
void breaker_suspect(struct breaker *breaker);
/* Reports that a caller has received bytes from the service. NULL is a no-op. */
void breaker_note_reply(struct breaker *breaker);
/* Reports that a caller has received a whole reply, duration_ns after its request. NULL is a
 * no-op. */
void breaker_note_duration(struct breaker *breaker, int64_t duration_ns);
/* The present deadline of probes while the breaker is closed, in milliseconds. It also suits other
 * small requests. 0 for NULL. */
int64_t breaker_deadline_ms(const struct breaker *breaker);
/* The number of times the breaker has opened. */
uint64_t breaker_open_count(const struct breaker *breaker);

#endif
