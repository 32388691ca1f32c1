#include "store/values/snapshot_chains.h"

#include "lib/base/mem.h"
#include "store/values/counter_rows.h"

enum { GROWTH_PART = 4 }; /* steady growth is at most this part of the total */

struct chains {
    const struct counter_row *rows; /* by snapshot, then by stack */
    const int64_t *times_ns;
    uint64_t *starts; /* index of the first row of each snapshot; the last element: row_count */
    int64_t *totals;
    uint32_t count;
    struct snapshot_link *links;
};

/*
 * Sets restarted of snapshot i if a stack has less in it than in i - 1; a stack without a row has
 * 0. Rows are sorted by stack. Returns whether there is any.
 */
static bool find_decreases(const struct counter_row *rows, uint64_t row_count,
                           uint32_t snapshot_count, struct snapshot_link *links)
{
    bool is_found = false;
    int64_t value, after;
    for (uint64_t i = 0; i < row_count;) {
        const uint64_t next_row = counter_rows_sum(rows, i, row_count, &value);
        const uint32_t next = rows[i].snapshot + 1;
        const bool has_next = next_row < row_count && rows[next_row].stack == rows[i].stack &&
                              rows[next_row].snapshot == next;
        after = 0;
        if (has_next)
            counter_rows_sum(rows, next_row, row_count, &after);
        if (next < snapshot_count && after < value)
            is_found = links[next].restarted = true;
        i = next_row;
    }
    return is_found;
}

static void find_totals(struct chains *chains, uint64_t row_count)
{
    uint64_t row = 0;
    for (uint32_t i = 0; i < chains->count; i++) {
        chains->starts[i] = row;
        chains->totals[i] = 0;
        for (; row < row_count && chains->rows[row].snapshot == i; row++)
            chains->totals[i] =
                counter_rows_add_limited(chains->totals[i], chains->rows[row].value);
    }
    chains->starts[chains->count] = row_count;
}

/* Whether no stack has less in the later snapshot. Both have their rows in the order of stacks. */
static bool is_at_least(const struct chains *chains, uint32_t later, uint32_t earlier)
{
    const struct counter_row *rows = chains->rows;
    const uint64_t end = chains->starts[earlier + 1], later_end = chains->starts[later + 1];
    uint64_t j = chains->starts[later];
    for (uint64_t i = chains->starts[earlier]; i < end;) {
        int64_t value, later_value = 0;
        const uint32_t stack = rows[i].stack;
        i = counter_rows_sum(rows, i, end, &value);
        while (j < later_end && rows[j].stack < stack)
            j++;
        if (j < later_end && rows[j].stack == stack)
            j = counter_rows_sum(rows, j, later_end, &later_value);
        if (later_value < value)
            return false;
    }
    return true;
}

static bool grows_steadily(const struct chains *chains, uint32_t from, uint32_t to)
{
    const int64_t before = chains->totals[from], after = chains->totals[to];
    return before > 0 && after > before && after - before <= before / GROWTH_PART &&
           is_at_least(chains, to, from);
}

static uint32_t reach_begin(uint32_t i)
{
    return i > SNAPSHOT_CHAINS_REACH ? i - SNAPSHOT_CHAINS_REACH : 0;
}

static double distance(const struct chains *chains, uint32_t from, uint32_t to)
{
    return (double)chains->times_ns[to] - (double)chains->times_ns[from];
}

/* Whether there are more snapshots between the two than one sender has that sends one per interval.
 */
static bool are_close(const struct chains *chains, uint32_t from, uint32_t to, double interval_ns)
{
    return (double)(to - from) > distance(chains, from, to) / interval_ns + 0.5;
}

/* Whether some distance between neighbours is at least a quarter longer than another. */
static bool are_distances_different(const struct chains *chains, uint32_t from, uint32_t to)
{
    double least = distance(chains, from, from + 1), most = least;
    for (uint32_t i = from + 1; i < to; i++) {
        const double next = distance(chains, i, i + 1);
        least = next < least ? next : least;
        most = next > most ? next : most;
    }
    return most > 1.25 * least;
}

