/* Limits of the number of files per owner (agent/process/fair_quota.h). */
#include "tests/unit/test.h"

#include "agent/process/binaries.h"

#include <stdio.h>

enum {
    TABLE_SIZE = 8192, /* BINARIES_MAX in binaries.c */
    OWNER = 7,
    OTHER_OWNER = 8
};

/* Adds a file that cannot be read, with this build id. As in the agent, it has an owner only if
 * files are counted, that is, if half of the table is used. */
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
static uint32_t take_until_refused(struct binaries *binaries, uint64_t owner, uint32_t first_id,
                                   uint32_t numbers[TABLE_SIZE])
{
    uint32_t count = 0;
    for (; count < TABLE_SIZE; count++) {
        const uint32_t number = take(binaries, owner, first_id + count);
        if (number == BINARY_NONE)
            break;
        numbers[count] = number;
    }
    return count;
}

/* Uses half of the table, from which on quotas apply. */
static void take_half(struct binaries *binaries)
{
    for (uint32_t i = 0; i < TABLE_SIZE / 2; i++)
        assert_int_not_equal(take(binaries, OWNER, i), BINARY_NONE);
    assert_true(binaries_are_counted(binaries));
}

static void new_files_of_an_owner_evict_its_released_ones(void **state)
{
    (void)state;
    static uint32_t numbers[TABLE_SIZE];
    struct binaries *binaries = binaries_create();
    take_half(binaries);
    const uint32_t count = take_until_refused(binaries, OWNER, 10000, numbers);
    /* An owner may hold 1/8 of the free entries: held <= (half - held) / 8, so half / 9. */
    assert_in_range(count, TABLE_SIZE / 2 / 9 - 1, TABLE_SIZE / 2 / 8);
    for (uint32_t i = 0; i < count; i++)
        binaries_release(binaries, numbers[i]);
    /* New files evict the released ones, so the same number fits again. */
    assert_in_range(take_until_refused(binaries, OWNER, 20000, numbers), count, count + 1);
    binaries_destroy(binaries);
}

static void a_refused_file_evicts_no_released_file_of_another_owner(void **state)
{
    (void)state;
    static uint32_t numbers[TABLE_SIZE];
    struct binaries *binaries = binaries_create();
    take_half(binaries);
    assert_true(take_until_refused(binaries, OWNER, 10000, numbers) > 0);
    const uint32_t other = take(binaries, OTHER_OWNER, 30000);
    assert_int_not_equal(other, BINARY_NONE);
    const uint64_t serial = binaries_get(binaries, other)->serial;
    binaries_release(binaries, other);
    assert_int_equal(take(binaries, OWNER, 20000), BINARY_NONE);
    assert_int_equal(binaries_get(binaries, other)->serial, serial);
    assert_int_equal(take(binaries, OTHER_OWNER, 30000), other);
    binaries_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_files_of_an_owner_evict_its_released_ones),
        cmocka_unit_test(a_refused_file_evicts_no_released_file_of_another_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
