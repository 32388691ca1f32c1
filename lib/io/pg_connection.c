#include "lib/io/pg_internal.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECONNECT_PAUSE_MS = 250,
    CONNECT_MS = 5000,
    SHORTEST_CONNECT_S = 2, /* libpq's minimum */
    SHORTEST_SILENCE_MS = 400,
    ADDRESS_BYTES = 64, /* an IPv6 address with its scope */
    SERVER_SIDE_EXTRA_MS = 5000,
    SUSPECT_MS = 400, /* nearly all statements are faster */
    SETTINGS_BYTES = 512,
};

/* statement_timeout ends statements on the server that the client has given up. Scripts are
 * exempt. The server's own transactions hold locks briefly; one held for 10 s is an operator's
 * (VACUUM FULL, REINDEX). */
#define SESSION_SETTINGS                                                                           \
    "SET TimeZone = 'UTC'; SET statement_timeout = '%dms'; SET lock_timeout = '10s';"              \
    "SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning';"

/* ---- waiting for the server ---- */

static enum err_code fail_unresponsive(struct pg_connection *connection, struct err *err)
{
    connection->must_close = true;
    connection->has_timed_out = true;
    pg_fail_database(err, "The database does not respond", "no reply in time");
    err->is_disconnect = true;
    return ERR_DATABASE;
}

struct pg_wait pg_wait_begin(int64_t duration_ms)
{
    const int64_t now_ns = clock_monotonic_ns();
    return (struct pg_wait){.begin_ns = now_ns,
                            .deadline_ns = duration_ms ? now_ns + duration_ms * CLOCK_NS_PER_MS : 0,
                            .moved_ns = now_ns};
}

static bool is_over(const struct pg_wait *wait, int64_t now_ns)
{
    return now_ns >= wait->deadline_ns ||
           (wait->silence_ns && now_ns - wait->moved_ns >= wait->silence_ns);
}

enum wait_outcome { WAIT_READABLE, WAIT_WRITABLE, WAIT_LONGER, WAIT_OVER };

/* Reads a reply that has arrived even after the deadline: this process may have been stopped
 * meanwhile. */
static enum wait_outcome wait_for_socket(const struct pg_connection *connection,
                                         struct pg_wait *wait, short events)
{
    const struct pg_pool *pool = connection->pool;
    struct pollfd poll_fd = {.fd = PQsocket(connection->handle), .events = events};
    const int ready_count = poll(&poll_fd, 1, PG_CHECK_MS);
    const int64_t now_ns = clock_monotonic_ns();
    if (ready_count != 0) { /* libpq reports errors of the socket */
        wait->moved_ns = now_ns;
        return poll_fd.revents & POLLIN ? WAIT_READABLE : WAIT_WRITABLE;
    }
    if (!wait->deadline_ns)
        return WAIT_LONGER;
    if (is_over(wait, now_ns) || pg_is_given_up(pool))
        return WAIT_OVER;
    if (pool->watch && now_ns - wait->moved_ns >= SUSPECT_MS * CLOCK_NS_PER_MS)
        breaker_suspect(pool->watch->breaker);
    return WAIT_LONGER;
}

/* Reports received bytes to the breaker: they prove that the database works, even if a probe fails.
 */
static void note_reply(const struct pg_pool *pool)
{
    if (pool->watch)
        breaker_note_reply(pool->watch->breaker);
}

/*
 * Sends queued data and receives until PQgetResult does not block. A connection that has not
 * replied in time is closed and never used again: its late reply would be read as that of the next
 * statement.
 */
static enum err_code wait_for_result(struct pg_connection *connection, struct pg_wait *wait,
                                     struct err *err)
{
    PGconn *handle = connection->handle;
    for (;;) {
        const int unsent = PQflush(handle);
        if (unsent < 0 || !PQisBusy(handle))
            return ERR_NONE; /* PQgetResult reports a broken connection */
        const short events = (short)(unsent ? POLLIN | POLLOUT : POLLIN);
        const enum wait_outcome outcome = wait_for_socket(connection, wait, events);
        if (outcome == WAIT_OVER)
            return fail_unresponsive(connection, err);
        if (outcome == WAIT_LONGER)
            continue;
        if (!PQconsumeInput(handle))
            return ERR_NONE;
        if (outcome == WAIT_READABLE)
            note_reply(connection->pool);
    }
}

