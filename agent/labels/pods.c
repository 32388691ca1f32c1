#include "agent/labels/pods.h"

#include "agent/process/capabilities.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/http_client.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    INTERVAL_S = 30,
    SOON_S = 2,
    DEADLINE_MS = 20000,
    RESPONSE_MAX_BYTES = 32 << 20,
};

struct pods {
    struct server_config access;
    struct http_client *client; /* used by the thread only */
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the following members */
    pthread_cond_t changed;
    bool is_ending;
    bool is_requested; /* an unknown container was looked up */
    struct arena *arena;
    struct pod_list *list; /* NULL: no response yet */
    uint8_t digest[DIGEST_BYTES];
    uint64_t generation;
    bool has_failed; /* the last request failed, which was logged */
};

static bool is_not_ending(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                          uint64_t receive_total)
{
    struct pods *pods = context;
    (void)sent, (void)send_total, (void)received, (void)receive_total;
    pthread_mutex_lock(&pods->mutex);
    const bool is_running = !pods->is_ending;
    pthread_mutex_unlock(&pods->mutex);
    return is_running;
}

static enum err_code request_pods(struct pods *pods, struct http_client_response *response,
                                  struct err *err)
{
    buf_auto token;
    buf_init(&token, SERVER_CONFIG_FIELD_BYTES);
    enum err_code code = server_config_token(&pods->access, &token, err);
    if (code)
        return code;
    const struct http_client_field field = {"Authorization", (const char *)token.data};
    struct http_client_request request;
    http_client_request_init(&request, "GET", pods->access.server);
    request.fields = &field;
    request.field_count = token.size ? 1 : 0;
    request.deadline_ms = DEADLINE_MS;
    request.accept_compressed = true;
    request.max_response_bytes = RESPONSE_MAX_BYTES;
    request.progress = is_not_ending;
    request.progress_context = pods;
    code = http_client_send(pods->client, &request, response, err);
    if (!code && response->status != 200)
        code = err_set(err, ERR_NETWORK, "the response has status %d", response->status);
    return code;
}

static void replace_list(struct pods *pods, const uint8_t digest[DIGEST_BYTES], struct arena *arena,
                         struct pod_list *list)
{
    pthread_mutex_lock(&pods->mutex);
    struct arena *old = pods->arena;
    pods->arena = arena;
    pods->list = list;
    memcpy(pods->digest, digest, DIGEST_BYTES);
    pods->generation++;
    pthread_mutex_unlock(&pods->mutex);
    arena_destroy(old);
}

static enum err_code read_pods(struct pods *pods, struct err *err)
{
    uint8_t digest[DIGEST_BYTES];
    struct pod_list *list;
    http_client_response_auto response;
    http_client_response_init(&response);
    enum err_code code = request_pods(pods, &response, err);
    if (code)
        return code;
    const struct span json = buf_span(&response.body);
    digest_sha256(json, digest);
    if (pods->list && memcmp(digest, pods->digest, DIGEST_BYTES) == 0)
        return ERR_NONE;
    struct arena *arena = arena_create();
    code = pod_list_read(json, arena, &list, err);
    if (code)
        arena_destroy(arena);
    else
        replace_list(pods, digest, arena, list);
    return code;
}

/* Logs when requests begin to fail and when they succeed again. */
static void report_change(struct pods *pods, enum err_code code, const struct err *err)
{
    char quoted[2 * ERR_MESSAGE_BYTES];
    if (code && code != ERR_CANCELLED && !pods->has_failed)
        log_event(LOG_WARN, "the list of pods cannot be read", "why=%s",
                  log_quote(err->message, quoted, sizeof(quoted)));
    else if (!code && pods->has_failed)
        log_event(LOG_INFO, "the list of pods can be read again", "generation=%lu",
                  (unsigned long)pods->generation);
    pods->has_failed = code;
}

/* Waits for the interval, or for 2 s once an unknown container was looked up. False: the thread is
 * to end. */
static bool wait_for_next(struct pods *pods)
{
    struct timespec begin, until;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int error = 0;
    pthread_mutex_lock(&pods->mutex);
    while (!pods->is_ending && !error) {
        until = begin;
        until.tv_sec += pods->is_requested ? SOON_S : INTERVAL_S;
        error = pthread_cond_timedwait(&pods->changed, &pods->mutex, &until);
    }
    pods->is_requested = false;
    const bool is_running = !pods->is_ending;
    pthread_mutex_unlock(&pods->mutex);
    return is_running;
}

static void *run_thread(void *context)
{
    struct pods *pods = context;
    struct err err = {0};
    (void)capabilities_keep(
        CAPABILITY_BIT(CAPABILITY_DAC_READ_SEARCH)); /* to read the token file */
    do {
        report_change(pods, read_pods(pods, &err), &err);
    } while (wait_for_next(pods));
    return NULL;
}

static void free_pods(struct pods *pods)
{
    http_client_destroy(pods->client);
    pthread_cond_destroy(&pods->changed);
    pthread_mutex_destroy(&pods->mutex);
    arena_destroy(pods->arena);
    mem_free(pods);
}

enum err_code pods_start(const struct server_config *access, struct pods **ret_pods,
                         struct err *err)
{
    const struct http_client_settings settings = {
        .ca_file = access->ca_file, .user_agent = "perfolio-agent", .proxy = access->proxy};
    pthread_condattr_t attributes;
    enum err_code code = server_config_check_url(access->server, err);
    if (code)
        return code;
    struct pods *pods = mem_new(struct pods, 1);
    pods->access = *access;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pods->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&pods->mutex, NULL);
    code = http_client_create(&settings, &pods->client, err);
    if (!code && pthread_create(&pods->thread, NULL, run_thread, pods))
        code = err_set(err, ERR_INTERNAL, "no thread could be started");
    if (code) {
        free_pods(pods);
        return code;
    }
    *ret_pods = pods;
    return ERR_NONE;
}

void pods_stop(struct pods *pods)
{
    if (!pods)
        return;
    pthread_mutex_lock(&pods->mutex);
    pods->is_ending = true;
    pthread_cond_signal(&pods->changed);
    pthread_mutex_unlock(&pods->mutex);
    pthread_join(pods->thread, NULL);
    free_pods(pods);
}

bool pods_find(struct pods *pods, struct span container_id, struct label_set *labels)
{
    pthread_mutex_lock(&pods->mutex);
    const bool is_found = pod_list_find(pods->list, container_id, labels);
    if (!is_found && !pods->is_requested) {
        pods->is_requested = true;
        pthread_cond_signal(&pods->changed);
    }
    pthread_mutex_unlock(&pods->mutex);
    return is_found;
}

uint64_t pods_generation(struct pods *pods)
{
    pthread_mutex_lock(&pods->mutex);
    const uint64_t generation = pods->generation;
    pthread_mutex_unlock(&pods->mutex);
    return generation;
}
