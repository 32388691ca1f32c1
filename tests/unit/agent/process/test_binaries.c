/* Limits of the number of files per owner. */
#include "tests/unit/test.h"

#include "agent/process/binaries.h"

#include <stdio.h>

enum { ALL = 8192, FIRST = 7, SECOND = 8 };

/* Adds a file that cannot be read, with this build id. */
static uint32_t take(struct binaries *binaries, uint64_t owner, uint32_t id)
{
    const uint8_t bytes[8] = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                              (uint8_t)id};
    const struct binary_source source = {
        .owner = binaries_are_counted(binaries) ? owner : 0,
        .path = span_text("/nowhere"),
        .build_id = span_of(bytes, sizeof(bytes)),
    };
    return binaries_take(binaries, &source);
}

/* Adds files until the owner's quota is used up. */
static uint32_t take_all(struct binaries *binaries, uint64_t owner, uint32_t first,
                         uint32_t numbers[ALL])
{
    uint32_t count = 0;
    for (; count < ALL; count++) {
        const uint32_t number = take(binaries, owner, first + count);
        if (number == BINARY_NONE)
            break;
        numbers[count] = number;
    }
    return count;
}

static void take_half(struct binaries *binaries)
{
    for (uint32_t i = 0; i < ALL / 2; i++)
        assert_int_not_equal(take(binaries, FIRST, i), BINARY_NONE);
    assert_true(binaries_are_counted(binaries));
}

static void released_files_are_evicted_for_mapped_ones(void **state)
{
    (void)state;
    static uint32_t numbers[ALL];
    struct binaries *binaries = binaries_create();
    take_half(binaries);
    const uint32_t count = take_all(binaries, FIRST, 10000, numbers);
    assert_in_range(count, ALL / 2 / 9 - 1, ALL / 2 / 8);
    for (uint32_t i = 0; i < count; i++)
        binaries_release(binaries, numbers[i]);
    /* As many other files fit now. */
    assert_in_range(take_all(binaries, FIRST, 20000, numbers), count, count + 1);
    binaries_destroy(binaries);
}

static void a_refused_file_evicts_no_released_file_of_another_owner(void **state)
{
    (void)state;
    static uint32_t numbers[ALL];
    struct binaries *binaries = binaries_create();
    take_half(binaries);
    assert_true(take_all(binaries, FIRST, 10000, numbers) > 0);
    const uint32_t other = take(binaries, SECOND, 30000);
    assert_int_not_equal(other, BINARY_NONE);
    const uint64_t serial = binaries_get(binaries, other)->serial;
    binaries_release(binaries, other);
    assert_int_equal(take(binaries, FIRST, 20000), BINARY_NONE);
    assert_int_equal(binaries_get(binaries, other)->serial, serial);
    assert_int_equal(take(binaries, SECOND, 30000), other);
    binaries_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_files_are_evicted_for_mapped_ones),
        cmocka_unit_test(a_refused_file_evicts_no_released_file_of_another_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
