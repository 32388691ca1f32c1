/*
 * The wrapper of libpq with a real PostgreSQL: PERFOLIO_TEST_DATABASE is a libpq connection string
 * of a role that may create tables and roles. Without it all tests are skipped;
 * tests/integration/server/test_pg.py sets it.
 */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct fixture {
    struct pg_pool *pool;
    struct arena *arena;
    struct err err;
};

static const char schema[] =
    "DROP TABLE IF EXISTS pg_test;"
    "CREATE TABLE pg_test (id bigint PRIMARY KEY, tenant_id bigint NOT NULL, name text NOT NULL,"
    " data bytea, flag boolean);"
    "ALTER TABLE pg_test ENABLE ROW LEVEL SECURITY;"
    "DO $$ BEGIN CREATE ROLE test_pg_role NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END"
    " $$;"
    "CREATE POLICY tenant_rows ON pg_test TO test_pg_role"
    " USING (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint)"
    " WITH CHECK (tenant_id = nullif(current_setting('app.tenant', true), '')::bigint);"
    "GRANT ALL ON pg_test TO test_pg_role;"
    "INSERT INTO pg_test VALUES (1, 10, 'one', '\\x00ff', true), (2, 20, 'two', NULL, false)";

static const char *database(void)
{
    return getenv("PERFOLIO_TEST_DATABASE");
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    *state = fixture;
    fixture->arena = arena_create();
    if (!database())
        return 0;
    struct pg_pool *owner = pg_pool_create(database(), NULL, 1);
    struct pg_connection *connection;
    if (pg_take(owner, &connection, &fixture->err) ||
        pg_script(connection, schema, &fixture->err)) {
        print_error("%s\n", fixture->err.message);
        return -1;
    }
    pg_give(connection);
    pg_pool_destroy(owner);
    fixture->pool = pg_pool_create(database(), "test_pg_role", 2);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    pg_pool_destroy(fixture->pool);
    arena_destroy(fixture->arena);
    mem_free(fixture);
    return 0;
}

static struct fixture *start(void **state)
{
    if (!database())
        skip();
    return *state;
}

static struct pg_connection *take(struct fixture *fixture)
{
    struct pg_connection *connection = NULL;
    if (pg_take(fixture->pool, &connection, &fixture->err))
        fail_msg("%s", fixture->err.message);
    return connection;
}

static int64_t count_rows(struct fixture *fixture, struct pg_connection *connection,
                          int64_t tenant_id)
{
    struct pg_result *result;
    if (pg_query(connection, tenant_id, "SELECT count(*) FROM pg_test", NULL, 0, fixture->arena,
                 &result, &fixture->err))
        fail_msg("%s", fixture->err.message);
    return pg_get_i64(result, 0, 0);
}

static void a_query_sees_its_tenants_rows_only(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *connection = take(fixture);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    assert_int_equal(count_rows(fixture, connection, PG_NO_TENANT), 0);
    assert_int_equal(count_rows(fixture, connection, 20), 1);
    assert_int_equal(count_rows(fixture, connection, 30), 0);
    pg_give(connection);
}

static void values_and_cells_of_every_kind_survive(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    struct pg_result *result;
    uint8_t bytes[] = {0, 1, 0xfe, '\\', 'x'};
    enum err_code code = pg_query_values(
        connection, 10,
        "INSERT INTO pg_test VALUES ($1, $2, $3, $4, $5) RETURNING id, name, data, flag",
        fixture->arena, &result, &fixture->err, PG_I64(INT64_MIN), PG_I64(10),
        PG_SPAN(span_of("Ü and more", 2)), PG_BYTES(span_of(bytes, sizeof(bytes))), PG_BOOL(true));
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(pg_affected(result), 1);
    assert_true(pg_get_i64(result, 0, 0) == INT64_MIN);
    assert_string_equal(pg_get_text(result, 0, 1), "Ü");
    assert_int_equal(pg_get_bytes(result, 0, 2).size, sizeof(bytes));
    assert_memory_equal(pg_get_bytes(result, 0, 2).data, bytes, sizeof(bytes));
    assert_true(pg_get_bool(result, 0, 3));
    code = pg_query_values(connection, 10, "UPDATE pg_test SET data = $1 RETURNING data",
                           fixture->arena, &result, &fixture->err, PG_NULL);
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(pg_row_count(result), 2);
    assert_true(pg_is_null(result, 0, 0));
    assert_int_equal(pg_get_bytes(result, 0, 0).size, 0);
    assert_string_equal(pg_get_text(result, 0, 0), "");
}

