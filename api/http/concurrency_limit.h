/*
 * turns: how many workers may be busy for one share, and for slow work altogether.
 *
 * Reports and answers that have to be computed take a turn first. A turn may name its source, as
 * the address of the client: a source has one turn at a time. One share has few turns at a
 * time, one tenant's questions about continuous profiles half of the workers at most (its lists of
 * labels, series and types have turns of their own beside them), and all
 * together leave some workers free, so that whoever asks for something else is answered whatever is
 * computed or waited for. Who finds no turn waits without a worker: the request is put aside, and
 * handled again from the start when a turn is handed to it, first come, first served. Threads: any.
 */
#ifndef API_HTTP_CONCURRENCY_LIMIT_H
#define API_HTTP_CONCURRENCY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>

struct concurrency_limit;

enum { CONCURRENCY_LIMIT_WAITING_OF_SOURCE = 16 }; /* more are refused */

/* Embedded in a request. It stays where it is from the first call until the turn is given back. */
struct concurrency_slot {
    const char *key;    /* whose work it is; NULL: none was asked for */
    int most;           /* turns that this key may have at a time; 0: a quarter of the workers */
    const char *source; /* NULL: none; set before key */
    bool is_held;
    atomic_bool is_waiting; /* of turns.c, as is next */
    struct concurrency_slot *next;
    void (*wake)(struct concurrency_slot *
                     self); /* it waited and is held now; on the thread of concurrency_limit_give */
};

/* For a pool of so many workers; max_waiting bounds those who wait. */
struct concurrency_limit *concurrency_limit_create(int worker_count, int max_waiting);
/* NULL is a no-op. No turn is held or waited for any more. */
void concurrency_limit_destroy(struct concurrency_limit *concurrency);

/* Takes a turn for turn->key if one is free; true when it is held now, or was before. */
bool concurrency_limit_take(struct concurrency_limit *concurrency,
                            struct concurrency_slot *concurrency_slot);

enum concurrency_limit_outcome {
    CONCURRENCY_LIMIT_TAKEN,
    CONCURRENCY_LIMIT_WAITING, /* turn is no longer the caller's: wake may be running already, or
                                  concurrency_limit_leave */
    CONCURRENCY_LIMIT_REFUSED, /* too many wait, or half of the list waits for the same */
};
enum concurrency_limit_outcome
concurrency_limit_take_or_wait(struct concurrency_limit *concurrency,
                               struct concurrency_slot *concurrency_slot);

/* True: turn waited and does so no longer; it is the caller's, and wake will not be called. False
 * at once for a turn that does not wait. */
bool concurrency_limit_leave(struct concurrency_limit *concurrency,
                             struct concurrency_slot *concurrency_slot);

/* Gives a held turn back, and hands it to the next who may have it. */
void concurrency_limit_give(struct concurrency_limit *concurrency,
                            struct concurrency_slot *concurrency_slot);

/* For metrics and tests. */
int concurrency_limit_waiting_count(struct concurrency_limit *concurrency);
int concurrency_limit_held_count(struct concurrency_limit *concurrency);

#endif
