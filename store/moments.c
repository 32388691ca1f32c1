#include "store/moments.h"

#include "lib/base/mem.h"

#include <stdlib.h>

void moments_fini(struct moments *moments)
{
    mem_free(moments->times_ns);
    *moments = (struct moments){0};
}

/* ---- which tasks ---- */

static int compare_places(const void *a, const void *b, void *tasks)
{
    const struct walk_task *x = (const struct walk_task *)tasks + *(const uint32_t *)a;
    const struct walk_task *y = (const struct walk_task *)tasks + *(const uint32_t *)b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->granule->begin_ns > y->granule->begin_ns) -
           (x->granule->begin_ns < y->granule->begin_ns);
}

static uint32_t *order_tasks(struct walk *walk)
{
    uint32_t *order = arena_new(walk->arena, uint32_t, walk->task_count);
    for (uint32_t i = 0; i < walk->task_count; i++)
        order[i] = i;
    if (walk->task_count)
        qsort_r(order, walk->task_count, sizeof(*order), compare_places, walk->tasks);
    return order;
}

/* In order of begins a granule meets one before it where it meets the one that ends last; which of
 * those before that one met was known when they came. */
const uint32_t *moments_find_shared(struct walk *walk)
{
    const uint32_t *order = order_tasks(walk);
    struct walk_task *last = NULL;
    for (uint32_t i = 0; i < walk->task_count; i++) {
        struct walk_task *task = &walk->tasks[order[i]];
        const struct block_granule *granule = task->granule;
        const bool is_first = !last || last->series != task->series;
        const bool meets_last = !is_first && granule->begin_ns <= last->granule->end_ns;
        task->has_shared_moments = meets_last || !(granule->flags & BLOCK_BEGIN_APART);
        if (meets_last)
            last->has_shared_moments = true;
        if (is_first || granule->end_ns > last->granule->end_ns)
            last = task;
    }
    return order;
}

/* ---- each once ---- */

void moments_add(struct moments *moments, const struct block_profile *profiles, uint32_t first,
                 uint32_t end)
{
    const uint64_t most = moments->count + end - first;
    if (most > moments->capacity) {
        moments->capacity = most + most / 2;
        moments->times_ns =
            mem_resize(moments->times_ns, moments->capacity, sizeof(*moments->times_ns));
    }
    for (uint32_t i = first; i < end; i++)
        moments->times_ns[moments->count++] = profiles[i].time_ns;
}

size_t moments_memory(const struct moments *moments)
{
    return moments->capacity * sizeof(*moments->times_ns);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void moments_tell(struct moments *moments, void (*tell)(void *context, int64_t time_ns),
                  void *context)
{
    const int64_t *times_ns = moments->times_ns;
    if (moments->count)
        qsort(moments->times_ns, moments->count, sizeof(*times_ns), compare_times);
    for (uint64_t i = 0; i < moments->count; i++) {
        if (!i || times_ns[i] != times_ns[i - 1])
            tell(context, times_ns[i]);
    }
    moments->count = 0;
}
