#include "lib/io/s3_client.h"

#include "lib/base/breaker.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/wait_limit.h"
#include "lib/io/s3_failure.h"
#include "lib/io/s3_settings.h"
#include "lib/io/s3_sign.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    IDLE_CONNECTIONS = 16,
    FIRST_PAUSE_MS = 100,
    MAX_PAUSE_MS = 3000,
    URL_MAX_BYTES = 16 << 10,
    AUTHORIZATION_MAX_BYTES = 4 << 10,
    ERROR_MAX_BYTES = 64 << 10,     /* an error's body, whatever the caller allows */
    SLOWEST_BYTES_PER_S = 64 << 10, /* a slower transfer is given up */
    REPLY_BYTES = 16 << 10,         /* that much of a response proves that the server responds */
    SUSPECT_MS = 400,
    PROBE_MS = 1200,
    MOST_PROBE_MS = 10000, /* a slower server counts as one that hangs */
    BUSY_RETRY_S = 5,
};

struct s3_client {
    struct s3_settings settings;
    int64_t retry_ms;
    pthread_mutex_t lock; /* guards the members below, except the breaker */
    struct http_client *idle[IDLE_CONNECTIONS];
    size_t idle_count;
    int64_t failing_since_ns; /* monotonic; since the last request that succeeded */
    int64_t failed_last_ns;
    struct breaker *breaker;            /* NULL: not watched */
    atomic_bool is_ending;              /* probes end early */
    void (*report)(bool is_responding); /* or NULL */
};

enum err_code s3_client_create(const struct object_s3_options *options,
                               struct s3_client **ret_client, struct err *err)
{
    struct s3_client *client = mem_new(struct s3_client, 1);
    pthread_mutex_init(&client->lock, NULL);
    enum err_code code = s3_settings_init(&client->settings, options, err);
    if (code) {
        s3_client_destroy(client);
        return code;
    }
    client->retry_ms = S3_CLIENT_DEFAULT_RETRY_S * INT64_C(1000);
    *ret_client = client;
    return ERR_NONE;
}

void s3_client_destroy(struct s3_client *client)
{
    if (!client)
        return;
    atomic_store(&client->is_ending, true);
    breaker_destroy(client->breaker);
    while (client->idle_count)
        http_client_destroy(client->idle[--client->idle_count]);
    pthread_mutex_destroy(&client->lock);
    s3_settings_fini(&client->settings);
    mem_free(client);
}

void s3_client_set_retry(struct s3_client *client, int64_t retry_ms)
{
    client->retry_ms = retry_ms;
}

const char *s3_client_prefix(const struct s3_client *client)
{
    return client->settings.prefix;
}

void s3_request_init(struct s3_request *request, const char *action, const char *method,
                     const char *key)
{
    *request = (struct s3_request){.action = action,
                                   .method = method,
                                   .key = key,
                                   .max_response_bytes = ERROR_MAX_BYTES,
                                   .response_fd = HTTP_CLIENT_NO_FD};
}

static enum err_code take_connection(struct s3_client *client, struct http_client **ret_connection,
                                     struct err *err)
{
    struct http_client *connection = NULL;
    pthread_mutex_lock(&client->lock);
    if (client->idle_count)
        connection = client->idle[--client->idle_count];
    pthread_mutex_unlock(&client->lock);
    if (connection) {
        *ret_connection = connection;
        return ERR_NONE;
    }
    const struct http_client_settings settings = {
        .ca_file = client->settings.ca_file,
        .user_agent = "perfolio",
        .connect_timeout_ms = client->settings.connect_timeout_ms,
        .stall_timeout_s = client->settings.read_timeout_s,
    };
    enum err_code code = http_client_create(&settings, ret_connection, err);
    if (code) /* a missing CA file must not be mistaken for a missing object */
        code = err->code = ERR_INVALID;
    return code;
}

static void give_connection(struct s3_client *client, struct http_client *connection)
{
    pthread_mutex_lock(&client->lock);
    if (client->idle_count < IDLE_CONNECTIONS) {
        client->idle[client->idle_count++] = connection;
        connection = NULL;
    }
    pthread_mutex_unlock(&client->lock);
    http_client_destroy(connection);
}

