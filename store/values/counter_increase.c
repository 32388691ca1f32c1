#include "store/values/counter_increase.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "store/block/block_read.h"
#include "store/values/cadence.h"
#include "store/values/counter_rows.h"
#include "store/values/snapshot_chains.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes per profile while increases are computed: order, number, time, since_ns, chains. */
enum {
    EMISSION_BYTES = 2 * sizeof(uint32_t) + 2 * sizeof(int64_t) + sizeof(struct snapshot_link) +
                     SNAPSHOT_CHAINS_BYTES
};

void counter_increase_fini(struct counter_increase *increase)
{
    mem_free(increase->rows);
    mem_free(increase->times_ns);
    stack_hash_set_fini(&increase->stacks);
    *increase = (struct counter_increase){0};
}

static void add_times(struct counter_increase *increase, const struct block_rows *rows,
                      uint32_t first, uint32_t end)
{
    vec_reserve(increase->times_ns, increase->time_capacity, increase->time_count + end - first);
    for (uint32_t i = first; i < end; i++)
        increase->times_ns[increase->time_count++] = rows->profiles[i].time_ns;
}

static void reserve_rows(struct counter_increase *increase, uint32_t count)
{
    vec_reserve(increase->rows, increase->row_capacity, increase->row_count + count);
    if (!increase->stacks.capacity)
        stack_hash_set_init(&increase->stacks);
}

/* Rows of one stack are adjacent, so each stack is looked up once; the cost does not depend on
 * other series of the block. */
void counter_increase_add(struct counter_increase *increase, const struct block *block,
                          const struct block_rows *rows, uint32_t first, uint32_t end,
                          const uint32_t *keys)
{
    const struct stack_hash *hashes = block_hashes(block)->stacks;
    uint32_t stack = UINT32_MAX, number = 0;
    reserve_rows(increase, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        if (ordinal < first || ordinal >= end)
            continue;
        if (rows->stacks[i] != stack) {
            stack = rows->stacks[i];
            number = stack_hash_set_add(&increase->stacks, hashes[stack]);
        }
        increase->rows[increase->row_count++] = (struct counter_row){
            .stack = number,
            .key = keys[i],
            .snapshot = increase->time_count + ordinal - first,
            .value = rows->values[i],
        };
    }
    add_times(increase, rows, first, end);
}

size_t counter_increase_memory(const struct counter_increase *increase)
{
    return increase->row_capacity * sizeof(*increase->rows) +
           increase->time_capacity * (EMISSION_BYTES + sizeof(*increase->times_ns)) +
           increase->stacks.capacity * (sizeof(struct stack_hash) + 2 * sizeof(uint32_t));
}

const int64_t *counter_increase_times(const struct counter_increase *increase, uint32_t *ret_count)
{
    *ret_count = increase->time_count;
    return increase->times_ns;
}

static int compare_times(const void *a, const void *b, void *times)
{
    const int64_t *times_ns = times;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (times_ns[x] > times_ns[y]) - (times_ns[x] < times_ns[y]);
}

/* Numbers snapshots in order of time; profiles with equal times are one. Rows and times become
 * those of snapshots. Returns how many there are. */
static uint32_t number_snapshots(struct counter_increase *increase)
{
    const uint32_t count = increase->time_count;
    uint32_t *order = mem_new(uint32_t, count + (size_t)1);
    uint32_t *numbers = mem_new(uint32_t, count + (size_t)1);
    int64_t *times_ns = mem_new(int64_t, count + (size_t)1);
    uint32_t snapshot_count = 0;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof(*order), compare_times, increase->times_ns);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t time_ns = increase->times_ns[order[i]];
        if (!snapshot_count || times_ns[snapshot_count - 1] != time_ns)
            times_ns[snapshot_count++] = time_ns;
        numbers[order[i]] = snapshot_count - 1;
    }
    for (uint64_t i = 0; i < increase->row_count; i++)
        increase->rows[i].snapshot = numbers[increase->rows[i].snapshot];
    mem_free(increase->times_ns);
    increase->times_ns = times_ns;
    increase->time_count = snapshot_count;
    mem_free(numbers);
    mem_free(order);
    return snapshot_count;
}

/* Removes the snapshots that are too far from the window. Returns how many are left. */
static uint32_t keep_near(struct counter_increase *increase, uint32_t snapshot_count)
{
    const uint32_t first_inside =
        cadence_find(increase->times_ns, snapshot_count, increase->start_ns);
    const uint32_t end_inside = cadence_find(increase->times_ns, snapshot_count, increase->end_ns);
    const uint32_t first =
        first_inside > CADENCE_NEIGHBOURS ? first_inside - CADENCE_NEIGHBOURS : 0;
    const uint32_t end = end_inside + CADENCE_NEIGHBOURS < snapshot_count
                             ? end_inside + CADENCE_NEIGHBOURS
                             : snapshot_count;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < increase->row_count; i++) {
        struct counter_row row = increase->rows[i];
        if (row.snapshot < first || row.snapshot >= end)
            continue;
        row.snapshot -= first;
        increase->rows[kept++] = row;
    }
    increase->row_count = kept;
    memmove(increase->times_ns, increase->times_ns + first, (end - first) * sizeof(int64_t));
    increase->time_count = end - first;
    return end - first;
}

/* True for more than three restarts in more than a quarter of the snapshots. Several processes in
 * one series of which snapshot_chains makes no chains look like frequent restarts, too. */
static bool restart_often(const struct snapshot_link *links, uint32_t snapshot_count)
{
    enum { FEW_RESTARTS = 3 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot_count; i++)
        count += links[i].restarted;
    return count > FEW_RESTARTS && count > snapshot_count / 4;
}

