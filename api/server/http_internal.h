/*
 * http_internal: the types and functions that the files using h2o share; no other file includes it.
 *
 * Threads: a loop, its connections and its h2o requests belong to that loop's thread. A job is
 * passed to a worker and comes back by message; in between the loop uses only the members that are
 * marked as the loop's. See the comments of the members.
 */
#ifndef API_SERVER_HTTP_INTERNAL_H
#define API_SERVER_HTTP_INTERNAL_H

#include "api/core/worker.h"
#include "api/http/request.h"
#include "api/server/connection_rate.h"
#include "api/server/connection_table.h"
#include "api/server/http_server.h"
#include "api/server/response_memory.h"
#include "lib/base/err.h"

#include <h2o.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct access_log;
struct metric;

enum {
    HTTP_CHUNK_BYTES = 256 << 10,    /* of a response, passed to h2o at once */
    HTTP_STEAL_BYTES = 64 << 10,     /* larger bodies are taken over instead of copied */
    HTTP_MMAP_BYTES = 512 << 10,     /* the allocator maps larger blocks separately from its heap */
    HTTP_MAX_EARLY_CANCELS = 200,    /* HTTP/2: per connection, before it is closed */
    HTTP_LINGER_MS = 3000,           /* how long further input is discarded after an early error */
    HTTP_RECEIVE_BUFFER = 128 << 10, /* the kernel doubles it; 5 MB/s at 50 ms */
    HTTP_MIN_BYTES_PER_S = 64,
    HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE = 8 << 10,
    HTTP_PRESSURE_FREE_BYTES = 64 << 10,  /* connections that hold less are never paused */
    HTTP_LARGE_RESPONSE_BYTES = 64 << 10, /* responses that hold more count against the cap */
    HTTP_LOG_TEXT_BYTES = 1024, /* logged of each of the four texts from the client; four times as
                                   much when escaped */
};

enum http_refusal {
    REFUSED_CONNECTIONS, /* beyond max_connections */
    REFUSED_ADDRESS,     /* beyond max_connections_per_address: the new or the longest waiting
                            connection */
    REFUSED_RATE,        /* beyond max_new_connections_per_address */
    REFUSED_KEYS,        /* changes its keys again and again */
    REFUSED_EVICTED,     /* the longest waiting one, when a new one came at max_connections */
    REFUSED_IDLE,
    REFUSED_SLOW,
    REFUSED_UNREAD, /* the peer does not read the response */
    REFUSED_CANCELS,
    REFUSED_BUFFERS, /* beyond the buffer cap: waited for too long, or other addresses have fewer
                        uploads */
    REFUSED_GONE,    /* HTTP/1: the peer left while its request waited or ran */
    REFUSAL_COUNT
};

/* Limits that are logged when they are reached. */
enum http_limit {
    HTTP_LIMIT_CONNECTIONS,
    HTTP_LIMIT_CONNECTIONS_PER_ADDRESS,
    HTTP_LIMIT_NEW_CONNECTIONS_PER_ADDRESS,
    HTTP_LIMIT_RESERVED_CONNECTIONS,
    HTTP_LIMIT_COUNT
};

struct http_loop {
    struct http_server *http;
    pthread_t thread;
    bool is_started;
    h2o_context_t context;
    h2o_accept_ctx_t accept_tls;
    h2o_accept_ctx_t accept_plain;
    h2o_multithread_receiver_t receiver; /* struct http_message */
    h2o_socket_t **listeners;            /* options.listener_count of them; NULL once closed */
    h2o_linklist_t connections;          /* struct http_connection, oldest first */
    h2o_linklist_t lingering;            /* struct http_lingering */
    atomic_bool has_evictions;           /* connections of this loop have been evicted */
    _Atomic size_t buffered_bytes;       /* input of this loop's connections, at the last check */
    _Atomic size_t wanted_bytes; /* that the first upload of wanted_by lacks, for other loops */
    _Atomic uint64_t wanted_by;  /* its address, as in struct http_connection */
    bool is_filling;             /* more than half of this loop's share of the cap is in use */
    int64_t next_look_ns;
    int64_t next_sweep_ns;
    uint64_t random_state; /* of request ids */
    bool is_draining;
    bool is_cut; /* the deadline passed: close everything */
    bool is_ending;
};

