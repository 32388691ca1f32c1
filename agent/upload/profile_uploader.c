#include "agent/upload/profile_uploader.h"

#include "agent/process/capabilities.h"
#include "agent/upload/server_config.h"
#include "agent/upload/spool.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/http_client.h"
#include "lib/profile/otlp/otlp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    PAUSE_MIN_MS = 500,
    PAUSE_MAX_MS = 60000,
    DEADLINE_MS = 120000,
    RESPONSE_MAX_BYTES = 1 << 20,
    SHOWN_BYTES = 60, /* of a response that is not OTLP, in a message */
};

#define PATH "/v1development/profiles"
#define CONTENT_TYPE "application/x-protobuf"

struct profile_uploader {
    struct server_config access;
    struct arena *arena;
    const char *url;
    struct spool *spool;
    struct http_client *client; /* used by the thread only */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_ending;
    bool has_news;
    struct profile_uploader_counts counts;
};

enum outcome { OUTCOME_ACCEPTED, OUTCOME_REFUSED, OUTCOME_LATER };

static bool is_ending(struct profile_uploader *uploader)
{
    pthread_mutex_lock(&uploader->mutex);
    const bool ending = uploader->is_ending;
    pthread_mutex_unlock(&uploader->mutex);
    return ending;
}

/* ---- one batch ---- */

/* Cancels the request when the uploader is stopped; its batch stays in the spool. */
static bool is_not_ending(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                          uint64_t receive_total)
{
    (void)sent, (void)send_total, (void)received, (void)receive_total;
    return !is_ending(context);
}

static enum err_code post_batch(struct profile_uploader *uploader, const struct spool_batch *batch,
                                struct span bytes, struct http_client_response *response,
                                struct err *err)
{
    buf_auto token;
    buf_init(&token, SERVER_CONFIG_FIELD_BYTES);
    enum err_code code = server_config_token(&uploader->access, &token, err);
    if (code)
        return code;
    const struct http_client_field fields[] = {
        {"Content-Type", CONTENT_TYPE},
        {"Content-Encoding", "zstd"},
        {"Perfolio-Batch-Id", batch->id},
        {"Otlp-Profiles-Version", "1.10"},
        {"Authorization", (const char *)token.data},
    };
    struct http_client_request request;
    http_client_request_init(&request, "POST", uploader->url);
    request.fields = fields;
    request.field_count = token.size ? 5 : 4;
    request.body_kind = HTTP_CLIENT_BODY_BYTES;
    request.body = bytes;
    request.deadline_ms = DEADLINE_MS;
    request.progress = is_not_ending;
    request.progress_context = uploader;
    request.max_response_bytes = RESPONSE_MAX_BYTES;
    return http_client_send(uploader->client, &request, response, err);
}

static bool is_of_type(struct span field, const char *type)
{
    const size_t size = strlen(type);
    return field.size >= size && strncasecmp((const char *)field.data, type, size) == 0 &&
           (field.size == size || field.data[size] == ';');
}

/* Whether a response of status 200 is that of an OTLP server. A login page or a proxy may send 200
 * as well. An empty body, which means complete success, may have any type except HTML. */
static bool is_otlp(const struct http_client_response *response)
{
    char ignored[OTLP_MESSAGE_BYTES];
    uint64_t rejected;
    const struct span type = http_client_response_field(response, "Content-Type");
    const struct span body = buf_span(&response->body);
    if (!body.size)
        return !is_of_type(type, "text/html");
    return (type.size == 0 || is_of_type(type, CONTENT_TYPE)) &&
           otlp_read_response(body, &rejected, ignored);
}

static enum err_code check_response(const struct http_client_response *response, struct err *err)
{
    const struct span type = http_client_response_field(response, "Content-Type");
    const struct span body = buf_span(&response->body);
    const int shown = (int)(body.size < SHOWN_BYTES ? body.size : SHOWN_BYTES);
    if (response->status < 200 || response->status >= 300 || is_otlp(response))
        return ERR_NONE;
    return err_set(err, ERR_NETWORK,
                   "the response is not OTLP: check that the address does not lead to a login page "
                   "or a proxy; its Content-Type is \"%.*s\", and it begins with \"%.*s\"",
                   (int)(type.size < SHOWN_BYTES ? type.size : SHOWN_BYTES),
                   (const char *)type.data, shown, (const char *)body.data);
}

