#include "lib/io/pg_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STEPS = 2 * (PG_MAX_QUEUED + 4), /* each may have to be prepared first */
    STATEMENT_NAME_BYTES = 16,
    TYPE_BYTEA = 17,       /* pg_type.oid, which never changes */
    LIMIT_GRACE_MS = 1000, /* the server itself ends a statement at the limit */
    LATE_RETRY_S = 5,
};

static const char begin_sql[] = "BEGIN";
static const char commit_sql[] = "COMMIT";
static const char limit_sql[] = "SELECT set_config('statement_timeout', $1, true)";
static const char tenant_sql[] = "SELECT set_config('app.tenant', $1, true)";

struct pg_result {
    PGresult *handle;
    struct span *decoded; /* bytea cells, row by row; NULL if no column is bytea */
    int row_count;
    int column_count;
};

/* ---- one pipeline: BEGIN and tenant if needed, queued statements, the statement or COMMIT,
 * Sync ---- */

static enum err_code set_text(struct arguments *arguments, int i, struct span text,
                              struct arena *arena, struct err *err)
{
    if (text.size && memchr(text.data, 0, text.size))
        return err_set(err, ERR_INVALID, "A text has a NUL character in it");
    if (!span_is_utf8(text))
        return err_set(err, ERR_INVALID, "A text is not UTF-8");
    arguments->texts[i] = arena_strndup(arena, text.data, text.size);
    return ERR_NONE;
}

static enum err_code set_argument(struct arguments *arguments, int i, const struct pg_value *value,
                                  struct arena *arena, struct err *err)
{
    arguments->formats[i] = 0;
    arguments->sizes[i] = 0;
    arguments->texts[i] = NULL;
    switch (value->kind) {
    case PG_KIND_NULL:
        return ERR_NONE;
    case PG_KIND_TEXT:
        return set_text(arguments, i, value->bytes, arena, err);
    case PG_KIND_I64:
        snprintf(arguments->numbers[i], PG_NUMBER_TEXT_BYTES, "%" PRId64, value->number);
        arguments->texts[i] = arguments->numbers[i];
        return ERR_NONE;
    case PG_KIND_BOOL:
        arguments->texts[i] = value->number ? "t" : "f";
        return ERR_NONE;
    case PG_KIND_BYTES:
        if (value->bytes.size > INT32_MAX)
            return err_set(err, ERR_TOO_LARGE, "A value has %zu bytes", value->bytes.size);
        arguments->formats[i] = 1;
        arguments->sizes[i] = (int)value->bytes.size;
        arguments->texts[i] = value->bytes.size ? (const char *)value->bytes.data : "";
        return ERR_NONE;
    }
    return err_set(err, ERR_INTERNAL, "value %d of a statement has no kind", i + 1);
}