enum err_code pg_wait_for_result(struct pg_connection *connection, struct pg_wait *wait,
                                 PGresult **ret_result, struct err *err)
{
    const enum err_code code = wait_for_result(connection, wait, err);
    if (!code)
        *ret_result = PQgetResult(connection->handle);
    return code;
}

/* ---- connecting ---- */

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

void pg_connection_destroy(struct pg_connection *connection)
{
    if (!connection)
        return;
    PQfinish(connection->handle);
    map_bytes_fini(&connection->statements);
    mem_free(connection);
}

enum err_code pg_run_simple(struct pg_connection *connection, const char *sql, struct pg_wait *wait,
                            struct err *err)
{
    if (!PQsendQuery(connection->handle, sql))
        return pg_fail_connection(connection, err);
    enum err_code code = ERR_NONE;
    for (;;) {
        PGresult *result = NULL;
        const enum err_code wait_code = pg_wait_for_result(connection, wait, &result, err);
        if (wait_code || !result)
            return wait_code ? wait_code : code;
        const ExecStatusType status = PQresultStatus(result);
        if (!code && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            code = pg_fail_result(connection, result, err);
        PQclear(result);
        if (connection->must_close)
            return code;
    }
}

static enum err_code set_up_session(struct pg_connection *connection, const struct pg_pool *pool,
                                    struct pg_wait *wait, struct err *err)
{
    char sql[SETTINGS_BYTES];
    snprintf(sql, sizeof(sql), SESSION_SETTINGS, pool->statement_ms + SERVER_SIDE_EXTRA_MS);
    enum err_code code = pg_run_simple(connection, sql, wait, err);
    if (code || !pool->role)
        return code;
    char *quoted = PQescapeIdentifier(connection->handle, pool->role, strlen(pool->role));
    if (!quoted)
        return pg_fail_connection(connection, err);
    snprintf(sql, sizeof(sql), "SET ROLE %s", quoted);
    PQfreemem(quoted);
    return pg_run_simple(connection, sql, wait, err);
}

/* The server that conninfo describes; "" for parts that it does not contain. */
struct target {
    char host[NI_MAXHOST];
    bool has_several_hosts; /* libpq tries them one after the other */
    bool has_address;
    int connect_timeout_s; /* 0: not given */
};

static struct target parse_target(const char *conninfo)
{
    struct target target = {0};
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    for (const PQconninfoOption *option = options; option && option->keyword; option++) {
        const bool is_host = strcmp(option->keyword, "host") == 0;
        const bool is_address = strcmp(option->keyword, "hostaddr") == 0;
        if (!option->val || !*option->val)
            continue;
        if ((is_host || is_address) && strchr(option->val, ','))
            target.has_several_hosts = true;
        if (is_host && strlen(option->val) < sizeof(target.host))
            memcpy(target.host, option->val, strlen(option->val) + 1);
        if (is_address)
            target.has_address = true;
        if (strcmp(option->keyword, "connect_timeout") == 0)
            target.connect_timeout_s = atoi(option->val);
    }
    PQconninfoFree(options);
    return target;
}

/* Whether this process resolves the host's name and tries its addresses itself. */
static bool has_name(const struct target *target)
{
    return !target->has_several_hosts && !target->has_address && target->host[0] &&
           target->host[0] != '/' && target->host[0] != '@';
}

void pg_set_connect_limits(struct pg_pool *pool, int silence_ms)
{
    int timeout_s = parse_target(pool->conninfo).connect_timeout_s;
    if (timeout_s > 0 && timeout_s < SHORTEST_CONNECT_S)
        timeout_s = SHORTEST_CONNECT_S;
    if (timeout_s > INT_MAX / 1000)
        timeout_s = INT_MAX / 1000;
    pool->connect_ms = timeout_s > 0 ? timeout_s * 1000 : CONNECT_MS;
    pool->connect_silence_ms = timeout_s > 0 || !silence_ms ? pool->connect_ms : silence_ms;
}

/*
 * Defaults; parameters that conninfo sets take precedence.
 *
 * keepalives_* detect a peer that vanished while the connection is idle, tcp_user_timeout one that
 * vanished after data was sent. connect_timeout applies to each host of a list; only libpq's own
 * blocking connect moves on to the next one. hostaddr is one address of the host's name, because
 * libpq's non-blocking connect never gives up an address that does not respond.
 */
static const char *const connect_keywords[] = {
    "connect_timeout",  "application_name",
    "keepalives_idle",  "keepalives_interval",
    "keepalives_count", "tcp_user_timeout",
    "hostaddr",         "dbname",
    "client_encoding",  NULL,
};

/*
 * Waits until the connection is usable or the wait is over. Before TCP is connected, the address
 * may be silent for silence_ns. After that the server, which has to start a process, may be silent
 * for as long as the pool allows. *ret_has_connected is false if TCP was not connected: then
 * another address may work.
 */
static enum err_code finish_connecting(struct pg_connection *connection, int64_t silence_ns,
                                       struct pg_wait *wait, bool *ret_has_connected,
                                       struct err *err)
{
    PGconn *handle = connection->handle;
    *ret_has_connected = false;
    wait->moved_ns = clock_monotonic_ns();
    PostgresPollingStatusType state =
        PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
        const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        *ret_has_connected |= PQstatus(handle) > CONNECTION_STARTED;
        wait->silence_ns = *ret_has_connected
                               ? connection->pool->connect_silence_ms * CLOCK_NS_PER_MS
                               : silence_ns;
        const enum wait_outcome outcome = wait_for_socket(connection, wait, events);
        if (outcome == WAIT_OVER)
            return fail_unresponsive(connection, err);
        if (outcome == WAIT_LONGER)
            continue;
        state = PQconnectPoll(handle);
        if (outcome == WAIT_READABLE && state != PGRES_POLLING_FAILED)
            note_reply(connection->pool);
    }
    return state == PGRES_POLLING_OK
               ? ERR_NONE
               : pg_fail_database(err, "Cannot connect to the database", PQerrorMessage(handle));
}