static void errors_have_their_class_and_leave_the_connection_usable(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    static const struct {
        const char *sql;
        enum err_code code;
    } cases[] = {
        {"INSERT INTO pg_test VALUES (1, 10, 'again')", ERR_CONFLICT},
        {"INSERT INTO pg_test VALUES (3, 20, 'foreign')", ERR_FORBIDDEN},
        {"INSERT INTO pg_test VALUES (3, 10, NULL)", ERR_INVALID},
        {"SELECT 'x'::bigint", ERR_INVALID},
        {"SELECT 1/0", ERR_INVALID},
        {"SELECT no_such_column FROM pg_test", ERR_DATABASE},
        {"DO $$ BEGIN RAISE 'no way round' USING ERRCODE = '40P01'; END $$", ERR_BUSY},
        {"ALTER TABLE pg_test DISABLE ROW LEVEL SECURITY", ERR_FORBIDDEN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int repeat = 0; repeat < 2; repeat++) {
            enum err_code code = pg_query(connection, 10, cases[i].sql, NULL, 0, fixture->arena,
                                          NULL, &fixture->err);
            assert_int_equal(code, cases[i].code);
            assert_int_equal(fixture->err.is_rolled_back, code == ERR_BUSY);
            assert_non_null(strstr(fixture->err.message, "SQLSTATE"));
            assert_null(strstr(err_public_text(&fixture->err), "SQLSTATE"));
            assert_int_equal(count_rows(fixture, connection, 10), 1);
        }
    }
}

static void texts_that_postgresql_cannot_store_are_refused(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    struct span bad[] = {span_of("a\0b", 3), span_of("\xff", 1)};
    for (size_t i = 0; i < 2; i++) {
        enum err_code code = pg_query_values(connection, 10, "SELECT $1::text", fixture->arena,
                                             NULL, &fixture->err, PG_SPAN(bad[i]));
        assert_int_equal(code, ERR_INVALID);
    }
    assert_int_equal(count_rows(fixture, connection, 10), 1);
}

static void insert(struct fixture *fixture, struct pg_connection *connection, int64_t id)
{
    if (pg_query_values(connection, 10, "INSERT INTO pg_test VALUES ($1, 10, 'new')",
                        fixture->arena, NULL, &fixture->err, PG_I64(id)))
        fail_msg("%s", fixture->err.message);
}

static void transactions_commit_or_vanish(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 5);
    insert(fixture, connection, 6);
    assert_int_equal(count_rows(fixture, connection, 10), 3);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 7);
    pg_rollback(connection);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 8);
    pg_give(connection); /* rolls back */
    connection = take(fixture);
    assert_int_equal(count_rows(fixture, connection, 10), 3);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
    pg_give(connection);
}

static void a_failed_transaction_accepts_only_a_rollback(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 5);
    assert_int_equal(pg_query(connection, 10, "INSERT INTO pg_test VALUES (1, 10, 'again')", NULL,
                              0, fixture->arena, NULL, &fixture->err),
                     ERR_CONFLICT);
    assert_int_equal(
        pg_query(connection, 10, "SELECT 1", NULL, 0, fixture->arena, NULL, &fixture->err),
        ERR_INTERNAL);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_INTERNAL);
    pg_rollback(connection);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
}

static void a_transaction_cannot_change_its_tenant(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    assert_int_equal(
        pg_query(connection, 20, "SELECT 1", NULL, 0, fixture->arena, NULL, &fixture->err),
        ERR_INTERNAL);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
    assert_int_equal(pg_begin(connection, PG_NO_TENANT, &fixture->err), ERR_NONE);
    assert_int_equal(count_rows(fixture, connection, 20), 0);
}

static void queue(struct fixture *fixture, struct pg_connection *connection, int64_t id)
{
    assert_int_equal(pg_queue_values(connection, 10, "INSERT INTO pg_test VALUES ($1, 10, $2)",
                                     fixture->arena, &fixture->err, PG_I64(id), PG_TEXT("queued")),
                     ERR_NONE);
}

static void queued_statements_travel_with_the_next_one_or_the_commit(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    queue(fixture, connection, 5);
    queue(fixture, connection, 6);
    assert_int_equal(count_rows(fixture, connection, 10), 3);
    for (int64_t id = 7; id < 27; id++) /* more than the pool keeps */
        queue(fixture, connection, id);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
    assert_int_equal(count_rows(fixture, connection, 10), 23);
    queue(fixture, connection, 27); /* outside a transaction: at once */
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    queue(fixture, connection, 28);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_NONE);
    assert_int_equal(count_rows(fixture, connection, 10), 25);
}

