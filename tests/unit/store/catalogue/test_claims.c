/* The order of claims: however many segments are due, each other kind of work comes within a
 * bounded number of claims, since deleted profiles have to disappear soon whatever else is sent.
 * PERFOLIO_TEST_DATABASE as in test_faults.c; tests/integration/store/test_store_faults.py sets it.
 */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEAMS = 40 };

struct fixture {
    struct pg_pool *owner, *jobs;
    int64_t writer_id;
    uint64_t rotation;
    struct err err;
};

/* Runs SQL as the database's owner; returns the first cell of the result. */
static int64_t run_sql(struct fixture *fixture, const char *sql)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    assert_int_equal(pg_take(fixture->owner, &connection, &fixture->err), ERR_NONE);
    if (pg_query(connection, PG_NO_TENANT, sql, NULL, 0, arena, &result, &fixture->err))
        fail_msg("%s: %s", sql, fixture->err.message);
    return pg_row_count(result) ? pg_get_i64(result, 0, 0) : 0;
}

static void forget_all(struct fixture *fixture)
{
    run_sql(fixture, "DELETE FROM tenant");
    run_sql(fixture, "DELETE FROM segment");
}

/* Many teams have one waiting segment each, older than those that a test adds. */
static int set_up(void **state)
{
    const char *conninfo = getenv("PERFOLIO_TEST_DATABASE");
    if (!conninfo)
        return 0;
    struct fixture *fixture = mem_new(struct fixture, 1);
    *state = fixture;
    fixture->owner = pg_pool_create(conninfo, NULL, 2);
    fixture->jobs = pg_pool_create(conninfo, "perfolio_jobs", 2);
    if (catalogue_open_writer(fixture->jobs, "claims", &fixture->writer_id, &fixture->err))
        return -1;
    forget_all(fixture);
    for (int i = 0; i < TEAMS; i++) {
        char sql[600];
        snprintf(sql, sizeof(sql),
                 "WITH team AS (INSERT INTO tenant (name) VALUES ('busy %d') RETURNING id),"
                 " object AS (INSERT INTO segment (writer_id, object_key, bytes, created_at)"
                 "  VALUES (%" PRId64 ", 'segment/busy/%d', 1, now() - interval '1 day')"
                 "  RETURNING id) "
                 "INSERT INTO segment_tenant (segment_id, tenant_id, first_byte, lengths,"
                 " footer_crcs, begin_ns, end_ns, reach_ns, row_count)"
                 " SELECT object.id, team.id, 0, '{1}', '{1}', 1, 2, 2, 1"
                 " FROM team, object",
                 i, fixture->writer_id, i);
        run_sql(fixture, sql);
    }
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture)
        return 0;
    forget_all(fixture);
    pg_pool_destroy(fixture->owner);
    pg_pool_destroy(fixture->jobs);
    mem_free(fixture);
    return 0;
}

static int64_t add_team(struct fixture *fixture)
{
    return run_sql(fixture, "INSERT INTO tenant (name) SELECT 'quiet ' || count(*) FROM tenant"
                            " RETURNING id");
}

static int64_t add_deletion(struct fixture *fixture, int64_t tenant_id)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "INSERT INTO store_deletion (tenant_id, selector, begin_ns, end_ns)"
             " VALUES (%" PRId64 ", '{a=\"b\"}', 0, 10) RETURNING id",
             tenant_id);
    return run_sql(fixture, sql);
}

/* Adds a block of a day (level 4); returns its id. columns and values: further ones, each with a
 * comma before it. */
static int64_t add_block(struct fixture *fixture, int64_t tenant_id, const char *columns,
                         const char *values)
{
    char sql[900];
    snprintf(sql, sizeof(sql),
             "INSERT INTO block (tenant_id, writer_id, object_key, level, bytes, footer_crc,"
             " begin_ns, end_ns, reach_ns, row_count, profile_count, series_count%s)"
             " VALUES (%" PRId64 ", %" PRId64
             ", 'block/' || gen_random_uuid(), 4, 1, 1, 1, 2, 2, 1, 1, 1%s) RETURNING id",
             columns, tenant_id, fixture->writer_id, values);
    return run_sql(fixture, sql);
}

/* Adds a block to which the deletion applies. */
static int64_t add_block_with_deletion(struct fixture *fixture, int64_t tenant_id, int64_t deletion)
{
    char values[60];
    snprintf(values, sizeof(values), ", ARRAY[%" PRId64 "]", deletion);
    return add_block(fixture, tenant_id, ", deletions", values);
}

