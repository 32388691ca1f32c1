/*
 * concurrency_limit: limits the workers that are busy for one share, for one client, and for all
 * slow work together.
 *
 * A request takes a slot before it computes a report or a result. Five rules bound the slots, so
 * that neither one share nor one client keeps them from others:
 *
 *   - all together leave a quarter of the workers free for other requests;
 *   - a key, which names a share or a tenant, has a quarter of the workers, or as many as the slot
 *     states (queries of a tenant: half; its lists of labels, series and types have a key of their
 *     own);
 *   - a client has a quarter of the workers if it is an address without credentials, and half of
 *     them if it is a team, whatever the number of its shares;
 *   - all clients without credentials together have half of the slots;
 *   - a source, such as an address for generated files, has one slot.
 *
 * A request that gets no slot waits without a worker: it is put aside, and handled again from the
 * start when a slot is passed to it. A free slot goes to the waiting request whose client has held
 * slots for the least time of late (half of a time is forgotten each minute), among those that the
 * rules allow. Times are compared in multiples of 64 ms; of several equal clients, the one that got
 * a slot longest ago comes first, and of equal requests the first. So a client with many waiting
 * requests delays another client by one of them, and many clients with slow requests delay one with
 * quick ones by one request. The waiting requests of a client are limited in number, and in the
 * bytes of their bodies. Threads: any.
 */
#ifndef API_HTTP_CONCURRENCY_LIMIT_H
#define API_HTTP_CONCURRENCY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct concurrency_limit;

enum {
    CONCURRENCY_LIMIT_WAITING_OF_SOURCE = 16, /* waiting requests; more are refused */
    /* The bodies of a client's waiting requests, or of those with a key if they name no client: a
     * quarter of what the queue of a pool of workers may hold. All clients without credentials
     * together may have twice as much. */
    CONCURRENCY_LIMIT_WAITING_BYTES = 32 << 20,
};

/* Embedded in a request. It must not move from the first call until the slot is returned. */
struct concurrency_slot {
    const char *key;    /* the share or tenant that the work is for; NULL: no slot is needed */
    int most;           /* slots that this key may have at a time; 0: a quarter of the workers */
    const char *source; /* NULL: none; source, client and is_anonymous must be set before key */
    const char *client; /* an address or a team; NULL: none, then the rules about clients do not
                           apply */
    bool is_anonymous;  /* client is an address without credentials */
    bool is_light;      /* of concurrency_limit_create_shares: the work is not known to be slow */
    size_t bytes;       /* the body that the request keeps while it waits */
    bool is_held;       /* read-only for the caller */
    /* The next four are for concurrency_limit.c only. */
    atomic_bool is_waiting;
    uint32_t entry;
    int64_t held_ns; /* since when */
    struct concurrency_slot *next;
    void *owner;                                   /* for wake and refuse */
    void (*wake)(struct concurrency_slot *self);   /* called when the waiting slot has become a held
                                                      one, on the thread that calls
                                                      concurrency_limit_give or
                                                      concurrency_limit_make_slow */
    void (*refuse)(struct concurrency_slot *self); /* called when another request has replaced the
                                                      waiting slot, which belongs to the callee
                                                      then; on the other request's thread */
};

/* For a pool of worker_count threads; max_waiting bounds the waiting requests. */
struct concurrency_limit *concurrency_limit_create(int worker_count, int max_waiting);
/* Replaces CONCURRENCY_LIMIT_WAITING_BYTES; call it before the first slot is taken. */
void concurrency_limit_set_waiting_bytes(struct concurrency_limit *concurrency, size_t bytes);
/* Replaces clock_monotonic_ns, for tests; call it before the first slot is taken. */
void concurrency_limit_set_clock(struct concurrency_limit *concurrency, int64_t (*now_ns)(void));
/*
 * The same for all requests of a pool of threads, slow or not: no part of the threads is reserved
 * for other work. A client, and all clients without credentials together, have half of the threads,
 * at least one. If slow requests occupy all of that, one light request of the client may run beside
 * them, so that a page stays usable while queries run. The key of a slot is its client.
 */
struct concurrency_limit *concurrency_limit_create_shares(int worker_count, int max_waiting);
/* Makes a held slot of shares slow, because its request has turned out to be slow. Passes a slot to
 * a waiting light request that may now run beside it. */
void concurrency_limit_make_slow(struct concurrency_limit *shares, struct concurrency_slot *slot);
/* NULL is a no-op. No slot may be held or waited for any more. */
void concurrency_limit_destroy(struct concurrency_limit *concurrency);

/* Takes the slot if the rules above allow it now. Returns true if it is held, also if it
 * was before the call. */
bool concurrency_limit_take(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

enum concurrency_limit_outcome {
    CONCURRENCY_LIMIT_TAKEN,
    CONCURRENCY_LIMIT_WAITING, /* the slot no longer belongs to the caller: wake may be running
                                  already, or concurrency_limit_leave */
    CONCURRENCY_LIMIT_REFUSED, /* the client or the source has as many waiting requests, or as many
                                  bytes in them, as it may have; or all together have, or those with
                                  the key or without credentials, and no client has two requests
                                  more than this one, of which one could be replaced */
};
enum concurrency_limit_outcome concurrency_limit_take_or_wait(struct concurrency_limit *concurrency,
                                                              struct concurrency_slot *slot);

/* Removes the slot from the waiting ones. True: it belongs to the caller, and neither wake nor
 * refuse will be called. False: the slot was not waiting (any more), and nothing was done. */
bool concurrency_limit_leave(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

/* Returns a held slot, and passes it to the next request that may have it. */
void concurrency_limit_give(struct concurrency_limit *concurrency, struct concurrency_slot *slot);

/* For metrics and tests. */
int concurrency_limit_waiting_count(struct concurrency_limit *concurrency);
int concurrency_limit_held_count(struct concurrency_limit *concurrency);

#endif
