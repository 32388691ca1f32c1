#include "agent/ops/http_monitor.h"

#include "agent/process/capabilities.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 16,
    HEAD_MAX_BYTES = 8192,
    REQUEST_MS = 2000,
    METRICS_MAX_BYTES = 1 << 20,
    RESPONSE_MAX_BYTES = METRICS_MAX_BYTES + 4096,
};

#define HEALTHY_NS (30 * CLOCK_NS_PER_S)
#define UNIX_PREFIX "unix:"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

struct http_monitor {
    int listener;
    int ending; /* an eventfd that ends the thread */
    char *path; /* of a unix socket; NULL: it is a port */
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the following members */
    struct buf metrics;
    int64_t published_ns;
};

/* ---- addresses ---- */

static bool read_port(struct span text, in_port_t *ret_port)
{
    uint64_t port;
    if (!span_parse_u64(text, &port) || port > UINT16_MAX)
        return false;
    *ret_port = htons((uint16_t)port);
    return true;
}

/* Parses an address and returns its size; 0: it is not allowed. */
static socklen_t read_address(const char *text, union address *ret_address)
{
    static const char v4[] = "127.0.0.1:", v6[] = "[::1]:";
    const struct span span = span_text(text);
    *ret_address = (union address){0};
    if (span_starts_with(span, v4)) {
        ret_address->v4.sin_family = AF_INET;
        ret_address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return read_port(span_text(text + sizeof(v4) - 1), &ret_address->v4.sin_port)
                   ? sizeof(ret_address->v4)
                   : 0;
    }
    if (span_starts_with(span, v6)) {
        ret_address->v6.sin6_family = AF_INET6;
        ret_address->v6.sin6_addr = in6addr_loopback;
        return read_port(span_text(text + sizeof(v6) - 1), &ret_address->v6.sin6_port)
                   ? sizeof(ret_address->v6)
                   : 0;
    }
    const char *path = text + sizeof(UNIX_PREFIX) - 1;
    if (!span_starts_with(span, UNIX_PREFIX "/") ||
        strlen(path) >= sizeof(ret_address->local.sun_path))
        return 0;
    ret_address->local.sun_family = AF_UNIX;
    snprintf(ret_address->local.sun_path, sizeof(ret_address->local.sun_path), "%s", path);
    return sizeof(ret_address->local);
}

/* Removes a socket on which no process listens any more; any other file stays. */
static void remove_left_behind(const union address *address)
{
    fd_auto fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &address->any, sizeof(address->local)) && errno == ECONNREFUSED)
        (void)os_unlinkat(AT_FDCWD, address->local.sun_path);
}

enum err_code http_monitor_check(const char *text, struct err *err)
{
    union address ignored;
    if (read_address(text, &ignored))
        return ERR_NONE;
    return err_set(err, ERR_INVALID,
                   "metrics must be 127.0.0.1:PORT, [::1]:PORT or unix:/PATH, not %s", text);
}

static enum err_code listen_at(struct http_monitor *monitor, const char *text, struct err *err)
{
    union address address;
    const int yes = 1;
    const enum err_code code = http_monitor_check(text, err);
    if (code)
        return code;
    socklen_t size = read_address(text, &address);
    if (address.any.sa_family == AF_UNIX)
        remove_left_behind(&address);
    monitor->listener =
        socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (monitor->listener < 0)
        return err_set_errno(err, ERR_IO, "a socket for metrics");
    (void)setsockopt(monitor->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(monitor->listener, &address.any, size))
        return err_set_errno(err, ERR_IO, "listening at %s", text);
    if (address.any.sa_family == AF_UNIX)
        monitor->path = mem_strdup(address.local.sun_path);
    if (listen(monitor->listener, BACKLOG) || getsockname(monitor->listener, &address.any, &size))
        return err_set_errno(err, ERR_IO, "listening at %s", text);
    if (monitor->path)
        log_event(LOG_INFO, "metrics", "socket=%s", monitor->path);
    else /* sin_port and sin6_port have the same offset */
        log_event(LOG_INFO, "metrics", "port=%u", ntohs(address.v4.sin_port));
    return ERR_NONE;
}

