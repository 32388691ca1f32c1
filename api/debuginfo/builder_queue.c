#include "api/debuginfo/builder_queue.h"

#include <assert.h>
#include <stddef.h>

void builder_queue_join(struct builder_queue *queue, struct builder_turn *turn, uint64_t bytes)
{
    *turn = (struct builder_turn){.bytes = bytes};
    pthread_mutex_lock(&queue->mutex);
    struct builder_turn **end = &queue->first;
    while (*end)
        end = &(*end)->next;
    *end = turn;
    pthread_mutex_unlock(&queue->mutex);
}

bool builder_queue_enter(struct builder_queue *queue, struct builder_turn *turn, uint64_t max_bytes)
{
    pthread_mutex_lock(&queue->mutex);
    const bool is_in = queue->first == turn &&
                       (!queue->running_bytes || queue->running_bytes + turn->bytes <= max_bytes);
    if (is_in) {
        queue->first = turn->next;
        queue->running_bytes += turn->bytes;
    }
    pthread_mutex_unlock(&queue->mutex);
    return is_in;
}

void builder_queue_cancel(struct builder_queue *queue, struct builder_turn *turn)
{
    pthread_mutex_lock(&queue->mutex);
    struct builder_turn **place = &queue->first;
    while (*place != turn) {
        assert(*place);
        place = &(*place)->next;
    }
    *place = turn->next;
    pthread_mutex_unlock(&queue->mutex);
}

void builder_queue_leave(struct builder_queue *queue, uint64_t bytes)
{
    pthread_mutex_lock(&queue->mutex);
    assert(queue->running_bytes >= bytes);
    queue->running_bytes -= bytes;
    pthread_mutex_unlock(&queue->mutex);
}
