/*
 * pg: access to PostgreSQL: a pool of connections and queries in the context of a tenant.
 *
 * pg_query sends set_config('app.tenant', …, true) and the statement in one pipeline, which is one
 * round trip and one implicit transaction. So row-level security always sees the tenant, and the
 * setting does not leak to the next user of the connection. Statements are prepared once per
 * connection, by their text; sql must be a string literal or live as long as the process.
 * Threads: a pool may be shared; a connection belongs to the thread that took it.
 */
#ifndef LIB_IO_PG_H
#define LIB_IO_PG_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_pool;
struct pg_watch;
struct pg_connection;
struct pg_result;

/* For statements without a tenant: SECURITY DEFINER lookups, operators and background work. */
#define PG_NO_TENANT INT64_C(0)

enum pg_kind { PG_KIND_NULL, PG_KIND_TEXT, PG_KIND_I64, PG_KIND_BOOL, PG_KIND_BYTES };

struct pg_value {
    enum pg_kind kind;
    /* TEXT: no NUL terminator needed; a NUL inside is refused with ERR_INVALID */
    struct span bytes;
    int64_t number; /* I64, BOOL */
};

#define PG_NULL ((struct pg_value){.kind = PG_KIND_NULL})
#define PG_TEXT(text) ((struct pg_value){.kind = PG_KIND_TEXT, .bytes = span_text(text)})
#define PG_SPAN(span) ((struct pg_value){.kind = PG_KIND_TEXT, .bytes = (span)})
#define PG_I64(value) ((struct pg_value){.kind = PG_KIND_I64, .number = (value)})
#define PG_BOOL(value) ((struct pg_value){.kind = PG_KIND_BOOL, .number = (value)})
#define PG_BYTES(span) ((struct pg_value){.kind = PG_KIND_BYTES, .bytes = (span)})

/*
 * Creates a pool that opens connections on demand, at most max_connections. conninfo is libpq's
 * (URL or key=value). role, if not NULL, is set with SET ROLE on each new connection: that
 * restricts our own statements, but not injected ones, which could RESET it. Callers beyond the
 * maximum wait up to 5 s.
 */
struct pg_pool *pg_pool_create(const char *conninfo, const char *role, int max_connections);
void pg_pool_destroy(struct pg_pool *pool);
static inline void pg_pool_cleanup(struct pg_pool **pool)
{
    pg_pool_destroy(*pool);
}
#define pg_pool_auto __attribute__((cleanup(pg_pool_cleanup))) struct pg_pool *

/*
 * Makes pg_take wait for a database that cannot be reached, at most max_wait_ms, if it has been
 * unreachable for only a few seconds, which is how long it takes to restart and recover. No
 * statement was sent yet, so waiting is safe for any caller. Call it before the pool is shared.
 */
void pg_pool_set_connect_wait(struct pg_pool *pool, int max_wait_ms);

/*
 * The circuit breaker of one database, for all pools of the process. A statement or an attempt to
 * connect becomes suspicious when it has received nothing for 0.4 s; then the watch sends
 * statements of its own over two connections that it keeps. If neither gets a reply within 1 s, and
 * no pool receives a byte meanwhile, the database counts as not responding: all waiting calls give
 * up, and pg_take fails at once, until a probe (several per second) gets a reply. Thus the watch
 * does not disturb a statement that waits for a lock, and a database that hangs delays a request by
 * less than 2 s.
 *
 * An attempt to connect is given up when no data moves for 1.4 s (1 s in a probe), and after 5 s in
 * any case; connect_timeout of conninfo replaces both (in a probe, up to 10 s). As long as no probe
 * of this process has ever got a reply, a failure to connect is no evidence that the database
 * hangs.
 *
 * report is called on the watch's thread when the state changes; it may be NULL. Destroy the watch
 * after the pools that use it.
 */
enum err_code pg_watch_create(const char *conninfo, void (*report)(bool is_responding),
                              struct pg_watch **ret_watch, struct err *err) MUST_USE;
void pg_watch_destroy(struct pg_watch *watch);
bool pg_watch_is_responding(const struct pg_watch *watch);

/*
 * Sets how long this process waits for the reply to a statement (default 60 s), and the watch
 * (NULL: none). A statement that waits for a lock for 10 s fails with ERR_BUSY. PostgreSQL ends a
 * statement 5 s after the deadline, so that no abandoned statement keeps running. A connection
 * whose deadline has passed is closed: ERR_DATABASE with err->is_disconnect. Call it before the
 * pool is shared. pg_script has no deadline.
 */
void pg_pool_set_deadlines(struct pg_pool *pool, int statement_ms, struct pg_watch *watch);

/*
 * Limits the connections that a client has in use at a time, so that others find one; 0: no limit.
 * A call of pg_take beyond the limit waits as one beyond the pool's maximum does. Call it before
 * the pool is shared. A client of 0 has no limit.
 */
void pg_pool_set_client_limit(struct pg_pool *pool, int max_connections);
/* Names the client for which this thread takes connections from now on, such as the tenant of the
 * request that it handles; 0: none, as for threads that never call it. */
void pg_set_client(int64_t client);

/*
 * The number of times the database has failed a user of this pool: it could not be reached, broke a
 * connection, or failed a statement by an internal error. Idle connections that it has closed
 * meanwhile are counted now. While the number is unchanged, earlier observations about the database
 * still hold.
 */
uint64_t pg_pool_failure_count(struct pg_pool *pool);

/* The numbers of open and of unused connections. */
struct pg_pool_counts {
    int open;
    int idle;
};
struct pg_pool_counts pg_pool_counts(struct pg_pool *pool);

/* Takes a working connection for this thread; return it with pg_give. Errors: ERR_BUSY (all are
 * in use for too long), ERR_DATABASE (cannot connect). */
