#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/vec.h"

static void adding_keeps_elements_and_doubles_the_capacity(void **state)
{
    (void)state;
    uint64_t *numbers = NULL;
    uint32_t count = 0, capacity = 0, growths = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const uint32_t before = capacity;
        vec_reserve(numbers, capacity, count + 1);
        growths += capacity != before;
        assert_true(capacity > count);
        numbers[count++] = i * i;
    }
    assert_int_equal(capacity, 16384);
    assert_int_equal(growths, 10); /* 32, 64, …, 16,384 */
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], i * i);
    mem_free(numbers);
}

static void reserving_less_changes_nothing(void **state)
{
    (void)state;
    char *text = NULL;
    size_t capacity = 0;
    vec_reserve(text, capacity, 0);
    assert_null(text);
    vec_reserve(text, capacity, 1000);
    assert_int_equal(capacity, 1000);
    const char *const before = text;
    vec_reserve(text, capacity, 1000);
    assert_ptr_equal(text, before);
    mem_free(text);
}

static void new_elements_of_a_table_are_zero(void **state)
{
    (void)state;
    struct {
        int a, b;
    } *table = NULL;
    int capacity = 0;
    for (int i = 0; i < 3000; i += 700) {
        const int before = capacity;
        vec_reserve_zeroed(table, capacity, i + 1);
        for (int k = before; k < capacity; k++)
            assert_true(table[k].a == 0 && table[k].b == 0);
        for (int k = 0; k < capacity; k++)
            table[k].a = table[k].b = 1;
    }
    mem_free(table);
}

static void an_array_of_an_arena_grows_in_the_same_way(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    uint64_t *numbers = NULL;
    uint32_t count = 0, capacity = 0, growths = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const uint32_t before = capacity;
        arena_reserve(arena, numbers, capacity, count + 1);
        growths += capacity != before;
        numbers[count++] = i * i;
    }
    assert_int_equal(capacity, 16384);
    assert_int_equal(growths, 10);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], i * i);
    assert_true(arena_bytes(arena) < 3 * 16384 * sizeof(*numbers));
}

static void the_capacity_fits_its_variable(void **state)
{
    (void)state;
    assert_int_equal(VEC_MAX((uint32_t)0), UINT32_MAX);
    assert_int_equal(VEC_MAX((int)0), INT32_MAX);
    assert_true(VEC_MAX((size_t)0) == SIZE_MAX);
    assert_int_equal(vec_grow_capacity(UINT32_MAX - 5, UINT32_MAX, 8, UINT32_MAX), UINT32_MAX);
    assert_int_equal(vec_grow_capacity(0, 1, 4096, UINT32_MAX), 1);
    assert_true(vec_grow_capacity(UINT32_MAX, (size_t)UINT32_MAX + 1, 8, UINT32_MAX) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_keeps_elements_and_doubles_the_capacity),
        cmocka_unit_test(reserving_less_changes_nothing),
        cmocka_unit_test(new_elements_of_a_table_are_zero),
        cmocka_unit_test(an_array_of_an_arena_grows_in_the_same_way),
        cmocka_unit_test(the_capacity_fits_its_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
