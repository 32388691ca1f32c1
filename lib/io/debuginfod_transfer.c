#include "lib/io/debuginfod_transfer.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/http_client.h"
#include "lib/io/http_url.h"
#include "lib/io/public_address.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REDIRECTS = 3, MAX_PAGE_BYTES = 64 << 10, MAX_AUTH_NAME_BYTES = 64 };

/* The reason why a callback stopped a request. */
enum stop { STOP_NONE, STOP_CANCELLED, STOP_NO_HEADER, STOP_SLOW, STOP_TOO_LARGE };

/* One request of an attempt; each redirect is a further step. */
struct step {
    const struct debuginfod_transfer *transfer;
    struct arena *arena;
    const struct http_url *url;
    bool is_allowed; /* the operator allows the host at any address */
    enum stop stop;
    int64_t start_ns;
    int64_t checked_ns; /* when may_go_on was last called */
    int64_t window_ns;
    uint64_t window_received;
    uint64_t received;
    bool has_header;
    bool has_announced;
    uint64_t announced;
};

bool debuginfod_is_allowed(const struct debuginfod_client_settings *settings,
                           const struct http_url *url)
{
    size_t host_size = strlen(url->host);
    for (size_t i = 0; i < settings->allowed_host_count; i++) {
        const char *allowed = settings->allowed_hosts[i];
        if (strcmp(allowed, url->host) == 0)
            return true;
        if (strncmp(allowed, url->host, host_size) == 0 && allowed[host_size] == ':' &&
            strcmp(allowed + host_size + 1, url->port) == 0)
            return true;
    }
    return false;
}

/* Whether a host that is a literal address is not public; names are checked when the connection
 * is made. */
static bool is_closed_literal(const char *host)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
        return !public_address_is((const struct sockaddr *)&in);
    if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
        return !public_address_is((const struct sockaddr *)&in6);
    return false;
}

enum err_code debuginfod_check_url(const struct debuginfod_client_settings *settings,
                                   const struct http_url *url, struct err *err)
{
    if (debuginfod_is_allowed(settings, url))
        return ERR_NONE;
    if (strcmp(url->scheme, "https") != 0)
        return err_set(err, ERR_FORBIDDEN,
                       "%s is requested over https only, unless the operator allows the host",
                       url->host);
    if (is_closed_literal(url->host) || strcmp(url->host, "localhost") == 0)
        return err_set(err, ERR_FORBIDDEN,
                       "%s is not an address of the public Internet, and the operator does not "
                       "allow the host",
                       url->host);
    return ERR_NONE;
}

/* ---- callbacks of a running request ---- */

static bool may_connect(void *context, const struct sockaddr *address)
{
    const struct step *step = context;
    return step->is_allowed || public_address_is(address);
}

static bool stop(struct step *step, enum stop why)
{
    step->stop = why;
    return false;
}

static bool on_head(void *context, const struct http_client_response *response,
                    uint64_t *max_response_bytes)
{
    struct step *step = context;
    step->has_header = true;
    step->window_ns = clock_monotonic_ns();
    step->window_received = 0;
    *max_response_bytes =
        response->status == 200 ? step->transfer->request->max_bytes : MAX_PAGE_BYTES;
    struct span size = http_client_response_field(response, "X-DEBUGINFOD-SIZE");
    /* For a section, older servers announce the size of the file that contains it. */
    if (response->status != 200 || step->transfer->request->kind == DEBUGINFOD_SECTION ||
        !span_parse_u64(size, &step->announced))
        return true;
    step->has_announced = true;
    if (step->announced > *max_response_bytes)
        return stop(step, STOP_TOO_LARGE);
    *max_response_bytes = step->announced;
    return true;
}

static bool is_too_slow(struct step *step, int64_t now_ns)
{
    const struct debuginfod_client_settings *settings = step->transfer->settings;
    if (now_ns - step->window_ns < settings->window_ms * CLOCK_NS_PER_MS)
        return false;
    bool is_slow = step->received - step->window_received < (uint64_t)settings->window_bytes;
    step->window_ns = now_ns;
    step->window_received = step->received;
    return is_slow;
}

static bool on_progress(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                        uint64_t receive_total)
{
    struct step *step = context;
    const struct debuginfod_client_settings *settings = step->transfer->settings;
    const struct debuginfod_request *request = step->transfer->request;
    int64_t now_ns = clock_monotonic_ns();
    (void)sent, (void)send_total, (void)receive_total;
    step->received = received;
    if (request->may_go_on && now_ns - step->checked_ns > CLOCK_NS_PER_S / 2) {
        step->checked_ns = now_ns;
        if (!request->may_go_on(request->context))
            return stop(step, STOP_CANCELLED);
    }
    int64_t header_ns = (settings->connect_ms + settings->first_byte_ms) * CLOCK_NS_PER_MS;
    if (!step->has_header)
        return now_ns - step->start_ns < header_ns || stop(step, STOP_NO_HEADER);
    return !is_too_slow(step, now_ns) || stop(step, STOP_SLOW);
}

