#include "lib/io/debuginfod_client.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/debuginfod_hosts.h"
#include "lib/io/debuginfod_transfer.h"
#include "lib/io/http_url.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    FIRST_BYTE_MS = 20000,
    WINDOW_MS = 10000,
    WINDOW_BYTES = 100 << 10,
    TOTAL_MS = 300000,
    WAIT_MS = 500,
    MAX_SECTION_BYTES = 64,
    MAX_URL_BYTES = 2048,
    MAX_AUTH_BYTES = 8192,
};

/* A running request, and the callers that wait for its result. */
struct flight {
    char *key;
    struct flight *next;
    int user_count;
    bool is_over;
    enum err_code code;
    struct err err;
    struct debuginfod_response response;
};

struct debuginfod_client {
    struct debuginfod_client_settings settings;
    struct arena *arena; /* for the texts of the settings */
    struct debuginfod_hosts *hosts;
    pthread_mutex_t lock;
    pthread_cond_t landed;
    struct flight *flights;
};

static void set_usual(int *value, int usual)
{
    if (*value == 0)
        *value = usual;
}

enum err_code debuginfod_client_create(const struct debuginfod_client_settings *settings,
                                       struct debuginfod_client **ret_client, struct err *err)
{
    struct debuginfod_client *client = mem_new(struct debuginfod_client, 1);
    struct debuginfod_client_settings *own = &client->settings;
    struct arena *arena = client->arena = arena_create();
    pthread_condattr_t attributes;
    (void)err;
    *own = *settings;
    const char **hosts = arena_new(arena, const char *, settings->allowed_host_count + 1);
    for (size_t i = 0; i < settings->allowed_host_count; i++)
        hosts[i] = arena_strdup(arena, settings->allowed_hosts[i]);
    own->allowed_hosts = hosts;
    own->ca_file = settings->ca_file ? arena_strdup(arena, settings->ca_file) : NULL;
    own->user_agent = settings->user_agent ? arena_strdup(arena, settings->user_agent) : NULL;
    own->folder = arena_strdup(arena, settings->folder);
    set_usual(&own->connect_ms, CONNECT_MS);
    set_usual(&own->first_byte_ms, FIRST_BYTE_MS);
    set_usual(&own->window_ms, WINDOW_MS);
    set_usual(&own->window_bytes, WINDOW_BYTES);
    set_usual(&own->total_ms, TOTAL_MS);
    set_usual(&own->pause_unit_ms, 1000);
    client->hosts = debuginfod_hosts_create();
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->landed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_client = client;
    return ERR_NONE;
}

void debuginfod_client_destroy(struct debuginfod_client *client)
{
    if (!client)
        return;
    debuginfod_hosts_destroy(client->hosts);
    pthread_cond_destroy(&client->landed);
    pthread_mutex_destroy(&client->lock);
    arena_destroy(client->arena);
    mem_free(client);
}

/* ---- validation ---- */

/* RFC 9110: a token, and none of the fields that determine the framing or the host of a request. */
static bool is_field_name(const char *name, size_t size)
{
    static const char *const reserved[] = {
        "Host",   "Connection",        "Content-Length", "TE",    "Upgrade",
        "Expect", "Transfer-Encoding", "Trailer",        "Range", "Accept-Encoding"};
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("!#$%&'*+-.^_`|~", name[i]))
            return false;
    for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
        if (strlen(reserved[i]) == size && strncasecmp(name, reserved[i], size) == 0)
            return false;
    return size > 0;
}

