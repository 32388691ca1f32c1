#include "tests/unit/test.h"

#include "api/debuginfo/public_tables.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <string.h>

static int64_t now_ns;

static int64_t test_now(void)
{
    return now_ns;
}

static void notes_a_table_once_an_hour(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct public_tables *tables = public_tables_create(test_now);
    now_ns = 1;
    assert_null(public_tables_take_uses(tables, arena));
    public_tables_note_use(tables, "ab01");
    public_tables_note_use(tables, "ab01");
    public_tables_note_use(tables, "cd02");
    assert_string_equal(public_tables_take_uses(tables, arena), "{ab01,cd02}");
    public_tables_note_use(tables, "ab01");
    assert_null(public_tables_take_uses(tables, arena));
    now_ns += 3601 * CLOCK_NS_PER_S;
    public_tables_note_use(tables, "ab01");
    assert_string_equal(public_tables_take_uses(tables, arena), "{ab01}");
    public_tables_destroy(tables);
}

/* The list has space for 1,024 uses. Those beyond it are not noted; a result that uses the tables
 * after the list was taken notes them. */
static void notes_as_many_tables_as_there_is_space_for(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct public_tables *tables = public_tables_create(test_now);
    char id[257];
    size_t counts[2] = {0, 0};
    now_ns = 1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1500; i++) {
            snprintf(id, sizeof(id), "%0256x", i);
            public_tables_note_use(tables, id);
        }
        for (const char *at = public_tables_take_uses(tables, arena); at; at = strchr(at, ','))
            at++, counts[round]++;
    }
    assert_int_equal(counts[0], 1024);
    assert_true(counts[1] >= 1500 - 1024);
    public_tables_destroy(tables);
}

static void notes_uses_again_that_could_not_be_written(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct public_tables *tables = public_tables_create(test_now);
    char id[16];
    now_ns = 1;
    public_tables_note_use(tables, "ab01");
    public_tables_note_use(tables, "cd02");
    const char *uses = public_tables_take_uses(tables, arena);
    public_tables_note_use(tables, "ef03");
    public_tables_give_uses(tables, uses);
    assert_string_equal(public_tables_take_uses(tables, arena), "{ef03,ab01,cd02}");
    /* If the list is full, uses that are given back are dropped; the next use notes them again. */
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof(id), "%x", i);
        public_tables_note_use(tables, id);
    }
    public_tables_give_uses(tables, uses);
    const char *full = public_tables_take_uses(tables, arena);
    assert_null(strstr(full, "ab01"));
    public_tables_note_use(tables, "cd02");
    public_tables_note_use(tables, "ef03");
    assert_string_equal(public_tables_take_uses(tables, arena), "{cd02}");
    public_tables_destroy(tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_a_table_once_an_hour),
        cmocka_unit_test(notes_uses_again_that_could_not_be_written),
        cmocka_unit_test(notes_as_many_tables_as_there_is_space_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
