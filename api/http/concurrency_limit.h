/*
 * concurrency_limit: how many workers may be busy for one share, and for slow work altogether.
 *
 * Reports and results that have to be computed take a slot first. A slot may name its source, such
 * as the address of the client: a source has one slot at a time. One share has few slots at a time,
 * the queries of one tenant half of the workers at most (its lists of labels, series and types have
 * slots of their own), and all together leave some workers free, so that other requests are handled
 * whatever is computed or waited for. A request without a slot waits without a worker: it is put
 * aside, and handled again from the start when a slot is passed to it, first come, first served.
 * Threads: any.
 */
#ifndef API_HTTP_CONCURRENCY_LIMIT_H
#define API_HTTP_CONCURRENCY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>

struct concurrency_limit;

enum { CONCURRENCY_LIMIT_WAITING_OF_SOURCE = 16 }; /* more are refused */

/* Embedded in a request. It must not move from the first call until the slot is returned. */
struct concurrency_slot {
    const char *key;    /* the share or tenant that the work is for; NULL: no slot is needed */
    int most;           /* slots that this key may have at a time; 0: a quarter of the workers */
    const char *source; /* NULL: none; set it before key */
    bool is_held;
    atomic_bool is_waiting; /* for concurrency_limit.c, as is next */
    struct concurrency_slot *next;
    void (*wake)(struct concurrency_slot *self); /* called when it waited and is held now, on the
                                                    thread of concurrency_limit_give */
};

/* For a pool of worker_count threads; max_waiting bounds the waiting requests. */
struct concurrency_limit *concurrency_limit_create(int worker_count, int max_waiting);
/* NULL is a no-op. No slot may be held or waited for any more. */
void concurrency_limit_destroy(struct concurrency_limit *concurrency);

/* Takes a slot for its key if one is free; true if it is held now, or was before. */
bool concurrency_limit_take(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

enum concurrency_limit_outcome {
    CONCURRENCY_LIMIT_TAKEN,
    CONCURRENCY_LIMIT_WAITING, /* the slot no longer belongs to the caller: wake may be running
                                  already, or concurrency_limit_leave */
    CONCURRENCY_LIMIT_REFUSED, /* too many wait, or half of the list waits for the same key */
};
enum concurrency_limit_outcome concurrency_limit_take_or_wait(struct concurrency_limit *concurrency,
                                                              struct concurrency_slot *slot);

/* True: the slot was waiting and is not any more; it belongs to the caller, and wake will not be
 * called. False for a slot that does not wait. */
bool concurrency_limit_leave(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

/* Returns a held slot, and passes it to the next request that may have it. */
void concurrency_limit_give(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

/* For metrics and tests. */
int concurrency_limit_waiting_count(struct concurrency_limit *concurrency);
int concurrency_limit_held_count(struct concurrency_limit *concurrency);

#endif
