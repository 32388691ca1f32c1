#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/mem.h"
#include "store/block/column.h"
#include "store/block/row_sums.h"

enum { STACKS = 40, ROWS_MAX = 1500 };

/* The rows before they were packed. */
struct rows {
    uint32_t stacks[ROWS_MAX];
    uint32_t counts[ROWS_MAX];
    uint32_t ordinals[ROWS_MAX];
    int64_t values[ROWS_MAX];
    uint32_t entry_count;
    uint32_t row_count;
    struct buf packed_ordinals;
    struct buf packed_values;
    struct row_sums sums;
};

static int64_t random_stored(uint64_t *seed, unsigned bits, bool is_positive)
{
    const uint64_t magnitude = bits ? random_next(seed) >> (64 - bits) : 0;
    if (is_positive)
        return (int64_t)magnitude + 1;
    return random_below(seed, 2) ? (int64_t)magnitude : -(int64_t)magnitude;
}

static void make_entries(struct rows *rows, uint64_t *seed)
{
    const uint32_t target = (uint32_t)random_below(seed, ROWS_MAX);
    const uint32_t longest = 1 + (uint32_t)random_below(seed, 700);
    while (rows->row_count < target) {
        const uint32_t left = target - rows->row_count;
        uint32_t count = 1 + (uint32_t)random_below(seed, longest);
        count = count < left ? count : left;
        rows->stacks[rows->entry_count] = (uint32_t)random_below(seed, STACKS);
        rows->counts[rows->entry_count++] = count;
        rows->row_count += count;
    }
}

static void make_rows(struct rows *rows, uint64_t *seed)
{
    uint32_t steps[ROWS_MAX];
    uint64_t stored[ROWS_MAX];
    *rows = (struct rows){0};
    make_entries(rows, seed);
    const bool are_distinct = random_below(seed, 2), are_positive = random_below(seed, 2);
    const unsigned bits = (unsigned)random_below(seed, 45), rare_bits = random_below(seed, 2) * 45;
    const int64_t divisor = 1 + (int64_t)random_below(seed, 100);
    uint32_t last = 0, row = 0;
    for (uint32_t i = 0; i < rows->entry_count; i++) {
        uint32_t ordinal = 0;
        for (uint32_t j = 0; j < rows->counts[i]; j++, row++) {
            const uint32_t more = j && are_distinct;
            steps[row] = (uint32_t)random_below(seed, 4);
            rows->ordinals[row] = ordinal += steps[row] + more;
            const bool is_rare = random_below(seed, 100) == 0;
            const int64_t value = random_stored(seed, is_rare ? rare_bits : bits, are_positive);
            rows->values[row] = value * divisor;
            stored[row] = are_positive ? (uint64_t)value - 1 : column_zigzag(value);
            last = ordinal > last ? ordinal : last;
        }
    }
    buf_init(&rows->packed_ordinals, 1 << 20);
    buf_init(&rows->packed_values, 1 << 20);
    bitpack_append_u32(&rows->packed_ordinals, steps, row, BITPACK_SMALL);
    bitpack_append_u64(&rows->packed_values, stored, row, BITPACK_SMALL);
    const uint32_t first = (uint32_t)random_below(seed, last + 2);
    rows->sums = (struct row_sums){
        .stacks = rows->stacks,
        .counts = rows->counts,
        .row_count = row,
        .ordinals = buf_span(&rows->packed_ordinals),
        .are_distinct = are_distinct,
        .values = buf_span(&rows->packed_values),
        .are_positive = are_positive,
        .divisor = divisor,
        .first = first,
        .end = first + (uint32_t)random_below(seed, last + 2),
    };
}

static void free_rows(struct rows *rows)
{
    buf_fini(&rows->packed_ordinals);
    buf_fini(&rows->packed_values);
}

static void add_one_by_one(const struct rows *rows, int64_t *sums)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < rows->entry_count; i++) {
        for (uint32_t j = 0; j < rows->counts[i]; j++, row++) {
            if (rows->ordinals[row] >= rows->sums.first && rows->ordinals[row] < rows->sums.end)
                sums[rows->stacks[i]] += rows->values[row];
        }
    }
}

static void sums_equal_those_of_single_additions(void **state)
{
    (void)state;
    uint64_t seed = 20261122;
    for (int round = 0; round < 3000; round++) {
        struct rows rows;
        int64_t wanted[STACKS] = {0}, sums[STACKS] = {0}, portable[STACKS] = {0};
        make_rows(&rows, &seed);
        add_one_by_one(&rows, wanted);
        assert_true(row_sums_add(&rows.sums, sums));
        assert_true(row_sums_add_portable(&rows.sums, portable));
        assert_memory_equal(sums, wanted, sizeof(wanted));
        assert_memory_equal(portable, wanted, sizeof(wanted));
        free_rows(&rows);
    }
}

/* A copy of exactly its size, so that a sanitizer detects reads beyond it. */
static struct span cut(struct span bytes, size_t size, uint8_t **ret_copy)
{
    *ret_copy = mem_new(uint8_t, size + 1);
    memcpy(*ret_copy, bytes.data, size);
    return span_of(*ret_copy, size);
}

static void malformed_columns_add_nothing(void **state)
{
    (void)state;
    static const int64_t none[STACKS];
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        struct rows rows;
        make_rows(&rows, &seed);
        struct span *column = random_below(&seed, 2) ? &rows.sums.ordinals : &rows.sums.values;
        if (column->size) {
            int64_t sums[STACKS] = {0};
            uint8_t *copy;
            *column = cut(*column, random_below(&seed, (uint32_t)column->size), &copy);
            assert_false(row_sums_add(&rows.sums, sums));
            assert_false(row_sums_add_portable(&rows.sums, sums));
            assert_memory_equal(sums, none, sizeof(none));
            mem_free(copy);
        }
        free_rows(&rows);
    }
}

static void changed_bytes_cause_no_read_beyond_the_end(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int round = 0; round < 3000; round++) {
        struct rows rows;
        make_rows(&rows, &seed);
        struct buf *column = random_below(&seed, 2) ? &rows.packed_ordinals : &rows.packed_values;
        if (column->size) {
            int64_t sums[STACKS] = {0};
            column->data[random_below(&seed, (uint32_t)column->size)] ^=
                (uint8_t)(1 + random_below(&seed, 255));
            (void)!row_sums_add(&rows.sums, sums);
        }
        free_rows(&rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_equal_those_of_single_additions),
        cmocka_unit_test(malformed_columns_add_nothing),
        cmocka_unit_test(changed_bytes_cause_no_read_beyond_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