/* ---- requests ---- */

enum http_monitor_response http_monitor_read_request(struct span head)
{
    struct span line, method, rest, target, version, path, query;
    if (!span_take_line(&head, &line) || !span_split(line, ' ', &method, &rest) ||
        !span_split(rest, ' ', &target, &version) || !span_starts_with(version, "HTTP/1.") ||
        !span_starts_with(target, "/"))
        return HTTP_MONITOR_RESPONSE_BAD_REQUEST;
    path = target;
    (void)span_split(target, '?', &path, &query);
    const bool is_metrics = span_equal_text(path, "/metrics");
    if (!is_metrics && !span_equal_text(path, "/healthz"))
        return HTTP_MONITOR_RESPONSE_NOT_FOUND;
    if (!span_equal_text(method, "GET"))
        return HTTP_MONITOR_RESPONSE_OTHER_METHOD;
    return is_metrics ? HTTP_MONITOR_RESPONSE_METRICS : HTTP_MONITOR_RESPONSE_HEALTH;
}

/* Waits until fd is ready, until_ns, or the end of the thread. False: fd is not ready. */
static bool wait_for(const struct http_monitor *monitor, int fd, short events, int64_t until_ns)
{
    struct pollfd polled[] = {{.fd = fd, .events = events},
                              {.fd = monitor->ending, .events = POLLIN}};
    for (;;) {
        const int64_t left_ms = (until_ns - clock_monotonic_ns()) / CLOCK_NS_PER_MS;
        if (left_ms <= 0)
            return false;
        const int count = poll(polled, 2, (int)left_ms);
        if (count > 0)
            return !polled[1].revents;
        if (count < 0 && errno != EINTR)
            return false;
    }
}

static bool has_end(struct span head)
{
    return span_ends_with(head, "\r\n\r\n") || span_ends_with(head, "\n\n");
}

/* Reads a request; false: none arrived in time. */
static bool receive(const struct http_monitor *monitor, int fd, int64_t until_ns, struct buf *head)
{
    char bytes[1024];
    while (!has_end(buf_span(head))) {
        if (!wait_for(monitor, fd, POLLIN, until_ns))
            return false;
        const ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (size <= 0)
            return false;
        buf_append(head, bytes, (size_t)size);
        if (buf_failed(head))
            return false;
    }
    return true;
}