enum http_message_kind {
    MESSAGE_RESPONSE,
    MESSAGE_CERTIFICATE,
    MESSAGE_EVICTIONS, /* wakes the loop: has_evictions is set */
    MESSAGE_DRAIN,
    MESSAGE_CUT,
    MESSAGE_END
};

struct http_message {
    h2o_multithread_message_t link;
    enum http_message_kind kind;
    SSL_CTX *tls; /* MESSAGE_CERTIFICATE: one reference */
};

struct http_connection {
    h2o_linklist_t link;
    struct http_loop *loop;
    h2o_socket_t *sock;
    int fd;
    h2o_linklist_t jobs; /* struct http_job, linked by connection_link */
    uint64_t subscriber; /* tcp_info_subscriber() of the peer */
    uint64_t site;       /* tcp_info_site() of it */
    struct connection_entry entry;
    bool has_handshake;         /* the TLS handshake is complete, or none is needed */
    int key_updates;            /* that the peer has sent */
    bool is_reserved;           /* it is a reserved one; cleared when a request is authenticated */
    h2o_socket_cb paused_read;  /* not NULL: reading is stopped by the buffer cap */
    int64_t paused_ns;          /* start of the wait, over all pauses; 0: not in this request */
    size_t paused_bytes;        /* the bytes received by then */
    h2o_socket_cb refused_read; /* not NULL: a refusal is being written, and its end calls this */
    int64_t refused_ns;
    struct arena *refusal; /* contains the bytes being written */
    bool is_http2;
    bool is_body_taken; /* sock->input only claims a size; the bytes belong to a job */
    bool is_receiving;  /* HTTP/2: the body of some stream is still being received */
    bool has_body;      /* a check found the body of the request that is being received */
    bool is_cut;        /* shut down by us; h2o will notice */
    int linger_fd;      /* >= 0: a duplicate that outlives h2o's close */
    int early_cancels;
    size_t stream_bytes;   /* HTTP/2: estimated bytes of all streams' bodies */
    uint64_t streams_base; /* HTTP/2: TCP_INFO's received bytes that are not in memory as bodies; 0:
                              none */
    int64_t accepted_ns;
    /* State of the sweep. */
    uint64_t received_bytes, acked_bytes; /* TCP_INFO at the last sweep */
    int64_t progress_ns;                  /* when one of them last changed */
    int64_t window_ns;                    /* start of the window for the minimal rate; 0: none */
    uint64_t window_bytes;                /* the bytes of the request received by then */
    int64_t taking_ns;                    /* start of the window for reading a response; 0: none */
    uint64_t taking_acked;                /* acked_bytes at that time */
};

/* A request on its way. Freed on the loop when neither h2o nor a worker uses it any more. */
struct http_job {
    struct worker_job work;      /* first: the pool's pointer is the job's */
    struct http_message message; /* MESSAGE_RESPONSE */
    int reference_count;         /* for the loop */
    h2o_req_t *req;              /* for the loop; NULL when h2o has dropped the request */
    struct http_loop *loop;
    struct http_connection *connection; /* for the loop; NULL when it is closed */
    h2o_linklist_t connection_link;
    atomic_bool is_cancelled;   /* the client does not wait for the response any more */
    bool has_response_head;     /* for the loop: h2o has the head of the response */
    bool has_unsent_piece;      /* for the loop: h2o has a piece of the body that it has not sent */
    int64_t queued_ns;          /* monotonic: when it was passed to a pool of workers */
    bool is_closing;            /* the connection ends after this response */
    h2o_buffer_t *stolen_input; /* for the loop: contains request.body */
    struct request request;
    struct response response;
    struct err err; /* the error of the handler, for the log */
    h2o_generator_t generator;
    struct response_bytes charged; /* counted for response_holder; set before it is sent */
    struct response_holder *response_holder; /* NULL: nothing is counted */
    uint64_t sent_bytes;
    uint64_t chunk_bytes; /* in chunk, read by a worker */
    bool has_failed;      /* while reading the file */
    uint8_t *chunk;
    char user[48]; /* for the access log */
};

