#include "store/differences.h"

#include "lib/base/mem.h"
#include "store/block_read.h"

#include <stdbool.h>
#include <stdlib.h>

struct difference_row {
    uint32_t stack;
    uint32_t snapshot;
    int64_t value;
};

void differences_fini(struct differences *differences)
{
    mem_free(differences->rows);
    mem_free(differences->times_ns);
    *differences = (struct differences){0};
}

static void add_times(struct differences *differences, const struct block_rows *rows,
                      uint32_t first, uint32_t end)
{
    const uint32_t most = differences->snapshot_count + end - first;
    if (most > differences->snapshot_capacity) {
        differences->snapshot_capacity = most + most / 2;
        differences->times_ns = mem_resize(differences->times_ns, differences->snapshot_capacity,
                                           sizeof(*differences->times_ns));
    }
    for (uint32_t i = first; i < end; i++)
        differences->times_ns[differences->snapshot_count++] = rows->profiles[i].time_ns;
}

void differences_add(struct differences *differences, const struct block_rows *rows, uint32_t first,
                     uint32_t end, const uint32_t *numbers)
{
    const uint64_t most = differences->row_count + rows->row_count;
    if (most > differences->row_capacity) {
        differences->row_capacity = most + most / 2;
        differences->rows =
            mem_resize(differences->rows, differences->row_capacity, sizeof(*differences->rows));
    }
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        if (ordinal < first || ordinal >= end)
            continue;
        differences->rows[differences->row_count++] = (struct difference_row){
            .stack = numbers[rows->stacks[i]],
            .snapshot = differences->snapshot_count + ordinal - first,
            .value = rows->values[i],
        };
    }
    add_times(differences, rows, first, end);
}

static int compare_times(const void *a, const void *b, void *times)
{
    const int64_t *times_ns = times;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (times_ns[x] != times_ns[y])
        return times_ns[x] < times_ns[y] ? -1 : 1;
    return (x > y) - (x < y);
}

/* Snapshots get numbers in order of time. */
static void number_snapshots(struct differences *differences)
{
    const uint32_t count = differences->snapshot_count;
    uint32_t *order = mem_new(uint32_t, count + (size_t)1);
    uint32_t *numbers = mem_new(uint32_t, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof(*order), compare_times, differences->times_ns);
    for (uint32_t i = 0; i < count; i++)
        numbers[order[i]] = i;
    for (uint64_t i = 0; i < differences->row_count; i++)
        differences->rows[i].snapshot = numbers[differences->rows[i].snapshot];
    mem_free(order);
    mem_free(numbers);
}

static int compare_rows(const void *a, const void *b)
{
    const struct difference_row *x = a, *y = b;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->snapshot > y->snapshot) - (x->snapshot < y->snapshot);
}

/* By stack, then snapshot; several rows of one stack and snapshot (of different labels) as one. */
static void order_rows(struct differences *differences)
{
    struct difference_row *rows = differences->rows;
    uint64_t kept = 0;
    if (!differences->row_count)
        return;
    qsort(rows, differences->row_count, sizeof(*rows), compare_rows);
    for (uint64_t i = 1; i < differences->row_count; i++) {
        if (compare_rows(&rows[kept], &rows[i]) == 0)
            rows[kept].value += rows[i].value;
        else
            rows[++kept] = rows[i];
    }
    differences->row_count = kept + 1;
}

/* began[i]: some stack has less in snapshot i than in i - 1; one without a row has 0. */
static void find_begins(const struct differences *differences, bool *began)
{
    const struct difference_row *rows = differences->rows;
    for (uint64_t i = 0; i < differences->row_count; i++) {
        const uint32_t next = rows[i].snapshot + 1;
        const bool has_next = i + 1 < differences->row_count &&
                              rows[i + 1].stack == rows[i].stack && rows[i + 1].snapshot == next;
        const int64_t after = has_next ? rows[i + 1].value : 0;
        if (next < differences->snapshot_count && after < rows[i].value)
            began[next] = true;
    }
}

void differences_sum(struct differences *differences, int64_t *gains)
{
    bool *began = mem_new(bool, differences->snapshot_count + (size_t)1);
    number_snapshots(differences);
    order_rows(differences);
    find_begins(differences, began);
    const struct difference_row *rows = differences->rows;
    for (uint64_t i = 0; i < differences->row_count; i++) {
        const bool has_before =
            i && rows[i - 1].stack == rows[i].stack && rows[i - 1].snapshot + 1 == rows[i].snapshot;
        if (rows[i].snapshot == 0)
            continue;
        const int64_t before = has_before && !began[rows[i].snapshot] ? rows[i - 1].value : 0;
        gains[rows[i].stack] += rows[i].value - before;
    }
    mem_free(began);
}