/* The data of one attempt that must live until it ends. */
struct
try {
    struct buf url;
    struct buf authorization;
    char range[64];
    char payload_hash[DIGEST_HEX_BYTES];
    char time[S3_SIGN_TIME_BYTES];
    struct s3_sign_field signed_fields[6];
    size_t signed_count;
    struct http_client_field fields[8];
    size_t field_count;
};

static void add_field(struct try *try, const char *name, const char *value)
{
    try->signed_fields[try->signed_count++] = (struct s3_sign_field){name, value};
    if (strcmp(name, "host") != 0) /* libcurl writes that field itself, from the URL */
        try->fields[try->field_count++] = (struct http_client_field){name, value};
}

/* Adds the fields sorted by name, as the signature requires. */
static void add_fields(struct try *try, const struct s3_client *client,
                       const struct s3_request *request)
{
    const struct s3_settings *settings = &client->settings;
    if (request->content_md5)
        add_field(try, "content-md5", request->content_md5);
    add_field(try, "host", settings->host);
    if (request->range_size) {
        snprintf(try->range, sizeof(try->range), "bytes=%llu-%llu",
                 (unsigned long long)request->range_offset,
                 (unsigned long long)(request->range_offset + request->range_size - 1));
        add_field(try, "range", try->range);
    }
    add_field(try, "x-amz-content-sha256", try->payload_hash);
    add_field(try, "x-amz-date", try->time);
    if (settings->session_token)
        add_field(try, "x-amz-security-token", settings->session_token);
}

/* Builds the URL. Keys, prefix and bucket contain only bytes that need no encoding in a path. */
static void write_url(struct try *try, const struct s3_client *client,
                      const struct s3_request *request, size_t *ret_path_at)
{
    const struct s3_settings *settings = &client->settings;
    buf_printf(&try->url, "%s://%s", settings->scheme, settings->host);
    *ret_path_at = try->url.size;
    if (settings->is_path_style)
        buf_printf(&try->url, "/%s", settings->bucket);
    if (request->key)
        buf_printf(&try->url, "/%s%s", settings->prefix, request->key);
    else if (!settings->is_path_style)
        buf_append_byte(&try->url, '/');
}

/* Prepares an attempt. Each one is signed separately, since the signature includes the time. */
static void prepare_attempt(struct try *try, const struct s3_client *client,
                            const struct s3_request *request)
{
    size_t path_at;
    write_url(try, client, request, &path_at);
    buf_append_byte(&try->url, 0);
    s3_sign_time(clock_wall_ns(), try->time);
    add_fields(try, client, request);
    const struct s3_sign_request to_sign = {
        .method = request->method,
        .path = (const char *)try->url.data + path_at,
        .query = request->query ? request->query : "",
        .fields = try->signed_fields,
        .field_count = try->signed_count,
        .payload_hash = try->payload_hash,
        .time = try->time,
        .access_key = client->settings.access_key,
        .secret_key = client->settings.secret_key,
        .region = client->settings.region,
    };
    s3_sign_authorization(&to_sign, &try->authorization);
    buf_append_byte(&try->authorization, 0);
    try->fields[try->field_count++] =
        (struct http_client_field){"Authorization", (const char *)try->authorization.data};
    /* Bodies are at most a few MiB: sending one in vain costs less than waiting for "100
     * Continue" each time. */
    try->fields[try->field_count++] = (struct http_client_field){"Expect", NULL};
    if (request->query) {
        try->url.size--;
        buf_printf(&try->url, "?%s", request->query);
        buf_append_byte(&try->url, 0);
    }
}

enum err_code s3_client_failure(const struct s3_client *client, const struct s3_request *request,
                                const struct http_client_response *response, struct err *err)
{
    return s3_failure_describe(&client->settings, request, response, err);
}

/* The progress of one attempt. */
struct transfer_watch {
    const struct s3_client *client;
    const struct s3_request *request;
    uint64_t moved_bytes;
    uint64_t noted_bytes; /* received, and reported as a reply */
    int64_t moved_ns;     /* when a byte last arrived; monotonic */
    bool is_given_up;
    bool is_stalled;
    bool is_too_large;
    bool lacks_length;
    bool lacks_space;
};

