#include "api/debuginfo/builder_queue.h"

#include <assert.h>
#include <stddef.h>

void builder_queue_join(struct builder_queue *queue, struct builder_ticket *ticket, uint64_t bytes)
{
    *ticket = (struct builder_ticket){.bytes = bytes};
    pthread_mutex_lock(&queue->mutex);
    struct builder_ticket **end = &queue->first;
    while (*end)
        end = &(*end)->next;
    *end = ticket;
    pthread_mutex_unlock(&queue->mutex);
}

bool builder_queue_enter(struct builder_queue *queue, struct builder_ticket *ticket,
                         uint64_t max_bytes)
{
    pthread_mutex_lock(&queue->mutex);
    const bool is_in = queue->first == ticket &&
                       (!queue->running_bytes || queue->running_bytes + ticket->bytes <= max_bytes);
    if (is_in) {
        queue->first = ticket->next;
        queue->running_bytes += ticket->bytes;
    }
    pthread_mutex_unlock(&queue->mutex);
    return is_in;
}

void builder_queue_cancel(struct builder_queue *queue, struct builder_ticket *ticket)
{
    pthread_mutex_lock(&queue->mutex);
    struct builder_ticket **link = &queue->first;
    while (*link != ticket) {
        assert(*link);
        link = &(*link)->next;
    }
    *link = ticket->next;
    pthread_mutex_unlock(&queue->mutex);
}

void builder_queue_leave(struct builder_queue *queue, uint64_t bytes)
{
    pthread_mutex_lock(&queue->mutex);
    assert(queue->running_bytes >= bytes);
    queue->running_bytes -= bytes;
    pthread_mutex_unlock(&queue->mutex);
}
