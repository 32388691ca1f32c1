#include "api/http/concurrency_limit.h"

#include "lib/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

struct concurrency_limit {
    pthread_mutex_t mutex; /* guards what follows and the fields of all turns that are in a list */
    int max_held;
    int max_held_of_one;
    int max_waiting;
    int held_count;
    int waiting_count;
    struct concurrency_slot *held;
    struct concurrency_slot *waiting; /* who came first is first */
};

struct concurrency_limit *concurrency_limit_create(int worker_count, int max_waiting)
{
    struct concurrency_limit *turns = mem_new(struct concurrency_limit, 1);
    pthread_mutex_init(&turns->mutex, NULL);
    int reserve = (worker_count + 3) / 4;
    turns->max_held = worker_count - reserve > 1 ? worker_count - reserve : 1;
    turns->max_held_of_one = worker_count / 4 > 1 ? worker_count / 4 : 1;
    turns->max_waiting = max_waiting;
    return turns;
}

void concurrency_limit_destroy(struct concurrency_limit *turns)
{
    if (!turns)
        return;
    assert(!turns->held && !turns->waiting);
    pthread_mutex_destroy(&turns->mutex);
    mem_free(turns);
}

static int count_source(const struct concurrency_slot *list, const char *source)
{
    int count = 0;
    for (const struct concurrency_slot *turn = list; turn && source; turn = turn->next)
        count += turn->source && strcmp(turn->source, source) == 0;
    return count;
}

/* Called locked. Few are held, so that looking through them costs little. */
static bool is_free(const struct concurrency_limit *turns, const struct concurrency_slot *wanted)
{
    int count = 0;
    for (const struct concurrency_slot *turn = turns->held; turn; turn = turn->next)
        count += strcmp(turn->key, wanted->key) == 0;
    return turns->held_count < turns->max_held && count_source(turns->held, wanted->source) == 0 &&
           count < (wanted->most ? wanted->most : turns->max_held_of_one);
}

static void hold(struct concurrency_limit *turns, struct concurrency_slot *turn)
{
    turn->is_held = true;
    turn->next = turns->held;
    turns->held = turn;
    turns->held_count++;
}

bool concurrency_limit_take(struct concurrency_limit *turns, struct concurrency_slot *turn)
{
    pthread_mutex_lock(&turns->mutex);
    /* A place that is free while some wait is not for them: they wait for another share's. */
    if (!turn->is_held && is_free(turns, turn))
        hold(turns, turn);
    bool is_held = turn->is_held;
    pthread_mutex_unlock(&turns->mutex);
    return is_held;
}

/* Called locked. One share's readers leave room in the list for those of others, as does a source.
 */
static bool is_crowded(const struct concurrency_limit *turns, const struct concurrency_slot *wanted)
{
    int count = 0;
    for (const struct concurrency_slot *turn = turns->waiting; turn; turn = turn->next)
        count += strcmp(turn->key, wanted->key) == 0;
    return count >= (turns->max_waiting + 1) / 2 ||
           count_source(turns->waiting, wanted->source) >= CONCURRENCY_LIMIT_WAITING_OF_SOURCE;
}

enum concurrency_limit_outcome concurrency_limit_take_or_wait(struct concurrency_limit *turns,
                                                              struct concurrency_slot *turn)
{
    enum concurrency_limit_outcome outcome = CONCURRENCY_LIMIT_REFUSED;
    pthread_mutex_lock(&turns->mutex);
    if (is_free(turns, turn)) {
        hold(turns, turn);
        outcome = CONCURRENCY_LIMIT_TAKEN;
    } else if (turns->waiting_count < turns->max_waiting && !is_crowded(turns, turn)) {
        struct concurrency_slot **place = &turns->waiting;
        while (*place)
            place = &(*place)->next;
        turn->next = NULL;
        *place = turn;
        turns->waiting_count++;
        atomic_store(&turn->is_waiting, true);
        outcome = CONCURRENCY_LIMIT_WAITING;
    }
    pthread_mutex_unlock(&turns->mutex);
    return outcome;
}

/* Called locked: takes the turn that *place points to out of the list. */
static struct concurrency_slot *unlink_waiting(struct concurrency_limit *turns,
                                               struct concurrency_slot **place)
{
    struct concurrency_slot *turn = *place;
    *place = turn->next;
    turns->waiting_count--;
    atomic_store(&turn->is_waiting, false);
    return turn;
}

bool concurrency_limit_leave(struct concurrency_limit *turns, struct concurrency_slot *turn)
{
    if (!atomic_load(&turn->is_waiting))
        return false;
    pthread_mutex_lock(&turns->mutex);
    struct concurrency_slot **place = &turns->waiting;
    while (*place && *place != turn)
        place = &(*place)->next;
    bool has_left = *place != NULL;
    if (has_left)
        unlink_waiting(turns, place);
    pthread_mutex_unlock(&turns->mutex);
    return has_left;
}

/* Hands what is free to the first who may have it; NULL: nobody. */
static struct concurrency_slot *hand_on(struct concurrency_limit *turns)
{
    struct concurrency_slot *woken = NULL;
    pthread_mutex_lock(&turns->mutex);
    struct concurrency_slot **place = &turns->waiting;
    while (*place && !is_free(turns, *place))
        place = &(*place)->next;
    if (*place) {
        woken = unlink_waiting(turns, place);
        hold(turns, woken);
    }
    pthread_mutex_unlock(&turns->mutex);
    return woken;
}

void concurrency_limit_give(struct concurrency_limit *turns, struct concurrency_slot *turn)
{
    pthread_mutex_lock(&turns->mutex);
    struct concurrency_slot **place = &turns->held;
    while (*place != turn)
        place = &(*place)->next;
    *place = turn->next;
    turn->is_held = false;
    turns->held_count--;
    pthread_mutex_unlock(&turns->mutex);
    /* One may have waited for the key and another for the source. */
    for (struct concurrency_slot *woken; (woken = hand_on(turns));)
        woken->wake(woken);
}

int concurrency_limit_waiting_count(struct concurrency_limit *turns)
{
    pthread_mutex_lock(&turns->mutex);
    int count = turns->waiting_count;
    pthread_mutex_unlock(&turns->mutex);
    return count;
}

int concurrency_limit_held_count(struct concurrency_limit *turns)
{
    pthread_mutex_lock(&turns->mutex);
    int count = turns->held_count;
    pthread_mutex_unlock(&turns->mutex);
    return count;
}
