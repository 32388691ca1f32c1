#include "store/query/weights.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "store/query/neighbours.h"
#include "store/values/coverage.h"
#include "store/values/interleaving.h"
#include "store/values/spread.h"

#include <stdlib.h>

struct weighing {
    struct scan *scan;
    const struct store_query *query;
    struct scan_task *tasks;
    uint32_t task_count;
    struct weights *weights;
    struct neighbours neighbours;
    struct coverage covered; /* of all series */
    /* The current series: */
    struct interleaving interleaving;
    int64_t *times_ns;
    int64_t *ends_ns;
    uint32_t time_count;
    uint32_t time_capacity;
};

static void note_times(struct weighing *weighing, const struct scan_task *task,
                       const struct block_profile *profiles)
{
    const uint32_t count = task->end - task->first;
    const uint32_t most = weighing->time_count + count;
    struct weight *weight = &weighing->weights->tasks[task - weighing->tasks];
    weight->holds_ns = arena_new_raw(scan_arena(weighing->scan), int64_t, count);
    if (most > weighing->time_capacity) {
        weighing->time_capacity = most + most / 2;
        weighing->times_ns =
            mem_resize(weighing->times_ns, weighing->time_capacity, sizeof(int64_t));
        weighing->ends_ns = mem_resize(weighing->ends_ns, weighing->time_capacity, sizeof(int64_t));
    }
    for (uint32_t i = 0; i < count; i++) {
        /* replaced by the weight once all times are known */
        weight->holds_ns[i] = profiles[i].time_ns;
        interleaving_add(&weighing->interleaving, profiles[i].duration_ns);
        weighing->times_ns[weighing->time_count++] = profiles[i].time_ns;
        neighbours_note(&weighing->neighbours, profiles[i].time_ns);
    }
}

static enum err_code read_times(struct weighing *weighing, struct scan_task *task)
{
    struct scan *scan = weighing->scan;
    const struct block_profile *profiles;
    if (task->profiles) {
        note_times(weighing, task, task->profiles);
        return ERR_NONE;
    }
    enum err_code code = scan_read_profiles(scan, task->block, task->granule, &profiles);
    if (code)
        return scan_note_read(scan, task, 0, 0, code);
    scan_count_bytes(scan, task->granule->extent_bytes[BLOCK_PROFILES]);
    note_times(weighing, task, profiles + task->first);
    return scan_check_limits(scan, weighing->time_capacity * 2 * sizeof(int64_t));
}

static enum err_code read_neighbours(struct weighing *weighing, uint32_t begin, uint32_t end,
                                     bool is_before)
{
    struct scan_task *task;
    enum err_code code;
    do {
        code =
            neighbours_next(&weighing->neighbours, weighing->tasks, begin, end, is_before, &task);
        if (!code && task)
            note_times(weighing, task, task->profiles);
    } while (!code && task);
    return code;
}

static enum err_code read_series(struct weighing *weighing, uint32_t begin, uint32_t end)
{
    struct scan_task *tasks = weighing->tasks;
    enum err_code code = ERR_NONE;
    weighing->time_count = 0;
    weighing->interleaving = (struct interleaving){0};
    neighbours_begin_series(&weighing->neighbours);
    for (uint32_t i = begin; i < end && !code; i++) {
        if (!neighbours_is_unread(&tasks[i]))
            code = read_times(weighing, &tasks[i]);
    }
    if (code)
        return code;
    code = read_neighbours(weighing, begin, end, true);
    if (code)
        return code;
    return read_neighbours(weighing, begin, end, false);
}