static void a_failed_queued_statement_fails_the_transaction(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    queue(fixture, connection, 5);
    queue(fixture, connection, 1);
    queue(fixture, connection, 6);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_CONFLICT);
    pg_rollback(connection);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    queue(fixture, connection, 5);
    pg_rollback(connection); /* with the waiting statements */
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    assert_int_equal(pg_queue_values(connection, 20, "SELECT $1::text", fixture->arena,
                                     &fixture->err, PG_TEXT("a")),
                     ERR_INTERNAL);
    assert_int_equal(pg_queue_values(connection, 10,
                                     "INSERT INTO pg_test VALUES ($1, 20, 'foreign')",
                                     fixture->arena, &fixture->err, PG_I64(9)),
                     ERR_NONE);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_FORBIDDEN);
}

/* The server ends the session; the next caller gets a new one. */
static void a_connection_that_died_is_replaced(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *first = take(fixture);
    struct pg_result *result;
    assert_int_equal(pg_query(first, PG_NO_TENANT, "SELECT pg_backend_pid()", NULL, 0,
                              fixture->arena, &result, &fixture->err),
                     ERR_NONE);
    int64_t pid = pg_get_i64(result, 0, 0);
    pg_give(first);
    struct pg_pool *owner = pg_pool_create(database(), NULL, 1);
    struct pg_connection *killer;
    assert_int_equal(pg_take(owner, &killer, &fixture->err), ERR_NONE);
    assert_int_equal(pg_query_values(killer, PG_NO_TENANT, "SELECT pg_terminate_backend($1::int)",
                                     fixture->arena, NULL, &fixture->err, PG_I64(pid)),
                     ERR_NONE);
    clock_sleep_ms(200);
    struct pg_connection *second = take(fixture);
    assert_int_equal(count_rows(fixture, second, 10), 1);
    pg_give(second);
    /* A session that dies during a statement. */
    assert_int_equal(pg_query_values(killer, PG_NO_TENANT,
                                     "SELECT pg_terminate_backend(pg_backend_pid()), $1::text",
                                     fixture->arena, NULL, &fixture->err, PG_TEXT("x")),
                     ERR_DATABASE);
    pg_give(killer);
    assert_int_equal(pg_take(owner, &killer, &fixture->err), ERR_NONE);
    assert_int_equal(
        pg_query(killer, PG_NO_TENANT, "SELECT 1", NULL, 0, fixture->arena, NULL, &fixture->err),
        ERR_NONE);
    pg_give(killer);
    pg_pool_destroy(owner);
}

static void run_as_owner(struct fixture *fixture, const char *script)
{
    struct pg_pool *owner = pg_pool_create(database(), NULL, 1);
    struct pg_connection *connection;
    if (pg_take(owner, &connection, &fixture->err) || pg_script(connection, script, &fixture->err))
        fail_msg("%s", fixture->err.message);
    pg_give(connection);
    pg_pool_destroy(owner);
}