/* Logs and counts profiles of an accepted batch that the server rejected. */
static void note_partial(struct profile_uploader *uploader,
                         const struct http_client_response *response)
{
    char message[OTLP_MESSAGE_BYTES] = "", quoted[2 * OTLP_MESSAGE_BYTES];
    uint64_t rejected = 0;
    if (!otlp_read_response(buf_span(&response->body), &rejected, message) || !message[0])
        return;
    uploader->counts.refused_profiles += rejected;
    log_event(LOG_WARN, "the server rejected part of a batch", "profiles=%lu why=%s",
              (unsigned long)rejected, log_quote(message, quoted, sizeof(quoted)));
}

static void note_failure(const struct http_client_response *response, const struct err *err,
                         enum err_code code, bool is_final)
{
    char message[OTLP_MESSAGE_BYTES] = "", quoted[2 * OTLP_MESSAGE_BYTES];
    if (!code)
        (void)otlp_read_status(buf_span(&response->body), message);
    log_event(is_final ? LOG_ERROR : LOG_WARN,
              is_final ? "the server refused a batch, which is dropped"
                       : "a batch could not be sent; it is tried again",
              "status=%d why=%s", response->status,
              log_quote(code ? err->message : message, quoted, sizeof(quoted)));
}

static enum outcome outcome_of(enum err_code code, int status)
{
    if (code)
        return code == ERR_INVALID && status ? OUTCOME_REFUSED : OUTCOME_LATER;
    if (status >= 200 && status < 300)
        return OUTCOME_ACCEPTED;
    const bool may_pass = status < 400 || status >= 500 || status == 401 || status == 403 ||
                          status == 404 || status == 408 || status == 429;
    return may_pass ? OUTCOME_LATER : OUTCOME_REFUSED;
}

static enum outcome send_batch(struct profile_uploader *uploader, const struct spool_batch *batch,
                               struct span bytes, int *ret_retry_after_s)
{
    struct err err = {0};
    http_client_response_auto response;
    http_client_response_init(&response);
    enum err_code code = post_batch(uploader, batch, bytes, &response, &err);
    if (!code)
        code = check_response(&response, &err);
    const enum outcome outcome = outcome_of(code, response.status);
    *ret_retry_after_s = response.retry_after_s;
    pthread_mutex_lock(&uploader->mutex);
    uploader->counts.sent_batches += outcome == OUTCOME_ACCEPTED;
    uploader->counts.sent_bytes += outcome == OUTCOME_ACCEPTED ? bytes.size : 0;
    uploader->counts.refused_batches += outcome == OUTCOME_REFUSED;
    uploader->counts.failed_tries += outcome == OUTCOME_LATER;
    if (outcome == OUTCOME_ACCEPTED)
        note_partial(uploader, &response);
    pthread_mutex_unlock(&uploader->mutex);
    if (outcome != OUTCOME_ACCEPTED)
        note_failure(&response, &err, code, outcome == OUTCOME_REFUSED);
    return outcome;
}

/* ---- the thread ---- */

/* A random time between half of the pause and all of it, so that agents that lost their server at
 * the same time do not return at the same time. */
static int64_t jittered(int64_t pause_ms)
{
    uint32_t random;
    digest_random(&random, sizeof(random));
    return pause_ms / 2 + (int64_t)(random % (uint64_t)(pause_ms / 2 + 1));
}

static int64_t next_pause(int64_t *pause_ms, int retry_after_s)
{
    const int64_t server_ms = (int64_t)retry_after_s * 1000;
    const int64_t wait_ms = jittered(*pause_ms);
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
    return server_ms > wait_ms ? server_ms + jittered(1000) : wait_ms;
}

/* Waits for timeout_ms, or, if it is -1, for a new batch. False: the uploader is being stopped,
 * which ends the wait at once. */
static bool wait_for_work(struct profile_uploader *uploader, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&uploader->mutex);
    int error = 0;
    while (!uploader->is_ending && error != ETIMEDOUT && (timeout_ms >= 0 || !uploader->has_news))
        error = timeout_ms < 0
                    ? pthread_cond_wait(&uploader->changed, &uploader->mutex)
                    : pthread_cond_timedwait(&uploader->changed, &uploader->mutex, &until);
    uploader->has_news = false;
    const bool is_running = !uploader->is_ending;
    pthread_mutex_unlock(&uploader->mutex);
    return is_running;
}

