#include "tests/unit/test.h"

#include "lib/base/mem.h"
#include "lib/base/radix_sort.h"

#include <stdbool.h>
#include <string.h>

enum { MOST = 5000 };

/* xorshift64*, the same numbers in every run. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Ascending and complete; equal keys keep their order. */
static void check(const uint64_t *keys, uint32_t count)
{
    static uint32_t order[MOST];
    static bool is_there[MOST];
    radix_sort_order(keys, count, order);
    memset(is_there, 0, sizeof(is_there));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(order[i] < count && !is_there[order[i]]);
        is_there[order[i]] = true;
        if (i == 0)
            continue;
        const uint64_t before = keys[order[i - 1]], key = keys[order[i]];
        assert_true(before < key || (before == key && order[i - 1] < order[i]));
    }
}

static void finds_the_order_of_keys_of_any_width(void **state)
{
    (void)state;
    static uint64_t keys[MOST];
    uint64_t random = 4711;
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (uint32_t count = 0; count <= MOST; count = count < 3 ? count + 1 : count * 7) {
            for (uint32_t i = 0; i < count; i++)
                keys[i] = UINT64_C(0xffffffff81000000) * (bits & 1) +
                          (next_random(&random) >> (64 - bits));
            check(keys, count);
        }
    }
}

static void is_stable(void **state)
{
    (void)state;
    check((const uint64_t[]){1, 1, 2, 3, 3, UINT64_MAX}, 6);
    check((const uint64_t[]){UINT64_MAX, 0, UINT64_MAX, 0}, 4);
    check((const uint64_t[]){UINT64_C(1) << 32, 1, UINT64_C(3) << 32, 2}, 4);
}

static void sorts_by_the_upper_bits_only(void **state)
{
    (void)state;
    uint64_t *numbers = mem_alloc(4, sizeof(*numbers));
    static const uint64_t given[] = {0x300 | 9, 0x100 | 7, 0x300 | 2, 0x100 | 8};
    static const uint64_t wanted[] = {0x100 | 7, 0x100 | 8, 0x300 | 9, 0x300 | 2};
    memcpy(numbers, given, sizeof(given));
    radix_sort_by_bits(&numbers, 4, 8);
    assert_memory_equal(numbers, wanted, sizeof(wanted));
    mem_free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_order_of_keys_of_any_width),
        cmocka_unit_test(is_stable),
        cmocka_unit_test(sorts_by_the_upper_bits_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
