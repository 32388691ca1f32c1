#include "lib/io/pg.h"

#include "lib/base/breaker.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TAKE_TIMEOUT_S = 5,
    OUTAGE_S = 10, /* a longer outage is not waited for */
    RETRY_EVERY_MS = 50,
    RECONNECT_PAUSE_MS = 250,
    STATEMENT_MS = 60000, /* of pools that set none */
    CONNECT_MS = 5000,
    SHORTEST_CONNECT_S = 2,    /* libpq's minimum */
    WATCHED_SILENCE_MS = 1400, /* so that a request ends within 2 s if the database hangs */
    SHORTEST_SILENCE_MS = 400,
    ADDRESS_BYTES = 64, /* an IPv6 address with its scope */
    SERVER_SIDE_EXTRA_MS = 5000,
    SUSPECT_MS = 400, /* nearly all statements are faster */
    PROBE_MS = 1000,
    PROBE_CONNECT_MAX_MS = 10000, /* stopping the process waits for a probe */
    LIMIT_GRACE_MS = 1000,        /* the server itself ends a statement at the limit */
    LATE_RETRY_S = 5,
    CHECK_MS = 100, /* how often a waiting thread checks the breaker */
    SETTINGS_BYTES = 512,
    MAX_VALUES = 32,
    MAX_QUEUED = 8,                   /* statements of pg_queue that wait to be sent */
    MAX_STEPS = 2 * (MAX_QUEUED + 4), /* each may have to be prepared first */
    NUMBER_TEXT_BYTES = 24,
    STATEMENT_NAME_BYTES = 16,
    TYPE_BYTEA = 17, /* pg_type.oid, which never changes */
};

/* statement_timeout ends statements on the server that the client has given up. Scripts are
 * exempt. The server's own transactions hold locks briefly; one held for 10 s is an operator's
 * (VACUUM FULL, REINDEX). */
#define SESSION_SETTINGS                                                                           \
    "SET TimeZone = 'UTC'; SET statement_timeout = '%dms'; SET lock_timeout = '10s';"              \
    "SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning';"

static const char begin_sql[] = "BEGIN";
static const char commit_sql[] = "COMMIT";
static const char limit_sql[] = "SELECT set_config('statement_timeout', $1, true)";
static const char tenant_sql[] = "SELECT set_config('app.tenant', $1, true)";

enum transaction {
    TRANSACTION_NONE,
    TRANSACTION_WANTED, /* pg_begin was called; BEGIN is sent with the first statement */
    TRANSACTION_OPEN,
    TRANSACTION_FAILED, /* a statement failed; only a rollback is possible */
};

struct arguments {
    const char *texts[MAX_VALUES];
    int sizes[MAX_VALUES];
    int formats[MAX_VALUES]; /* 0 text, 1 binary */
    char numbers[MAX_VALUES][NUMBER_TEXT_BYTES];
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
    int64_t tenant_id; /* of the transaction */
    struct statement queued[MAX_QUEUED];
    int queued_count;
    int statement_ms;    /* client-side deadline of one round trip */
    int64_t deadline_ns; /* of all statements together; 0: none */
    bool must_close;     /* broken, or its prepared statements no longer match the tables */
    bool has_timed_out;
};

struct pg_pool {
    char *conninfo;
    char *role;
    int max_connections;
    int patience_ms;
    int connect_ms; /* for one attempt to connect, whatever it receives */
    /* an attempt to connect that receives nothing for this long has failed */
    int connect_silence_ms;
    int statement_ms;
    struct pg_watch *watch;    /* NULL: none */
    atomic_uint address_index; /* index of the address at which the next attempt starts */
    _Atomic uint64_t failure_count;
    atomic_bool cannot_connect; /* the last attempt to connect got no reply in time */
    pthread_mutex_t mutex;      /* guards the members below */
    int64_t silent_ns;          /* when the last such attempt was given up */
    int64_t may_connect_ns;     /* while cannot_connect: when the next attempt may begin */
    int64_t failing_since_ns;   /* monotonic; 0: the last attempt to connect succeeded */
    int64_t failed_last_ns;
    pthread_cond_t given;
    struct pg_connection *idle;
    int open_count;
};