struct http_server {
    struct server *server;
    struct http_options options;
    h2o_globalconf_t config;
    struct worker_pool *workers;
    struct worker_pool *agent_workers;    /* threads for routes with ROUTE_AGENT */
    struct worker_pool *download_workers; /* threads for routes with ROUTE_DOWNLOAD */
    struct worker_pool *password_workers; /* threads for routes with ROUTE_PASSWORD */
    struct worker_pool *probes;           /* threads for routes with ROUTE_PROBE */
    struct access_log *access_log;        /* NULL: none */
    SSL_CTX *tls;                         /* NULL without TLS listeners */
    bool sends_hsts;
    struct http_loop *loops;
    struct connection_table *connections;
    struct connection_rate *connection_rate;           /* NULL: no limit */
    _Atomic int64_t limit_logged_ns[HTTP_LIMIT_COUNT]; /* monotonic; 0: never */
    _Atomic int connection_count; /* includes evicted ones until they are closed */
    _Atomic int job_count;        /* requests between their arrival and the end of their response */
    struct response_memory *response_memory; /* of large responses that are being made or sent */
    struct http_readiness readiness;
    atomic_bool is_stopping;
    bool is_started;
    bool was_cut;
    sem_t has_started; /* posted by each loop */
    struct metric *refusals[REFUSAL_COUNT];
    struct metric *failed_reads;
};

/* http_tls.c: a context with the files of options. Errors: ERR_INVALID. */
/* Sets has_handshake of each connection whose handshake becomes complete. */
enum err_code http_tls_load(const struct http_options *options, SSL_CTX **ret_tls,
                            struct err *err) MUST_USE;

/* The connection or the job that contains a link of a list. */
static inline struct http_connection *http_connection_at(h2o_linklist_t *link)
{
    return H2O_STRUCT_FROM_MEMBER(struct http_connection, link, link);
}

static inline struct http_job *http_job_at(h2o_linklist_t *link)
{
    return H2O_STRUCT_FROM_MEMBER(struct http_job, connection_link, link);
}

/*
 * The functions of each file. A file calls only those of the files before it, so the files have no
 * cycles: a job that ends comes back to the loop as a message, which http_server.c handles.
 */

/* http_request_head.c: from the head of h2o's request to ours; copies into the request's arena. */
struct span http_request_head_copy(struct arena *arena, h2o_iovec_t bytes);
/* Writes the text of a new id. */
void http_request_head_new_id(struct http_loop *loop, char id[REQUEST_ID_BYTES]);
void http_request_head_fill_fields(struct request *request, const h2o_req_t *req);
/* The path, decoded, and the query. Errors: ERR_INVALID. */
enum err_code http_request_head_fill_target(struct request *request, h2o_iovec_t target,
                                            struct err *err) MUST_USE;
/* The address of the client; the header's fields must be filled. */
void http_request_head_fill_address(struct request *request, h2o_conn_t *conn,
                                    bool trust_forwarded_for);

/* http_chunk.c: on a worker, reads the first or next piece of the response's file into job->chunk.
 */
void http_chunk_read(struct http_job *job);

/* http_job.c: handles a request on a worker, puts it aside until it has a slot, or drops it. The
 * response of a request that was on a worker or put aside comes to the loop as MESSAGE_RESPONSE. */
