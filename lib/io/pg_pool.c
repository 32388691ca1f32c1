#include "lib/io/pg_internal.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <time.h>

enum {
    TAKE_TIMEOUT_S = 5,
    OUTAGE_S = 10, /* a longer outage is not waited for */
    RETRY_EVERY_MS = 50,
    STATEMENT_MS = 60000,      /* of pools that set none */
    WATCHED_SILENCE_MS = 1400, /* so that a request ends within 2 s if the database hangs */
};

/* The client of this thread. An argument of pg_take would have to pass through every function that
 * takes a connection while a request is handled. */
static _Thread_local int64_t thread_client;

void pg_set_client(int64_t client)
{
    thread_client = client;
}

struct pg_pool *pg_pool_create(const char *conninfo, const char *role, int max_connections)
{
    assert(max_connections > 0);
    struct pg_pool *pool = mem_new(struct pg_pool, 1);
    pool->conninfo = mem_strdup(conninfo);
    pool->role = role ? mem_strdup(role) : NULL;
    pool->max_connections = max_connections;
    pool->clients = mem_new(int64_t, (size_t)max_connections);
    pg_set_connect_limits(pool, 0);
    pool->statement_ms = STATEMENT_MS;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->given, &attributes);
    pthread_condattr_destroy(&attributes);
    return pool;
}

void pg_pool_destroy(struct pg_pool *pool)
{
    if (!pool)
        return;
    for (struct pg_connection *connection = pool->idle, *next; connection; connection = next) {
        next = connection->next_idle;
        pg_connection_destroy(connection);
        pool->open_count--;
    }
    assert(pool->open_count == 0);
    pthread_cond_destroy(&pool->given);
    pthread_mutex_destroy(&pool->mutex);
    mem_free(pool->clients);
    mem_free(pool->conninfo);
    mem_free(pool->role);
    mem_free(pool);
}

void pg_pool_set_connect_wait(struct pg_pool *pool, int max_wait_ms)
{
    pool->connect_wait_ms = max_wait_ms;
}

void pg_pool_set_client_limit(struct pg_pool *pool, int max_connections)
{
    pool->max_of_client = max_connections;
}

void pg_pool_set_deadlines(struct pg_pool *pool, int statement_ms, struct pg_watch *watch)
{
    assert(statement_ms > 0);
    pool->statement_ms = statement_ms;
    pg_set_connect_limits(pool, watch ? WATCHED_SILENCE_MS : 0);
    pool->watch = watch;
}

/* Removes connections that the database has closed from the idle ones. The caller holds the
 * mutex. */
static struct pg_connection *take_dead(struct pg_pool *pool)
{
    struct pg_connection *dead = NULL;
    for (struct pg_connection **link = &pool->idle, *connection; (connection = *link);) {
        if (pg_connection_is_alive(connection)) {
            link = &connection->next_idle;
            continue;
        }
        *link = connection->next_idle;
        connection->next_idle = dead;
        dead = connection;
        pool->open_count--;
        pg_count_failure(pool);
        pthread_cond_signal(&pool->given);
    }
    return dead;
}

uint64_t pg_pool_failure_count(struct pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct pg_connection *dead = take_dead(pool);
    pthread_mutex_unlock(&pool->mutex);
    for (struct pg_connection *next; dead; dead = next) {
        next = dead->next_idle;
        pg_connection_destroy(dead);
    }
    const uint64_t open_count = pool->watch ? breaker_open_count(pool->watch->breaker) : 0;
    return atomic_load(&pool->failure_count) + open_count;
}

struct pg_pool_counts pg_pool_counts(struct pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct pg_pool_counts counts = {.open = pool->open_count};
    for (const struct pg_connection *at = pool->idle; at; at = at->next_idle)
        counts.idle++;
    pthread_mutex_unlock(&pool->mutex);
    return counts;
}

static enum err_code fail_overloaded(struct err *err)
{
    err_set(err, ERR_BUSY, "The server is overloaded; try again in a few seconds");
    err->retry_after_s = TAKE_TIMEOUT_S;
    return ERR_BUSY;
}

/* Waits a short time for a connection to be returned. The caller holds the mutex. */
static void wait_for_given(struct pg_pool *pool)
{
    const int64_t until_ns = clock_monotonic_ns() + PG_CHECK_MS * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = until_ns % CLOCK_NS_PER_S};
    pthread_cond_timedwait(&pool->given, &pool->mutex, &until);
}

/* Whether the client may take a connection now: an idle one or a new one. The caller holds the
 * mutex.
 */
static bool can_take(const struct pg_pool *pool, int64_t client)
{
    int count = 0;
    for (int i = 0; client && i < pool->used_count; i++)
        count += pool->clients[i] == client;
    const bool is_within = !pool->max_of_client || count < pool->max_of_client;
    return is_within && (pool->idle || pool->open_count < pool->max_connections);
}

/* The caller holds the mutex. */
static void forget_client(struct pg_pool *pool, int64_t client)
{
    int i = 0;
    while (pool->clients[i] != client)
        i++;
    pool->clients[i] = pool->clients[--pool->used_count];
}