/* A pool with one connection for each request of a probe. */
struct pg_watch {
    atomic_bool has_replied;      /* to any probe of this process */
    _Atomic int64_t recovered_ns; /* when the breaker last closed; 0: it has never opened */
    struct pg_pool *pool;
    struct breaker *breaker;
    void (*report)(bool is_responding);
};

struct pg_result {
    PGresult *handle;
    struct span *decoded; /* bytea cells, row by row; NULL if no column is bytea */
    int row_count;
    int column_count;
};

/* ---- errors ---- */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* https://www.postgresql.org/docs/15/errcodes-appendix.html */
static enum err_code code_from_sqlstate(const char *state)
{
    static const struct {
        const char *prefix;
        enum err_code code;
    } table[] = {
        {"23502", ERR_INVALID},   {"23514", ERR_INVALID}, {"23", ERR_CONFLICT}, {"40", ERR_BUSY},
        {"42501", ERR_FORBIDDEN}, {"22", ERR_INVALID},    {"57014", ERR_BUSY},  {"55P03", ERR_BUSY},
        {"53300", ERR_BUSY},      {"25P03", ERR_BUSY},    {"53400", ERR_QUOTA},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (starts_with(state, table[i].prefix))
            return table[i].code;
    return ERR_DATABASE;
}

/* PostgreSQL's messages are for the log: they contain names of tables, hosts and settings. */
static const char *public_text_for(enum err_code code)
{
    static const char *const texts[ERR_CODE_COUNT] = {
        [ERR_INVALID] = "a value of the request is malformed or out of range: correct it, then "
                        "send the request again",
        [ERR_CONFLICT] = "another request has changed the same data, or it exists already: read it "
                         "again, then repeat the change",
        [ERR_FORBIDDEN] = "this belongs to another team: use credentials of that team",
        [ERR_BUSY] = "the database is busy: try again in a few seconds",
        [ERR_DATABASE] = "the server cannot use its database: try again in a few seconds",
    };
    return texts[code];
}

/* A statement was prepared before a table changed, or the server no longer has it. */
static bool needs_new_connection(const char *state)
{
    return starts_with(state, "0A000") || starts_with(state, "26000") ||
           starts_with(state, "57P0") || starts_with(state, "08");
}

static enum err_code fail_database(struct err *err, const char *what, const char *message)
{
    size_t size = strcspn(message, "\n");
    err_set(err, ERR_DATABASE, "%s: %.*s", what, (int)size, message);
    err->retry_after_s = 2;
    err->public_text = public_text_for(ERR_DATABASE);
    return ERR_DATABASE;
}

static enum err_code fail_connection(struct pg_connection *connection, struct err *err)
{
    connection->must_close = true;
    fail_database(err, "The database does not answer", PQerrorMessage(connection->handle));
    err->is_disconnect = true;
    return ERR_DATABASE;
}

static enum err_code fail_result(struct pg_connection *connection, const PGresult *result,
                                 struct err *err)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
        return fail_database(err, "The database has skipped a statement", "an earlier one failed");
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!state || !message) {
        connection->must_close = true;
        fail_database(err, "The database does not answer", PQresultErrorMessage(result));
        err->is_disconnect = true;
        return ERR_DATABASE;
    }
    if (needs_new_connection(state))
        connection->must_close = true;
    enum err_code code = code_from_sqlstate(state);
    if (code == ERR_QUOTA)
        return err_set(err, code, "%s", message);
    err_set(err, code, "%s (SQLSTATE %s)", message, state);
    err->is_rolled_back = starts_with(state, "40");
    err->public_text = public_text_for(code);
    if (code == ERR_DATABASE || code == ERR_BUSY)
        err->retry_after_s = 2;
    err->is_disconnect = code == ERR_DATABASE && connection->must_close;
    return code;
}