static void send_all(const struct http_monitor *monitor, int fd, int64_t until_ns,
                     struct span bytes)
{
    while (bytes.size && wait_for(monitor, fd, POLLOUT, until_ns)) {
        const ssize_t size = send(fd, bytes.data, bytes.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (size <= 0)
            return;
        bytes = span_of(bytes.data + size, bytes.size - (size_t)size);
    }
}

static void append_response(struct buf *output, const char *status, const char *header,
                            struct span body)
{
    buf_printf(output,
               "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
               "Content-Length: %zu\r\nCache-Control: no-store\r\n%sConnection: close\r\n\r\n",
               status, body.size, header);
    buf_append_span(output, body);
}

static void make_response(struct http_monitor *monitor, struct span head, struct buf *output)
{
    const enum http_monitor_response kind = http_monitor_read_request(head);
    pthread_mutex_lock(&monitor->mutex);
    const bool is_healthy = clock_monotonic_ns() - monitor->published_ns < HEALTHY_NS;
    if (kind == HTTP_MONITOR_RESPONSE_METRICS)
        append_response(output, "200 OK", "", buf_span(&monitor->metrics));
    pthread_mutex_unlock(&monitor->mutex);
    if (kind == HTTP_MONITOR_RESPONSE_HEALTH && is_healthy)
        append_response(output, "200 OK", "", SPAN_LITERAL("ok\n"));
    else if (kind == HTTP_MONITOR_RESPONSE_HEALTH)
        append_response(output, "503 Service Unavailable", "",
                        SPAN_LITERAL("the agent makes no progress\n"));
    else if (kind == HTTP_MONITOR_RESPONSE_NOT_FOUND)
        append_response(output, "404 Not Found", "",
                        SPAN_LITERAL("only /metrics and /healthz are served\n"));
    else if (kind == HTTP_MONITOR_RESPONSE_OTHER_METHOD)
        append_response(output, "405 Method Not Allowed", "Allow: GET\r\n",
                        SPAN_LITERAL("only GET is allowed\n"));
    else if (kind == HTTP_MONITOR_RESPONSE_BAD_REQUEST)
        append_response(output, "400 Bad Request", "", SPAN_LITERAL("not an HTTP/1.1 request\n"));
}

static void serve_connection(struct http_monitor *monitor, int fd)
{
    const int64_t until_ns = clock_monotonic_ns() + REQUEST_MS * CLOCK_NS_PER_MS;
    buf_auto head, output;
    buf_init(&head, HEAD_MAX_BYTES);
    buf_init(&output, RESPONSE_MAX_BYTES);
    if (!receive(monitor, fd, until_ns, &head))
        return;
    make_response(monitor, buf_span(&head), &output);
    send_all(monitor, fd, until_ns, buf_span(&output));
}

static void *run_thread(void *context)
{
    struct http_monitor *monitor = context;
    struct pollfd polled[] = {{.fd = monitor->listener, .events = POLLIN},
                              {.fd = monitor->ending, .events = POLLIN}};
    (void)capabilities_keep(0);
    while (!polled[1].revents) {
        if (poll(polled, 2, -1) <= 0 || !polled[0].revents)
            continue;
        fd_auto fd = accept4(monitor->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            serve_connection(monitor, fd);
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            clock_sleep_ms(100); /* no descriptors are left; the loop would otherwise spin */
    }
    return NULL;
}

/* ---- life ---- */

static void free_monitor(struct http_monitor *monitor)
{
    if (monitor->path)
        (void)os_unlinkat(AT_FDCWD, monitor->path);
    os_close(monitor->listener);
    os_close(monitor->ending);
    pthread_mutex_destroy(&monitor->mutex);
    buf_fini(&monitor->metrics);
    mem_free(monitor->path);
    mem_free(monitor);
}

enum err_code http_monitor_start(const char *address, struct http_monitor **ret_monitor,
                                 struct err *err)
{
    struct http_monitor *monitor = mem_new(struct http_monitor, 1);
    monitor->listener = -1;
    monitor->ending = eventfd(0, EFD_CLOEXEC);
    monitor->published_ns = clock_monotonic_ns();
    buf_init(&monitor->metrics, METRICS_MAX_BYTES);
    pthread_mutex_init(&monitor->mutex, NULL);
    enum err_code code = monitor->ending < 0 ? err_set_errno(err, ERR_IO, "metrics")
                                             : listen_at(monitor, address, err);
    if (!code && pthread_create(&monitor->thread, NULL, run_thread, monitor))
        code = err_set(err, ERR_IO, "a thread for metrics cannot be started");
    if (code) {
        free_monitor(monitor);
        return code;
    }
    *ret_monitor = monitor;
    return ERR_NONE;
}

void http_monitor_stop(struct http_monitor *monitor)
{
    if (!monitor)
        return;
    (void)eventfd_write(monitor->ending, 1);
    pthread_join(monitor->thread, NULL);
    free_monitor(monitor);
}

void http_monitor_publish(struct http_monitor *monitor, struct span metrics)
{
    pthread_mutex_lock(&monitor->mutex);
    buf_clear(&monitor->metrics);
    buf_append_span(&monitor->metrics, metrics);
    monitor->published_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&monitor->mutex);
}
