#include "store/values/counter_rows.h"

#include <stdlib.h>

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_by_stack(const void *a, const void *b)
{
    const struct counter_row *x = a, *y = b;
    return x->stack != y->stack ? compare(x->stack, y->stack) : compare(x->snapshot, y->snapshot);
}

static int compare_by_snapshot(const void *a, const void *b)
{
    const struct counter_row *x = a, *y = b;
    return x->snapshot != y->snapshot ? compare(x->snapshot, y->snapshot)
                                      : compare(x->stack, y->stack);
}

void counter_rows_sort_by_stack(struct counter_row *rows, uint64_t count)
{
    if (count)
        qsort(rows, count, sizeof(*rows), compare_by_stack);
}

void counter_rows_sort_by_snapshot(struct counter_row *rows, uint64_t count)
{
    if (count)
        qsort(rows, count, sizeof(*rows), compare_by_snapshot);
}

int64_t counter_rows_add_limited(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum) && sum != INT64_MIN)
        return sum;
    return a < 0 ? -INT64_MAX : INT64_MAX;
}

uint64_t counter_rows_sum(const struct counter_row *rows, uint64_t i, uint64_t end,
                          int64_t *ret_sum)
{
    const struct counter_row *first = &rows[i];
    for (*ret_sum = 0;
         i < end && rows[i].stack == first->stack && rows[i].snapshot == first->snapshot; i++)
        *ret_sum = counter_rows_add_limited(*ret_sum, rows[i].value);
    return i;
}