static void failures_of_idle_connections_are_counted(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *connection = take(fixture);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    pg_give(connection);
    assert_int_equal(pg_pool_failure_count(fixture->pool), 0);
    run_as_owner(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                          " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    assert_int_equal(pg_pool_failure_count(fixture->pool), 1);
    assert_int_equal(pg_pool_counts(fixture->pool).open, 0);
    connection = take(fixture);
    assert_int_equal(pg_query(connection, 10, "SELECT no_such_column FROM pg_test", NULL, 0,
                              fixture->arena, NULL, &fixture->err),
                     ERR_DATABASE);
    assert_int_equal(
        pg_query(connection, 10, "SELECT 1/0", NULL, 0, fixture->arena, NULL, &fixture->err),
        ERR_INVALID); /* an error of ours, not of the database */
    pg_give(connection);
    assert_int_equal(pg_pool_failure_count(fixture->pool), 2);
}

/* ALTER DATABASE cannot do this from within. */
#define SET_OPEN(flag)                                                                             \
    "UPDATE pg_database SET datallowconn = " flag " WHERE datname = current_database()"

static void *let_in_after_a_while(void *connection)
{
    struct err err;
    clock_sleep_ms(400);
    if (pg_script(connection, SET_OPEN("true"), &err))
        fail_msg("%s", err.message);
    return NULL;
}

static void a_caller_with_time_waits_for_the_database(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_pool *owner = pg_pool_create(database(), NULL, 1);
    struct pg_connection *keeper, *connection;
    pthread_t thread;
    assert_int_equal(pg_take(owner, &keeper, &fixture->err), ERR_NONE);
    assert_int_equal(pg_script(keeper, SET_OPEN("false"), &fixture->err), ERR_NONE);
    assert_int_equal(pg_take(fixture->pool, &connection, &fixture->err), ERR_DATABASE);
    pg_pool_set_connect_wait(fixture->pool, 120000);
    int64_t start_ns = clock_monotonic_ns();
    assert_int_equal(pg_take_at_once(fixture->pool, &connection, &fixture->err), ERR_DATABASE);
    assert_true(clock_monotonic_ns() - start_ns < 60 * CLOCK_NS_PER_S);
    pg_pool_set_connect_wait(fixture->pool, 300);
    start_ns = clock_monotonic_ns();
    assert_int_equal(pg_take(fixture->pool, &connection, &fixture->err), ERR_DATABASE);
    assert_true(clock_monotonic_ns() - start_ns >= 300 * CLOCK_NS_PER_MS);
    pg_pool_set_connect_wait(fixture->pool, 120000);
    assert_int_equal(pthread_create(&thread, NULL, let_in_after_a_while, keeper), 0);
    connection = take(fixture);
    pthread_join(thread, NULL);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    pg_give(connection);
    pg_give(keeper);
    pg_pool_destroy(owner);
}

static void a_changed_table_costs_at_most_one_failure(void **state)
{
    struct fixture *fixture = start(state);
    static const char sql[] = "SELECT * FROM pg_test";
    struct pg_connection *connection = take(fixture);
    assert_int_equal(pg_query(connection, 10, sql, NULL, 0, fixture->arena, NULL, &fixture->err),
                     ERR_NONE);
    pg_give(connection);
    struct pg_pool *owner = pg_pool_create(database(), NULL, 1);
    struct pg_connection *changer;
    assert_int_equal(pg_take(owner, &changer, &fixture->err), ERR_NONE);
    assert_int_equal(pg_script(changer, "ALTER TABLE pg_test ADD COLUMN extra text", &fixture->err),
                     ERR_NONE);
    pg_give(changer);
    pg_pool_destroy(owner);
    connection = take(fixture);
    assert_int_equal(pg_query(connection, 10, sql, NULL, 0, fixture->arena, NULL, &fixture->err),
                     ERR_DATABASE);
    pg_give(connection);
    connection = take(fixture);
    assert_int_equal(pg_query(connection, 10, sql, NULL, 0, fixture->arena, NULL, &fixture->err),
                     ERR_NONE);
    pg_give(connection);
}

static void a_script_is_all_or_nothing(void **state)
{
    struct fixture *fixture = start(state);
    pg_auto connection = take(fixture);
    assert_int_equal(pg_script(connection,
                               "SELECT set_config('app.tenant', '10', true);"
                               "INSERT INTO pg_test VALUES (40, 10, 'x'); SELECT 1/0",
                               &fixture->err),
                     ERR_INVALID);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
}

static const char *query_text(struct fixture *fixture, struct pg_connection *connection,
                              const char *sql)
{
    struct pg_result *result;
    if (pg_query(connection, PG_NO_TENANT, sql, NULL, 0, fixture->arena, &result, &fixture->err))
        fail_msg("%s", fixture->err.message);
    return pg_get_text(result, 0, 0);
}

/* The connection is closed, because its late reply would be taken for the next statement's. */
static void a_statement_without_a_reply_in_time_costs_its_connection(void **state)
{
    struct fixture *fixture = start(state);
    pg_pool_set_deadlines(fixture->pool, 300, NULL);
    struct pg_connection *connection = take(fixture);
    assert_string_equal(query_text(fixture, connection, "SHOW statement_timeout"), "5300ms");
    const char *first = query_text(fixture, connection, "SELECT pg_backend_pid()");
    assert_int_equal(pg_query(connection, PG_NO_TENANT, "SELECT 'late', pg_sleep(60)", NULL, 0,
                              fixture->arena, NULL, &fixture->err),
                     ERR_DATABASE);
    assert_true(fixture->err.is_disconnect && fixture->err.retry_after_s > 0);
    pg_give(connection);
    assert_int_equal(pg_pool_counts(fixture->pool).open, 0);
    assert_int_equal(pg_pool_failure_count(fixture->pool), 1);
    connection = take(fixture);
    assert_string_not_equal(query_text(fixture, connection, "SELECT pg_backend_pid()"), first);
    assert_string_equal(query_text(fixture, connection, "SELECT 'next'"), "next");
    pg_give(connection);
}

static void a_transaction_whose_commit_gets_no_reply_has_failed_by_the_database(void **state)
{
    struct fixture *fixture = start(state);
    run_as_owner(fixture, "CREATE OR REPLACE FUNCTION test_pg_wait() RETURNS trigger"
                          " LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;"
                          "CREATE CONSTRAINT TRIGGER test_pg_wait AFTER INSERT ON pg_test"
                          " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
                          " EXECUTE FUNCTION test_pg_wait()");
    pg_pool_set_deadlines(fixture->pool, 300, NULL);
    struct pg_connection *connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 50);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_DATABASE);
    assert_true(fixture->err.is_disconnect);
    pg_give(connection);
    assert_int_equal(pg_pool_counts(fixture->pool).open, 0);
}