/* Waits for an idle connection, or for permission to open one (*ret_connection is NULL). */
static enum err_code wait_for_slot(struct pg_pool *pool, int max_wait_s,
                                   struct pg_connection **ret_connection, struct err *err)
{
    const int64_t deadline_ns = clock_monotonic_ns() + max_wait_s * CLOCK_NS_PER_S;
    enum err_code code = ERR_NONE;
    pthread_mutex_lock(&pool->mutex);
    while (!code && !can_take(pool, thread_client)) {
        if (pg_is_given_up(pool))
            code = pg_fail_given_up(err);
        else if (clock_monotonic_ns() >= deadline_ns)
            code = fail_overloaded(err);
        else
            wait_for_given(pool);
    }
    if (!code) {
        *ret_connection = pool->idle;
        if (pool->idle)
            pool->idle = pool->idle->next_idle;
        else
            pool->open_count++;
        pool->clients[pool->used_count++] = thread_client;
    }
    pthread_mutex_unlock(&pool->mutex);
    return code;
}

/* Returns the connection, or its place in the pool if connection is NULL. Wakes all waiting
 * threads, because the limit of its client may not allow the first of them to take the connection.
 */
static void release_slot(struct pg_pool *pool, struct pg_connection *connection, int64_t client)
{
    pthread_mutex_lock(&pool->mutex);
    forget_client(pool, client);
    if (connection) {
        connection->next_idle = pool->idle;
        pool->idle = connection;
    } else {
        pool->open_count--;
    }
    pthread_cond_broadcast(&pool->given);
    pthread_mutex_unlock(&pool->mutex);
}

/* Returns true if the database has been unreachable for a long time. */
static bool note_attempt(struct pg_pool *pool, bool has_failed)
{
    int64_t now_ns = clock_monotonic_ns();
    if (has_failed)
        pg_count_failure(pool);
    pthread_mutex_lock(&pool->mutex);
    if (!has_failed)
        pool->failing_since_ns = 0;
    else if (pool->failing_since_ns == 0 ||
             now_ns - pool->failed_last_ns > OUTAGE_S * CLOCK_NS_PER_S)
        pool->failing_since_ns = now_ns; /* an old failure belongs to another outage */
    if (has_failed)
        pool->failed_last_ns = now_ns;
    bool is_long = has_failed && now_ns - pool->failing_since_ns > OUTAGE_S * CLOCK_NS_PER_S;
    pthread_mutex_unlock(&pool->mutex);
    return is_long;
}

/*
 * While attempts to connect get no reply, only one thread at a time may try again. Other threads
 * would only wait for the same failure; they use open connections, which may still work. An attempt
 * that was given up before the breaker closed proves nothing about a server that responds again.
 */
static bool may_connect(struct pg_pool *pool)
{
    if (!pool->watch || !atomic_load(&pool->cannot_connect))
        return true;
    const int64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&pool->mutex);
    const bool has_recovered = atomic_load(&pool->watch->recovered_ns) > pool->silent_ns;
    const bool may_try = has_recovered || now_ns >= pool->may_connect_ns;
    if (may_try && !has_recovered)
        pool->may_connect_ns = now_ns + pool->connect_silence_ms * CLOCK_NS_PER_MS;
    pthread_mutex_unlock(&pool->mutex);
    return may_try;
}

static enum err_code open_within(struct pg_pool *pool, int max_wait_ms,
                                 struct pg_connection **ret_connection, struct err *err)
{
    struct pg_wait wait =
        pg_wait_begin(max_wait_ms > pool->connect_ms ? max_wait_ms : pool->connect_ms);
    const int64_t wait_until_ns = wait.begin_ns + max_wait_ms * CLOCK_NS_PER_MS;
    for (;;) {
        enum err_code code = may_connect(pool)
                                 ? pg_connection_open(pool, &wait, ret_connection, err)
                                 : pg_fail_given_up(err);
        bool is_long_away = note_attempt(pool, code != ERR_NONE);
        if (!code || is_long_away || pg_is_given_up(pool) ||
            clock_monotonic_ns() >= wait_until_ns || atomic_load(&pool->cannot_connect))
            return code;
        clock_sleep_ms(RETRY_EVERY_MS);
    }
}

static enum err_code take_within(struct pg_pool *pool, int slot_wait_s, int max_wait_ms,
                                 struct pg_connection **ret_connection, struct err *err)
{
    struct pg_connection *connection;
    if (pg_is_given_up(pool))
        return pg_fail_given_up(err);
    enum err_code code = wait_for_slot(pool, slot_wait_s, &connection, err);
    if (code)
        return code;
    if (!connection || !pg_connection_is_alive(connection)) {
        if (connection)
            pg_count_failure(pool);
        pg_connection_destroy(connection);
        code = open_within(pool, max_wait_ms, &connection, err);
    }
    if (code) {
        release_slot(pool, NULL, thread_client);
        return code;
    }
    connection->client = thread_client;
    *ret_connection = connection;
    return ERR_NONE;
}

enum err_code pg_take(struct pg_pool *pool, struct pg_connection **ret_connection, struct err *err)
{
    return take_within(pool, TAKE_TIMEOUT_S, pool->connect_wait_ms, ret_connection, err);
}

enum err_code pg_take_at_once(struct pg_pool *pool, struct pg_connection **ret_connection,
                              struct err *err)
{
    return take_within(pool, 0, 0, ret_connection, err);
}

void pg_give(struct pg_connection *connection)
{
    if (!connection)
        return;
    pg_rollback(connection);
    struct pg_pool *pool = connection->pool;
    connection->statement_ms = pool->statement_ms;
    connection->deadline_ns = 0;
    if (!connection->must_close && PQstatus(connection->handle) == CONNECTION_OK &&
        PQtransactionStatus(connection->handle) == PQTRANS_IDLE) {
        release_slot(pool, connection, connection->client);
        return;
    }
    const int64_t client = connection->client;
    pg_connection_destroy(connection);
    release_slot(pool, NULL, client);
}