static bool is_wanted(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                      uint64_t receive_total)
{
    (void)send_total, (void)receive_total;
    struct transfer_watch *watch = context;
    const int64_t now_ns = clock_monotonic_ns();
    if (wait_limit_is_cancelled(watch->request->wait_limit))
        return false;
    if (sent + received != watch->moved_bytes) {
        if (received - watch->noted_bytes >= REPLY_BYTES) {
            breaker_note_reply(watch->client->breaker);
            watch->noted_bytes = received;
        }
        watch->moved_bytes = sent + received;
        watch->moved_ns = now_ns;
        return true;
    }
    if (now_ns - watch->moved_ns < SUSPECT_MS * CLOCK_NS_PER_MS || watch->request->is_probe)
        return true;
    breaker_suspect(watch->client->breaker);
    watch->is_given_up = breaker_is_open(watch->client->breaker);
    /* libcurl averages the speed over several seconds, which delays its own limit. */
    watch->is_stalled =
        now_ns - watch->moved_ns > watch->client->settings.read_timeout_s * CLOCK_NS_PER_S;
    return !watch->is_given_up && !watch->is_stalled;
}

static enum err_code fail_unresponsive(struct err *err)
{
    err_set(err, ERR_BUSY, "the S3 server does not respond");
    err->retry_after_s = BUSY_RETRY_S;
    return ERR_BUSY;
}

static enum err_code fail_slow(const struct s3_request *request, struct err *err)
{
    err->code = ERR_BUSY;
    err_add(err, "%s %s", request->action, request->key ? request->key : "the bucket");
    err->retry_after_s = BUSY_RETRY_S;
    return ERR_BUSY;
}

/*
 * Refuses a response before its body if the body would be longer than allowed, or could be endless.
 * Objects have a length; responses without one are short and read into memory.
 */
static bool is_of_bounded_length(void *context, const struct http_client_response *response,
                                 uint64_t *max_response_bytes)
{
    struct transfer_watch *watch = context;
    const struct s3_request *request = watch->request;
    const bool is_success = response->status >= 200 && response->status <= 299;
    const struct span length = http_client_response_field(response, "Content-Length");
    uint64_t size;
    if (!is_success)
        *max_response_bytes = ERROR_MAX_BYTES;
    if (strcmp(request->method, "HEAD") == 0)
        return true;
    watch->lacks_length = !length.size && is_success && request->response_fd != HTTP_CLIENT_NO_FD;
    watch->is_too_large =
        length.size && (!span_parse_u64(length, &size) || size > *max_response_bytes);
    if (watch->is_too_large || watch->lacks_length)
        return false;
    watch->lacks_space = is_success && length.size && request->has_space &&
                         !request->has_space(request->has_space_context, request->response_fd, size,
                                             request->is_background);
    return !watch->lacks_space;
}

/* Something between the server and S3 changed the response: another attempt may succeed. */
static enum err_code fail_without_length(struct err *err)
{
    return err_set(err, ERR_NETWORK, "the response of the S3 server has no length");
}

/* Not retried: another attempt would give the same result. */
static enum err_code fail_large(const struct s3_request *request,
                                struct http_client_response *response, struct err *err)
{
    response->was_too_large = true;
    err_set(err, ERR_BUSY,
            "%s %s: the response of the S3 server, of status %d, is larger than is allowed here",
            request->action, request->key ? request->key : "the bucket", response->status);
    err->retry_after_s = BUSY_RETRY_S;
    return ERR_BUSY;
}

