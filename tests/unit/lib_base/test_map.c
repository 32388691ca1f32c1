#include "tests/unit/test.h"

#include "lib/base/map.h"

#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_number_it_was_given),
        cmocka_unit_test(finds_every_text_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