/* Replaces stacks by keys, without the rows that have none, and sorts again. */
static void sort_by_key(struct counter_increase *increase)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < increase->row_count; i++) {
        if (increase->rows[i].key == COUNTER_INCREASE_LEFT_OUT)
            continue;
        increase->rows[kept] = increase->rows[i];
        increase->rows[kept].stack = increase->rows[kept].key;
        kept++;
    }
    increase->row_count = kept;
    counter_rows_sort_by_stack(increase->rows, increase->row_count);
}

/* Whether an increase ends with snapshot i. */
static bool has_increase(const struct snapshot_link *links, uint32_t i)
{
    return links[i].before != SNAPSHOT_CHAINS_NONE || links[i].restarted;
}

/* Returns since_ns[i], the start of the time to which the increase of snapshot i belongs. */
static int64_t *find_since(const int64_t *times_ns, uint32_t snapshot_count,
                           const struct snapshot_link *links)
{
    int64_t *since_ns = mem_new(int64_t, snapshot_count + (size_t)1);
    for (uint32_t i = 1; i < snapshot_count; i++) {
        const int64_t interval_ns = cadence_interval(times_ns, snapshot_count, i - 1);
        const bool is_cut =
            links[i].restarted && cadence_distance(times_ns[i - 1], times_ns[i]) > interval_ns;
        const uint32_t before = links[i].before == SNAPSHOT_CHAINS_NONE ? i - 1 : links[i].before;
        since_ns[i] = is_cut ? times_ns[i] - interval_ns : times_ns[before];
    }
    return since_ns;
}

struct emission {
    struct counter_increase *increase;
    const struct snapshot_link *links;
    const int64_t *times_ns;
    const int64_t *since_ns;
    void (*add)(void *context, const struct counter_delta *delta);
    void *context;
};

static void emit_increase(const struct emission *emission, uint32_t key, uint32_t snapshot,
                          int64_t value)
{
    struct counter_increase *increase = emission->increase;
    const uint64_t size = (uint64_t)(value < 0 ? -value : value);
    increase->overflows |= size >= COUNTER_INCREASE_MAX - increase->magnitude;
    if (increase->overflows)
        return;
    increase->magnitude += size;
    const struct counter_delta delta = {.key = key,
                                        .since_ns = emission->since_ns[snapshot],
                                        .time_ns = emission->times_ns[snapshot],
                                        .value = value};
    emission->add(emission->context, &delta);
}

/* The key's value in an earlier snapshot than that of row i, at most SNAPSHOT_CHAINS_REACH before
 * it; 0 if the key has no row there. SNAPSHOT_CHAINS_NONE: 0. */
static int64_t value_before(const struct counter_increase *increase, uint64_t i, uint32_t snapshot)
{
    const struct counter_row *rows = increase->rows;
    const uint32_t key = rows[i].key;
    int64_t value = 0;
    if (snapshot == SNAPSHOT_CHAINS_NONE)
        return 0;
    while (i && rows[i - 1].key == key && rows[i - 1].snapshot >= snapshot)
        i--;
    if (rows[i].snapshot == snapshot)
        counter_rows_sum(rows, i, increase->row_count, &value);
    return value;
}

/* Whether the key of the row before i, whose rows go on from i, has a row in a later snapshot. */
static bool has_row(const struct counter_increase *increase, uint64_t i, uint32_t key,
                    uint32_t snapshot)
{
    const struct counter_row *rows = increase->rows;
    while (i < increase->row_count && rows[i].key == key && rows[i].snapshot < snapshot)
        i++;
    return i < increase->row_count && rows[i].key == key && rows[i].snapshot == snapshot;
}

static void emit_increases(const struct counter_increase *increase, const struct emission *emission)
{
    const struct counter_row *rows = increase->rows;
    int64_t value;
    for (uint64_t i = 0, end; i < increase->row_count; i = end) {
        const struct counter_row *row = &rows[i];
        const struct snapshot_link *link = &emission->links[row->snapshot];
        end = counter_rows_sum(rows, i, increase->row_count, &value);
        if (has_increase(emission->links, row->snapshot))
            emit_increase(
                emission, row->key, row->snapshot,
                counter_rows_add_limited(value, -value_before(increase, i, link->before)));
        /* The value of a key may decrease by the increase of another key, when a stack's labels
         * change without a restart. */
        if (link->after != SNAPSHOT_CHAINS_NONE && !has_row(increase, end, row->key, link->after))
            emit_increase(emission, row->key, link->after, -value);
    }
}

void counter_increase_compute(struct counter_increase *increase,
                              void (*covered)(void *context, int64_t since_ns, int64_t time_ns),
                              void (*add)(void *context, const struct counter_delta *delta),
                              void *context)
{
    uint32_t snapshot_count = number_snapshots(increase);
    if (increase->start_ns != increase->end_ns)
        snapshot_count = keep_near(increase, snapshot_count);
    const int64_t *times_ns = increase->times_ns;
    struct snapshot_link *links = mem_new(struct snapshot_link, snapshot_count + (size_t)1);
    snapshot_chains_find(increase->rows, increase->row_count, times_ns, snapshot_count, links);
    increase->restarts_often = restart_often(links, snapshot_count);
    sort_by_key(increase);
    int64_t *since_ns = find_since(times_ns, snapshot_count, links);
    for (uint32_t i = 1; i < snapshot_count && covered; i++)
        if (has_increase(links, i))
            covered(context, since_ns[i], times_ns[i]);
    const struct emission emission = {.increase = increase,
                                      .links = links,
                                      .times_ns = times_ns,
                                      .since_ns = since_ns,
                                      .add = add,
                                      .context = context};
    emit_increases(increase, &emission);
    mem_free(since_ns);
    mem_free(links);
}
