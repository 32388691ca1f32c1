#include "lib/io/http_client.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

enum {
    DEFAULT_CONNECT_TIMEOUT_MS = 15000,
    DEFAULT_STALL_TIMEOUT_S = 60,
    STALL_BYTES_PER_S = 64, /* a transfer that is slower counts as stalled */
    MAX_RETRY_AFTER_S = 86400,
    MAX_FIELD_BYTES = 256 << 10, /* all header lines of one response */
    PROGRESS_MS = 100,
    SLOW_AFTER_MS = 2000, /* see min_bytes_per_s */
    /* including those of interim and redirecting responses before it */
    MAX_HEADER_BYTES = 1 << 20,
    DEFAULT_RESPONSE_BYTES = 64 << 20,
    MAX_CA_BYTES = 16 << 20, /* a system's bundle has 200 to 300 KB */
};

struct http_client {
    CURL *curl;
    CURLM *multi; /* only for that handle; keeps its connections */
    struct http_client_settings settings;
    char *ca_file;
    struct buf cas; /* with keeps_system_cas: the system's bundle and ca_file */
    char *user_agent;
    char *proxy;
};

/* What the transfer does now. PHASE_NONE: neither, for example while the peer processes the
 * request. */
enum phase { PHASE_NONE, PHASE_SENDING, PHASE_RECEIVING };

/* The state of a running request, shared by the callbacks. */
struct transfer {
    CURL *curl;
    const struct http_client *client;
    const struct http_client_request *request;
    struct http_client_response *response;
    uint64_t read_at; /* position in the request's body */
    uint64_t max_response_bytes;
    int file_errno; /* errno of reading the body or writing response_fd; 0: no failure */
    size_t header_bytes;
    bool is_too_large;
    bool has_long_header;
    bool has_called_head; /* request->head was called */
    bool was_stopped;     /* by request->head */
    bool was_refused;
    enum phase phase;
    int64_t phase_ns; /* when it began; monotonic */
};

void http_client_request_init(struct http_client_request *request, const char *method,
                              const char *url)
{
    *request = (struct http_client_request){.method = method,
                                            .url = url,
                                            .body_fd = HTTP_CLIENT_NO_FD,
                                            .response_fd = HTTP_CLIENT_NO_FD};
}

void http_client_response_init(struct http_client_response *response)
{
    *response = (struct http_client_response){0};
    buf_init(&response->body, DEFAULT_RESPONSE_BYTES);
    buf_init(&response->fields, MAX_FIELD_BYTES);
}

void http_client_response_fini(struct http_client_response *response)
{
    buf_fini(&response->body);
    buf_fini(&response->fields);
}

struct span http_client_response_field(const struct http_client_response *response,
                                       const char *name)
{
    size_t name_size = strlen(name);
    struct span rest = buf_span(&response->fields), line;
    while (span_take_line(&rest, &line)) {
        if (line.size > name_size && line.data[name_size] == ':' &&
            strncasecmp((const char *)line.data, name, name_size) == 0)
            return span_trim(span_of(line.data + name_size + 1, line.size - name_size - 1));
    }
    return span_of(NULL, 0);
}

int64_t http_client_response_date(const struct http_client_response *response)
{
    char text[64];
    struct span field = http_client_response_field(response, "Date");
    if (field.size == 0 || field.size >= sizeof(text))
        return 0;
    memcpy(text, field.data, field.size);
    text[field.size] = '\0';
    time_t seconds = curl_getdate(text, NULL);
    return seconds > 0 ? seconds : 0;
}

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Joins the system's bundle and ca_file, because libcurl takes one bundle: CURLOPT_CAINFO would
 * replace the system's, which may be its only source of CAs. */
static enum err_code join_system_cas(struct http_client *client, struct err *err)
{
    char *system_file = NULL;
    buf_init(&client->cas, MAX_CA_BYTES);
    if (!client->ca_file || !client->settings.keeps_system_cas)
        return ERR_NONE;
    curl_easy_getinfo(client->curl, CURLINFO_CAINFO, &system_file);
    return http_client_join_cas(system_file, client->ca_file, &client->cas, err);
}