/* ---- outcomes ---- */

static enum err_code set_refused(struct debuginfod_try *ret_try, char *reason)
{
    *ret_try = (struct debuginfod_try){.outcome = DEBUGINFOD_REFUSED, .reason = reason};
    return ERR_NONE;
}

static enum err_code set_unreachable(struct debuginfod_try *ret_try, bool may_help, char *reason)
{
    *ret_try = (struct debuginfod_try){.outcome = DEBUGINFOD_UNREACHABLE,
                                       .is_failure = true,
                                       .may_help = may_help,
                                       .reason = reason};
    return ERR_NONE;
}

static enum err_code judge_stop(const struct step *step, struct debuginfod_try *ret_try,
                                struct err *err)
{
    const struct debuginfod_client_settings *settings = step->transfer->settings;
    const char *host = step->url->host;
    switch (step->stop) {
    case STOP_NONE:
    case STOP_CANCELLED:
        break;
    case STOP_NO_HEADER:
        return set_unreachable(
            ret_try, true,
            arena_printf(step->arena, "%s does not respond within %d s", host,
                         (settings->connect_ms + settings->first_byte_ms) / 1000));
    case STOP_SLOW:
        return set_unreachable(ret_try, false,
                               arena_printf(step->arena, "%s sends less than %d bytes in %d s",
                                            host, settings->window_bytes,
                                            settings->window_ms / 1000));
    case STOP_TOO_LARGE:
        return set_refused(ret_try,
                           arena_printf(step->arena,
                                        "%s has a file of %" PRIu64 " bytes; at most %" PRIu64
                                        " bytes are fetched",
                                        host, step->announced, step->transfer->request->max_bytes));
    }
    return err_set(err, ERR_CANCELLED, "cancelled: no request waits for %s any more", host);
}

static enum err_code judge_failure(const struct step *step, enum err_code code, struct err *err,
                                   struct debuginfod_try *ret_try)
{
    char *reason = arena_strdup(step->arena, err->message);
    if (step->stop != STOP_NONE)
        return judge_stop(step, ret_try, err);
    if (code == ERR_TOO_LARGE && step->has_announced)
        return set_refused(ret_try, arena_printf(step->arena,
                                                 "%s sends more than the %" PRIu64
                                                 " bytes that it announced",
                                                 step->url->host, step->announced));
    if (code == ERR_TOO_LARGE || code == ERR_FORBIDDEN || code == ERR_INVALID)
        return set_refused(ret_try, reason);
    if (code == ERR_NETWORK || code == ERR_TIMEOUT || code == ERR_UNAUTHENTICATED)
        return set_unreachable(ret_try, code != ERR_UNAUTHENTICATED, reason);
    return code;
}

static bool is_elf(int fd)
{
    char magic[4];
    return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, "\177ELF", 4) == 0;
}

static enum err_code judge_file(const struct step *step,
                                const struct http_client_response *response,
                                struct debuginfod_try *ret_try)
{
    const char *host = step->url->host;
    if (step->has_announced && step->announced != response->response_bytes)
        return set_unreachable(ret_try, true,
                               arena_printf(step->arena, "%s sent %" PRIu64 " of %" PRIu64 " bytes",
                                            host, response->response_bytes, step->announced));
    if (step->transfer->request->kind != DEBUGINFOD_SECTION && !is_elf(step->transfer->fd))
        return set_refused(
            ret_try, arena_printf(step->arena, "%s sent a file that is not an ELF file", host));
    *ret_try =
        (struct debuginfod_try){.outcome = DEBUGINFOD_FOUND, .bytes = response->response_bytes};
    return ERR_NONE;
}

static enum err_code judge_status(const struct step *step,
                                  const struct http_client_response *response,
                                  struct debuginfod_try *ret_try)
{
    int status = response->status;
    char *reason = arena_printf(step->arena, "%s responds with status %d", step->url->host, status);
    if (status == 200)
        return judge_file(step, response, ret_try);
    if (status == 429 || status == 408 || status >= 500) {
        set_unreachable(ret_try, status != 429 && response->retry_after_s == 0, reason);
        ret_try->is_failure = status != 429;
        ret_try->retry_after_s = response->retry_after_s;
        return ERR_NONE;
    }
    if (status == 401 || status == 403)
        return set_refused(ret_try,
                           arena_printf(step->arena,
                                        "%s responds with status %d: it requires other credentials",
                                        step->url->host, status));
    if (status < 400)
        return set_refused(ret_try, reason);
    *ret_try = (struct debuginfod_try){.outcome = DEBUGINFOD_ABSENT, .reason = reason};
    return ERR_NONE;
}

/* ---- one request ---- */