static enum err_code send_prepared(struct s3_client *client, const struct try *try,
                                   const struct s3_request *request,
                                   struct http_client_response *response, struct err *err)
{
    struct http_client *connection;
    struct http_client_request http;
    http_client_request_init(&http, request->method, (const char *)try->url.data);
    http.fields = try->fields;
    http.field_count = try->field_count;
    http.body_kind = request->body.size ? HTTP_CLIENT_BODY_BYTES : HTTP_CLIENT_BODY_NONE;
    http.body = request->body;
    http.response_fd = request->response_fd;
    http.max_response_bytes = request->max_response_bytes < ERROR_MAX_BYTES
                                  ? ERROR_MAX_BYTES
                                  : request->max_response_bytes;
    uint64_t most_bytes = http.max_response_bytes + request->body.size;
    http.deadline_ms = request->deadline_ms
                           ? request->deadline_ms
                           : client->settings.connect_timeout_ms +
                                 3000 * (int64_t)client->settings.read_timeout_s +
                                 (int64_t)(most_bytes / SLOWEST_BYTES_PER_S * 1000);
    if (request->wait_limit)
        http.deadline_ms = wait_limit_left_ms(request->wait_limit, http.deadline_ms);
    struct transfer_watch watch = {
        .client = client, .request = request, .moved_ns = clock_monotonic_ns()};
    http.progress = is_wanted;
    http.progress_context = &watch;
    http.head = is_of_bounded_length;
    http.head_context = &watch;
    http.must_not_repeat = request->needs_fresh_connection;
    http.min_bytes_per_s = request->may_trickle ? 0 : SLOWEST_BYTES_PER_S;
    enum err_code code = take_connection(client, &connection, err);
    if (code)
        return code;
    const int64_t begin_ns = clock_monotonic_ns();
    code = http_client_send(connection, &http, response, err);
    give_connection(client, connection);
    if (response->status && code != ERR_TIMEOUT && !request->is_probe) {
        breaker_note_reply(client->breaker);
        if (!code)
            breaker_note_duration(client->breaker, clock_monotonic_ns() - begin_ns);
    }
    if (code && watch.is_given_up)
        return fail_unresponsive(err);
    if (watch.lacks_length)
        return fail_without_length(err);
    if (watch.lacks_space)
        return err_set(err, ERR_LIMIT, "the disk has no space for a copy of object %s",
                       request->key);
    if (watch.is_too_large || response->was_too_large)
        return fail_large(request, response, err);
    if (code && watch.is_stalled)
        return err_set(err, ERR_TIMEOUT, "nothing moved for %d s", client->settings.read_timeout_s);
    return response->was_too_slow ? fail_slow(request, err) : code;
}

static enum err_code try_once(struct s3_client *client, const struct s3_request *request,
                              const char *payload_hash, struct http_client_response *response,
                              struct err *err)
{
    struct try try = {0};
    if (request->response_fd != HTTP_CLIENT_NO_FD &&
        (ftruncate(request->response_fd, 0) || lseek(request->response_fd, 0, SEEK_SET)))
        return err_set_errno(err, ERR_IO, "emptying the copy of an object");
    buf_init(&try.url, URL_MAX_BYTES);
    buf_init(&try.authorization, AUTHORIZATION_MAX_BYTES);
    snprintf(try.payload_hash, sizeof(try.payload_hash), "%s", payload_hash);
    prepare_attempt(&try, client, request);
    enum err_code code =
        buf_failed(&try.url) || buf_failed(&try.authorization)
            ? err_set(err, ERR_NETWORK, "the S3 server gave a name too long to send back")
            : send_prepared(client, &try, request, response, err);
    buf_fini(&try.url);
    buf_fini(&try.authorization);
    if (code)
        return code;
    if (response->status < 200 || response->status > 299)
        return s3_client_failure(client, request, response, err);
    if (response->response_bytes > request->max_response_bytes)
        return fail_large(request, response, err);
    return request->check ? request->check(request->check_context, response, err) : ERR_NONE;
}

static bool is_worth_another_try(enum err_code code)
{
    return code == ERR_BUSY || code == ERR_NETWORK || code == ERR_TIMEOUT;
}

/* A random pause between half of the full one and all of it, so that the nodes of a store do not
 * retry in step. */
static int64_t pause_ms(int tries, const struct http_client_response *response)
{
    int64_t full = FIRST_PAUSE_MS;
    for (int i = 1; i < tries && full < MAX_PAUSE_MS; i++)
        full *= 2;
    if (full > MAX_PAUSE_MS)
        full = MAX_PAUSE_MS;
    uint16_t random;
    digest_random(&random, sizeof(random));
    int64_t pause = full / 2 + full / 2 * random / UINT16_MAX;
    int64_t wanted_ms = (int64_t)response->retry_after_s * 1000;
    return pause < wanted_ms ? wanted_ms : pause;
}