/* Whether the snapshot continues another one than that before it. */
static bool is_in_turn(const struct chains *chains, uint32_t i)
{
    return i && chains->links[i].before != SNAPSHOT_CHAINS_NONE && chains->links[i].before != i - 1;
}

/* The two conditions of the header. */
static bool are_of_a_chain(const struct chains *chains, uint32_t from, uint32_t to)
{
    if (!grows_steadily(chains, from, to))
        return false;
    const uint32_t before = chains->links[from].before;
    if (before != SNAPSHOT_CHAINS_NONE && grows_steadily(chains, before, from) &&
        are_close(chains, from, to, distance(chains, before, from)))
        return true;
    for (uint32_t i = to + 1; i < chains->count && i <= to + SNAPSHOT_CHAINS_REACH; i++)
        if (are_close(chains, from, to, distance(chains, to, i)) &&
            (is_in_turn(chains, to - 1) || are_distances_different(chains, from, i)) &&
            grows_steadily(chains, to, i))
            return true;
    return false;
}

/* Makes *best the snapshot `from` if snapshot i continues it with a smaller increase. */
static void consider(const struct chains *chains, uint32_t from, uint32_t i, uint32_t *best)
{
    if ((*best == SNAPSHOT_CHAINS_NONE || chains->totals[from] > chains->totals[*best]) &&
        are_of_a_chain(chains, from, i))
        *best = from;
}

/* The snapshot that snapshot i continues: the last one of a chain. After a decrease also the one
 * before the last: then the last one began a chain of its own. */
static uint32_t find_continued(const struct chains *chains, uint32_t i)
{
    const struct snapshot_link *links = chains->links;
    uint32_t best = links[i].restarted ? SNAPSHOT_CHAINS_NONE : i - 1;
    for (uint32_t last = reach_begin(i); last < i; last++) {
        if (links[last].after != SNAPSHOT_CHAINS_NONE)
            continue;
        if (last != i - 1)
            consider(chains, last, i, &best);
        const uint32_t before = links[last].before;
        if (links[i].restarted && before != SNAPSHOT_CHAINS_NONE && before >= reach_begin(i))
            consider(chains, before, i, &best);
    }
    return best;
}

/* Snapshot i continues `before`: the process did not restart in between, and a decrease there is
 * the start of another chain. */
static void link_snapshot(const struct chains *chains, uint32_t i)
{
    struct snapshot_link *links = chains->links;
    const uint32_t before = find_continued(chains, i);
    if (before == SNAPSHOT_CHAINS_NONE)
        return;
    for (uint32_t between = before + 1; between < i; between++)
        links[between].restarted = false;
    if (links[before].after != SNAPSHOT_CHAINS_NONE)
        links[links[before].after].before = SNAPSHOT_CHAINS_NONE;
    links[before].after = i;
    links[i].before = before;
    links[i].restarted = false;
}

static void find_chains(struct counter_row *rows, uint64_t row_count, const int64_t *times_ns,
                        uint32_t snapshot_count, struct snapshot_link *links)
{
    struct chains chains = {
        .rows = rows, .times_ns = times_ns, .count = snapshot_count, .links = links};
    counter_rows_sort_by_snapshot(rows, row_count);
    chains.starts = mem_new(uint64_t, snapshot_count + (size_t)1);
    chains.totals = mem_new(int64_t, snapshot_count + (size_t)1);
    find_totals(&chains, row_count);
    for (uint32_t i = 1; i < snapshot_count; i++)
        link_snapshot(&chains, i);
    mem_free(chains.totals);
    mem_free(chains.starts);
}

void snapshot_chains_find(struct counter_row *rows, uint64_t row_count, const int64_t *times_ns,
                          uint32_t snapshot_count, struct snapshot_link *links)
{
    for (uint32_t i = 0; i < snapshot_count; i++)
        links[i] = (struct snapshot_link){SNAPSHOT_CHAINS_NONE, SNAPSHOT_CHAINS_NONE, false};
    counter_rows_sort_by_stack(rows, row_count);
    if (find_decreases(rows, row_count, snapshot_count, links)) {
        find_chains(rows, row_count, times_ns, snapshot_count, links);
        return;
    }
    for (uint32_t i = 1; i < snapshot_count; i++) {
        links[i].before = i - 1;
        links[i - 1].after = i;
    }
}