/* Finds until when each snapshot holds, and adds the part in the window to the coverage. */
static void find_ends(struct weighing *weighing)
{
    const struct store_query *query = weighing->query;
    struct coverage covered = {0};
    weighing->time_count = cadence_order(weighing->times_ns, weighing->time_count);
    const uint32_t count = weighing->time_count;
    if (interleaving_is_found(&weighing->interleaving, weighing->times_ns, count))
        scan_count_interleaved(weighing->scan);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t time_ns = weighing->times_ns[i];
        int64_t end_ns = cadence_end(weighing->times_ns, count, i);
        if (count == 1 && __builtin_add_overflow(time_ns, SPREAD_LONE_NS, &end_ns))
            end_ns = INT64_MAX;
        weighing->ends_ns[i] = end_ns;
        coverage_add(&covered, time_ns > query->start_ns ? time_ns : query->start_ns,
                     end_ns < query->end_ns ? end_ns : query->end_ns);
    }
    coverage_close(&covered, 0);
    coverage_unite(&weighing->covered, &covered);
    coverage_fini(&covered);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t find_hold(const struct weighing *weighing, int64_t time_ns)
{
    const struct store_query *query = weighing->query;
    const int64_t *found = bsearch(&time_ns, weighing->times_ns, weighing->time_count,
                                   sizeof(*weighing->times_ns), compare_times);
    int64_t end_ns = found ? weighing->ends_ns[found - weighing->times_ns] : time_ns;
    end_ns = end_ns < query->end_ns ? end_ns : query->end_ns;
    time_ns = time_ns > query->start_ns ? time_ns : query->start_ns;
    return time_ns < end_ns ? end_ns - time_ns : 0;
}

/* Snapshots that hold in the window are adjacent, since their ends ascend as their starts do. */
static void weigh_task(struct weighing *weighing, const struct scan_task *task)
{
    struct weight *weight = &weighing->weights->tasks[task - weighing->tasks];
    int64_t least_ns = INT64_MAX, most_ns = 0;
    double sum_ns = 0;
    weight->first = weight->end = task->first;
    if (neighbours_is_unread(task))
        return;
    for (uint32_t i = task->first; i < task->end; i++) {
        int64_t *hold_ns = &weight->holds_ns[i - task->first];
        *hold_ns = find_hold(weighing, *hold_ns);
        if (!*hold_ns)
            continue;
        if (weight->first == weight->end)
            weight->first = i;
        weight->end = i + 1;
        least_ns = *hold_ns < least_ns ? *hold_ns : least_ns;
        most_ns = *hold_ns > most_ns ? *hold_ns : most_ns;
        sum_ns += (double)*hold_ns;
    }
    weight->is_even = most_ns - least_ns <= most_ns / WEIGHTS_EVEN_PART;
    weight->mean_ns = weight->first < weight->end ? sum_ns / (weight->end - weight->first) : 0;
    weighing->weights->magnitude += weight->first < weight->end ? task->granule->magnitude : 0;
}

static enum err_code weigh_all(struct weighing *weighing)
{
    struct scan *scan = weighing->scan;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0, end; i < weighing->task_count && !code; i = end) {
        end = scan_next_series(scan, i);
        if (!neighbours_can_matter(&weighing->neighbours, weighing->tasks, i, end)) {
            scan_discount_series(scan);
            continue;
        }
        code = read_series(weighing, i, end);
        if (code)
            return code;
        find_ends(weighing);
        bool holds = false;
        for (uint32_t j = i; j < end; j++) {
            weigh_task(weighing, &weighing->tasks[j]);
            holds |= weighing->weights->tasks[j].first < weighing->weights->tasks[j].end;
        }
        if (!holds) /* it has only neighbours of the window */
            scan_discount_series(scan);
    }
    return code;
}

enum err_code weights_find(struct scan *scan, struct weights *ret_weights)
{
    const struct store_query *query = scan_query(scan);
    struct weights weights = {0};
    struct weighing weighing = {.scan = scan, .query = query, .weights = &weights};
    uint32_t cursor = 0;
    scan_sort_by_series(scan);
    weighing.tasks = scan_tasks(scan, &weighing.task_count);
    weights.tasks = arena_new(scan_arena(scan), struct weight, weighing.task_count);
    neighbours_init(&weighing.neighbours, scan);
    const enum err_code code = weigh_all(&weighing);
    weights.covered_ns =
        coverage_within(&weighing.covered, &cursor, query->start_ns, query->end_ns);
    coverage_fini(&weighing.covered);
    mem_free(weighing.times_ns);
    mem_free(weighing.ends_ns);
    if (!code)
        *ret_weights = weights;
    return code;
}