/* Starts to connect; address is NULL if libpq resolves the name. */
static PGconn *start_connecting(const struct pg_pool *pool, const char *address, bool is_blocking)
{
    const char *const values[] = {"2",     "perfoliod", "10",           "5",    "3",
                                  "20000", address,     pool->conninfo, "UTF8", NULL};
    static_assert(sizeof(values) == sizeof(connect_keywords), "a value for each keyword");
    return is_blocking ? PQconnectdbParams(connect_keywords, values, 1)
                       : PQconnectStartParams(connect_keywords, values, 1);
}

static const struct addrinfo *address_at(const struct addrinfo *list, unsigned index)
{
    while (index--)
        list = list->ai_next;
    return list;
}

static unsigned count_addresses(const struct addrinfo *list)
{
    unsigned count = 0;
    for (; list; list = list->ai_next)
        count++;
    return count;
}

static enum err_code try_address(struct pg_connection *connection, const struct addrinfo *info,
                                 int64_t silence_ns, struct pg_wait *wait, bool *ret_has_connected,
                                 struct err *err)
{
    char address[ADDRESS_BYTES];
    const int failure = getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL,
                                    0, NI_NUMERICHOST);
    *ret_has_connected = false;
    if (failure)
        return pg_fail_database(err, "Cannot connect to the database", gai_strerror(failure));
    PQfinish(connection->handle);
    connection->must_close = connection->has_timed_out = false;
    connection->handle = start_connecting(connection->pool, address, false);
    return finish_connecting(connection, silence_ns, wait, ret_has_connected, err);
}

/* Tries the addresses, starting with the one that worked last, so that an unreachable address
 * delays only one attempt. */
static enum err_code try_addresses(struct pg_connection *connection, const struct addrinfo *list,
                                   struct pg_wait *wait, struct err *err)
{
    struct pg_pool *pool = connection->pool;
    const unsigned count = count_addresses(list), first = atomic_load(&pool->address_index);
    int64_t silence_ms = pool->connect_silence_ms / (int64_t)count;
    if (silence_ms < SHORTEST_SILENCE_MS)
        silence_ms = SHORTEST_SILENCE_MS;
    enum err_code code = ERR_DATABASE;
    bool has_connected = false;
    for (unsigned i = 0; code && !has_connected && i < count; i++) {
        const unsigned index = (first + i) % count;
        if (i > 0 && (clock_monotonic_ns() >= wait->deadline_ns || pg_is_given_up(pool)))
            break;
        code = try_address(connection, address_at(list, index), silence_ms * CLOCK_NS_PER_MS, wait,
                           &has_connected, err);
        if (!code)
            atomic_store(&pool->address_index, index);
    }
    return code;
}