static enum err_code check_auth(const char *auth, struct err *err)
{
    const char *colon = strchr(auth, ':');
    if (strlen(auth) > MAX_AUTH_BYTES)
        return err_set(err, ERR_INVALID, "a header line has at most %d bytes", MAX_AUTH_BYTES);
    for (const char *at = auth; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return err_set(err, ERR_INVALID,
                           "a header line has no line breaks or control "
                           "characters");
    if (!colon || !is_field_name(auth, (size_t)(colon - auth)) ||
        !colon[1 + strspn(colon + 1, " ")])
        return err_set(err, ERR_INVALID,
                       "a header with credentials has the form \"Authorization: Bearer "
                       "…\"; headers that HTTP itself uses are not allowed");
    return ERR_NONE;
}

enum err_code debuginfod_check_upstream(const struct debuginfod_client *client,
                                        const struct debuginfod_upstream *upstream, struct err *err)
{
    arena_auto arena = arena_create();
    struct http_url url;
    if (strlen(upstream->url) > MAX_URL_BYTES)
        return err_set(err, ERR_INVALID, "a URL has at most %d bytes", MAX_URL_BYTES);
    const enum err_code code = http_url_read(arena, upstream->url, &url, err);
    if (code)
        return code;
    if (url.has_query)
        return err_set(err, ERR_INVALID,
                       "a URL with a query is not allowed, because /buildid/… is appended to it");
    if (debuginfod_check_url(&client->settings, &url, err))
        return err->code = ERR_INVALID;
    return upstream->auth ? check_auth(upstream->auth, err) : ERR_NONE;
}

static bool is_section_name(const char *name)
{
    if (!name || !name[0] || strlen(name) > MAX_SECTION_BYTES)
        return false;
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
            return false;
    return true;
}

static enum err_code check_request(const struct debuginfod_request *request, struct err *err)
{
    if (request->upstream_count > DEBUGINFOD_MAX_URLS)
        return err_set(err, ERR_INVALID, "more than %d servers", DEBUGINFOD_MAX_URLS);
    if (request->kind == DEBUGINFOD_SECTION && !is_section_name(request->section))
        return err_set(err, ERR_INVALID, "not the name of a section");
    if (request->build_id.size == 0)
        return err_set(err, ERR_INVALID, "no build id");
    return ERR_NONE;
}

/* "buildid/<id>/debuginfo" */
static const char *make_path(struct arena *arena, const struct debuginfod_request *request)
{
    char *id = arena_alloc(arena, 2 * request->build_id.size + 1, 1);
    digest_hex(request->build_id, id);
    if (request->kind == DEBUGINFOD_SECTION)
        return arena_printf(arena, "buildid/%s/section/%s", id, request->section);
    return arena_printf(arena, "buildid/%s/%s", id,
                        request->kind == DEBUGINFOD_DEBUGINFO ? "debuginfo" : "executable");
}

/* ---- one server ---- */

static enum err_code pause_before_retry(const struct debuginfod_client *client,
                                        const struct debuginfod_request *request,
                                        unsigned try_number, struct err *err)
{
    uint32_t chance;
    digest_random(&chance, sizeof(chance));
    int64_t left_ms =
        debuginfod_pause_ms(try_number, chance) * client->settings.pause_unit_ms / 1000;
    while (left_ms > 0) {
        clock_sleep_ms(left_ms < WAIT_MS ? left_ms : WAIT_MS);
        left_ms -= WAIT_MS;
        if (request->may_go_on && !request->may_go_on(request->context))
            return err_set(err, ERR_CANCELLED,
                           "cancelled: no request waits for these debug files any more");
    }
    return ERR_NONE;
}

/* One attempt, counted as a visit to the host. */
static enum err_code visit_host(struct debuginfod_client *client, const char *host_name,
                                const struct debuginfod_transfer *transfer, struct arena *arena,
                                struct debuginfod_try *ret_try, struct err *err)
{
    struct debuginfod_host *host;
    enum err_code code = debuginfod_hosts_enter(client->hosts, transfer->request->owner, host_name,
                                                transfer->request->may_go_on,
                                                transfer->request->context, &host, err);
    if (code == ERR_BUSY) {
        *ret_try = (struct debuginfod_try){.outcome = DEBUGINFOD_UNREACHABLE,
                                           .reason = arena_strdup(arena, err->message)};
        return ERR_NONE;
    }
    if (code)
        return code;
    code = debuginfod_transfer_try(transfer, arena, ret_try, err);
    debuginfod_hosts_leave(client->hosts, host,
                           code                  ? DEBUGINFOD_VISIT_GIVEN_UP
                           : ret_try->is_failure ? DEBUGINFOD_VISIT_FAILED
                                                 : DEBUGINFOD_VISIT_WELL);
    return code;
}

static enum err_code query_server(struct debuginfod_client *client,
                                  const struct debuginfod_request *request,
                                  const struct debuginfod_upstream *upstream, int fd,
                                  struct arena *arena, struct debuginfod_try *ret_try,
                                  struct err *err)
{
    struct http_url url;
    enum err_code code = http_url_read(arena, upstream->url, &url, err);
    if (code) {
        *ret_try = (struct debuginfod_try){.outcome = DEBUGINFOD_REFUSED,
                                           .reason = arena_strdup(arena, err->message)};
        return ERR_NONE;
    }
    size_t size = strlen(upstream->url);
    const char *slash = size > 0 && upstream->url[size - 1] == '/' ? "" : "/";
    const struct debuginfod_transfer transfer = {
        .settings = &client->settings,
        .request = request,
        .url = arena_printf(arena, "%s%s%s", upstream->url, slash, make_path(arena, request)),
        .auth = upstream->auth,
        .deadline_ns = clock_monotonic_ns() + client->settings.total_ms * CLOCK_NS_PER_MS,
        .fd = fd,
    };
    const char *host_name = arena_printf(arena, "%s:%s", url.host, url.port);
    for (unsigned try_number = 1; !code; try_number++) {
        code = visit_host(client, host_name, &transfer, arena, ret_try, err);
        if (code || !ret_try->may_help || try_number == DEBUGINFOD_TRIES ||
            clock_monotonic_ns() >= transfer.deadline_ns)
            break;
        code = pause_before_retry(client, request, try_number + 1, err);
    }
    return code;
}

/* ---- all servers ---- */

/* Ranks outcomes by how much they explain the missing file. */
static int outcome_rank(enum debuginfod_outcome outcome)
{
    return outcome == DEBUGINFOD_UNREACHABLE ? 2 : outcome == DEBUGINFOD_REFUSED ? 1 : 0;
}

static void keep_best_outcome(struct debuginfod_response *response,
                              const struct debuginfod_try *did, size_t upstream)
{
    bool is_first = response->reason[0] == '\0';
    if (did->retry_after_s > response->retry_after_s)
        response->retry_after_s = did->retry_after_s;
    if (did->outcome == DEBUGINFOD_FOUND || is_first ||
        outcome_rank(did->outcome) > outcome_rank(response->outcome)) {
        response->outcome = did->outcome;
        response->upstream = upstream;
        snprintf(response->reason, sizeof(response->reason), "%s", did->reason ? did->reason : "");
    }
}

static void settle(struct debuginfod_response *response, size_t upstream_count)
{
    if (response->outcome != DEBUGINFOD_ABSENT)
        return;
    if (upstream_count == 1)
        snprintf(response->reason, sizeof(response->reason),
                 "the debuginfod server does not have the file");
    else
        snprintf(response->reason, sizeof(response->reason),
                 "none of %zu debuginfod servers has the file", upstream_count);
}

static enum err_code fetch(struct debuginfod_client *client,
                           const struct debuginfod_request *request,
                           struct debuginfod_response *response, struct err *err)
{
    arena_auto arena = arena_create();
    fd_auto fd = os_openat(AT_FDCWD, client->settings.folder, O_TMPFILE | O_RDWR, 0600);
    enum err_code code = ERR_NONE;
    *response = (struct debuginfod_response){.outcome = DEBUGINFOD_ABSENT, .fd = -1};
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "making a temporary file in %s", client->settings.folder);
    for (size_t i = 0; i < request->upstream_count && response->outcome != DEBUGINFOD_FOUND; i++) {
        struct debuginfod_try did = {.outcome = DEBUGINFOD_ABSENT};
        code = query_server(client, request, &request->upstreams[i], fd, arena, &did, err);
        if (code)
            return code;
        keep_best_outcome(response, &did, i);
        response->bytes = did.bytes;
    }
    settle(response, request->upstream_count);
    if (response->outcome == DEBUGINFOD_FOUND) {
        response->fd = fd;
        fd = -1;
    }
    return code;
}