/* ---- waiting for the server ---- */

static bool is_given_up(const struct pg_pool *pool)
{
    return pool->watch && breaker_is_open(pool->watch->breaker);
}

static enum err_code fail_unresponsive(struct pg_connection *connection, struct err *err)
{
    connection->must_close = true;
    connection->has_timed_out = true;
    fail_database(err, "The database does not respond", "no reply in time");
    err->is_disconnect = true;
    return ERR_DATABASE;
}

static enum err_code fail_given_up(struct err *err)
{
    return fail_database(err, "The database does not respond", "waiting for it to come back");
}

/* A period in which a thread waits for replies on one connection. */
struct wait {
    int64_t begin_ns;
    int64_t deadline_ns; /* 0: none, and the breaker is ignored: scripts */
    int64_t moved_ns;    /* when the socket was last ready */
    /* the wait also ends if the socket is not ready for this long; 0: no limit */
    int64_t silence_ns;
};

static struct wait begin_wait(int64_t duration_ms)
{
    const int64_t now_ns = clock_monotonic_ns();
    return (struct wait){.begin_ns = now_ns,
                         .deadline_ns = duration_ms ? now_ns + duration_ms * CLOCK_NS_PER_MS : 0,
                         .moved_ns = now_ns};
}

static bool is_over(const struct wait *wait, int64_t now_ns)
{
    return now_ns >= wait->deadline_ns ||
           (wait->silence_ns && now_ns - wait->moved_ns >= wait->silence_ns);
}

enum wait_outcome { WAIT_READABLE, WAIT_WRITABLE, WAIT_LONGER, WAIT_OVER };

/* Reads a reply that has arrived even after the deadline: this process may have been stopped
 * meanwhile. */
static enum wait_outcome wait_for_socket(const struct pg_connection *connection, struct wait *wait,
                                         short events)
{
    const struct pg_pool *pool = connection->pool;
    struct pollfd poll_fd = {.fd = PQsocket(connection->handle), .events = events};
    const int ready_count = poll(&poll_fd, 1, CHECK_MS);
    const int64_t now_ns = clock_monotonic_ns();
    if (ready_count != 0) { /* libpq reports errors of the socket */
        wait->moved_ns = now_ns;
        return poll_fd.revents & POLLIN ? WAIT_READABLE : WAIT_WRITABLE;
    }
    if (!wait->deadline_ns)
        return WAIT_LONGER;
    if (is_over(wait, now_ns) || is_given_up(pool))
        return WAIT_OVER;
    if (pool->watch && now_ns - wait->moved_ns >= SUSPECT_MS * CLOCK_NS_PER_MS)
        breaker_suspect(pool->watch->breaker);
    return WAIT_LONGER;
}

