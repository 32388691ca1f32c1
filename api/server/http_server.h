/*
 * http_server: the HTTP(S) server: accepts connections, runs route handlers, sends their responses.
 *
 * The wrapper of libh2o: h2o's types are used only in api/server/. N loop threads share the
 * listening sockets; a request is read completely (at most HTTP_MAX_BODY_BYTES), copied into its
 * own arena, matched against the routes of the options (api/server/route_match.h), and run on the
 * worker pool (api/core/worker.h), or on the loop with ROUTE_INLINE. The order for each request:
 * route, body limit, 404 limiter (which lets valid credentials through), auth_identify,
 * auth_check_access, disk_check if it stores data, change_limit_take, slots
 * (api/http/concurrency_limit.h), handler; an error from any of them becomes a problem document
 * (api/http/problem.h).
 *
 * Limits of connections: an address (IPv6: its /64) may have max_connections_per_address
 * connections, and all together max_connections, of which reserved_connections are for
 * authenticated clients and health checks. At a limit, the connection that has been waiting for
 * longest is closed for the new one, those without authentication first
 * (api/server/connection_table.h); each limit is logged at most once a minute. On a reserved
 * connection, a request without credentials that is neither a sign-in nor handled by a loop thread
 * nor a probe gets 503, and the connection ends after a response to an anonymous client. A site
 * (IPv6: its /48) that opens more connections than max_new_connections_per_address, of which it
 * may open those of a minute at once, is refused before the TLS handshake
 * (api/server/connection_rate.h).
 *
 * Limits of responses: the responses that peers have not read yet may hold max_buffered_bytes
 * together. Beyond that, large responses are replaced by a 503. While more than a quarter of these
 * bytes is held, a peer that reads a large response more slowly than 8 KiB/s is disconnected.
 * Requests beyond the pool's queue get 503 with Retry-After.
 *
 * Timeouts: a transfer has no deadline while bytes flow. A sweep reads TCP_INFO every second and
 * closes connections that are idle (60 s), whose request arrives too slowly (30 s below 64 B/s),
 * whose peer reads nothing (60 s) or has gone before its response began. A peer that closes only
 * its sending side counts as gone, too.
 *
 * HTTP/1 heads that two programs may read differently get 400 and the connection ends
 * (api/server/request_smuggling.h); a proxy in front that shares connections between clients must
 * be as strict.
 *
 * Uploads share max_buffered_bytes of unhandled input by address (IPv6: by its /48; behind a proxy
 * all clients have the address of the proxy):
 *   - While more than 3/4 of these bytes are in use, the uploads that hold more than 64 KiB form a
 *     queue: first the oldest upload of each address, then the second of each, and so on.
 *   - From the front of the queue, an upload continues if the free bytes suffice for the largest
 *     body; it must then bring 8 KiB/s. The uploads behind these are paused: nothing is read.
 *   - If an upload lacks memory while another address has more uploads in the queue, the youngest
 *     uploads of that address get 503 at once. So an address that fills the buffers with many
 *     uploads loses them to an address that sends one.
 *   - An upload that has been paused for slow_timeout_s, and has progressed by less than 8 KiB/s
 *     since it was first paused, gets 503.
 *   - Each loop has its own queue, and the first upload of each queue always continues. In the same
 *     way, a loop frees memory for the first upload of an address in another loop.
 *   - HTTP/2 streams cannot be paused: a connection whose upload lacks memory is closed.
 *
 * HTTP/2 is opt-in: libh2o 2.2.5 responds to an oversize body there with a stream reset instead of
 * 413, and has no fix for rapid reset, against which a connection is closed after 200 early
 * cancels.
 *
 * Threads: create, start, stop and destroy belong to one thread; http_server_reload may be called
 * from any thread, not from a signal handler.
 */
#ifndef API_SERVER_HTTP_SERVER_H
#define API_SERVER_HTTP_SERVER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct route_list;
struct server;

enum {
    HTTP_DOWNLOAD_THREADS = 16
}; /* for routes with ROUTE_DOWNLOAD: they wait for a disk or a
      bucket rather than use processors */

struct http_listener {
    int fd; /* bound and listening; closed by the server from http_server_create on */
    bool is_tls;
};

/* A member that is 0 gets the default in its comment; ingest_count has none. */
struct http_options {
    const struct route_list *routes; /* required; must outlive the server */
    const struct http_listener *listeners;
    size_t listener_count;
    const char *certificate_path; /* PEM chain; read again by http_server_reload */
    const char *key_path;         /* PEM */
    const char *access_log_path;  /* NULL: no access log; opened again by http_server_reload */
    const char *public_url; /* https and not localhost: responses carry HSTS, unless clients see the
                               local CA (api/http/local_ca.h) */
    bool enable_http2;      /* ALPN h2; off: HTTP/1.1 only */
    bool trust_forwarded_for;  /* behind our own proxy: the last X-Forwarded-For is the client */
    int loop_count;            /* min(cores, 4) */
    int ingest_count;          /* required: threads for routes with ROUTE_AGENT */
    int worker_count;          /* max(4, 2 * cores), at most 16 */
    int max_queued_requests;   /* 256 */
    size_t max_queued_bytes;   /* 128 MiB: bodies of queued, put aside and running requests */
    size_t max_buffered_bytes; /* 192 MiB for the input of all connections, and as much for the
                                  responses that peers have not read yet */
    int max_connections;       /* 4096 */
    int max_connections_per_address;     /* 0: a tenth of max_connections, but at least 16; with
                                            trust_forwarded_for no limit: all have the proxy's */
    int max_new_connections_per_address; /* per second, on average; 0: 32; with trust_forwarded_for
                                            no limit */
    int reserved_connections;            /* 0: a tenth of max_connections */
    int idle_timeout_s;                  /* 60 */
    int slow_timeout_s;                  /* 30; also for uploads that wait */
    int send_timeout_s;                  /* 60 */
    int handshake_timeout_s;             /* 10 */
};

/* Reads the certificate and creates all parts; nothing is accepted yet. server and what it points
 * to must outlive the result; server->metrics must exist. Copies the texts in options. Errors:
 * ERR_INVALID (certificate or key unusable), ERR_IO (access log). */
enum err_code http_server_create(struct server *server, const struct http_options *options,
                                 struct http_server **ret_http, struct err *err) MUST_USE;

/* Starts the loop threads and returns. */
enum err_code http_server_start(struct http_server *http, struct err *err) MUST_USE;

/* Loads the certificate again for new connections and reopens the access log. On failure the old
 * ones stay in use and the error states why. Errors: ERR_INVALID, ERR_IO. */
enum err_code http_server_reload(struct http_server *http, struct err *err) MUST_USE;

/* Stops accepting, makes /readyz respond with 503, lets requests in flight finish for at most
 * deadline_ms, then closes the remaining connections. The threads end in http_server_destroy.
 * Returns true if nothing was aborted; a second call does nothing and returns the same. */
bool http_server_stop(struct http_server *http, int deadline_ms);

/* NULL is a no-op. Stops with deadline 0 if it still runs. */
void http_server_destroy(struct http_server *http);

/* True from the start of http_server_stop on: long handlers may use it to abort early. */
bool http_server_is_stopping(const struct http_server *http);

/* The last successful check of /readyz, and its context. Stored here for health.c. */
struct http_readiness {
    _Atomic bool is_database_up;    /* at the last check by the metrics */
    _Atomic int64_t found_ns;       /* monotonic; 0: never */
    _Atomic uint64_t failure_count; /* of the database's pools, read before the check */
};
struct http_readiness *http_server_readiness(struct http_server *http);

#endif