/* ---- one request for all callers ---- */

/* Everything that determines the result, including the authorization header (another caller's may
 * not have access) and the owner (its hosts may be suspended). */
static char *make_key(struct arena *arena, const struct debuginfod_request *request)
{
    char *key = arena_printf(arena, "%s %llu %lld", make_path(arena, request),
                             (unsigned long long)request->max_bytes, (long long)request->owner);
    for (size_t i = 0; i < request->upstream_count; i++)
        key = arena_printf(arena, "%s\n%s\n%s", key, request->upstreams[i].url,
                           request->upstreams[i].auth ? request->upstreams[i].auth : "");
    return key;
}

static struct flight *find_flight(struct debuginfod_client *client, const char *key)
{
    struct flight *flight = client->flights;
    while (flight && strcmp(flight->key, key) != 0)
        flight = flight->next;
    return flight;
}

static void take_out(struct debuginfod_client *client, struct flight *flight)
{
    struct flight **at = &client->flights;
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
}

/* The caller holds the lock. */
static void release_flight(struct flight *flight)
{
    if (--flight->user_count > 0)
        return;
    if (flight->response.fd >= 0)
        os_close(flight->response.fd);
    mem_free(flight->key);
    mem_free(flight);
}

static enum err_code copy_response(const struct flight *flight,
                                   struct debuginfod_response *ret_response, struct err *err)
{
    *err = flight->err;
    if (flight->code)
        return flight->code;
    struct debuginfod_response response = flight->response;
    if (response.fd >= 0)
        response.fd = fcntl(flight->response.fd, F_DUPFD_CLOEXEC, 0);
    if (flight->response.fd >= 0 && response.fd < 0)
        return err_set_errno(err, ERR_IO, "sharing a fetched file");
    *ret_response = response;
    return ERR_NONE;
}