/* Reports received bytes to the breaker: the database works, whatever a probe finds. */
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
static enum err_code wait_for_result(struct pg_connection *connection, struct wait *wait,
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

static enum err_code get_result(struct pg_connection *connection, struct wait *wait,
                                PGresult **ret_result, struct err *err)
{
    const enum err_code code = wait_for_result(connection, wait, err);
    if (!code)
        *ret_result = PQgetResult(connection->handle);
    return code;
}

/* ---- connections ---- */

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

static void connection_destroy(struct pg_connection *connection)
{
    if (!connection)
        return;
    PQfinish(connection->handle);
    map_bytes_fini(&connection->statements);
    mem_free(connection);
}

/* Runs statements; returns the error of the first that fails. The server skips those after it. */
static enum err_code run_simple(struct pg_connection *connection, const char *sql,
                                struct wait *wait, struct err *err)
{
    if (!PQsendQuery(connection->handle, sql))
        return fail_connection(connection, err);
    enum err_code code = ERR_NONE;
    for (;;) {
        PGresult *result = NULL;
        const enum err_code wait_code = get_result(connection, wait, &result, err);
        if (wait_code || !result)
            return wait_code ? wait_code : code;
        const ExecStatusType status = PQresultStatus(result);
        if (!code && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            code = fail_result(connection, result, err);
        PQclear(result);
        if (connection->must_close)
            return code;
    }
}

static enum err_code set_up_session(struct pg_connection *connection, const struct pg_pool *pool,
                                    struct wait *wait, struct err *err)
{
    char sql[SETTINGS_BYTES];
    snprintf(sql, sizeof(sql), SESSION_SETTINGS, pool->statement_ms + SERVER_SIDE_EXTRA_MS);
    enum err_code code = run_simple(connection, sql, wait, err);
    if (code || !pool->role)
        return code;
    char *quoted = PQescapeIdentifier(connection->handle, pool->role, strlen(pool->role));
    if (!quoted)
        return fail_connection(connection, err);
    snprintf(sql, sizeof(sql), "SET ROLE %s", quoted);
    PQfreemem(quoted);
    return run_simple(connection, sql, wait, err);
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

/* Sets the limits of an attempt to connect. connect_timeout of the URL takes precedence;
 * silence_ms 0 limits only the whole attempt. */
static void set_connect_limits(struct pg_pool *pool, int silence_ms)
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
 * Until the connection is usable or the wait is over. Until TCP has a connection the address may be
 * silent for silence_ns; the server itself, which has to start a process, for as long as the pool
 * allows. *ret_has_connected is false when another address may do.
 */
static enum err_code finish_connecting(struct pg_connection *connection, int64_t silence_ns,
                                       struct wait *wait, bool *ret_has_connected, struct err *err)
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
               : fail_database(err, "Cannot connect to the database", PQerrorMessage(handle));
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
                                 int64_t silence_ns, struct wait *wait, bool *ret_has_connected,
                                 struct err *err)
{
    char address[ADDRESS_BYTES];
    const int failure = getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL,
                                    0, NI_NUMERICHOST);
    *ret_has_connected = false;
    if (failure)
        return fail_database(err, "Cannot connect to the database", gai_strerror(failure));
    PQfinish(connection->handle);
    connection->must_close = connection->has_timed_out = false;
    connection->handle = start_connecting(connection->pool, address, false);
    return finish_connecting(connection, silence_ns, wait, ret_has_connected, err);
}

/* Tries the addresses, starting with the one that worked last, so that an unreachable address
 * delays only one attempt. */
static enum err_code try_addresses(struct pg_connection *connection, const struct addrinfo *list,
                                   struct wait *wait, struct err *err)
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
        if (i > 0 && (clock_monotonic_ns() >= wait->deadline_ns || is_given_up(pool)))
            break;
        code = try_address(connection, address_at(list, index), silence_ms * CLOCK_NS_PER_MS, wait,
                           &has_connected, err);
        if (!code)
            atomic_store(&pool->address_index, index);
    }
    return code;
}

static enum err_code connect_by_name(struct pg_connection *connection, const char *host,
                                     struct wait *wait, struct err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    const int failure = getaddrinfo(host, NULL, &hints, &list);
    if (failure)
        return fail_database(err, "Cannot find the address of the database's host",
                             gai_strerror(failure));
    const enum err_code code = try_addresses(connection, list, wait, err);
    freeaddrinfo(list);
    return code;
}

static enum err_code connect_to_server(struct pg_connection *connection, struct wait *wait,
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
               : fail_database(err, "Cannot connect to the database",
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

static enum err_code connection_open(struct pg_pool *pool, struct wait *wait,
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
        connection_destroy(connection);
        err->code = ERR_DATABASE; /* a missing role and the like are not for a caller to handle */
        err->public_text = public_text_for(ERR_DATABASE);
        err->is_disconnect = false;
        return ERR_DATABASE;
    }
    *ret_connection = connection;
    return ERR_NONE;
}

/* Whether an idle connection works. The server sends nothing on it except before closing (or
 * after a changed setting, for which a new connection is as good), so readable data means that
 * it is dead. */
static bool is_alive(struct pg_connection *connection)
{
    struct pollfd poll_fd = {.fd = PQsocket(connection->handle), .events = POLLIN};
    return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) == 0 &&
           PQstatus(connection->handle) == CONNECTION_OK;
}

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

