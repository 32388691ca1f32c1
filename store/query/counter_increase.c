#include "store/query/counter_increase.h"

#include "lib/base/mem.h"
#include "store/block/block_read.h"
#include "store/query/cadence.h"

#include <stdbool.h>
#include <stdlib.h>

/* Of a profile, while gains are told: its place, number, time, the time since which it gained, the
 * distance from the one before, and whether counters began there. */
enum { TELLING_BYTES = 2 * sizeof(uint32_t) + 3 * sizeof(int64_t) + sizeof(bool) };

struct counter_row {
    uint32_t stack;
    uint32_t key;
    uint32_t snapshot;
    int64_t value;
};

void counter_increase_fini(struct counter_increase *differences)
{
    mem_free(differences->rows);
    mem_free(differences->times_ns);
    stack_hash_set_fini(&differences->stacks);
    *differences = (struct counter_increase){0};
}

static void add_times(struct counter_increase *differences, const struct block_rows *rows,
                      uint32_t first, uint32_t end)
{
    const uint32_t most = differences->time_count + end - first;
    if (most > differences->time_capacity) {
        differences->time_capacity = most + most / 2;
        differences->times_ns = mem_resize(differences->times_ns, differences->time_capacity,
                                           sizeof(*differences->times_ns));
    }
    for (uint32_t i = first; i < end; i++)
        differences->times_ns[differences->time_count++] = rows->profiles[i].time_ns;
}

static void reserve_rows(struct counter_increase *differences, uint32_t count)
{
    const uint64_t most = differences->row_count + count;
    if (most > differences->row_capacity) {
        differences->row_capacity = most + most / 2;
        differences->rows =
            mem_resize(differences->rows, differences->row_capacity, sizeof(*differences->rows));
    }
    if (!differences->stacks.capacity)
        stack_hash_set_init(&differences->stacks);
}

/* Rows of one stack lie together, so that each stack is looked up once: nothing here costs what
 * other series of the block have. */
void counter_increase_add(struct counter_increase *differences, const struct block *block,
                          const struct block_rows *rows, uint32_t first, uint32_t end,
                          const uint32_t *keys)
{
    const struct stack_hash *hashes = block_hashes(block)->stacks;
    uint32_t stack = UINT32_MAX, number = 0;
    reserve_rows(differences, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        if (ordinal < first || ordinal >= end)
            continue;
        if (rows->stacks[i] != stack) {
            stack = rows->stacks[i];
            number = stack_hash_set_add(&differences->stacks, hashes[stack]);
        }
        differences->rows[differences->row_count++] = (struct counter_row){
            .stack = number,
            .key = keys[i],
            .snapshot = differences->time_count + ordinal - first,
            .value = rows->values[i],
        };
    }
    add_times(differences, rows, first, end);
}

size_t counter_increase_memory(const struct counter_increase *differences)
{
    return differences->row_capacity * sizeof(*differences->rows) +
           differences->time_capacity * (TELLING_BYTES + sizeof(*differences->times_ns)) +
           differences->stacks.capacity * (sizeof(struct stack_hash) + 2 * sizeof(uint32_t));
}

const int64_t *counter_increase_times(const struct counter_increase *differences,
                                      uint32_t *ret_count)
{
    *ret_count = differences->time_count;
    return differences->times_ns;
}

static int compare_times(const void *a, const void *b, void *times)
{
    const int64_t *times_ns = times;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (times_ns[x] > times_ns[y]) - (times_ns[x] < times_ns[y]);
}

/* What begins at one moment is one snapshot, in whatever order it was added: rows and times become
 * those of snapshots, numbered in order of time. Returns how many there are. */
static uint32_t number_snapshots(struct counter_increase *differences)
{
    const uint32_t count = differences->time_count;
    uint32_t *order = mem_new(uint32_t, count + (size_t)1);
    uint32_t *numbers = mem_new(uint32_t, count + (size_t)1);
    int64_t *times_ns = mem_new(int64_t, count + (size_t)1);
    uint32_t snapshot_count = 0;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof(*order), compare_times, differences->times_ns);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t time_ns = differences->times_ns[order[i]];
        if (!snapshot_count || times_ns[snapshot_count - 1] != time_ns)
            times_ns[snapshot_count++] = time_ns;
        numbers[order[i]] = snapshot_count - 1;
    }
    for (uint64_t i = 0; i < differences->row_count; i++)
        differences->rows[i].snapshot = numbers[differences->rows[i].snapshot];
    mem_free(differences->times_ns);
    differences->times_ns = times_ns;
    differences->time_count = snapshot_count;
    mem_free(numbers);
    mem_free(order);
    return snapshot_count;
}

/* By stack, then snapshot; the second time keys stand in place of stacks. */
static int compare_rows(const void *a, const void *b)
{
    const struct counter_row *x = a, *y = b;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->snapshot > y->snapshot) - (x->snapshot < y->snapshot);
}