enum err_code pg_take(struct pg_pool *pool, struct pg_connection **ret_connection,
                      struct err *err) MUST_USE;
/* As pg_take, but waits neither for a database that cannot be reached nor for a connection in
 * use. */
enum err_code pg_take_at_once(struct pg_pool *pool, struct pg_connection **ret_connection,
                              struct err *err) MUST_USE;
/* Sets how long each statement on this connection may take, until the connection is returned;
 * replaces the value of pg_pool_set_deadlines. */
void pg_limit(struct pg_connection *connection, int statement_ms);
/*
 * Limits all statements on this connection together to a point in time of clock_monotonic_ns (0:
 * none), until it is returned: PostgreSQL ends the statement that runs then, and later ones,
 * including COMMIT, are not sent. Both fail with ERR_BUSY, and the connection stays usable.
 */
void pg_limit_until(struct pg_connection *connection, int64_t deadline_ns);
/* Returns a connection to its pool. An open transaction is rolled back; a broken connection is
 * closed. NULL is a no-op. */
void pg_give(struct pg_connection *connection);
static inline void pg_cleanup(struct pg_connection **connection)
{
    pg_give(*connection);
}
#define pg_auto __attribute__((cleanup(pg_cleanup))) struct pg_connection *

/*
 * Runs one statement for a tenant (or PG_NO_TENANT); the result is in arena. In a transaction,
 * tenant_id must be the one given to pg_begin; if that was PG_NO_TENANT, any tenant_id is accepted
 * and none is set (operators and background work). Errors: ERR_CONFLICT (unique or foreign key
 * violation), ERR_BUSY (a deadlock or a serialisation failure: err->is_rolled_back is set, and the
 * transaction may be retried at once; a lock or a statement that took too long; too many
 * connections), ERR_INVALID (a value that PostgreSQL refuses), ERR_FORBIDDEN (row-level security),
 * ERR_QUOTA (a function of ours raised configuration_limit_exceeded; err contains only its
 * message), ERR_DATABASE (err->is_disconnect: the connection broke; otherwise an internal error of
 * the database). PostgreSQL's message is for the log: err->public_text is set with every error
 * except ERR_QUOTA.
 */
enum err_code pg_query(struct pg_connection *connection, int64_t tenant_id, const char *sql,
                       const struct pg_value *values, int value_count, struct arena *arena,
                       struct pg_result **ret_result, struct err *err) MUST_USE;

/* pg_query_values(connection, tenant, "…$1…", arena, &result, err, PG_I64(id), PG_TEXT(name)) */
#define pg_query_values(connection, tenant_id, sql, arena, ret_result, err, ...)                   \
    pg_query((connection), (tenant_id), (sql), (const struct pg_value[]){__VA_ARGS__},             \
             (int)(sizeof((struct pg_value[]){__VA_ARGS__}) / sizeof(struct pg_value)), (arena),   \
             (ret_result), (err))

/*
 * Queues a statement whose result is not needed. In a transaction it costs no round trip, since it
 * is sent with the transaction's next pg_query or pg_commit, which then also reports its failure.
 * Outside of a transaction it runs at once. arena and the bytes in values must live until then.
 */
enum err_code pg_queue(struct pg_connection *connection, int64_t tenant_id, const char *sql,
                       const struct pg_value *values, int value_count, struct arena *arena,
                       struct err *err) MUST_USE;

#define pg_queue_values(connection, tenant_id, sql, arena, err, ...)                               \
    pg_queue((connection), (tenant_id), (sql), (const struct pg_value[]){__VA_ARGS__},             \
             (int)(sizeof((struct pg_value[]){__VA_ARGS__}) / sizeof(struct pg_value)), (arena),   \
             (err))

enum err_code pg_begin(struct pg_connection *connection, int64_t tenant_id,
                       struct err *err) MUST_USE;
/*
 * Commits the transaction. Errors: those of pg_query, also of queued statements. After
 * ERR_DATABASE it is unknown whether the transaction was committed (the connection broke, or the
 * server stopped); after any other error it was not.
 */
enum err_code pg_commit(struct pg_connection *connection, struct err *err) MUST_USE;
void pg_rollback(struct pg_connection *connection);

/*
 * Splits conninfo (a URL or keywords) into keywords without the password, and the password ("" for
 * none), for the arguments of programs, which every user of the machine can read. Errors:
 * ERR_INVALID.
 */
enum err_code pg_split_password(const char *conninfo, struct arena *arena,
                                const char **ret_conninfo, const char **ret_password,
                                struct err *err) MUST_USE;

/* Runs a script of several statements in one transaction: migrations only. */
enum err_code pg_script(struct pg_connection *connection, const char *sql,
                        struct err *err) MUST_USE;
/*
 * Runs one statement that PostgreSQL allows only outside of a transaction, such as VACUUM. It has
 * no deadline, but gives up after 2 s if it waits for a lock, because all later statements on the
 * table wait behind it. pg_give closes the connection. Errors: ERR_BUSY (the lock).
 */
enum err_code pg_maintain(struct pg_connection *connection, const char *sql,
                          struct err *err) MUST_USE;

int pg_row_count(const struct pg_result *result);
/* The number of rows that INSERT, UPDATE or DELETE affected. */
int64_t pg_affected(const struct pg_result *result);
bool pg_is_null(const struct pg_result *result, int row, int column);
/* Borrowed from the result's arena. NULL reads as "", 0, false and the empty span. */
const char *pg_get_text(const struct pg_result *result, int row, int column);
int64_t pg_get_i64(const struct pg_result *result, int row, int column);
bool pg_get_bool(const struct pg_result *result, int row, int column);
struct span pg_get_bytes(const struct pg_result *result, int row, int column);

#endif
