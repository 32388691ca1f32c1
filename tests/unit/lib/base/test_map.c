#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <stdio.h>
#include <xxhash.h>

enum { KEY_COUNT = 20000 };

static void finds_every_number_it_was_given(void **state)
{
    (void)state;
    struct map_u64 map = {0};
    assert_int_equal(map_u64_find(&map, 7), MAP_ABSENT);
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        assert_int_equal(map_u64_add(&map, (uint64_t)i << 32, i), i);
    assert_int_equal(map_u64_add(&map, UINT64_C(5) << 32, 99), 5);
    assert_int_equal(map.count, KEY_COUNT);
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        assert_int_equal(map_u64_find(&map, (uint64_t)i << 32), i);
    assert_int_equal(map_u64_find(&map, 1), MAP_ABSENT);
    map_u64_fini(&map);
}

static void finds_every_text_it_was_given(void **state)
{
    (void)state;
    static char keys[KEY_COUNT][12];
    struct map_bytes map;
    map_bytes_init(&map, 4);
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key%u", i);
        assert_int_equal(map_bytes_add(&map, span_text(keys[i]), i), i);
    }
    assert_int_equal(map_bytes_add(&map, span_text("key17"), 99), 17);
    assert_int_equal(map_bytes_find(&map, span_text("key19999")), 19999);
    assert_int_equal(map_bytes_find(&map, span_text("key")), MAP_ABSENT);
    assert_int_equal(map_bytes_add(&map, span_of(NULL, 0), 5), 5);
    assert_int_equal(map_bytes_find(&map, span_text("")), 5);
    map_bytes_fini(&map);
}

/* With all keys in one slot, this many took four seconds; with random slots it takes 10 ms. */
enum { FLOOD_COUNT = 60000, FLOOD_MS = 500 };

static uint64_t inverse(uint64_t odd)
{
    uint64_t guess = odd;
    for (int i = 0; i < 6; i++)
        guess *= 2 - odd * guess;
    return guess;
}

/* The key with this hash: inverts MurmurHash3's finalizer. */
static uint64_t key_of_hash(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * inverse(UINT64_C(0xc4ceb9fe1a85ec53));
    hash = (hash ^ hash >> 33) * inverse(UINT64_C(0xff51afd7ed558ccd));
    return hash ^ hash >> 33;
}

static void numbers_chosen_to_collide_do_not_collide(void **state)
{
    (void)state;
    struct map_u64 map = {0};
    int64_t start_ns = clock_thread_cpu_ns();
    for (uint32_t i = 0; i < FLOOD_COUNT; i++)
        assert_int_equal(map_u64_add(&map, key_of_hash((uint64_t)i << 32), i), i);
    assert_true(clock_thread_cpu_ns() - start_ns < FLOOD_MS * CLOCK_NS_PER_MS);
    map_u64_fini(&map);
}

/* The eight bytes whose unseeded XXH3 is hash: the inverted steps for this length. */
static uint64_t bytes_of_hash(uint64_t hash)
{
    const uint64_t factor = UINT64_C(0x9fb21c651e98df25), secret = UINT64_C(0xc73ab174c5ecd5a2);
    hash = (hash ^ hash >> 28 ^ hash >> 56) * inverse(factor);
    hash = (hash ^ ((hash >> 35) + 8)) * inverse(factor);
    /* x ^ x <<< 49 ^ x <<< 24 is inverted by repeating it: its order divides 64. */
    for (int i = 1; i < 64; i++)
        hash ^= (hash << 49 | hash >> 15) ^ (hash << 24 | hash >> 40);
    hash ^= secret;
    return hash << 32 | hash >> 32;
}

static void texts_chosen_to_collide_do_not_collide(void **state)
{
    (void)state;
    struct map_bytes map = {0};
    uint64_t *keys = mem_new(uint64_t, FLOOD_COUNT);
    for (uint32_t i = 0; i < FLOOD_COUNT; i++) {
        keys[i] = bytes_of_hash((uint64_t)i << 32);
        assert_true(XXH3_64bits(&keys[i], sizeof(keys[i])) == (uint64_t)i << 32);
    }
    int64_t start_ns = clock_thread_cpu_ns();
    for (uint32_t i = 0; i < FLOOD_COUNT; i++)
        assert_int_equal(map_bytes_add(&map, span_of(&keys[i], sizeof(keys[i])), i), i);
    assert_true(clock_thread_cpu_ns() - start_ns < FLOOD_MS * CLOCK_NS_PER_MS);
    map_bytes_fini(&map);
    mem_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_number_it_was_given),
        cmocka_unit_test(finds_every_text_it_was_given),
        cmocka_unit_test(numbers_chosen_to_collide_do_not_collide),
        cmocka_unit_test(texts_chosen_to_collide_do_not_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