static void order_rows(struct counter_increase *differences)
{
    if (differences->row_count)
        qsort(differences->rows, differences->row_count, sizeof(*differences->rows), compare_rows);
}

/* From row i on, those of one stack and snapshot: how many, and their sum. */
static uint64_t take_equal(const struct counter_increase *differences, uint64_t i, int64_t *ret_sum)
{
    const struct counter_row *rows = differences->rows;
    uint64_t end = i;
    for (*ret_sum = 0; end < differences->row_count && compare_rows(&rows[i], &rows[end]) == 0;
         end++)
        *ret_sum += rows[end].value;
    return end - i;
}

/* began[i]: some stack has less in snapshot i than in i - 1; one without a row has 0. */
static void find_begins(const struct counter_increase *differences, uint32_t snapshot_count,
                        bool *began)
{
    const struct counter_row *rows = differences->rows;
    int64_t value, after;
    for (uint64_t i = 0; i < differences->row_count;) {
        const uint64_t next_row = i + take_equal(differences, i, &value);
        const uint32_t next = rows[i].snapshot + 1;
        const bool has_next = next_row < differences->row_count &&
                              rows[next_row].stack == rows[i].stack &&
                              rows[next_row].snapshot == next;
        after = 0;
        if (has_next)
            take_equal(differences, next_row, &after);
        if (next < snapshot_count && after < value)
            began[next] = true;
        i = next_row;
    }
}

/* Stacks make room for keys. */
static void keep_keys(struct counter_increase *differences)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < differences->row_count; i++) {
        if (differences->rows[i].key == COUNTER_INCREASE_LEFT_OUT)
            continue;
        differences->rows[kept] = differences->rows[i];
        differences->rows[kept].stack = differences->rows[kept].key;
        kept++;
    }
    differences->row_count = kept;
    order_rows(differences);
}

/* since_ns[i]: from when on snapshot i tells what was gained. */
static int64_t *find_since(const int64_t *times_ns, uint32_t snapshot_count, const bool *began)
{
    int64_t *since_ns = mem_new(int64_t, snapshot_count + (size_t)1);
    for (uint32_t i = 1; i < snapshot_count; i++) {
        const int64_t interval_ns = cadence_interval(times_ns, snapshot_count, i - 1);
        const bool is_cut =
            began[i] && cadence_distance(times_ns[i - 1], times_ns[i]) > interval_ns;
        since_ns[i] = is_cut ? times_ns[i] - interval_ns : times_ns[i - 1];
    }
    return since_ns;
}

struct telling {
    const int64_t *times_ns;
    const int64_t *since_ns;
    void (*gain)(void *context, const struct counter_gain *gained);
    void *context;
};

static void tell_gain(const struct telling *telling, uint32_t key, uint32_t snapshot, int64_t value)
{
    const struct counter_gain gained = {.key = key,
                                        .since_ns = telling->since_ns[snapshot],
                                        .time_ns = telling->times_ns[snapshot],
                                        .value = value};
    telling->gain(telling->context, &gained);
}

static void tell_gains(const struct counter_increase *differences, uint32_t snapshot_count,
                       const bool *began, const struct telling *telling)
{
    const struct counter_row *rows = differences->rows, *before = NULL;
    int64_t value, value_before = 0;
    for (uint64_t i = 0; i < differences->row_count;) {
        const struct counter_row *row = &rows[i];
        i += take_equal(differences, i, &value);
        const bool has_before = before && before->key == row->key &&
                                before->snapshot + 1 == row->snapshot && !began[row->snapshot];
        if (row->snapshot)
            tell_gain(telling, row->key, row->snapshot, value - (has_before ? value_before : 0));
        /* Stacks that have less begin anew, but what other labels have now is a loss of these. */
        const uint32_t next = row->snapshot + 1;
        const bool has_next =
            i < differences->row_count && rows[i].key == row->key && rows[i].snapshot == next;
        if (!has_next && next < snapshot_count && !began[next])
            tell_gain(telling, row->key, next, -value);
        before = row;
        value_before = value;
    }
}

void counter_increase_compute(struct counter_increase *differences,
                              void (*covered)(void *context, int64_t since_ns, int64_t time_ns),
                              void (*gain)(void *context, const struct counter_gain *gained),
                              void *context)
{
    const uint32_t snapshot_count = number_snapshots(differences);
    const int64_t *times_ns = differences->times_ns;
    bool *began = mem_new(bool, snapshot_count + (size_t)1);
    order_rows(differences);
    find_begins(differences, snapshot_count, began);
    keep_keys(differences);
    int64_t *since_ns = find_since(times_ns, snapshot_count, began);
    for (uint32_t i = 1; i < snapshot_count && covered; i++)
        covered(context, since_ns[i], times_ns[i]);
    const struct telling telling = {
        .times_ns = times_ns, .since_ns = since_ns, .gain = gain, .context = context};
    tell_gains(differences, snapshot_count, began, &telling);
    mem_free(since_ns);
    mem_free(began);
}