/*
 * Whether all attempts have failed for longer than one request may retry: a new request would wait
 * for as long, in vain. An old failure belongs to another outage.
 */
static bool is_long_away(struct s3_client *client, bool has_failed)
{
    const int64_t now_ns = clock_monotonic_ns(), retry_ns = client->retry_ms * CLOCK_NS_PER_MS;
    if (!client->breaker)
        return false;
    pthread_mutex_lock(&client->lock);
    if (!has_failed || now_ns - client->failed_last_ns > 2 * retry_ns)
        client->failing_since_ns = now_ns;
    if (has_failed)
        client->failed_last_ns = now_ns;
    const bool is_long = has_failed && now_ns - client->failing_since_ns > retry_ns;
    pthread_mutex_unlock(&client->lock);
    return is_long;
}

enum err_code s3_client_send(struct s3_client *client, const struct s3_request *request,
                             struct http_client_response *response, struct err *err)
{
    uint8_t hash[DIGEST_BYTES];
    char payload_hash[DIGEST_HEX_BYTES];
    digest_sha256(request->body, hash);
    digest_hex(span_of(hash, sizeof(hash)), payload_hash);
    int64_t start_ns = clock_monotonic_ns();
    for (int tries = 1;; tries++) {
        if (breaker_is_open(client->breaker))
            return fail_unresponsive(err);
        enum err_code code = wait_limit_is_over(request->wait_limit)
                                 ? ERR_CANCELLED
                                 : try_once(client, request, payload_hash, response, err);
        if (code && wait_limit_is_over(request->wait_limit))
            return err_set(err, ERR_CANCELLED,
                           "cancelled: no request waits any more for the S3 server to %s %s",
                           request->action, request->key ? request->key : "the bucket");
        const bool is_away = is_long_away(client, is_worth_another_try(code));
        if (!is_worth_another_try(code) || request->has_one_try || response->was_too_slow ||
            response->was_too_large)
            return code;
        int64_t pause = pause_ms(tries, response);
        int64_t passed_ms = (clock_monotonic_ns() - start_ns) / CLOCK_NS_PER_MS;
        if (is_away || passed_ms + pause > client->retry_ms)
            return err_add(err, "after %d tries, %s %s", tries, request->action,
                           request->key ? request->key : client->settings.bucket);
        wait_limit_sleep_ms(request->wait_limit, pause);
    }
}

/* ---- the watch ---- */

/*
 * A probe succeeds with any response that is whole in time. One of its requests uses a connection
 * that was kept open, so that a lost SYN or a slow TLS handshake does not matter. The other one
 * uses a new connection, since the kept one may be dead.
 */
static bool send_probe(void *context, int index, int64_t deadline_ms)
{
    struct s3_client *client = context;
    const struct wait_limit wait_limit = {.is_cancelled = &client->is_ending};
    http_client_response_auto response;
    struct s3_request request;
    struct err err;
    uint8_t hash[DIGEST_BYTES];
    char payload_hash[DIGEST_HEX_BYTES];
    http_client_response_init(&response);
    s3_request_init(&request, "probe", "GET", "perfolio-watch");
    request.deadline_ms = deadline_ms;
    request.wait_limit = &wait_limit;
    request.is_probe = true;
    request.needs_fresh_connection = index > 0;
    digest_sha256(request.body, hash);
    digest_hex(span_of(hash, sizeof(hash)), payload_hash);
    return try_once(client, &request, payload_hash, &response, &err) != ERR_TIMEOUT;
}

static void report_change(void *context, bool is_open)
{
    const struct s3_client *client = context;
    if (client->report)
        client->report(!is_open);
}

enum err_code s3_client_watch(struct s3_client *client, void (*report)(bool is_responding),
                              struct err *err)
{
    client->report = report;
    return breaker_create(&(struct breaker_options){.probe = send_probe,
                                                    .probe_ms = PROBE_MS,
                                                    .max_probe_ms = MOST_PROBE_MS,
                                                    .report = report_change,
                                                    .context = client},
                          &client->breaker, err);
}

bool s3_client_is_responding(const struct s3_client *client)
{
    return !breaker_is_open(client->breaker);
}

int64_t s3_client_deadline_ms(const struct s3_client *client)
{
    return breaker_deadline_ms(client->breaker);
}