/* ---- the pool ---- */

struct pg_pool *pg_pool_create(const char *conninfo, const char *role, int max_connections)
{
    assert(max_connections > 0);
    struct pg_pool *pool = mem_new(struct pg_pool, 1);
    pool->conninfo = mem_strdup(conninfo);
    pool->role = role ? mem_strdup(role) : NULL;
    pool->max_connections = max_connections;
    set_connect_limits(pool, 0);
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
        connection_destroy(connection);
        pool->open_count--;
    }
    assert(pool->open_count == 0);
    pthread_cond_destroy(&pool->given);
    pthread_mutex_destroy(&pool->mutex);
    mem_free(pool->conninfo);
    mem_free(pool->role);
    mem_free(pool);
}

void pg_pool_set_connect_wait(struct pg_pool *pool, int max_wait_ms)
{
    pool->patience_ms = max_wait_ms;
}

void pg_pool_set_deadlines(struct pg_pool *pool, int statement_ms, struct pg_watch *watch)
{
    assert(statement_ms > 0);
    pool->statement_ms = statement_ms;
    set_connect_limits(pool, watch ? WATCHED_SILENCE_MS : 0);
    pool->watch = watch;
}

static void count_failure(struct pg_pool *pool)
{
    atomic_fetch_add(&pool->failure_count, 1);
}

/* Removes connections that the database has closed from the idle ones. The caller holds the
 * mutex. */
static struct pg_connection *take_dead(struct pg_pool *pool)
{
    struct pg_connection *dead = NULL;
    for (struct pg_connection **place = &pool->idle, *connection; (connection = *place);) {
        if (is_alive(connection)) {
            place = &connection->next_idle;
            continue;
        }
        *place = connection->next_idle;
        connection->next_idle = dead;
        dead = connection;
        pool->open_count--;
        count_failure(pool);
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
        connection_destroy(dead);
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
    const int64_t until_ns = clock_monotonic_ns() + CHECK_MS * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = until_ns % CLOCK_NS_PER_S};
    pthread_cond_timedwait(&pool->given, &pool->mutex, &until);
}

/* Waits for an idle connection, or for permission to open one (*ret_connection is NULL). */
static enum err_code wait_for_slot(struct pg_pool *pool, int max_wait_s,
                                   struct pg_connection **ret_connection, struct err *err)
{
    const int64_t deadline_ns = clock_monotonic_ns() + max_wait_s * CLOCK_NS_PER_S;
    enum err_code code = ERR_NONE;
    pthread_mutex_lock(&pool->mutex);
    while (!code && !pool->idle && pool->open_count >= pool->max_connections) {
        if (is_given_up(pool))
            code = fail_given_up(err);
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
    }
    pthread_mutex_unlock(&pool->mutex);
    return code;
}

static void give_place(struct pg_pool *pool, struct pg_connection *connection)
{
    pthread_mutex_lock(&pool->mutex);
    if (connection) {
        connection->next_idle = pool->idle;
        pool->idle = connection;
    } else {
        pool->open_count--;
    }
    pthread_cond_signal(&pool->given);
    pthread_mutex_unlock(&pool->mutex);
}