static void scripts_have_no_deadline_and_a_limit_ends_with_the_loan(void **state)
{
    struct fixture *fixture = start(state);
    pg_pool_set_deadlines(fixture->pool, 60000, NULL);
    struct pg_connection *connection = take(fixture);
    pg_limit(connection, 100);
    assert_int_equal(pg_script(connection, "SELECT pg_sleep(0.5)", &fixture->err), ERR_NONE);
    pg_give(connection);
    connection = take(fixture);
    assert_string_equal(query_text(fixture, connection, "SELECT 'x', pg_sleep(0.5)"), "x");
    pg_limit(connection, 100);
    assert_int_equal(pg_query(connection, PG_NO_TENANT, "SELECT pg_sleep(60)", NULL, 0,
                              fixture->arena, NULL, &fixture->err),
                     ERR_DATABASE);
    pg_give(connection);
}

struct waiter {
    struct fixture *fixture;
    enum err_code code;
};

static void expect_late(struct fixture *fixture, struct pg_connection *connection, const char *sql)
{
    assert_int_equal(
        pg_query(connection, PG_NO_TENANT, sql, NULL, 0, fixture->arena, NULL, &fixture->err),
        ERR_BUSY);
    assert_true(fixture->err.retry_after_s > 0);
    assert_non_null(fixture->err.public_text);
}

/* The server cancels the first statement, and the next one is not sent. */
static void statements_share_a_deadline_and_leave_the_connection_usable(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *connection = take(fixture);
    const char *first = query_text(fixture, connection, "SELECT pg_backend_pid()");
    pg_limit_until(connection, clock_monotonic_ns() + 300 * CLOCK_NS_PER_MS);
    expect_late(fixture, connection, "SELECT pg_sleep(60)");
    assert_non_null(strstr(fixture->err.message, "57014"));
    expect_late(fixture, connection, "SELECT 1");
    assert_null(strstr(fixture->err.message, "SQLSTATE"));
    pg_give(connection);
    connection = take(fixture);
    assert_string_equal(query_text(fixture, connection, "SELECT pg_backend_pid()"), first);
    assert_string_equal(query_text(fixture, connection, "SHOW statement_timeout"), "65s");
    assert_int_equal(pg_pool_failure_count(fixture->pool), 0);
    pg_give(connection);
}

static void a_transaction_past_its_deadline_is_not_committed(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *connection = take(fixture);
    assert_int_equal(pg_begin(connection, 10, &fixture->err), ERR_NONE);
    insert(fixture, connection, 60);
    pg_limit_until(connection, clock_monotonic_ns() - 1);
    assert_int_equal(pg_commit(connection, &fixture->err), ERR_BUSY);
    pg_give(connection);
    connection = take(fixture);
    assert_int_equal(count_rows(fixture, connection, 10), 1);
    pg_give(connection);
}

static void *take_and_give(void *context)
{
    struct waiter *waiter = context;
    struct err err;
    struct pg_connection *connection;
    waiter->code = pg_take(waiter->fixture->pool, &connection, &err);
    if (!waiter->code)
        pg_give(connection);
    return NULL;
}

static void callers_beyond_the_maximum_wait(void **state)
{
    struct fixture *fixture = start(state);
    struct pg_connection *first = take(fixture);
    struct pg_connection *second = take(fixture);
    struct waiter waiters[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        waiters[i].fixture = fixture;
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &waiters[i]), 0);
    }
    clock_sleep_ms(100);
    pg_give(first);
    pg_give(second);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].code, ERR_NONE);
    }
}

static void a_password_is_removed_from_a_url(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const char *plain, *password;
    struct err err;
    assert_int_equal(pg_split_password("postgresql://me:s%20e'c@db:5433/our%5Cname?sslmode=require",
                                       arena, &plain, &password, &err),
                     ERR_NONE);
    assert_string_equal(password, "s e'c");
    assert_null(strstr(plain, "s e"));
    assert_non_null(strstr(plain, "user='me'"));
    assert_non_null(strstr(plain, "host='db'"));
    assert_non_null(strstr(plain, "port='5433'"));
    assert_non_null(strstr(plain, "dbname='our\\\\name'"));
    assert_non_null(strstr(plain, "sslmode='require'"));
    assert_int_equal(pg_split_password("host=/run user=me", arena, &plain, &password, &err),
                     ERR_NONE);
    assert_string_equal(password, "");
    assert_int_equal(pg_split_password("s3cret=x", arena, &plain, &password, &err), ERR_INVALID);
    assert_null(strstr(err.message, "s3cret"));
}