enum err_code http_client_create(const struct http_client_settings *settings,
                                 struct http_client **ret_client, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_curl);
    if (settings->ca_file && access(settings->ca_file, R_OK))
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                             "reading the CA file %s", settings->ca_file);
    CURL *curl = curl_easy_init();
    CURLM *multi = curl_multi_init();
    if (!curl || !multi) {
        curl_easy_cleanup(curl);
        curl_multi_cleanup(multi);
        return err_set(err, ERR_INTERNAL, "libcurl cannot be started");
    }
    struct http_client *client = mem_new(struct http_client, 1);
    client->curl = curl;
    client->multi = multi;
    client->settings = *settings;
    client->ca_file = settings->ca_file ? mem_strdup(settings->ca_file) : NULL;
    client->user_agent = mem_strdup(settings->user_agent ? settings->user_agent : "perfolio");
    client->proxy = settings->proxy ? mem_strdup(settings->proxy) : NULL;
    const enum err_code code = join_system_cas(client, err);
    if (code) {
        http_client_destroy(client);
        return code;
    }
    *ret_client = client;
    return ERR_NONE;
}

void http_client_destroy(struct http_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    curl_multi_cleanup(client->multi);
    mem_free(client->ca_file);
    buf_fini(&client->cas);
    mem_free(client->user_agent);
    mem_free(client->proxy);
    mem_free(client);
}

static size_t on_read(char *space, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const struct http_client_request *request = transfer->request;
    uint64_t left = request->body_bytes - transfer->read_at;
    size_t wanted = size * count < left ? size * count : (size_t)left;
    if (wanted == 0)
        return 0;
    if (request->body_kind == HTTP_CLIENT_BODY_BYTES) {
        memcpy(space, request->body.data + transfer->read_at, wanted);
        transfer->read_at += wanted;
        return wanted;
    }
    ssize_t taken =
        pread(request->body_fd, space, wanted, (off_t)(request->body_offset + transfer->read_at));
    if (taken <= 0) { /* a file that was truncated would otherwise hang the request */
        transfer->file_errno = taken < 0 ? errno : ENODATA;
        return CURL_READFUNC_ABORT;
    }
    transfer->read_at += (uint64_t)taken;
    return (size_t)taken;
}

static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct transfer *transfer = context;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->request->body_bytes)
        return CURL_SEEKFUNC_FAIL;
    transfer->read_at = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

static size_t on_write(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    size_t bytes = size * count;
    if (bytes > transfer->max_response_bytes - transfer->response->response_bytes) {
        transfer->is_too_large = true;
        return 0;
    }
    transfer->response->response_bytes += bytes;
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    int fd = transfer->request->response_fd;
    if (fd == HTTP_CLIENT_NO_FD || status < 200 || status > 299) {
        buf_append(&transfer->response->body, data, bytes);
        return bytes;
    }
    if (write_all(fd, data, bytes))
        return bytes;
    transfer->file_errno = errno;
    return 0;
}

/* Calls request->head once the header is complete. */
static bool call_head(struct transfer *transfer)
{
    const struct http_client_request *request = transfer->request;
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!request->head || status < 200 || transfer->has_called_head)
        return true;
    transfer->has_called_head = true; /* trailers after a chunked body are not a header */
    transfer->response->status = (int)status;
    transfer->was_stopped =
        !request->head(request->head_context, transfer->response, &transfer->max_response_bytes);
    return !transfer->was_stopped;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct buf *fields = &transfer->response->fields;
    struct span line = span_of(data, size * count);
    if (span_starts_with(line, "HTTP/"))
        buf_clear(fields); /* an interim or redirecting response preceded */
    else
        buf_append_span(fields, line);
    transfer->header_bytes += line.size;
    transfer->has_long_header = buf_failed(fields) || transfer->header_bytes > MAX_HEADER_BYTES;
    if (transfer->has_long_header)
        return 0;
    return span_trim(line).size > 0 || call_head(transfer) ? line.size : 0;
}

