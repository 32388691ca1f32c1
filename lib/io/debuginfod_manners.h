/*
 * debuginfod_manners: how to be a good guest of debuginfod servers: when to ask again, and when not
 * to ask at all. Decisions only: no clock, no network, no threads.
 */
#ifndef LIB_IO_DEBUGINFOD_MANNERS_H
#define LIB_IO_DEBUGINFOD_MANNERS_H

#include <stdbool.h>
#include <stdint.h>

/* How a question to the servers ended. */
enum debuginfod_outcome {
    DEBUGINFOD_FOUND,
    DEBUGINFOD_ABSENT,      /* all of them said that they do not have it */
    DEBUGINFOD_UNREACHABLE, /* one of them at least did not answer, or said to come later */
    DEBUGINFOD_REFUSED,     /* one has it, or should, but what it says or sends may not be taken */
};

enum {
    DEBUGINFOD_TRIES = 3,    /* of one request, while the server does not answer */
    DEBUGINFOD_AT_ONCE = 10, /* requests to one host */
    DEBUGINFOD_MAX_LATER_S = 86400,
    DEBUGINFOD_BREAK_AFTER = 5, /* failures in a row */
    DEBUGINFOD_BREAK_S = 60,
};

/*
 * For how long nobody need ask again, after so many questions (from 1) that ended this way one
 * after the other: 10 min, 1 h, 6 h, 24 h for what is absent; 1, 5, 30 min for who does not answer,
 * but at least retry_after_s, what the server asked for (0: nothing); 24 h for what was refused.
 */
int64_t debuginfod_later_s(enum debuginfod_outcome outcome, unsigned attempt, int retry_after_s);

/* Before try number (from 2) of a request: 1 s, 3 s, 9 s, less up to half of it by chance, so that
 * many do not come back at once. */
int64_t debuginfod_pause_ms(unsigned try_number, uint32_t chance);

/* Whether a host is asked at all: after failures in a row it is left alone for a while, then one
 * asks, and if that goes well, all do. Start from zeros. */
struct debuginfod_breaker {
    unsigned failures; /* in a row */
    bool is_probing;   /* one asks, the others wait for what comes of it */
    int64_t open_until_ns;
};

/* May one ask now? Who asks must tell breaker_note how it went, or breaker_forgo. */
bool debuginfod_breaker_may(struct debuginfod_breaker *breaker, int64_t now_ns);
void debuginfod_breaker_note(struct debuginfod_breaker *breaker, bool is_failure, int64_t now_ns);
/* It was given up before it could tell anything. */
void debuginfod_breaker_forgo(struct debuginfod_breaker *breaker);

#endif