/* A server that accepts connections and never sends anything. */
static int listen_silently(char ret_conninfo[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
                listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    snprintf(ret_conninfo, 64, "host=127.0.0.1 port=%d dbname=x", ntohs(address.sin_port));
    return fd;
}

/* The first probe of the process got no reply: the server may be far away or down. */
static void a_server_that_never_replied_is_refused_without_the_breaker(void **state)
{
    (void)state;
    struct err err = {0};
    char conninfo[64];
    const int fd = listen_silently(conninfo);
    struct pg_connection *connection;
    struct pg_watch *watch;
    struct pg_pool *pool = pg_pool_create(conninfo, NULL, 1);
    assert_int_equal(pg_watch_create(conninfo, NULL, &watch, &err), ERR_NONE);
    pg_pool_set_deadlines(pool, 1000, watch);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pg_take(pool, &connection, &err), ERR_DATABASE);
        assert_true(err.retry_after_s > 0);
    }
    const int64_t begin_ns = clock_monotonic_ns();
    for (int i = 0; i < 100; i++)
        assert_int_equal(pg_take(pool, &connection, &err), ERR_DATABASE);
    assert_true(clock_monotonic_ns() - begin_ns < 20 * CLOCK_NS_PER_S);
    assert_true(pg_watch_is_responding(watch));
    pg_pool_destroy(pool);
    pg_watch_destroy(watch);
    close(fd);
}

/* ---- a TCP proxy in front of the database that delays or stops what it forwards ---- */

enum { MAX_PROXIED = 32, PROXY_LOOK_MS = 20 };

struct proxy {
    int listen_fd;
    int port;
    atomic_int delay_ms; /* in each direction */
    atomic_bool is_stopped;
    atomic_bool should_end;
    pthread_t threads[MAX_PROXIED];
    int thread_count;
    char socket_path[108];
};

static void forward(const struct proxy *proxy, const int fds[2])
{
    char bytes[16 << 10];
    while (!atomic_load(&proxy->should_end)) {
        struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
        if (poll(polled, 2, PROXY_LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (!polled[i].revents)
                continue;
            const ssize_t size = read(fds[i], bytes, sizeof(bytes));
            clock_sleep_ms(atomic_load(&proxy->delay_ms));
            while (atomic_load(&proxy->is_stopped) && !atomic_load(&proxy->should_end))
                clock_sleep_ms(PROXY_LOOK_MS);
            if (size <= 0 || send(fds[1 - i], bytes, (size_t)size, MSG_NOSIGNAL) != size)
                return;
        }
    }
}

struct proxied {
    struct proxy *proxy;
    int fd;
};

static void *proxied_main(void *context)
{
    struct proxied *proxied = context;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, proxied->proxy->socket_path, sizeof(address.sun_path));
    const int fds[2] = {proxied->fd, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connect(fds[1], (struct sockaddr *)&address, sizeof(address)) == 0)
        forward(proxied->proxy, fds);
    close(fds[0]);
    close(fds[1]);
    free(proxied);
    return NULL;
}

/* Accepts connections in its first thread. */
static void *proxy_main(void *context)
{
    struct proxy *proxy = context;
    while (!atomic_load(&proxy->should_end) && proxy->thread_count < MAX_PROXIED) {
        struct pollfd polled = {proxy->listen_fd, POLLIN, 0};
        if (poll(&polled, 1, PROXY_LOOK_MS) <= 0)
            continue;
        struct proxied *proxied = malloc(sizeof(*proxied));
        *proxied = (struct proxied){proxy, accept(proxy->listen_fd, NULL, NULL)};
        pthread_create(&proxy->threads[proxy->thread_count++], NULL, proxied_main, proxied);
    }
    return NULL;
}

static const char *option_of(const char *name, char *ret_value, size_t size)
{
    const char *at = strstr(database(), name);
    assert_non_null(at);
    at += strlen(name);
    snprintf(ret_value, size, "%.*s", (int)strcspn(at, " "), at);
    return ret_value;
}