/* For a request with a body, libcurl reports the time at which it sent the first byte as the time
 * of the first byte received. The response to such a request begins with its first line instead. */
static bool has_response_begun(const struct transfer *transfer, uint64_t received)
{
    curl_off_t first_byte_us = 0;
    if (transfer->request->body_bytes == 0)
        curl_easy_getinfo(transfer->curl, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
    return first_byte_us > 0 || transfer->header_bytes > 0 || received > 0;
}

static enum phase find_phase(const struct transfer *transfer, uint64_t sent, uint64_t received)
{
    curl_off_t connected_us = 0;
    if (has_response_begun(transfer, received))
        return PHASE_RECEIVING;
    curl_easy_getinfo(transfer->curl, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    return connected_us > 0 && sent < transfer->request->body_bytes ? PHASE_SENDING : PHASE_NONE;
}

/* libcurl's own speed limit accepts one byte per second as progress, and does not count the
 * response's header. */
static bool is_too_slow(struct transfer *transfer, uint64_t sent, uint64_t received)
{
    const uint64_t min_bytes_per_s = transfer->request->min_bytes_per_s;
    if (!min_bytes_per_s)
        return false;
    const enum phase phase = find_phase(transfer, sent, received);
    const int64_t now_ns = clock_monotonic_ns();
    if (phase != transfer->phase) {
        transfer->phase = phase;
        transfer->phase_ns = now_ns;
    }
    const uint64_t bytes = phase == PHASE_RECEIVING ? transfer->header_bytes + received : sent;
    return phase != PHASE_NONE && (now_ns - transfer->phase_ns) / CLOCK_NS_PER_MS >
                                      SLOW_AFTER_MS + (int64_t)(bytes * 1000 / min_bytes_per_s);
}

static int on_progress(void *context, curl_off_t receive_total, curl_off_t received,
                       curl_off_t send_total, curl_off_t sent)
{
    struct transfer *transfer = context;
    const struct http_client_request *request = transfer->request;
    transfer->response->was_too_slow = is_too_slow(transfer, (uint64_t)sent, (uint64_t)received);
    if (transfer->response->was_too_slow)
        return 1;
    if (!request->progress)
        return 0;
    return !request->progress(request->progress_context, (uint64_t)sent, (uint64_t)send_total,
                              (uint64_t)received, (uint64_t)receive_total);
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    struct transfer *transfer = context;
    const struct http_client_settings *settings = &transfer->client->settings;
    (void)purpose;
    if (settings->may_connect &&
        !settings->may_connect(settings->may_connect_context, &address->addr)) {
        transfer->was_refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool is_field_text(const char *text)
{
    for (; *text; text++) {
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    }
    return true;
}

static enum err_code make_field_list(const struct http_client_request *request,
                                     struct curl_slist **ret_list, struct err *err)
{
    struct curl_slist *list = NULL;
    buf_auto line;
    buf_init(&line, MAX_FIELD_BYTES);
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_client_field *field = &request->fields[i];
        if (!is_field_text(field->name) || (field->value && !is_field_text(field->value))) {
            curl_slist_free_all(list);
            return err_set(err, ERR_INVALID,
                           "the header field %.40s would hold a control character", field->name);
        }
        buf_clear(&line);
        if (!field->value)
            buf_printf(&line, "%s:", field->name);
        /* libcurl writes "Name;" as a field without value; "Name:" would suppress the field. */
        else
            buf_printf(&line, field->value[0] ? "%s: %s" : "%s;%s", field->name, field->value);
        buf_append_byte(&line, 0);
        if (!buf_failed(&line))
            list = curl_slist_append(list, (const char *)line.data);
    }
    *ret_list = list;
    return ERR_NONE;
}

static void set_body(CURL *curl, const struct http_client_request *request,
                     struct transfer *transfer)
{
    bool is_bodyless = request->body_kind == HTTP_CLIENT_BODY_NONE &&
                       strcmp(request->method, "POST") != 0 && strcmp(request->method, "PUT") != 0;
    if (strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (is_bodyless) {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    } else {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_bytes);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(curl, CURLOPT_READDATA, transfer);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, transfer);
    }
}

/* If the TLS library accepts no bundle from memory, it gets the file and the system's directory. */
static void set_cas(CURL *curl, const struct http_client *client)
{
    struct curl_blob blob = {
        .data = client->cas.data, .len = client->cas.size, .flags = CURL_BLOB_NOCOPY};
    if (client->settings.keeps_system_cas &&
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob) == CURLE_OK)
        return;
    curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
    if (!client->settings.keeps_system_cas)
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* this file instead of the system's */
}

static void set_policy(CURL *curl, const struct http_client *client)
{
    const struct http_client_settings *settings = &client->settings;
    int connect_ms =
        settings->connect_timeout_ms ? settings->connect_timeout_ms : DEFAULT_CONNECT_TIMEOUT_MS;
    int stall_s = settings->stall_timeout_s ? settings->stall_timeout_s : DEFAULT_STALL_TIMEOUT_S;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)stall_s);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, settings->max_redirects ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)settings->max_redirects);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, client->user_agent);
    if (client->proxy)
        curl_easy_setopt(curl, CURLOPT_PROXY, client->proxy);
    if (client->ca_file)
        set_cas(curl, client);
}

