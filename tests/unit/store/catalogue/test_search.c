/* Ended writers, and the order in which their objects are searched. PERFOLIO_TEST_DATABASE as in
 * test_faults.c; tests/integration/store/test_store_faults.py sets it. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/writer.h"

#include <stdlib.h>

enum { OUTAGE_FAILURES = 1000 };

struct fixture {
    struct pg_pool *jobs;
    struct writer *writer;
    int64_t id;
    int64_t old_ns; /* when the writer is old enough to end */
    struct err err;
};

static int set_up(void **state)
{
    const char *conninfo = getenv("PERFOLIO_TEST_DATABASE");
    if (!conninfo)
        return 0;
    struct fixture *fixture = mem_new(struct fixture, 1);
    *state = fixture;
    fixture->jobs = pg_pool_create(conninfo, "perfolio_jobs", 3);
    fixture->writer = writer_create(fixture->jobs, "search");
    if (writer_get(fixture->writer, &fixture->id, &fixture->err))
        return -1;
    fixture->old_ns = clock_monotonic_ns() + WRITER_AGE_S * CLOCK_NS_PER_S;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        return 0;
    writer_destroy(fixture->writer);
    pg_pool_destroy(fixture->jobs);
    mem_free(fixture);
    return 0;
}

#define SKIP_WITHOUT_DATABASE(fixture)                                                             \
    do {                                                                                           \
        if (!(fixture))                                                                            \
            skip();                                                                                \
    } while (0)

static bool has_ended(struct fixture *fixture)
{
    writer_end_doubted(fixture->writer, fixture->old_ns);
    return writer_peek(fixture->writer) == 0;
}

/* ---- the end of a writer ---- */

static void a_writer_in_doubt_ends_once_it_works_again(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    writer_confirm(fixture->writer, fixture->id);
    assert_false(has_ended(fixture));
    for (int i = 0; i < OUTAGE_FAILURES; i++) {
        writer_doubt(fixture->writer, fixture->id);
        assert_false(has_ended(fixture));
    }
    writer_confirm(fixture->writer, fixture->id);
    assert_true(has_ended(fixture));
}

static void a_young_writer_in_doubt_does_not_end(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    writer_doubt(fixture->writer, fixture->id);
    writer_confirm(fixture->writer, fixture->id);
    writer_end_doubted(fixture->writer, fixture->old_ns - WRITER_AGE_S * CLOCK_NS_PER_S);
    assert_int_equal(writer_peek(fixture->writer), fixture->id);
    assert_true(has_ended(fixture));
}

static void a_new_writer_is_not_in_doubt(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    writer_doubt(fixture->writer, fixture->id);
    writer_lose(fixture->writer, fixture->id);
    int64_t id;
    assert_int_equal(writer_get(fixture->writer, &id, &fixture->err), ERR_NONE);
    fixture->old_ns = clock_monotonic_ns() + WRITER_AGE_S * CLOCK_NS_PER_S;
    writer_doubt(fixture->writer, fixture->id); /* late news of the lost id */
    writer_confirm(fixture->writer, id);
    assert_false(has_ended(fixture));
    assert_int_equal(catalogue_close_writer(fixture->jobs, fixture->id, &fixture->err), ERR_NONE);
}

/* ---- time slices of the search ---- */

static bool is_listed(const struct catalogue_search *search, int64_t id)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (search->writer_ids[i] == id)
            return true;
    return false;
}

static void begin(struct fixture *fixture, struct arena *arena, int64_t after,
                  struct catalogue_search *search)
{
    if (catalogue_begin_search(fixture->jobs, arena, after, search, &fixture->err))
        fail_msg("%s", fixture->err.message);
}

static void end(struct fixture *fixture, struct arena *arena, struct catalogue_search *search)
{
    assert_int_equal(catalogue_end_search(search, arena, &fixture->err), ERR_NONE);
}

static void only_one_session_searches_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_search one, other;
    writer_end(fixture->writer, fixture->id);
    begin(fixture, arena, 0, &one);
    begin(fixture, arena, 0, &other);
    assert_true(is_listed(&one, fixture->id));
    assert_false(other.is_locked);
    assert_int_equal(other.count, 0);
    end(fixture, arena, &other);
    end(fixture, arena, &one);
    begin(fixture, arena, 0, &other);
    assert_true(is_listed(&other, fixture->id));
    end(fixture, arena, &other);
}

static void a_searched_writer_is_not_due_at_once(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_search search;
    begin(fixture, arena, 0, &search);
    assert_false(is_listed(&search, fixture->id)); /* it has not ended */
    end(fixture, arena, &search);
    writer_end(fixture->writer, fixture->id);
    begin(fixture, arena, 0, &search);
    assert_true(is_listed(&search, fixture->id));
    assert_int_equal(catalogue_note_search(&search, arena, fixture->id, &fixture->err), ERR_NONE);
    end(fixture, arena, &search);
    begin(fixture, arena, 0, &search);
    assert_false(is_listed(&search, fixture->id));
    end(fixture, arena, &search);
}

/* A writer whose listing fails is tried again after the others. */
static void a_search_begins_after_the_last_writer_of_the_search_before(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_search search;
    int64_t next;
    writer_end(fixture->writer, fixture->id);
    assert_int_equal(writer_get(fixture->writer, &next, &fixture->err), ERR_NONE);
    writer_end(fixture->writer, next);
    begin(fixture, arena, fixture->id, &search);
    assert_int_equal(search.writer_ids[0], next);
    assert_true(is_listed(&search, fixture->id));
    end(fixture, arena, &search);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_writer_in_doubt_ends_once_it_works_again),
        TEST(a_young_writer_in_doubt_does_not_end),
        TEST(a_new_writer_is_not_in_doubt),
        TEST(only_one_session_searches_at_a_time),
        TEST(a_searched_writer_is_not_due_at_once),
        TEST(a_search_begins_after_the_last_writer_of_the_search_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