/* Returns true if the database has been unreachable for a long time. */
static bool note_attempt(struct pg_pool *pool, bool has_failed)
{
    int64_t now_ns = clock_monotonic_ns();
    if (has_failed)
        count_failure(pool);
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
 * While attempts to connect get no reply, one thread at a time finds out whether they do again; the
 * others would only wait. Connections that are open may work all the same. An attempt that was
 * given up before the breaker closed says nothing about a server that responds again.
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
    struct wait wait = begin_wait(max_wait_ms > pool->connect_ms ? max_wait_ms : pool->connect_ms);
    const int64_t patient_until_ns = wait.begin_ns + max_wait_ms * CLOCK_NS_PER_MS;
    for (;;) {
        enum err_code code = may_connect(pool) ? connection_open(pool, &wait, ret_connection, err)
                                               : fail_given_up(err);
        bool is_long_away = note_attempt(pool, code != ERR_NONE);
        if (!code || is_long_away || is_given_up(pool) ||
            clock_monotonic_ns() >= patient_until_ns || atomic_load(&pool->cannot_connect))
            return code;
        clock_sleep_ms(RETRY_EVERY_MS);
    }
}

static enum err_code take_within(struct pg_pool *pool, int place_wait_s, int max_wait_ms,
                                 struct pg_connection **ret_connection, struct err *err)
{
    struct pg_connection *connection;
    if (is_given_up(pool))
        return fail_given_up(err);
    enum err_code code = wait_for_slot(pool, place_wait_s, &connection, err);
    if (code)
        return code;
    if (connection && is_alive(connection)) {
        *ret_connection = connection;
        return ERR_NONE;
    }
    if (connection)
        count_failure(pool);
    connection_destroy(connection);
    code = open_within(pool, max_wait_ms, ret_connection, err);
    if (code)
        give_place(pool, NULL);
    return code;
}

enum err_code pg_take(struct pg_pool *pool, struct pg_connection **ret_connection, struct err *err)
{
    return take_within(pool, TAKE_TIMEOUT_S, pool->patience_ms, ret_connection, err);
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
        give_place(pool, connection);
        return;
    }
    connection_destroy(connection);
    give_place(pool, NULL);
}

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
        snprintf(arguments->numbers[i], NUMBER_TEXT_BYTES, "%" PRId64, value->number);
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
    if (count > MAX_VALUES)
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
    struct wait wait;
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
    snprintf(arguments.numbers[0], NUMBER_TEXT_BYTES, "%" PRId64, value);
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
    enum err_code code = get_result(connection, &pipeline->wait, &result, err);
    if (code || !result)
        return code ? code : fail_connection(connection, err);
    ExecStatusType status = PQresultStatus(result);
    if (!is_success(status))
        code = fail_result(connection, result, err);
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
        const enum err_code code = get_result(connection, &pipeline->wait, &rest, err);
        if (code || !rest)
            return code;
    }
}

static enum err_code read_sync(struct pipeline *pipeline, struct err *err)
{
    struct pg_connection *connection = pipeline->connection;
    PGresult *sync = NULL;
    const enum err_code code = get_result(connection, &pipeline->wait, &sync, err);
    if (code)
        return code;
    const bool is_sync = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return is_sync && PQexitPipelineMode(connection->handle) ? ERR_NONE
                                                             : fail_connection(connection, err);
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
        return code ? code : fail_connection(connection, err);
    struct err ignored;
    const enum err_code sync_code = read_sync(pipeline, code ? &ignored : err);
    return code ? code : sync_code;
}

static enum err_code fail_late(struct err *err)
{
    err_set(err, ERR_BUSY, "no time is left for another statement of this request");
    err->retry_after_s = LATE_RETRY_S;
    err->public_text = public_text_for(ERR_BUSY);
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
                                .wait = begin_wait(limit_ms + (is_limited ? LIMIT_GRACE_MS : 0))};
    if (!PQenterPipelineMode(connection->handle))
        return fail_connection(connection, err);
    send_setup(&pipeline, tenant_id);
    if (is_limited)
        send_setting(&pipeline, limit_sql, limit_ms);
    send_queued(&pipeline);
    send_statement(&pipeline, STEP_STATEMENT, statement);
    if (pipeline.has_failed_to_send || !PQpipelineSync(connection->handle))
        return fail_connection(connection, err);
    return read_pipeline(&pipeline, ret_result, err);
}