static enum err_code connect_by_name(struct pg_connection *connection, const char *host,
                                     struct pg_wait *wait, struct err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    const int failure = getaddrinfo(host, NULL, &hints, &list);
    if (failure)
        return pg_fail_database(err, "Cannot find the address of the database's host",
                                gai_strerror(failure));
    const enum err_code code = try_addresses(connection, list, wait, err);
    freeaddrinfo(list);
    return code;
}

static enum err_code connect_to_server(struct pg_connection *connection, struct pg_wait *wait,
                                       struct err *err)
{
    const struct pg_pool *pool = connection->pool;
    const struct target target = parse_target(pool->conninfo);
    bool has_connected;
    if (has_name(&target))
        return connect_by_name(connection, target.host, wait, err);
    connection->handle = start_connecting(pool, NULL, target.has_several_hosts);
    if (!target.has_several_hosts)
        return finish_connecting(connection, pool->connect_silence_ms * CLOCK_NS_PER_MS, wait,
                                 &has_connected, err);
    return PQstatus(connection->handle) == CONNECTION_OK
               ? ERR_NONE
               : pg_fail_database(err, "Cannot connect to the database",
                                  PQerrorMessage(connection->handle));
}

/* After an attempt without a reply there is a pause, in which callers fail at once. */
static void note_connecting(struct pg_pool *pool, bool has_timed_out)
{
    if (has_timed_out) {
        pthread_mutex_lock(&pool->mutex);
        pool->silent_ns = clock_monotonic_ns();
        pool->may_connect_ns = pool->silent_ns + RECONNECT_PAUSE_MS * CLOCK_NS_PER_MS;
        pthread_mutex_unlock(&pool->mutex);
    }
    atomic_store(&pool->cannot_connect, has_timed_out);
}

enum err_code pg_connection_open(struct pg_pool *pool, struct pg_wait *wait,
                                 struct pg_connection **ret_connection, struct err *err)
{
    struct pg_connection *connection = mem_new(struct pg_connection, 1);
    connection->pool = pool;
    connection->statement_ms = pool->statement_ms;
    map_bytes_init(&connection->statements, 64);
    enum err_code code = connect_to_server(connection, wait, err);
    if (!code) {
        PQsetNoticeReceiver(connection->handle, ignore_notice, NULL);
        PQsetnonblocking(connection->handle, 1);
        code = set_up_session(connection, pool, wait, err);
    }
    note_connecting(pool, connection->has_timed_out);
    if (code) {
        pg_connection_destroy(connection);
        err->code = ERR_DATABASE; /* a missing role and the like are not for a caller to handle */
        err->public_text = pg_public_text(ERR_DATABASE);
        err->is_disconnect = false;
        return ERR_DATABASE;
    }
    *ret_connection = connection;
    return ERR_NONE;
}

/* Whether an idle connection works. The server sends nothing on it except before closing (or
 * after a changed setting, for which a new connection is as good), so readable data means that
 * it is dead. */
bool pg_connection_is_alive(struct pg_connection *connection)
{
    struct pollfd poll_fd = {.fd = PQsocket(connection->handle), .events = POLLIN};
    return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) == 0 &&
           PQstatus(connection->handle) == CONNECTION_OK;
}

/* ---- the password of a URL ---- */

static void append_keyword(struct buf *buf, const char *keyword, const char *value)
{
    buf_printf(buf, "%s%s='", buf->size ? " " : "", keyword);
    for (const char *at = value; *at; at++) {
        if (*at == '\'' || *at == '\\')
            buf_append_byte(buf, '\\');
        buf_append_byte(buf, (uint8_t)*at);
    }
    buf_append_byte(buf, '\'');
}

enum err_code pg_split_password(const char *conninfo, struct arena *arena,
                                const char **ret_conninfo, const char **ret_password,
                                struct err *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    if (!options) {
        PQfreemem(message); /* it may contain the password */
        return err_set(err, ERR_INVALID, "the database's URL is not one of PostgreSQL");
    }
    buf_auto plain;
    buf_init(&plain, 64 << 10);
    const char *password = "";
    for (const PQconninfoOption *option = options; option->keyword; option++) {
        if (option->val && strcmp(option->keyword, "password") == 0)
            password = arena_strdup(arena, option->val);
        else if (option->val)
            append_keyword(&plain, option->keyword, option->val);
    }
    PQconninfoFree(options);
    if (buf_failed(&plain))
        return err_set(err, ERR_INVALID, "the database's URL is too long");
    *ret_conninfo = arena_strndup(arena, plain.data, plain.size);
    *ret_password = password;
    return ERR_NONE;
}