static void proxy_start(struct proxy *proxy, const char *host, char ret_conninfo[256])
{
    char folder[80], name[64], user[64], ignored[64];
    proxy->listen_fd = listen_silently(ignored);
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    getsockname(proxy->listen_fd, (struct sockaddr *)&address, &size);
    proxy->port = ntohs(address.sin_port);
    snprintf(proxy->socket_path, sizeof(proxy->socket_path), "%s/.s.PGSQL.5432",
             option_of("host=", folder, sizeof(folder)));
    snprintf(ret_conninfo, 256, "host=%s port=%d dbname=%s user=%s", host, proxy->port,
             option_of("dbname=", name, sizeof(name)), option_of("user=", user, sizeof(user)));
    assert_int_equal(
        pthread_create(&proxy->threads[proxy->thread_count++], NULL, proxy_main, proxy), 0);
}

static void proxy_end(struct proxy *proxy)
{
    atomic_store(&proxy->should_end, true);
    for (int i = 0; i < proxy->thread_count; i++)
        pthread_join(proxy->threads[i], NULL);
    close(proxy->listen_fd);
}

/* A round trip takes 0.4 s, a connection several of them. */
static void a_distant_database_is_usable(void **state)
{
    struct fixture *fixture = start(state);
    struct proxy proxy = {.delay_ms = 200};
    char conninfo[256];
    proxy_start(&proxy, "127.0.0.1", conninfo);
    struct pg_watch *watch;
    assert_int_equal(pg_watch_create(conninfo, NULL, &watch, &fixture->err), ERR_NONE);
    struct pg_pool *pool = pg_pool_create(conninfo, "test_pg_role", 1);
    pg_pool_set_deadlines(pool, 60000, watch);
    struct pg_connection *connection;
    if (pg_take(pool, &connection, &fixture->err))
        fail_msg("%s", fixture->err.message);
    for (int i = 0; i < 4; i++)
        assert_string_equal(query_text(fixture, connection, "SELECT 'far', pg_sleep(1)"), "far");
    assert_true(pg_watch_is_responding(watch));
    pg_give(connection);
    assert_int_equal(pg_pool_failure_count(pool), 0);
    pg_pool_destroy(pool);
    pg_watch_destroy(watch);
    proxy_end(&proxy);
}

struct sleeper {
    struct pg_connection *connection;
    enum err_code code;
    atomic_bool has_ended;
};

static void *sleep_in_database(void *context)
{
    struct sleeper *sleeper = context;
    arena_auto arena = arena_create();
    struct err err;
    sleeper->code = pg_query(sleeper->connection, PG_NO_TENANT, "SELECT pg_sleep(4)", NULL, 0,
                             arena, NULL, &err);
    atomic_store(&sleeper->has_ended, true);
    return NULL;
}

/* The first probe has one connection if one of its requests began after the other had ended. */
static void wait_for_probe(struct fixture *fixture, struct pg_connection *connection)
{
    const char *const sql =
        "SELECT (count(*) >= 1)::text FROM pg_stat_activity WHERE state = 'idle'"
        " AND query = 'SELECT 1' AND datname = current_database()";
    const int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    while (strcmp(query_text(fixture, connection, sql), "true") != 0) {
        assert_true(clock_monotonic_ns() < until_ns);
        clock_sleep_ms(10);
    }
    clock_sleep_ms(500); /* its replies are on their way */
}

/* The proxy stops the probes, but not the connections of the pool. */
static void replies_to_the_pools_keep_the_breaker_closed(void **state)
{
    struct fixture *fixture = start(state);
    struct proxy proxy = {0};
    char conninfo[256];
    proxy_start(&proxy, "127.0.0.1", conninfo);
    struct pg_watch *watch;
    assert_int_equal(pg_watch_create(conninfo, NULL, &watch, &fixture->err), ERR_NONE);
    struct pg_pool *pool = pg_pool_create(database(), NULL, 2);
    pg_pool_set_deadlines(pool, 60000, watch);
    struct pg_connection *busy;
    struct sleeper sleeper = {0};
    pthread_t thread;
    assert_int_equal(pg_take(pool, &busy, &fixture->err), ERR_NONE);
    assert_int_equal(pg_take(pool, &sleeper.connection, &fixture->err), ERR_NONE);
    wait_for_probe(fixture, busy);
    atomic_store(&proxy.is_stopped, true);
    assert_int_equal(pthread_create(&thread, NULL, sleep_in_database, &sleeper), 0);
    while (!atomic_load(&sleeper.has_ended)) {
        assert_string_equal(query_text(fixture, busy, "SELECT 'alive'"), "alive");
        clock_sleep_ms(10);
    }
    pthread_join(thread, NULL);
    assert_int_equal(sleeper.code, ERR_NONE);
    assert_true(pg_watch_is_responding(watch));
    /* Without other replies, a statement of the same kind is canceled. */
    assert_int_equal(pg_query(busy, PG_NO_TENANT, "SELECT pg_sleep(60)", NULL, 0, fixture->arena,
                              NULL, &fixture->err),
                     ERR_DATABASE);
    assert_false(pg_watch_is_responding(watch));
    atomic_store(&proxy.is_stopped, false);
    pg_give(busy);
    pg_give(sleeper.connection);
    pg_pool_destroy(pool);
    pg_watch_destroy(watch);
    proxy_end(&proxy);
}