static void claim(struct fixture *fixture, struct arena *arena, struct catalogue_claim *ret_claim)
{
    if (catalogue_claim(fixture->jobs, arena, fixture->writer_id, 0,
                        &(struct catalogue_claim_order){.rotation = fixture->rotation++}, ret_claim,
                        &fixture->err))
        fail_msg("%s", fixture->err.message);
}

/* How many claims until one is of the tenant; TEAMS + 1 if none of the first TEAMS is. */
static int count_claims(struct fixture *fixture, int64_t tenant_id)
{
    for (int count = 1; count <= TEAMS; count++) {
        arena_auto arena = arena_create();
        struct catalogue_claim made;
        claim(fixture, arena, &made);
        assert_int_not_equal(made.count, 0);
        if (made.tenant_id == tenant_id)
            return count;
    }
    return TEAMS + 1;
}

#define SKIP_WITHOUT_DATABASE(fixture)                                                             \
    if (!(fixture))                                                                                \
    skip()

static void deleted_blocks_do_not_wait_for_segments(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    const int64_t deletion = add_deletion(fixture, tenant_id);
    const int rounds = 4;
    for (int i = 0; i < rounds; i++)
        add_block_with_deletion(fixture, tenant_id, deletion);
    for (int i = 0; i < rounds; i++)
        assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION / 2);
}

static void deleted_segments_do_not_wait_for_older_ones(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    char sql[600];
    snprintf(sql, sizeof(sql),
             "WITH object AS (INSERT INTO segment (writer_id, object_key, bytes)"
             "  VALUES (%" PRId64 ", 'segment/quiet', 1) RETURNING id) "
             "INSERT INTO segment_tenant (segment_id, tenant_id, first_byte, lengths, footer_crcs,"
             " begin_ns, end_ns, reach_ns, row_count, deletions) SELECT id, %" PRId64
             ", 0, '{1}', '{1}', 1, 2, 2, 1,"
             " ARRAY[%" PRId64 "] FROM object",
             fixture->writer_id, tenant_id, add_deletion(fixture, tenant_id));
    run_sql(fixture, sql);
    assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION);
}

static void blocks_do_not_wait_for_segments(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    for (int i = 0; i < 8; i++)
        add_block(fixture, tenant_id, "", "");
    assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION);
}

static void retention_does_not_wait_for_segments(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    char sql[200];
    snprintf(sql, sizeof(sql),
             "INSERT INTO retention_rule (tenant_id, position, selector, keep_s)"
             " VALUES (%" PRId64 ", 1, '{a=\"b\"}', 60)",
             tenant_id);
    run_sql(fixture, sql);
    add_block(fixture, tenant_id, "", "");
    assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION);
}

static void marked_parts_do_not_wait_for_segments(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    add_block(fixture, tenant_id, ", is_broken, broken_why, broken_since, retry_at",
              ", true, 'unreadable', now(), now()");
    assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION);
}

static void marked_parts_with_deletions_come_first(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t others = add_team(fixture), tenant_id = add_team(fixture);
    for (int i = 0; i < TEAMS; i++)
        add_block(fixture, others, ", is_broken, broken_why, broken_since, retry_at",
                  ", true, 'unreadable', now(), now() - interval '1 hour'");
    char values[120];
    snprintf(values, sizeof(values), ", true, 'unreadable', now(), now(), ARRAY[%" PRId64 "]",
             add_deletion(fixture, tenant_id));
    add_block(fixture, tenant_id, ", is_broken, broken_why, broken_since, retry_at, deletions",
              values);
    assert_in_range(count_claims(fixture, tenant_id), 1, CATALOGUE_CLAIM_ROTATION);
}

/* Segments that have waited for a week come after those of all others. */
static void segments_of_a_costly_tenant_come_last(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t tenant_id = add_team(fixture);
    char sql[600];
    snprintf(sql, sizeof(sql),
             "WITH object AS (INSERT INTO segment (writer_id, object_key, bytes, created_at)"
             "  VALUES (%" PRId64 ", 'segment/costly', 1, now() - interval '7 days')"
             "  RETURNING id) "
             "INSERT INTO segment_tenant (segment_id, tenant_id, first_byte, lengths, footer_crcs,"
             " begin_ns, end_ns, reach_ns, row_count) SELECT id, %" PRId64
             ", 0, '{1}', '{1}', 1, 2, 2, 1 FROM object",
             fixture->writer_id, tenant_id);
    run_sql(fixture, sql);
    const struct catalogue_claim_order order = {.costly = &tenant_id, .costly_count = 1};
    for (int i = 0; i <= TEAMS; i++) {
        arena_auto arena = arena_create();
        struct catalogue_claim made;
        if (catalogue_claim(fixture->jobs, arena, fixture->writer_id, 0, &order, &made,
                            &fixture->err))
            fail_msg("%s", fixture->err.message);
        assert_int_equal(made.count, 1);
        assert_int_equal(made.tenant_id == tenant_id, i == TEAMS);
    }
}