/* The threads that handle the request, and read the file of its response. */
struct worker_pool *http_job_pool(const struct http_server *http, const struct request *request);
/* On the loop: passes the job to a worker. Errors: ERR_BUSY. */
enum err_code http_job_submit(struct http_job *job, struct err *err) MUST_USE;
/* Fills the response with the problem of err and logs it; status 0: problem_status of its code. */
void http_job_fail(struct http_job *job, int status, const struct err *err);
/* After the handler: compresses the response and counts its memory (response_memory_take) until the
 * peer has read it. */
void http_job_finish(struct http_job *job, enum err_code code, const struct err *err);
void http_job_uncharge(struct http_job *job);
/* On the loop: the client has gone. A job that only waits for its slot is dropped. */
void http_job_cancel(struct http_job *job);
/* On the loop: a request that has waited for a slot too long, or when the server stops, gets 503.
 */
void http_job_check_waiting(struct http_job *job, int64_t now_ns);

/* http_connection.c: accepts and closes connections, and records what happens on them. */
void http_connection_accept(struct http_loop *loop, h2o_socket_t *listener,
                            h2o_accept_ctx_t *accept);
struct http_connection *http_connection_of(h2o_req_t *req);
/* NULL: h2o responds to the request by itself, because it is malformed. */
struct http_job *http_connection_find_job(const struct http_connection *connection,
                                          const h2o_req_t *req);
/* A request starts; a request that is no longer in jobs has ended. */
void http_connection_begin(struct http_connection *connection, struct http_job *job);
void http_connection_end(struct http_connection *connection, struct http_job *job);
/* A request was authenticated: a reserved connection may stay open. */
void http_connection_authenticate(struct http_connection *connection);
/* Continues to read what the buffer cap has paused. */
void http_connection_resume(struct http_connection *connection);
/* Closes it and cancels its requests: h2o notices at its next read or write. */
void http_connection_cut(struct http_connection *connection, enum http_refusal reason);
void http_connection_count_refusal(struct http_server *http, enum http_refusal reason);
/* After the response in progress, discards further input, so that the peer reads the response. */
void http_connection_linger(struct http_connection *connection);
/* Ends discarding the input of connections whose time for it has passed. */
void http_connection_end_lingering(struct http_loop *loop, int64_t until_ns);
/* Logs that a limit was reached, at most once a minute for each. */
void http_connection_log_limit(struct http_server *http, enum http_limit limit,
                               const char *address);

/* http_response.c */
/* Sends job->response; on the loop, once. */
void http_response_send(struct http_job *job);
/* A worker has read the next piece of the file. */
void http_response_continue(struct http_job *job);
/* Responds with 503 to a request that is still being read, and ends the connection; HTTP/2 is
 * closed without a response. */
void http_response_refuse(struct http_connection *connection);
/* Replaces h2o's own error texts (413, 400) by problem documents. */
void http_response_filter(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot);

/* http_log.c: the h2o logger: one access log line and the metrics for each finished request. */
void http_log_request(h2o_logger_t *self, h2o_req_t *req);

/* http_metrics.c: registers the metrics of the HTTP server, which are read while it runs. */
void http_metrics_register(struct http_server *http);

/* http_buffers.c: which uploads may continue when the buffers are full. http_server.h states the
 * rule. */
/* Pauses, resumes and refuses the loop's uploads. */
void http_buffers_look(struct http_loop *loop);
/* Whether other uploads wait for memory that the connection's input holds. */
bool http_buffers_are_wanted(const struct http_connection *connection);

/* http_sweep.c: called after each iteration of the loop; cheap. Checks the buffer cap and, when
 * due, the timeouts of all connections and of requests that wait. */
void http_sweep_loop(struct http_loop *loop, int64_t now_ns);

/* http_request.c: the h2o handler, from the head of a request to its job. */
int http_request_on_req(h2o_handler_t *self, h2o_req_t *req);
/* Drops one reference; the last one frees the job. */
void http_request_release(struct http_job *job);

#endif