/* ---- a name with two addresses, of which the first drops all packets ---- */

enum { FILLERS = 4 };

/* Replaces the function of the C library, so that no file or name server is needed. */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret_list)
{
    int (*find)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&find = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || strcmp(name, "database.test") != 0)
        return find(name, service, hints, ret_list);
    const int failure = find("127.0.0.2", service, hints, ret_list);
    return failure ? failure : find("127.0.0.1", service, hints, &(*ret_list)->ai_next);
}

/* Its connection queue is full. */
static void fill_address(int port, int fds[FILLERS + 1])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
                                  .sin_port = htons((uint16_t)port)};
    for (int i = 0; i <= FILLERS; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fds[0], (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fds[0], 0), 0);
    for (int i = 1; i <= FILLERS; i++)
        (void)!connect(fds[i], (struct sockaddr *)&address, sizeof(address));
    clock_sleep_ms(100);
}

static void a_silent_address_is_left_for_the_next_one(void **state)
{
    struct fixture *fixture = start(state);
    struct proxy proxy = {0};
    char conninfo[256];
    int fds[FILLERS + 1];
    proxy_start(&proxy, "database.test", conninfo);
    fill_address(proxy.port, fds);
    struct pg_watch *watch;
    assert_int_equal(pg_watch_create(conninfo, NULL, &watch, &fixture->err), ERR_NONE);
    struct pg_pool *pools[2] = {pg_pool_create(conninfo, NULL, 1),
                                pg_pool_create(conninfo, NULL, 1)};
    pg_pool_set_deadlines(pools[1], 60000, watch);
    for (int i = 0; i < 2; i++) {
        struct pg_connection *connection;
        if (pg_take(pools[i], &connection, &fixture->err))
            fail_msg("%s", fixture->err.message);
        assert_string_equal(query_text(fixture, connection, "SELECT 'found'"), "found");
        pg_give(connection);
        pg_pool_destroy(pools[i]);
    }
    pg_watch_destroy(watch);
    for (int i = 0; i <= FILLERS; i++)
        close(fds[i]);
    proxy_end(&proxy);
}

static void a_missing_database_is_a_clear_error(void **state)
{
    (void)state;
    struct err err = {0};
    struct pg_connection *connection;
    struct pg_pool *pool = pg_pool_create("host=/nonexistent dbname=x", NULL, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pg_take(pool, &connection, &err), ERR_DATABASE);
        assert_true(err.retry_after_s > 0);
    }
    pg_give(NULL);
    pg_pool_destroy(pool);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_query_sees_its_tenants_rows_only),
        TEST(values_and_cells_of_every_kind_survive),
        TEST(errors_have_their_class_and_leave_the_connection_usable),
        TEST(texts_that_postgresql_cannot_store_are_refused),
        TEST(transactions_commit_or_vanish),
        TEST(a_failed_transaction_accepts_only_a_rollback),
        TEST(a_transaction_cannot_change_its_tenant),
        TEST(queued_statements_travel_with_the_next_one_or_the_commit),
        TEST(a_failed_queued_statement_fails_the_transaction),
        TEST(a_connection_that_died_is_replaced),
        TEST(failures_of_idle_connections_are_counted),
        TEST(a_caller_with_time_waits_for_the_database),
        TEST(a_changed_table_costs_at_most_one_failure),
        TEST(a_script_is_all_or_nothing),
        TEST(callers_beyond_the_maximum_wait),
        TEST(a_statement_without_a_reply_in_time_costs_its_connection),
        TEST(a_transaction_whose_commit_gets_no_reply_has_failed_by_the_database),
        TEST(scripts_have_no_deadline_and_a_limit_ends_with_the_loan),
        TEST(statements_share_a_deadline_and_leave_the_connection_usable),
        TEST(a_transaction_past_its_deadline_is_not_committed),
        TEST(a_distant_database_is_usable),
        TEST(replies_to_the_pools_keep_the_breaker_closed),
        TEST(a_silent_address_is_left_for_the_next_one),
        cmocka_unit_test(a_server_that_never_replied_is_refused_without_the_breaker),
        cmocka_unit_test(a_missing_database_is_a_clear_error),
        cmocka_unit_test(a_password_is_removed_from_a_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
