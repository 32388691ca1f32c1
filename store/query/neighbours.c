#include "store/query/neighbours.h"

#include "lib/base/arena.h"

void neighbours_init(struct neighbours *neighbours, struct scan *scan)
{
    *neighbours = (struct neighbours){.scan = scan, .query = scan_query(scan)};
}

void neighbours_begin_series(struct neighbours *neighbours)
{
    neighbours->before.count = neighbours->after.count = 0;
}

static bool is_nearer(int64_t time_ns, int64_t other_ns, bool is_before)
{
    return is_before ? time_ns > other_ns : time_ns < other_ns;
}

static void note_in_edge(struct neighbours_edge *edge, int64_t time_ns, bool is_before)
{
    int at = 0;
    while (at < edge->count && is_nearer(edge->times_ns[at], time_ns, is_before))
        at++;
    if (at == CADENCE_NEIGHBOURS || (at < edge->count && edge->times_ns[at] == time_ns))
        return;
    edge->count += edge->count < CADENCE_NEIGHBOURS;
    for (int i = edge->count - 1; i > at; i--)
        edge->times_ns[i] = edge->times_ns[i - 1];
    edge->times_ns[at] = time_ns;
}

void neighbours_note(struct neighbours *neighbours, int64_t time_ns)
{
    const struct store_query *query = neighbours->query;
    if (time_ns < query->start_ns)
        note_in_edge(&neighbours->before, time_ns, true);
    else if (time_ns >= query->end_ns)
        note_in_edge(&neighbours->after, time_ns, false);
}

/* The unread granule on one side that is nearest to the window. */
static struct scan_task *find_nearest(const struct neighbours *neighbours, struct scan_task *tasks,
                                      uint32_t begin, uint32_t end, bool is_before)
{
    struct scan_task *nearest = NULL;
    for (uint32_t i = begin; i < end; i++) {
        const struct block_granule *granule = tasks[i].granule;
        if (!tasks[i].is_neighbour || tasks[i].is_needed || tasks[i].is_broken ||
            is_before != (granule->end_ns < neighbours->query->start_ns))
            continue;
        if (!nearest || (is_before ? granule->end_ns > nearest->granule->end_ns
                                   : granule->begin_ns < nearest->granule->begin_ns))
            nearest = &tasks[i];
    }
    return nearest;
}

/* Sets the task to its needed profiles within the reach. */
static enum err_code take_profiles(struct scan *scan, struct scan_task *task, bool is_before)
{
    const struct store_query *query = scan_query(scan);
    const uint32_t count = task->granule->profile_count;
    const enum store_aggregation aggregation = scan_aggregation(scan);
    const struct block_profile *profiles;
    enum err_code code = scan_read_profiles(scan, task->block, task->granule, &profiles);
    code = scan_note_read(scan, task, 0, task->granule->extent_bytes[BLOCK_PROFILES], code);
    if (code || task->is_broken)
        return code;
    task->first = is_before ? scan_find_before(profiles, count, aggregation, NULL) : 0;
    task->end = is_before ? count : scan_find_after(profiles, 0, count, aggregation, NULL);
    while (task->first < task->end &&
           cadence_distance(profiles[task->first].time_ns, query->start_ns) > query->reach_ns)
        task->first++;
    while (task->first < task->end &&
           cadence_distance(query->end_ns, profiles[task->end - 1].time_ns) >= query->ahead_ns)
        task->end--;
    struct block_profile *kept =
        arena_new_raw(scan_arena(scan), struct block_profile, task->end - task->first);
    for (uint32_t i = task->first; i < task->end; i++)
        kept[i - task->first] = profiles[i];
    task->profiles = kept;
    return ERR_NONE;
}

enum err_code neighbours_next(struct neighbours *neighbours, struct scan_task *tasks,
                              uint32_t begin, uint32_t end, bool is_before,
                              struct scan_task **ret_task)
{
    const struct neighbours_edge *edge = is_before ? &neighbours->before : &neighbours->after;
    struct scan_task *task;
    *ret_task = NULL;
    while ((task = find_nearest(neighbours, tasks, begin, end, is_before))) {
        const int64_t time_ns = is_before ? task->granule->end_ns : task->granule->begin_ns;
        if (edge->count == CADENCE_NEIGHBOURS &&
            !is_nearer(time_ns, edge->times_ns[CADENCE_NEIGHBOURS - 1], is_before))
            return ERR_NONE;
        enum err_code code = take_profiles(neighbours->scan, task, is_before);
        if (code)
            return code;
        if (task->is_broken)
            continue;
        task->is_needed = true;
        *ret_task = task;
        return ERR_NONE;
    }
    return ERR_NONE;
}