/* Appends "https://host:port" of a URL for messages: paths and user information may contain
 * secrets. */
static void append_origin(struct buf *text, const char *url)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0)) {
        buf_printf(text, "%s://%s", scheme, host);
        if (!curl_url_get(parts, CURLUPART_PORT, &port, 0))
            buf_printf(text, ":%s", port);
    } else {
        buf_append_text(text, "the given URL");
    }
    buf_append_byte(text, 0);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
}

static enum err_code describe_failure(const struct transfer *transfer, CURLcode result,
                                      const char *detail, struct err *err)
{
    buf_auto origin_text;
    buf_init(&origin_text, 4096);
    append_origin(&origin_text, transfer->request->url);
    const char *origin = buf_failed(&origin_text) ? "the server" : (const char *)origin_text.data;
    if (!detail[0])
        detail = curl_easy_strerror(result);
    if (transfer->is_too_large)
        return err_set(err, ERR_TOO_LARGE, "the response of %s is larger than %llu bytes", origin,
                       (unsigned long long)transfer->max_response_bytes);
    if (transfer->has_long_header)
        return err_set(err, ERR_TOO_LARGE, "the response of %s has a header of more than %d bytes",
                       origin, MAX_FIELD_BYTES);
    if (transfer->was_stopped)
        return err_set(err, ERR_CANCELLED, "the request to %s was cancelled", origin);
    if (transfer->response->was_too_slow)
        return err_set(err, ERR_TIMEOUT, "%s is too slow: less than %llu bytes per second", origin,
                       (unsigned long long)transfer->request->min_bytes_per_s);
    if (transfer->was_refused)
        return err_set(err, ERR_FORBIDDEN, "%s is at an address that may not be connected to",
                       origin);
    if (transfer->file_errno) {
        errno = transfer->file_errno;
        return err_set_errno(err, ERR_IO,
                             result == CURLE_WRITE_ERROR ? "writing what was received"
                                                         : "reading what is to be sent");
    }
    switch ((int)result) {
    case CURLE_ABORTED_BY_CALLBACK:
        return err_set(err, ERR_CANCELLED, "the request to %s was cancelled", origin);
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, ERR_TIMEOUT, "%s does not respond: %s", origin, detail);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(err, ERR_INVALID, "not a usable http or https URL: %s", detail);
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(err, ERR_IO, "the CA file %s is not usable: %s",
                       transfer->client->ca_file ? transfer->client->ca_file : "of the system",
                       detail);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(err, ERR_UNAUTHENTICATED, "the certificate of %s is not trusted: %s", origin,
                       detail);
    case CURLE_GOT_NOTHING:
        return err_set(err, ERR_NETWORK,
                       "cannot talk to %s: it closed the connection without a response%s", origin,
                       strncasecmp(transfer->request->url, "http://", 7) == 0
                           ? " (if it expects TLS, use https)"
                           : "");
    default:
        return err_set(err, ERR_NETWORK, "cannot talk to %s: %s", origin, detail);
    }
}

