/*
 * debuginfod_retry: when to retry a request to a debuginfod server, and when to suspend a host.
 * Pure decisions: no clock, no network, no threads.
 */
#ifndef LIB_IO_DEBUGINFOD_RETRY_H
#define LIB_IO_DEBUGINFOD_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* The result of a request to the configured servers. */
enum debuginfod_outcome {
    DEBUGINFOD_FOUND,
    DEBUGINFOD_ABSENT,      /* all servers reported that they do not have it */
    DEBUGINFOD_UNREACHABLE, /* at least one server did not respond, or requested a delay */
    DEBUGINFOD_REFUSED,     /* a server has it, or should, but its response must not be used */
};

enum {
    DEBUGINFOD_TRIES = 3,           /* attempts per request if the server does not respond */
    DEBUGINFOD_AT_ONCE = 10,        /* concurrent requests to one host */
    DEBUGINFOD_MAX_LATER_S = 86400, /* the longest of all delays */
    DEBUGINFOD_BREAK_AFTER = 5,     /* consecutive failures after which a host is suspended, … */
    DEBUGINFOD_BREAK_S = 60,        /* … and for how long */
};

/*
 * How long to wait before the next request for the same file, after `attempt` consecutive requests
 * (from 1) with this outcome. ABSENT: 10 min, 1 h, 6 h, then always 24 h. UNREACHABLE: 1, 5, then
 * always 30 min, but at least retry_after_s, the delay that the server requested (0: none).
 * REFUSED: 24 h.
 */
int64_t debuginfod_later_s(enum debuginfod_outcome outcome, unsigned attempt, int retry_after_s);

/* The pause before an attempt at a request: 1 s before try_number 2, then 3 s, 9 s. It is reduced
 * by up to half in proportion to chance, a random number, so that many clients do not return at
 * once. */
int64_t debuginfod_pause_ms(unsigned try_number, uint32_t chance);

/* A circuit breaker for one host: after consecutive failures no requests are sent for a while,
 * then one probe is sent; if it succeeds, requests resume. All zeros is the initial state. */
struct debuginfod_breaker {
    unsigned failures; /* consecutive */
    bool is_probing;   /* one thread sends a request, the others wait for its result */
    int64_t open_until_ns;
};

/* Whether a request may be sent now. After true the caller has to call debuginfod_breaker_note or
 * debuginfod_breaker_forgo. */
bool debuginfod_breaker_may(struct debuginfod_breaker *breaker, int64_t now_ns);
/* Records the result of a request. */
void debuginfod_breaker_note(struct debuginfod_breaker *breaker, bool is_failure, int64_t now_ns);
/* The request was cancelled before it had a result. */
void debuginfod_breaker_forgo(struct debuginfod_breaker *breaker);

#endif