static enum err_code set_arguments(struct arguments *arguments, const struct pg_value *values,
                                   int count, struct arena *arena, struct err *err)
{
    if (count > PG_MAX_VALUES)
        return err_set(err, ERR_INTERNAL, "a statement has %d values", count);
    arguments->count = count;
    for (int i = 0; i < count; i++) {
        enum err_code code = set_argument(arguments, i, &values[i], arena, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* The kinds of messages that were sent and whose results are still to be read, in order. */
enum step { STEP_PREPARE, STEP_SETUP, STEP_STATEMENT };

struct pipeline {
    struct pg_connection *connection;
    enum step steps[MAX_STEPS];
    const char *prepared[MAX_STEPS]; /* of STEP_PREPARE: the sql and the number in its name */
    uint32_t numbers[MAX_STEPS];
    int step_count;
    bool has_failed_to_send;
    struct pg_wait wait;
};

static void add_step(struct pipeline *pipeline, enum step step, const char *sql, uint32_t number,
                     int is_sent)
{
    assert((size_t)pipeline->step_count < sizeof(pipeline->steps) / sizeof(pipeline->steps[0]));
    if (!is_sent)
        pipeline->has_failed_to_send = true;
    pipeline->steps[pipeline->step_count] = step;
    pipeline->prepared[pipeline->step_count] = sql;
    pipeline->numbers[pipeline->step_count++] = number;
}

/* Sends a statement by its prepared name; on first use a Parse message precedes it. It counts as
 * prepared only after its result has arrived. */
static void send_statement(struct pipeline *pipeline, enum step step, struct statement statement)
{
    static const struct arguments none = {0};
    const char *sql = statement.sql;
    const struct arguments *arguments = statement.arguments ? statement.arguments : &none;
    struct pg_connection *connection = pipeline->connection;
    char name[STATEMENT_NAME_BYTES];
    uint32_t number = map_bytes_find(&connection->statements, span_text(sql));
    bool is_new = number == MAP_ABSENT;
    if (is_new)
        number = connection->statement_count++;
    snprintf(name, sizeof(name), "s%" PRIu32, number);
    if (is_new)
        add_step(pipeline, STEP_PREPARE, sql, number,
                 PQsendPrepare(connection->handle, name, sql, 0, NULL));
    add_step(pipeline, step, sql, number,
             PQsendQueryPrepared(connection->handle, name, arguments->count, arguments->texts,
                                 arguments->sizes, arguments->formats, 0));
}

/* Whether the statement may run in the transaction. A transaction without a tenant accepts every
 * statement: the role of background work sees all tenants, and the server's role sees none. */
static bool is_tenant_right(const struct pg_connection *connection, int64_t tenant_id)
{
    return connection->transaction == TRANSACTION_NONE || connection->tenant_id == PG_NO_TENANT ||
           connection->tenant_id == tenant_id;
}

static void send_setting(struct pipeline *pipeline, const char *sql, int64_t value)
{
    struct arguments arguments = {.count = 1};
    snprintf(arguments.numbers[0], PG_NUMBER_TEXT_BYTES, "%" PRId64, value);
    arguments.texts[0] = arguments.numbers[0];
    send_statement(pipeline, STEP_SETUP, (struct statement){sql, &arguments});
}

static void send_setup(struct pipeline *pipeline, int64_t tenant_id)
{
    struct pg_connection *connection = pipeline->connection;
    if (connection->transaction == TRANSACTION_OPEN)
        return;
    if (connection->transaction == TRANSACTION_WANTED)
        send_statement(pipeline, STEP_SETUP, (struct statement){begin_sql, NULL});
    if (connection->transaction == TRANSACTION_WANTED)
        tenant_id = connection->tenant_id;
    if (tenant_id != PG_NO_TENANT)
        send_setting(pipeline, tenant_sql, tenant_id);
}

/* Sends queued statements as part of the setup; their results are not kept. */
static void send_queued(struct pipeline *pipeline)
{
    struct pg_connection *connection = pipeline->connection;
    for (int i = 0; i < connection->queued_count; i++)
        send_statement(pipeline, STEP_SETUP, connection->queued[i]);
    connection->queued_count = 0;
}

static bool is_success(ExecStatusType status)
{
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Reads the result of one step, which is kept if it is the statement's, and the NULL after it. */
static enum err_code read_step(struct pipeline *pipeline, int i, PGresult **ret_result,
                               struct err *err)
{
    struct pg_connection *connection = pipeline->connection;
    PGresult *result = NULL;
    enum err_code code = pg_wait_for_result(connection, &pipeline->wait, &result, err);
    if (code || !result)
        return code ? code : pg_fail_connection(connection, err);
    ExecStatusType status = PQresultStatus(result);
    if (!is_success(status))
        code = pg_fail_result(connection, result, err);
    else if (pipeline->steps[i] == STEP_PREPARE)
        map_bytes_add(&connection->statements, span_text(pipeline->prepared[i]),
                      pipeline->numbers[i]);
    if (!code && pipeline->steps[i] == STEP_STATEMENT)
        *ret_result = result;
    else
        PQclear(result);
    return code;
}

/* Reads the NULL after a step's result. */
static enum err_code finish_step(struct pipeline *pipeline, struct err *err)
{
    struct pg_connection *connection = pipeline->connection;
    for (PGresult *rest;; PQclear(rest)) {
        const enum err_code code = pg_wait_for_result(connection, &pipeline->wait, &rest, err);
        if (code || !rest)
            return code;
    }
}

static enum err_code read_sync(struct pipeline *pipeline, struct err *err)
{
    struct pg_connection *connection = pipeline->connection;
    PGresult *sync = NULL;
    const enum err_code code = pg_wait_for_result(connection, &pipeline->wait, &sync, err);
    if (code)
        return code;
    const bool is_sync = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return is_sync && PQexitPipelineMode(connection->handle) ? ERR_NONE
                                                             : pg_fail_connection(connection, err);
}

/* Reads all results up to that of Sync. Returns the first error; later steps are only skipped by
 * the server. */
static enum err_code read_pipeline(struct pipeline *pipeline, PGresult **ret_result,
                                   struct err *err)
{
    struct pg_connection *connection = pipeline->connection;
    enum err_code code = ERR_NONE;
    for (int i = 0; i < pipeline->step_count && !connection->must_close; i++) {
        struct err ignored;
        enum err_code step_code = read_step(pipeline, i, ret_result, code ? &ignored : err);
        if (!code)
            code = step_code;
        if (!connection->must_close && finish_step(pipeline, code ? &ignored : err) && !code)
            code = ERR_DATABASE;
    }
    if (PQstatus(connection->handle) != CONNECTION_OK)
        connection->must_close = true;
    if (connection->must_close)
        return code ? code : pg_fail_connection(connection, err);
    struct err ignored;
    const enum err_code sync_code = read_sync(pipeline, code ? &ignored : err);
    return code ? code : sync_code;
}

static enum err_code fail_late(struct err *err)
{
    err_set(err, ERR_BUSY, "no time is left for another statement of this request");
    err->retry_after_s = LATE_RETRY_S;
    err->public_text = pg_public_text(ERR_BUSY);
    return ERR_BUSY;
}

/* The time that the connection's deadline leaves for a round trip, at most statement_ms; 0:
 * none. */
static int64_t left_ms(const struct pg_connection *connection)
{
    const int64_t left_ns = connection->deadline_ns - clock_monotonic_ns();
    const int64_t left = left_ns > 0 ? left_ns / CLOCK_NS_PER_MS + 1 : 0;
    return connection->deadline_ns && left < connection->statement_ms ? left
                                                                      : connection->statement_ms;
}

static enum err_code exchange(struct pg_connection *connection, int64_t tenant_id,
                              struct statement statement, PGresult **ret_result, struct err *err)
{
    const int64_t limit_ms = left_ms(connection);
    const bool is_limited = limit_ms < connection->statement_ms;
    if (!limit_ms)
        return fail_late(err);
    struct pipeline pipeline = {.connection = connection,
                                .wait =
                                    pg_wait_begin(limit_ms + (is_limited ? LIMIT_GRACE_MS : 0))};
    if (!PQenterPipelineMode(connection->handle))
        return pg_fail_connection(connection, err);
    send_setup(&pipeline, tenant_id);
    if (is_limited)
        send_setting(&pipeline, limit_sql, limit_ms);
    send_queued(&pipeline);
    send_statement(&pipeline, STEP_STATEMENT, statement);
    if (pipeline.has_failed_to_send || !PQpipelineSync(connection->handle))
        return pg_fail_connection(connection, err);
    return read_pipeline(&pipeline, ret_result, err);
}

static enum err_code run_pipeline(struct pg_connection *connection, int64_t tenant_id,
                                  struct statement statement, PGresult **ret_result,
                                  struct err *err)
{
    enum err_code code = exchange(connection, tenant_id, statement, ret_result, err);
    if (code == ERR_DATABASE)
        pg_count_failure(connection->pool);
    return code;
}

/* ---- results ---- */

static void clear_result(void *object)
{
    PQclear(object);
}

/* bytea arrives as "\\x…"; other types are kept as text, so that any type can be read. */
static struct span decode_bytea(struct arena *arena, const char *text, int size)
{
    if (size < 2 || text[0] != '\\' || text[1] != 'x')
        return span_of(text, (size_t)size);
    size_t byte_count = ((size_t)size - 2) / 2;
    uint8_t *bytes = arena_new_raw(arena, uint8_t, byte_count);
    for (size_t i = 0; i < byte_count; i++) {
        char digits[3] = {text[2 + 2 * i], text[3 + 2 * i], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return span_of(bytes, byte_count);
}

static void decode_column(struct pg_result *result, int column, struct arena *arena)
{
    if (!result->decoded)
        result->decoded =
            arena_new(arena, struct span, (size_t)result->row_count * (size_t)result->column_count);
    for (int row = 0; row < result->row_count; row++)
        if (!PQgetisnull(result->handle, row, column))
            result->decoded[row * result->column_count + column] =
                decode_bytea(arena, PQgetvalue(result->handle, row, column),
                             PQgetlength(result->handle, row, column));
}

static struct pg_result *wrap_result(PGresult *handle, struct arena *arena)
{
    struct pg_result *result = arena_new(arena, struct pg_result, 1);
    result->handle = handle;
    result->row_count = PQntuples(handle);
    result->column_count = PQnfields(handle);
    arena_on_destroy(arena, clear_result, handle);
    for (int column = 0; column < result->column_count; column++)
        if (PQftype(handle, column) == TYPE_BYTEA)
            decode_column(result, column, arena);
    return result;
}

/* Checks that a statement of this tenant may run now. */
static enum err_code check_may_run(const struct pg_connection *connection, int64_t tenant_id,
                                   struct err *err)
{
    if (connection->transaction == TRANSACTION_FAILED)
        return err_set(err, ERR_INTERNAL, "a statement follows a failed one in its transaction");
    if (!is_tenant_right(connection, tenant_id))
        return err_set(err, ERR_INTERNAL, "a statement's tenant is not its transaction's");
    return ERR_NONE;
}

enum err_code pg_query(struct pg_connection *connection, int64_t tenant_id, const char *sql,
                       const struct pg_value *values, int value_count, struct arena *arena,
                       struct pg_result **ret_result, struct err *err)
{
    struct arguments arguments;
    enum err_code code = check_may_run(connection, tenant_id, err);
    if (!code)
        code = set_arguments(&arguments, values, value_count, arena, err);
    if (code)
        return code;
    PGresult *handle = NULL;
    code = run_pipeline(connection, tenant_id, (struct statement){sql, &arguments}, &handle, err);
    if (connection->transaction != TRANSACTION_NONE)
        connection->transaction = code ? TRANSACTION_FAILED : TRANSACTION_OPEN;
    if (code) {
        PQclear(handle);
        return code;
    }
    struct pg_result *result = wrap_result(handle, arena);
    if (ret_result)
        *ret_result = result;
    return ERR_NONE;
}

enum err_code pg_queue(struct pg_connection *connection, int64_t tenant_id, const char *sql,
                       const struct pg_value *values, int value_count, struct arena *arena,
                       struct err *err)
{
    if (connection->transaction == TRANSACTION_NONE || connection->queued_count == PG_MAX_QUEUED)
        return pg_query(connection, tenant_id, sql, values, value_count, arena, NULL, err);
    struct arguments *arguments = arena_new(arena, struct arguments, 1);
    enum err_code code = check_may_run(connection, tenant_id, err);
    if (!code)
        code = set_arguments(arguments, values, value_count, arena, err);
    if (code)
        return code;
    connection->queued[connection->queued_count++] = (struct statement){sql, arguments};
    return ERR_NONE;
}

int pg_row_count(const struct pg_result *result)
{
    return result->row_count;
}

int64_t pg_affected(const struct pg_result *result)
{
    return strtoll(PQcmdTuples(result->handle), NULL, 10);
}

bool pg_is_null(const struct pg_result *result, int row, int column)
{
    return PQgetisnull(result->handle, row, column) != 0;
}

const char *pg_get_text(const struct pg_result *result, int row, int column)
{
    return PQgetvalue(result->handle, row, column);
}

int64_t pg_get_i64(const struct pg_result *result, int row, int column)
{
    return strtoll(PQgetvalue(result->handle, row, column), NULL, 10);
}

bool pg_get_bool(const struct pg_result *result, int row, int column)
{
    return PQgetvalue(result->handle, row, column)[0] == 't';
}

struct span pg_get_bytes(const struct pg_result *result, int row, int column)
{
    assert(row >= 0 && row < result->row_count && column >= 0 && column < result->column_count);
    if (PQftype(result->handle, column) == TYPE_BYTEA)
        return result->decoded[row * result->column_count + column];
    return span_of(PQgetvalue(result->handle, row, column),
                   (size_t)PQgetlength(result->handle, row, column));
}

/* ---- transactions and scripts ---- */

enum err_code pg_begin(struct pg_connection *connection, int64_t tenant_id, struct err *err)
{
    if (connection->transaction != TRANSACTION_NONE)
        return err_set(err, ERR_INTERNAL, "a transaction is open already");
    connection->transaction = TRANSACTION_WANTED;
    connection->queued_count = 0;
    connection->tenant_id = tenant_id;
    return ERR_NONE;
}

enum err_code pg_commit(struct pg_connection *connection, struct err *err)
{
    enum transaction transaction = connection->transaction;
    if (transaction == TRANSACTION_WANTED && connection->queued_count == 0) {
        connection->transaction = TRANSACTION_NONE;
        return ERR_NONE;
    }
    if (transaction != TRANSACTION_OPEN && transaction != TRANSACTION_WANTED)
        return err_set(err, ERR_INTERNAL, "there is no transaction to commit");
    PGresult *handle = NULL;
    enum err_code code = run_pipeline(connection, connection->tenant_id,
                                      (struct statement){commit_sql, NULL}, &handle, err);
    PQclear(handle);
    /* After a failed COMMIT the state of the session shows whether a rollback is needed. */
    connection->transaction = code ? TRANSACTION_FAILED : TRANSACTION_NONE;
    return code;
}

void pg_rollback(struct pg_connection *connection)
{
    bool has_begun = connection->transaction == TRANSACTION_OPEN ||
                     connection->transaction == TRANSACTION_FAILED;
    connection->transaction = TRANSACTION_NONE;
    connection->queued_count = 0;
    if (!has_begun || connection->must_close ||
        PQtransactionStatus(connection->handle) == PQTRANS_IDLE)
        return;
    struct err err;
    struct pg_wait wait = pg_wait_begin(connection->statement_ms);
    if (pg_run_simple(connection, "ROLLBACK", &wait, &err))
        connection->must_close = true;
}

enum err_code pg_script(struct pg_connection *connection, const char *sql, struct err *err)
{
    /* Several statements in one message are an implicit transaction, but SET LOCAL requires an
     * explicit one. */
    struct pg_wait endless = {0};
    enum err_code code =
        pg_run_simple(connection, "BEGIN; SET LOCAL statement_timeout = 0", &endless, err);
    if (!code)
        code = pg_run_simple(connection, sql, &endless, err);
    if (!code)
        return pg_run_simple(connection, "COMMIT", &endless, err);
    struct err ignored;
    if (connection->must_close || pg_run_simple(connection, "ROLLBACK", &endless, &ignored))
        connection->must_close = true;
    return code;
}

enum err_code pg_maintain(struct pg_connection *connection, const char *sql, struct err *err)
{
    struct pg_wait endless = {0};
    enum err_code code = pg_run_simple(
        connection, "SET statement_timeout = 0; SET lock_timeout = '2s'", &endless, err);
    if (!code)
        code = pg_run_simple(connection, sql, &endless, err);
    connection->must_close = true; /* its settings are not those of the pool */
    return code;
}

void pg_limit(struct pg_connection *connection, int statement_ms)
{
    connection->statement_ms = statement_ms;
}

void pg_limit_until(struct pg_connection *connection, int64_t deadline_ns)
{
    connection->deadline_ns = deadline_ns;
}