static enum err_code run_pipeline(struct pg_connection *connection, int64_t tenant_id,
                                  struct statement statement, PGresult **ret_result,
                                  struct err *err)
{
    enum err_code code = exchange(connection, tenant_id, statement, ret_result, err);
    if (code == ERR_DATABASE)
        count_failure(connection->pool);
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
    if (connection->transaction == TRANSACTION_NONE || connection->queued_count == MAX_QUEUED)
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
    struct wait wait = begin_wait(connection->statement_ms);
    if (run_simple(connection, "ROLLBACK", &wait, &err))
        connection->must_close = true;
}

enum err_code pg_script(struct pg_connection *connection, const char *sql, struct err *err)
{
    /* Several statements in one message are an implicit transaction, but SET LOCAL requires an
     * explicit one. */
    struct wait endless = {0};
    enum err_code code =
        run_simple(connection, "BEGIN; SET LOCAL statement_timeout = 0", &endless, err);
    if (!code)
        code = run_simple(connection, sql, &endless, err);
    if (!code)
        return run_simple(connection, "COMMIT", &endless, err);
    struct err ignored;
    if (connection->must_close || run_simple(connection, "ROLLBACK", &endless, &ignored))
        connection->must_close = true;
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

/* ---- the watch ---- */

/*
 * An error of the database is a reply, too: nothing hangs then. A request that has to connect first
 * is no evidence before the first reply: the database may be far away, or connect_timeout too
 * short.
 */
static bool send_probe(void *context, int index, int64_t deadline_ms)
{
    /* Each request has a connection of the pool, whose deadline is PROBE_MS. */
    (void)index, (void)deadline_ms;
    struct pg_watch *watch = context;
    arena_auto arena = arena_create();
    struct pg_connection *connection = NULL;
    struct err err;
    if (pg_take_at_once(watch->pool, &connection, &err))
        return !atomic_load(&watch->pool->cannot_connect) || !atomic_load(&watch->has_replied);
    (void)!pg_query(connection, PG_NO_TENANT, "SELECT 1", NULL, 0, arena, NULL, &err);
    const bool has_replied = !connection->has_timed_out;
    if (has_replied)
        atomic_store(&watch->has_replied, true);
    pg_give(connection);
    return has_replied;
}

static void limit_to(int *value, int most)
{
    if (*value > most)
        *value = most;
}

static void report(void *context, bool is_open)
{
    struct pg_watch *watch = context;
    if (!is_open)
        atomic_store(&watch->recovered_ns, clock_monotonic_ns());
    if (watch->report)
        watch->report(!is_open);
}

enum err_code pg_watch_create(const char *conninfo, void (*report_change)(bool is_responding),
                              struct pg_watch **ret_watch, struct err *err)
{
    struct pg_watch *watch = mem_new(struct pg_watch, 1);
    watch->pool = pg_pool_create(conninfo, NULL, BREAKER_PROBE_REQUESTS);
    watch->pool->statement_ms = PROBE_MS;
    set_connect_limits(watch->pool, PROBE_MS);
    limit_to(&watch->pool->connect_ms, PROBE_CONNECT_MAX_MS);
    limit_to(&watch->pool->connect_silence_ms, PROBE_CONNECT_MAX_MS);
    watch->report = report_change;
    const enum err_code code = breaker_create(&(struct breaker_options){.probe = send_probe,
                                                                        .probe_ms = PROBE_MS,
                                                                        .max_probe_ms = PROBE_MS,
                                                                        .report = report,
                                                                        .context = watch,
                                                                        .probes_at_start = true},
                                              &watch->breaker, err);
    if (code) {
        pg_pool_destroy(watch->pool);
        mem_free(watch);
        return code;
    }
    *ret_watch = watch;
    return ERR_NONE;
}

void pg_watch_destroy(struct pg_watch *watch)
{
    if (!watch)
        return;
    breaker_destroy(watch->breaker);
    pg_pool_destroy(watch->pool);
    mem_free(watch);
}

bool pg_watch_is_responding(const struct pg_watch *watch)
{
    return !breaker_is_open(watch->breaker);
}
