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

struct turns;

enum { TURNS_WAITING_OF_SOURCE = 16 }; /* more are refused */

/* Embedded in a request. It stays where it is from the first call until the turn is given back. */
struct turn {
    const char *key;    /* whose work it is; NULL: none was asked for */
    int most;           /* turns that this key may have at a time; 0: a quarter of the workers */
    const char *source; /* NULL: none; set before key */
    bool is_held;
    atomic_bool is_waiting; /* of turns.c, as is next */
    struct turn *next;
    void (*wake)(struct turn *self); /* it waited and is held now; on the thread of turns_give */
};

/* For a pool of so many workers; max_waiting bounds those who wait. */
struct turns *turns_create(int worker_count, int max_waiting);
/* NULL is a no-op. No turn is held or waited for any more. */
void turns_destroy(struct turns *turns);

/* Takes a turn for turn->key if one is free; true when it is held now, or was before. */
bool turns_take(struct turns *turns, struct turn *turn);

enum turns_outcome {
    TURNS_TAKEN,
    TURNS_WAITING, /* turn is no longer the caller's: wake may be running already, or turns_leave */
    TURNS_REFUSED, /* too many wait, or half of the list waits for the same */
};
enum turns_outcome turns_take_or_wait(struct turns *turns, struct turn *turn);

/* True: turn waited and does so no longer; it is the caller's, and wake will not be called. False
 * at once for a turn that does not wait. */
bool turns_leave(struct turns *turns, struct turn *turn);

/* Gives a held turn back, and hands it to the next who may have it. */
void turns_give(struct turns *turns, struct turn *turn);

/* For metrics and tests. */
int turns_waiting_count(struct turns *turns);
int turns_held_count(struct turns *turns);

#endif