static void the_oldest_deletion_comes_first(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    const int64_t first = add_team(fixture), second = add_team(fixture);
    const int64_t older = add_deletion(fixture, first), newer = add_deletion(fixture, second);
    for (int i = 0; i < TEAMS; i++)
        add_block_with_deletion(fixture, second, newer);
    add_block_with_deletion(fixture, first, older);
    assert_in_range(count_claims(fixture, first), 1, CATALOGUE_CLAIM_ROTATION / 2);
}

static int64_t count_leased(struct fixture *fixture)
{
    return run_sql(fixture, "SELECT (SELECT count(*) FROM block WHERE leased_until > now())"
                            " + (SELECT count(*) FROM segment_tenant WHERE leased_until > now())");
}

/* Claims until segments and blocks are leased. */
static void claim_both(struct fixture *fixture, struct arena *arena,
                       struct catalogue_claim ret_claims[CATALOGUE_CLAIM_ROTATION])
{
    const int64_t tenant_id = add_team(fixture);
    for (int i = 0; i < 8; i++)
        add_block(fixture, tenant_id, "", "");
    fixture->rotation = 0;
    for (int i = 0; i < CATALOGUE_CLAIM_ROTATION; i++)
        claim(fixture, arena, &ret_claims[i]);
    assert_int_equal(count_leased(fixture), CATALOGUE_CLAIM_ROTATION - 1 + 8);
}

static void claims_of_an_ended_writer_are_free(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_claim claims[CATALOGUE_CLAIM_ROTATION];
    claim_both(fixture, arena, claims);
    int64_t other;
    assert_int_equal(catalogue_open_writer(fixture->jobs, "other", &other, &fixture->err), 0);
    assert_int_equal(catalogue_close_writer(fixture->jobs, other, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), CATALOGUE_CLAIM_ROTATION - 1 + 8);
    assert_int_equal(catalogue_close_writer(fixture->jobs, fixture->writer_id, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), 0);
    assert_int_equal(catalogue_renew(fixture->jobs, fixture->writer_id, &claims[0], &fixture->err),
                     ERR_CONFLICT);
}

static void claims_of_a_silent_writer_are_free_when_it_is_ended(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_claim claims[CATALOGUE_CLAIM_ROTATION];
    int64_t other;
    claim_both(fixture, arena, claims);
    assert_int_equal(catalogue_open_writer(fixture->jobs, "other", &other, &fixture->err), 0);
    assert_int_equal(catalogue_tidy(fixture->jobs, other, 10, 0, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), CATALOGUE_CLAIM_ROTATION - 1 + 8);
    run_sql(fixture, "UPDATE store_writer SET seen_at = now() - interval '2 minutes'");
    assert_int_equal(catalogue_tidy(fixture->jobs, other, 10, 0, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), 0);
}

static void a_released_claim_is_free_at_once_or_later(void **state)
{
    struct fixture *fixture = *state;
    SKIP_WITHOUT_DATABASE(fixture);
    arena_auto arena = arena_create();
    struct catalogue_claim claims[CATALOGUE_CLAIM_ROTATION];
    claim_both(fixture, arena, claims);
    for (int i = 0; i < CATALOGUE_CLAIM_ROTATION; i++)
        assert_int_equal(
            catalogue_release(fixture->jobs, fixture->writer_id, &claims[i], 0, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), 0);
    assert_int_equal(catalogue_renew(fixture->jobs, fixture->writer_id, &claims[0], &fixture->err),
                     ERR_CONFLICT);
    struct catalogue_claim again;
    claim(fixture, arena, &again);
    assert_int_equal(
        catalogue_release(fixture->jobs, fixture->writer_id, &again, 60, &fixture->err), 0);
    assert_int_equal(count_leased(fixture), again.id_count);
    /* Another writer holds it now: the first one cannot release it. */
    claim(fixture, arena, &again);
    assert_int_equal(
        catalogue_release(fixture->jobs, fixture->writer_id + 1, &again, 0, &fixture->err), 0);
    assert_int_equal(count_leased(fixture) > again.id_count, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deleted_blocks_do_not_wait_for_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deleted_segments_do_not_wait_for_older_ones, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(blocks_do_not_wait_for_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(retention_does_not_wait_for_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marked_parts_do_not_wait_for_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marked_parts_with_deletions_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_deletion_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(segments_of_a_costly_tenant_come_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_of_an_ended_writer_are_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_of_a_silent_writer_are_free_when_it_is_ended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_released_claim_is_free_at_once_or_later, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
