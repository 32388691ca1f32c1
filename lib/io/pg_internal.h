/*
 * pg_internal: the types and functions that the files lib/io/pg_*.c share. No other file includes
 * it.
 *
 * pg_error turns results of libpq into errors, pg_connection opens connections and waits for
 * replies, pg_pool lends connections, pg_query sends statements and reads results, pg_watch detects
 * a server that no longer responds. Threads: a connection belongs to the thread that took it; the
 * members of a pool are guarded as noted.
 */
#ifndef LIB_IO_PG_INTERNAL_H
#define LIB_IO_PG_INTERNAL_H

#include "lib/base/breaker.h"
#include "lib/base/map.h"
#include "lib/io/pg.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    PG_MAX_VALUES = 32,
    PG_MAX_QUEUED = 8, /* statements of pg_queue that wait to be sent */
    PG_NUMBER_TEXT_BYTES = 24,
    PG_CHECK_MS = 100, /* how often a waiting thread checks the breaker */
};

enum transaction {
    TRANSACTION_NONE,
    TRANSACTION_WANTED, /* pg_begin was called; BEGIN is sent with the first statement */
    TRANSACTION_OPEN,
    TRANSACTION_FAILED, /* a statement failed; only a rollback is possible */
};

struct arguments {
    const char *texts[PG_MAX_VALUES];
    int sizes[PG_MAX_VALUES];
    int formats[PG_MAX_VALUES]; /* 0 text, 1 binary */
    char numbers[PG_MAX_VALUES][PG_NUMBER_TEXT_BYTES];
    int count;
};

struct statement {
    const char *sql;
    const struct arguments *arguments;
};

struct pg_connection {
    struct pg_pool *pool;
    PGconn *handle;
    struct pg_connection *next_idle;
    struct map_bytes statements; /* from sql text to the number in its prepared name */
    uint32_t statement_count;
    enum transaction transaction;
    int64_t tenant_id; /* the tenant of the transaction */
    struct statement queued[PG_MAX_QUEUED];
    int queued_count;
    int statement_ms;    /* client-side deadline of one round trip */
    int64_t deadline_ns; /* set by pg_limit_until; 0: none */
    bool must_close;     /* broken, or its prepared statements no longer match the tables */
    bool has_timed_out;
    int64_t client; /* pg_set_client of the thread that uses it; 0: none */
};

struct pg_pool {
    char *conninfo;
    char *role;
    int max_connections;
    int max_of_client; /* connections in use for one client; 0: no limit */
    int connect_wait_ms;
    int connect_ms; /* limit of one attempt to connect, whatever it receives */
    /* an attempt to connect that receives nothing for this long has failed */
    int connect_silence_ms;
    int statement_ms;
    struct pg_watch *watch;    /* NULL: none */
    atomic_uint address_index; /* index of the address at which the next attempt starts */
    _Atomic uint64_t failure_count;
    atomic_bool cannot_connect; /* the last attempt to connect got no reply in time */
    pthread_mutex_t mutex;      /* guards the members below */
    int64_t silent_ns;          /* when the last attempt without a reply was given up */
    int64_t may_connect_ns;     /* while cannot_connect: when the next attempt may begin */
    int64_t failing_since_ns;   /* monotonic; 0: the last attempt to connect succeeded */
    int64_t failed_last_ns;     /* when the last attempt failed */
    pthread_cond_t given;
    struct pg_connection *idle;
    int open_count;
    int64_t *clients; /* of the connections in use, in any order */
    int used_count;
};

/* A pool with one connection for each request of a probe. */
struct pg_watch {
    atomic_bool has_replied;      /* the database has replied to a probe of this process */
    _Atomic int64_t recovered_ns; /* when the breaker last closed; 0: it has never opened */
    struct pg_pool *pool;
    struct breaker *breaker;
    void (*report)(bool is_responding);
};

/* Whether calls give up at once, because the server does not respond. */
static inline bool pg_is_given_up(const struct pg_pool *pool)
{
    return pool->watch && breaker_is_open(pool->watch->breaker);
}

static inline void pg_count_failure(struct pg_pool *pool)
{
    atomic_fetch_add(&pool->failure_count, 1);
}

/* ---- pg_error.c ---- */

/* The text for clients; the messages of PostgreSQL contain names of tables, hosts and settings. */
const char *pg_public_text(enum err_code code);
/* All return the code that they set. */
enum err_code pg_fail_database(struct err *err, const char *what, const char *message);
enum err_code pg_fail_connection(struct pg_connection *connection, struct err *err);
enum err_code pg_fail_result(struct pg_connection *connection, const PGresult *result,
                             struct err *err);
enum err_code pg_fail_given_up(struct err *err);

/* ---- pg_connection.c ---- */

/* A period in which a thread waits for replies on one connection. */
struct pg_wait {
    int64_t begin_ns;
    int64_t deadline_ns; /* 0: none, and the breaker is ignored: scripts */
    int64_t moved_ns;    /* when the socket was last ready */
    /* the wait also ends if the socket is not ready for this long; 0: no limit */
    int64_t silence_ns;
};

/* duration_ms 0: no deadline. */
struct pg_wait pg_wait_begin(int64_t duration_ms);
/* The next result, or NULL after the last one. Errors: ERR_DATABASE (no reply in time: the
 * connection must be closed). */
enum err_code pg_wait_for_result(struct pg_connection *connection, struct pg_wait *wait,
                                 PGresult **ret_result, struct err *err) MUST_USE;
/* Runs statements; returns the error of the first that fails. The server skips those after it. */
enum err_code pg_run_simple(struct pg_connection *connection, const char *sql, struct pg_wait *wait,
                            struct err *err) MUST_USE;

enum err_code pg_connection_open(struct pg_pool *pool, struct pg_wait *wait,
                                 struct pg_connection **ret_connection, struct err *err) MUST_USE;
void pg_connection_destroy(struct pg_connection *connection); /* NULL is a no-op */
bool pg_connection_is_alive(struct pg_connection *connection);
/* Sets the limits of an attempt to connect. connect_timeout of the URL takes precedence;
 * silence_ms 0 limits only the whole attempt. */
void pg_set_connect_limits(struct pg_pool *pool, int silence_ms);

#endif