/* Reads status, Retry-After and whether anything was sent from libcurl. */
static void read_outcome(CURL *curl, struct http_client_response *response)
{
    long status = 0, request_size = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &request_size);
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after);
    response->status = (int)status;
    response->was_sent = request_size > 0;
    long connect_errno = 0; /* of the last connection that failed */
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &connect_errno);
    response->was_refused =
        !response->status && !response->was_sent && connect_errno == ECONNREFUSED;
    if (retry_after < 0)
        retry_after = 0;
    response->retry_after_s =
        retry_after > MAX_RETRY_AFTER_S ? MAX_RETRY_AFTER_S : (int)retry_after;
}

/*
 * Replaces curl_easy_perform, which calls the progress function only once a second while a request
 * waits for its response: too seldom to give up within two seconds.
 */
static CURLcode perform(const struct http_client *client)
{
    CURLcode result = CURLE_FAILED_INIT;
    int running_count = 1, left_count;
    if (curl_multi_add_handle(client->multi, client->curl))
        return result;
    while (running_count && !curl_multi_perform(client->multi, &running_count))
        if (running_count && curl_multi_poll(client->multi, NULL, 0, PROGRESS_MS, NULL))
            break;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left_count));)
        if (message->msg == CURLMSG_DONE)
            result = message->data.result;
    curl_multi_remove_handle(client->multi, client->curl);
    return result;
}

enum err_code http_client_send(struct http_client *client,
                               const struct http_client_request *request,
                               struct http_client_response *response, struct err *err)
{
    CURL *curl = client->curl;
    struct http_client_request sized = *request;
    if (sized.body_kind == HTTP_CLIENT_BODY_BYTES)
        sized.body_bytes = sized.body.size;
    else if (sized.body_kind == HTTP_CLIENT_BODY_NONE)
        sized.body_bytes = 0;
    struct transfer transfer = {
        .curl = curl,
        .client = client,
        .request = &sized,
        .response = response,
        .max_response_bytes =
            request->max_response_bytes ? request->max_response_bytes : DEFAULT_RESPONSE_BYTES,
    };
    response->status = 0;
    response->retry_after_s = 0;
    response->was_sent = false;
    response->was_refused = false;
    response->was_too_slow = false;
    response->was_too_large = false;
    response->response_bytes = 0;
    buf_clear(&response->fields);
    buf_clear(&response->body);
    response->body.max_size = (size_t)transfer.max_response_bytes + 1; /* 1: the NUL after it */

    struct curl_slist *fields = NULL;
    enum err_code code = make_field_list(request, &fields, err);
    if (code)
        return code;
    char detail[CURL_ERROR_SIZE] = "";
    curl_easy_reset(curl); /* resets options only; the connection stays open */
    set_policy(curl, client);
    set_body(curl, &sized, &transfer);
    curl_easy_setopt(curl, CURLOPT_URL, request->url);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->deadline_ms);
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, request->must_not_repeat ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, request->accept_compressed ? "" : NULL);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
    const CURLcode result = perform(client);
    curl_slist_free_all(fields);
    read_outcome(curl, response);
    response->was_too_large = transfer.is_too_large || transfer.has_long_header;
    buf_append_byte(&response->body, 0);
    if (!buf_failed(&response->body))
        response->body.size--;
    return result == CURLE_OK ? ERR_NONE : describe_failure(&transfer, result, detail, err);
}