static void want_reach(struct neighbours *neighbours, __int128 wanted_ns)
{
    if (wanted_ns > NEIGHBOURS_REACH_MAX_NS)
        wanted_ns = NEIGHBOURS_REACH_MAX_NS;
    if (wanted_ns > neighbours->wanted_reach_ns)
        neighbours->wanted_reach_ns = (int64_t)wanted_ns;
}

/*
 * Requests a longer reach if a needed neighbour may be beyond it. distance_ns is from the window's
 * edge to the farthest snapshot that was found on that side, negative inside the window. The next
 * snapshot is expected within the longest distance that is no gap; if that is within the reach, the
 * scan would have found it. If the series has a single snapshot so far (interval_ns is 0), the next
 * one may be anywhere.
 */
static void note_hidden(struct neighbours *neighbours, const struct neighbours_edge *edge,
                        __int128 distance_ns, int64_t interval_ns)
{
    if (!interval_ns) {
        want_reach(neighbours, NEIGHBOURS_REACH_MAX_NS);
        return;
    }
    const __int128 next_ns = distance_ns + cadence_longest(interval_ns);
    if (edge->count == CADENCE_NEIGHBOURS || next_ns <= neighbours->query->ahead_ns)
        return;
    /* After a gap, even the last snapshot that was found may be farther away than five intervals.
     */
    const __int128 wanted_ns = (__int128)interval_ns * (CADENCE_NEIGHBOURS + 2);
    want_reach(neighbours, wanted_ns > next_ns ? wanted_ns : next_ns);
}

/* Beyond the end of the reach after the window there can be profiles only if that end is in the
 * past. */
void neighbours_end_series(struct neighbours *neighbours, const int64_t *times_ns, uint32_t count)
{
    const struct store_query *query = neighbours->query;
    if (!count || !query->ahead_ns)
        return;
    note_hidden(neighbours, &neighbours->before, (__int128)query->start_ns - times_ns[0],
                cadence_interval(times_ns, count, 0));
    if ((__int128)query->end_ns + query->ahead_ns < clock_wall_ns())
        note_hidden(neighbours, &neighbours->after, (__int128)times_ns[count - 1] - query->end_ns,
                    cadence_interval(times_ns, count, count - 1));
}

/* A snapshot that is followed by none holds for an interval, which is at most the distance between
 * two snapshots of its granule, and so at most an hour. */
static bool holds_until_window(const struct neighbours *neighbours,
                               const struct block_granule *last)
{
    return last->begin_ns == last->end_ns ||
           cadence_distance(last->end_ns, neighbours->query->start_ns) < NEIGHBOURS_REACH_NS;
}

bool neighbours_can_matter(const struct neighbours *neighbours, const struct scan_task *tasks,
                           uint32_t begin, uint32_t end)
{
    const struct scan *scan = neighbours->scan;
    const struct block_granule *last = NULL; /* before the window */
    bool has_after = false;
    if (scan_aggregation(scan) == STORE_SUM)
        return true;
    for (uint32_t i = begin; i < end; i++) {
        const struct block_granule *granule = tasks[i].granule;
        if (!tasks[i].is_neighbour)
            return true;
        if (granule->begin_ns >= neighbours->query->end_ns)
            has_after = true;
        else if (!last || granule->end_ns > last->end_ns)
            last = granule;
    }
    if (!last || has_after || scan_aggregation(scan) == STORE_COUNTER_DELTA)
        return last && has_after;
    return holds_until_window(neighbours, last);
}

bool neighbours_reach_window(const struct neighbours *neighbours, const int64_t *times_ns,
                             uint32_t count)
{
    const struct store_query *query = neighbours->query;
    const uint32_t first = cadence_find(times_ns, count, query->start_ns);
    return first < count && (first > 0 || times_ns[first] < query->end_ns);
}

bool neighbours_extend(struct store_query *query, int64_t reach_ns)
{
    const bool is_longer = reach_ns > query->reach_ns || reach_ns > query->ahead_ns;
    query->reach_ns = reach_ns > query->reach_ns ? reach_ns : query->reach_ns;
    query->ahead_ns = reach_ns > query->ahead_ns ? reach_ns : query->ahead_ns;
    return is_longer;
}
