/*
 * builder_queue: limits the memory of all builders that run at a time, and starts them in the order
 * of their arrival, so a large builder does not wait until all smaller ones have ended.
 *
 * A caller polls: builder_queue_join; builder_queue_enter until it returns true, or
 * builder_queue_cancel; builder_queue_leave at the end. Threads: any. Private to api/debuginfo/.
 */
#ifndef API_DEBUGINFO_BUILDER_QUEUE_H
#define API_DEBUGINFO_BUILDER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Belongs to the caller, and must not move from join to a successful enter or to cancel. */
struct builder_ticket {
    uint64_t bytes;
    struct builder_ticket *next; /* the one that came after it */
};

struct builder_queue {
    pthread_mutex_t mutex;
    uint64_t running_bytes;
    struct builder_ticket *first; /* the waiting tickets, first come first */
};

#define BUILDER_QUEUE_EMPTY                                                                        \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, 0, NULL                                                         \
    }

/* Adds a ticket for a builder that takes that many bytes, at least 1. */
void builder_queue_join(struct builder_queue *queue, struct builder_ticket *ticket, uint64_t bytes);
/* Whether the builder may start: the ticket is the first, and the builders then have at most
 * max_bytes together, or it is the only one. If so, the ticket is no longer part of the queue. */
bool builder_queue_enter(struct builder_queue *queue, struct builder_ticket *ticket,
                         uint64_t max_bytes);
/* Removes a waiting ticket. */
void builder_queue_cancel(struct builder_queue *queue, struct builder_ticket *ticket);
/* After a builder of that many bytes has ended. */
void builder_queue_leave(struct builder_queue *queue, uint64_t bytes);

#endif
