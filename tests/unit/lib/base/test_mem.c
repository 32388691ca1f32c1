#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"

#include <string.h>

static void gives_zeroed_aligned_memory(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    for (size_t size = 0; size < 5000; size += 37) {
        unsigned char *memory = arena_alloc(arena, size, 1);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size);
    }
}

static void keeps_objects_apart(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    char *first = arena_strdup(arena, "first");
    char *large = arena_alloc(arena, 100000, 1);
    char *second = arena_printf(arena, "%s-%d", "second", 2);
    memset(large, 'x', 100000);
    assert_string_equal(first, "first");
    assert_string_equal(second, "second-2");
}

static void copies_bytes_with_a_nul_at_the_end(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_memory_equal(arena_strndup(arena, "a\0b", 3), "a\0b", 4);
    assert_string_equal(arena_strndup(arena, NULL, 0), "");
}

static void counts_what_it_holds(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    size_t before = arena_bytes(arena);
    (void)arena_alloc(arena, 1 << 20, 1);
    assert_true(arena_bytes(arena) >= before + (1 << 20));
}

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

static void an_adopted_arena_lives_as_long_as_its_parent(void **state)
{
    (void)state;
    bool is_destroyed = false;
    struct arena *parent = arena_create(), *child = arena_create();
    (void)arena_alloc(child, 1 << 20, 1);
    arena_on_destroy(child, set_flag, &is_destroyed);
    arena_adopt(parent, child);
    assert_true(arena_bytes(parent) >= 1 << 20);
    assert_false(is_destroyed);
    arena_destroy(parent);
    assert_true(is_destroyed);
}

static size_t bytes_of_arena_with(size_t size)
{
    arena_auto arena = arena_create();
    memset(arena_alloc(arena, size, 1), 'x', size);
    return arena_bytes(arena);
}

/* Freed memory is reused, also for smaller sizes, and is not observable. */
static void reports_sizes_that_do_not_depend_on_reuse(void **state)
{
    (void)state;
    for (size_t size = 3000; size < 3000000; size += size / 3) {
        mem_trim();
        const size_t bytes = bytes_of_arena_with(size);
        mem_trim();
        (void)bytes_of_arena_with(size + size / 6);
        assert_int_equal(bytes_of_arena_with(size), bytes);
        struct buf buf;
        buf_init(&buf, SIZE_MAX / 2);
        memset(buf_reserve(&buf, size), 'x', size);
        const size_t capacity = buf.capacity;
        assert_true(capacity >= size);
        memset(buf.data, 'y', capacity);
        buf_fini(&buf);
        mem_trim();
        memset(buf_reserve(&buf, size), 'x', size);
        assert_int_equal(buf.capacity, capacity);
        buf_fini(&buf);
    }
}

static void note(void *object)
{
    char **at = object;
    *(*at)++ = 'c';
}

static void cleans_up_on_destroy(void **state)
{
    (void)state;
    char notes[3] = "";
    char *at = notes;
    struct arena *arena = arena_create();
    arena_on_destroy(arena, note, &at);
    arena_on_destroy(arena, note, &at);
    arena_destroy(arena);
    assert_string_equal(notes, "cc");
    arena_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_zeroed_aligned_memory),
        cmocka_unit_test(keeps_objects_apart),
        cmocka_unit_test(copies_bytes_with_a_nul_at_the_end),
        cmocka_unit_test(counts_what_it_holds),
        cmocka_unit_test(an_adopted_arena_lives_as_long_as_its_parent),
        cmocka_unit_test(reports_sizes_that_do_not_depend_on_reuse),
        cmocka_unit_test(cleans_up_on_destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