static void lead(struct debuginfod_client *client, struct flight *flight,
                 const struct debuginfod_request *request)
{
    struct debuginfod_response response;
    struct err err = {0};
    enum err_code code = fetch(client, request, &response, &err);
    pthread_mutex_lock(&client->lock);
    take_out(client, flight); /* later callers start a new request */
    flight->code = code;
    flight->err = err;
    flight->response = response;
    flight->is_over = true;
    pthread_cond_broadcast(&client->landed);
    pthread_mutex_unlock(&client->lock);
}

/* The caller holds the lock. Returns false when the request was cancelled. */
static bool wait_for(struct debuginfod_client *client, const struct flight *flight,
                     const struct debuginfod_request *request)
{
    bool may_go_on = true;
    while (!flight->is_over && may_go_on) {
        int64_t until_ns = clock_monotonic_ns() + WAIT_MS * CLOCK_NS_PER_MS;
        struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                 .tv_nsec = until_ns % CLOCK_NS_PER_S};
        pthread_cond_timedwait(&client->landed, &client->lock, &until);
        pthread_mutex_unlock(&client->lock);
        may_go_on = !request->may_go_on || request->may_go_on(request->context);
        pthread_mutex_lock(&client->lock);
    }
    return may_go_on;
}

/* Joins an equal running request, or sends one. */
static enum err_code fetch_shared(struct debuginfod_client *client, const char *key,
                                  const struct debuginfod_request *request, bool *ret_was_leader,
                                  struct debuginfod_response *ret_response, struct err *err)
{
    enum err_code code = ERR_NONE;
    pthread_mutex_lock(&client->lock);
    struct flight *flight = find_flight(client, key);
    *ret_was_leader = !flight;
    if (!flight) {
        flight = mem_new(struct flight, 1);
        *flight =
            (struct flight){.key = mem_strdup(key), .next = client->flights, .response.fd = -1};
        client->flights = flight;
    }
    flight->user_count++;
    if (*ret_was_leader) {
        pthread_mutex_unlock(&client->lock);
        lead(client, flight, request);
        pthread_mutex_lock(&client->lock);
    } else if (!wait_for(client, flight, request)) {
        code = err_set(err, ERR_CANCELLED,
                       "cancelled: no request waits for these debug files any more");
        *ret_was_leader = true; /* also when it fails itself */
    }
    if (!code)
        code = copy_response(flight, ret_response, err);
    release_flight(flight);
    pthread_mutex_unlock(&client->lock);
    return code;
}

enum err_code debuginfod_fetch(struct debuginfod_client *client,
                               const struct debuginfod_request *request,
                               struct debuginfod_response *ret_response, struct err *err)
{
    arena_auto arena = arena_create();
    bool was_leader = false;
    enum err_code code = check_request(request, err);
    if (code)
        return code;
    if (request->build_id.size > DEBUGINFOD_MAX_ID_BYTES || request->upstream_count == 0) {
        *ret_response = (struct debuginfod_response){
            .outcome = DEBUGINFOD_ABSENT,
            .fd = -1,
            .reason = "debuginfod servers know only GNU build ids, and this is another kind of id"};
        if (request->upstream_count == 0)
            snprintf(ret_response->reason, sizeof(ret_response->reason),
                     "no debuginfod server is configured");
        return ERR_NONE;
    }
    const char *key = make_key(arena, request);
    do {
        code = fetch_shared(client, key, request, &was_leader, ret_response, err);
        /* the thread that sent the request was cancelled, not this one */
    } while (code == ERR_CANCELLED && !was_leader);
    return code;
}
