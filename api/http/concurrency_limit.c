#include "api/http/concurrency_limit.h"

#include "lib/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

struct turns {
    pthread_mutex_t mutex; /* guards what follows and the fields of all turns that are in a list */
    int max_held;
    int max_held_of_one;
    int max_waiting;
    int held_count;
    int waiting_count;
    struct turn *held;
    struct turn *waiting; /* who came first is first */
};

struct turns *turns_create(int worker_count, int max_waiting)
{
    struct turns *turns = mem_new(struct turns, 1);
    pthread_mutex_init(&turns->mutex, NULL);
    int reserve = (worker_count + 3) / 4;
    turns->max_held = worker_count - reserve > 1 ? worker_count - reserve : 1;
    turns->max_held_of_one = worker_count / 4 > 1 ? worker_count / 4 : 1;
    turns->max_waiting = max_waiting;
    return turns;
}

void turns_destroy(struct turns *turns)
{
    if (!turns)
        return;
    assert(!turns->held && !turns->waiting);
    pthread_mutex_destroy(&turns->mutex);
    mem_free(turns);
}

static int count_source(const struct turn *list, const char *source)
{
    int count = 0;
    for (const struct turn *turn = list; turn && source; turn = turn->next)
        count += turn->source && strcmp(turn->source, source) == 0;
    return count;
}

/* Called locked. Few are held, so that looking through them costs little. */
static bool is_free(const struct turns *turns, const struct turn *wanted)
{
    int count = 0;
    for (const struct turn *turn = turns->held; turn; turn = turn->next)
        count += strcmp(turn->key, wanted->key) == 0;
    return turns->held_count < turns->max_held && count_source(turns->held, wanted->source) == 0 &&
           count < (wanted->most ? wanted->most : turns->max_held_of_one);
}

static void hold(struct turns *turns, struct turn *turn)
{
    turn->is_held = true;
    turn->next = turns->held;
    turns->held = turn;
    turns->held_count++;
}

bool turns_take(struct turns *turns, struct turn *turn)
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
static bool is_crowded(const struct turns *turns, const struct turn *wanted)
{
    int count = 0;
    for (const struct turn *turn = turns->waiting; turn; turn = turn->next)
        count += strcmp(turn->key, wanted->key) == 0;
    return count >= (turns->max_waiting + 1) / 2 ||
           count_source(turns->waiting, wanted->source) >= TURNS_WAITING_OF_SOURCE;
}

enum turns_outcome turns_take_or_wait(struct turns *turns, struct turn *turn)
{
    enum turns_outcome outcome = TURNS_REFUSED;
    pthread_mutex_lock(&turns->mutex);
    if (is_free(turns, turn)) {
        hold(turns, turn);
        outcome = TURNS_TAKEN;
    } else if (turns->waiting_count < turns->max_waiting && !is_crowded(turns, turn)) {
        struct turn **place = &turns->waiting;
        while (*place)
            place = &(*place)->next;
        turn->next = NULL;
        *place = turn;
        turns->waiting_count++;
        atomic_store(&turn->is_waiting, true);
        outcome = TURNS_WAITING;
    }
    pthread_mutex_unlock(&turns->mutex);
    return outcome;
}

/* Called locked: takes the turn that *place points to out of the list. */
static struct turn *unlink_waiting(struct turns *turns, struct turn **place)
{
    struct turn *turn = *place;
    *place = turn->next;
    turns->waiting_count--;
    atomic_store(&turn->is_waiting, false);
    return turn;
}

bool turns_leave(struct turns *turns, struct turn *turn)
{
    if (!atomic_load(&turn->is_waiting))
        return false;
    pthread_mutex_lock(&turns->mutex);
    struct turn **place = &turns->waiting;
    while (*place && *place != turn)
        place = &(*place)->next;
    bool has_left = *place != NULL;
    if (has_left)
        unlink_waiting(turns, place);
    pthread_mutex_unlock(&turns->mutex);
    return has_left;
}

/* Hands what is free to the first who may have it; NULL: nobody. */
static struct turn *hand_on(struct turns *turns)
{
    struct turn *woken = NULL;
    pthread_mutex_lock(&turns->mutex);
    struct turn **place = &turns->waiting;
    while (*place && !is_free(turns, *place))
        place = &(*place)->next;
    if (*place) {
        woken = unlink_waiting(turns, place);
        hold(turns, woken);
    }
    pthread_mutex_unlock(&turns->mutex);
    return woken;
}

void turns_give(struct turns *turns, struct turn *turn)
{
    pthread_mutex_lock(&turns->mutex);
    struct turn **place = &turns->held;
    while (*place != turn)
        place = &(*place)->next;
    *place = turn->next;
    turn->is_held = false;
    turns->held_count--;
    pthread_mutex_unlock(&turns->mutex);
    /* One may have waited for the key and another for the source. */
    for (struct turn *woken; (woken = hand_on(turns));)
        woken->wake(woken);
}

int turns_waiting_count(struct turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    int count = turns->waiting_count;
    pthread_mutex_unlock(&turns->mutex);
    return count;
}

int turns_held_count(struct turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    int count = turns->held_count;
    pthread_mutex_unlock(&turns->mutex);
    return count;
}