static void *run_thread(void *context)
{
    struct profile_uploader *uploader = context;
    struct spool_batch batch;
    /* To read the token file. */
    (void)capabilities_keep(CAPABILITY_BIT(CAPABILITY_DAC_READ_SEARCH));
    struct err err;
    char quoted[2 * sizeof(err.message)];
    buf_auto bytes;
    buf_init(&bytes, SPOOL_BATCH_MAX_BYTES);
    int64_t pause_ms = PAUSE_MIN_MS;
    while (!is_ending(uploader)) {
        const enum err_code code = spool_read(uploader->spool, &batch, &bytes, &err);
        int retry_after_s = 0;
        if (code == ERR_NOT_FOUND) {
            wait_for_work(uploader, -1);
        } else if (code) {
            log_event(LOG_ERROR,
                      code == ERR_IO ? "a batch in the spool cannot be read now; it is tried again"
                                     : "a batch in the spool cannot be read and is skipped",
                      "why=%s", log_quote(err.message, quoted, sizeof(quoted)));
            if (code == ERR_IO)
                wait_for_work(uploader, next_pause(&pause_ms, 0));
        } else if (send_batch(uploader, &batch, buf_span(&bytes), &retry_after_s) ==
                   OUTCOME_LATER) {
            wait_for_work(uploader, next_pause(&pause_ms, retry_after_s));
        } else {
            spool_remove(uploader->spool, &batch);
            pause_ms = PAUSE_MIN_MS;
        }
    }
    return NULL;
}

/* ---- life ---- */

static void free_uploader(struct profile_uploader *uploader)
{
    http_client_destroy(uploader->client);
    pthread_cond_destroy(&uploader->changed);
    pthread_mutex_destroy(&uploader->mutex);
    arena_destroy(uploader->arena);
    mem_free(uploader);
}

static struct profile_uploader *create_uploader(const struct server_config *access,
                                                struct spool *spool)
{
    struct profile_uploader *uploader = mem_new(struct profile_uploader, 1);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&uploader->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&uploader->mutex, NULL);
    uploader->access = *access;
    uploader->spool = spool;
    uploader->arena = arena_create();
    size_t size = strlen(access->server);
    while (size && access->server[size - 1] == '/')
        size--;
    uploader->url = arena_printf(uploader->arena, "%.*s" PATH, (int)size, access->server);
    return uploader;
}

enum err_code profile_uploader_start(const struct server_config *access, struct spool *spool,
                                     struct profile_uploader **ret_uploader, struct err *err)
{
    const struct http_client_settings settings = {
        .ca_file = access->ca_file, .user_agent = "perfolio-agent", .proxy = access->proxy};
    enum err_code code = server_config_check(access->server, err);
    if (code)
        return code;
    struct profile_uploader *uploader = create_uploader(access, spool);
    code = http_client_create(&settings, &uploader->client, err);
    if (!code && pthread_create(&uploader->thread, NULL, run_thread, uploader))
        code = err_set(err, ERR_INTERNAL, "no thread could be started");
    if (code) {
        free_uploader(uploader);
        return code;
    }
    *ret_uploader = uploader;
    return ERR_NONE;
}

void profile_uploader_wake(struct profile_uploader *uploader)
{
    pthread_mutex_lock(&uploader->mutex);
    uploader->has_news = true;
    pthread_cond_signal(&uploader->changed);
    pthread_mutex_unlock(&uploader->mutex);
}

void profile_uploader_stop(struct profile_uploader *uploader, int64_t timeout_ms)
{
    if (!uploader)
        return;
    const int64_t end_ns = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    struct spool_counts counts;
    for (;;) {
        spool_count(uploader->spool, &counts);
        if (counts.batches == 0 || clock_monotonic_ns() >= end_ns)
            break;
        clock_sleep_ms(20);
    }
    pthread_mutex_lock(&uploader->mutex);
    uploader->is_ending = true;
    pthread_cond_signal(&uploader->changed);
    pthread_mutex_unlock(&uploader->mutex);
    pthread_join(uploader->thread, NULL);
    free_uploader(uploader);
}

void profile_uploader_count(struct profile_uploader *uploader,
                            struct profile_uploader_counts *ret_counts)
{
    pthread_mutex_lock(&uploader->mutex);
    *ret_counts = uploader->counts;
    pthread_mutex_unlock(&uploader->mutex);
}