/* Splits "Name: value"; it was validated when the upstream was set. */
static size_t make_fields(const struct step *step, const struct http_url *first,
                          struct http_client_field fields[1])
{
    const char *auth = step->transfer->auth;
    const char *colon = auth ? strchr(auth, ':') : NULL;
    if (!colon || !http_url_same_origin(step->url, first))
        return 0;
    fields[0].name = arena_strndup(step->arena, auth, (size_t)(colon - auth));
    fields[0].value = colon + 1 + strspn(colon + 1, " ");
    return 1;
}

static enum err_code send_request(struct step *step, const struct http_url *first,
                                  struct http_client_response *response, struct err *err)
{
    const struct debuginfod_client_settings *settings = step->transfer->settings;
    const struct http_client_settings client_settings = {
        .ca_file = settings->ca_file,
        .user_agent = settings->user_agent,
        .connect_timeout_ms = settings->connect_ms,
        .proxy = "",
        .may_connect = may_connect,
        .may_connect_context = step,
    };
    http_client_auto client = NULL;
    struct http_client_field fields[1];
    struct http_client_request request;
    int64_t left_ms = (step->transfer->deadline_ns - clock_monotonic_ns()) / CLOCK_NS_PER_MS;
    http_client_request_init(&request, "GET", step->url->text);
    request.fields = fields;
    request.field_count = make_fields(step, first, fields);
    request.accept_compressed = true;
    request.max_response_bytes = step->transfer->request->max_bytes;
    request.response_fd = step->transfer->fd;
    request.deadline_ms = left_ms > 1 ? left_ms : 1;
    request.head = on_head;
    request.progress = on_progress;
    request.head_context = request.progress_context = step;
    enum err_code code = http_client_create(&client_settings, &client, err);
    return code ? code : http_client_send(client, &request, response, err);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Resolves a redirect; if it is not allowed, returns false and the outcome. */
static bool resolve_redirect(const struct step *step, const struct http_client_response *response,
                             struct http_url *ret_next, struct debuginfod_try *ret_try)
{
    struct err err;
    struct span location = http_client_response_field(response, "Location");
    const char *text = arena_strndup(step->arena, location.data, location.size);
    enum err_code code = http_url_follow(step->arena, step->url, text, ret_next, &err);
    if (!code && strcmp(step->url->scheme, "https") == 0 && strcmp(ret_next->scheme, "https") != 0)
        code = err_set(&err, ERR_FORBIDDEN, "from https to http");
    if (!code)
        code = debuginfod_check_url(step->transfer->settings, ret_next, &err);
    if (code)
        set_refused(ret_try, arena_printf(step->arena, "%s redirects to a forbidden address: %s",
                                          step->url->host, err.message));
    return !code;
}

/* Sends one request. *ret_is_done is false when *url is now the next URL. */
static enum err_code take_step(const struct debuginfod_transfer *transfer, struct arena *arena,
                               const struct http_url *first, struct http_url *url, bool may_follow,
                               bool *ret_is_done, struct debuginfod_try *ret_try, struct err *err)
{
    struct step step = {.transfer = transfer,
                        .arena = arena,
                        .url = url,
                        .is_allowed = debuginfod_is_allowed(transfer->settings, url),
                        .start_ns = clock_monotonic_ns(),
                        .checked_ns = clock_monotonic_ns()};
    struct http_url next;
    struct http_client_response response;
    http_client_response_init(&response);
    *ret_is_done = true;
    enum err_code code = send_request(&step, first, &response, err);
    if (code == ERR_TOO_LARGE && response.status >= 400)
        code = ERR_NONE; /* the body of a redirect is not read */
    if (code)
        code = judge_failure(&step, code, err, ret_try);
    else if (!is_redirect(response.status))
        code = judge_status(&step, &response, ret_try);
    else if (!may_follow)
        set_refused(ret_try, arena_printf(arena, "%s redirects more than %d times", first->host,
                                          MAX_REDIRECTS));
    else if (resolve_redirect(&step, &response, &next, ret_try)) {
        *url = next;
        *ret_is_done = false;
    }
    http_client_response_fini(&response);
    return code;
}

enum err_code debuginfod_transfer_try(const struct debuginfod_transfer *transfer,
                                      struct arena *arena, struct debuginfod_try *ret_try,
                                      struct err *err)
{
    struct http_url first, url;
    enum err_code code = http_url_read(arena, transfer->url, &first, err);
    if (!code)
        code = debuginfod_check_url(transfer->settings, &first, err);
    if (code)
        return set_refused(ret_try, arena_strdup(arena, err->message));
    if (ftruncate(transfer->fd, 0) || lseek(transfer->fd, 0, SEEK_SET) < 0)
        return err_set_errno(err, ERR_IO, "emptying the temporary file");
    url = first;
    bool is_done = false;
    for (int i = 0; !code && !is_done; i++)
        code = take_step(transfer, arena, &first, &url, i < MAX_REDIRECTS, &is_done, ret_try, err);
    return code;
}
