/*
 * http_internal: what the files of the h2o door (api/http*.c) share; nobody else includes it.
 *
 * Threads: everything of a loop, its connections and its h2o requests belongs to that loop's
 * thread. A job is handed to a worker and comes back by message; in between the loop touches only
 * what is said to be the loop's. See the headers of the struct members.
 */
#ifndef API_SERVER_HTTP_INTERNAL_H
#define API_SERVER_HTTP_INTERNAL_H

#include "api/core/worker.h"
#include "api/http/request.h"
#include "api/server/connection_table.h"
#include "api/server/http_server.h"

#include <h2o.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct access_log;
struct metric;

enum {
    HTTP_CHUNK_BYTES = 256 << 10, /* of a response, handed to h2o at once */
    HTTP_STEAL_BYTES = 64 << 10,  /* larger bodies are taken over instead of copied */
    HTTP_MMAP_BYTES = 512 << 10,  /* the allocator maps what is larger, apart from its heap */
    HTTP_MAX_EARLY_CANCELS = 200, /* HTTP/2: of one connection, before it is cut */
    HTTP_LINGER_MS = 3000,        /* how long what still comes is discarded after an early error */
    HTTP_RECEIVE_BUFFER = 128 << 10, /* the kernel doubles it; 5 MB/s at 50 ms */
    HTTP_MIN_BYTES_PER_S = 64,
    HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE = 8 << 10,
    HTTP_PRESSURE_FREE_BYTES = 64 << 10, /* connections that hold less are never paused */
    HTTP_LARGE_ANSWER_BYTES = 64 << 10,  /* answers that hold more count against the cap */
};

enum http_refusal {
    REFUSED_CONNECTIONS, /* past max_connections */
    REFUSED_ADDRESS,     /* past max_connections_per_address: the new or the longest waiting one */
    REFUSED_EVICTED,     /* waiting for longest when a new one came at max_connections */
    REFUSED_IDLE,
    REFUSED_SLOW,
    REFUSED_UNREAD, /* the peer takes no bytes */
    REFUSED_CANCELS,
    REFUSED_BUFFERS, /* past the buffer cap: waited for too long, or others have less */
    REFUSED_GONE,    /* HTTP/1: the peer left while its request waited or ran */
    REFUSAL_COUNT
};

/* Limits whose being reached is logged. */
enum http_limit {
    HTTP_LIMIT_CONNECTIONS,
    HTTP_LIMIT_CONNECTIONS_PER_ADDRESS,
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
    h2o_socket_t **listeners;            /* as many as options.listener_count; NULL once closed */
    h2o_linklist_t connections;          /* struct http_connection, oldest first */
    h2o_linklist_t lingering;            /* struct http_lingering */
    atomic_bool has_evictions;           /* connections of this loop have been evicted */
    _Atomic size_t buffered_bytes;       /* input of this loop's connections, at the last look */
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
    MESSAGE_ANSWER,
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
    h2o_linklist_t jobs; /* struct http_job by connection_link */
    uint64_t subscriber; /* tcp_info_subscriber() of the peer */
    struct connection_entry entry;
    bool is_on_reserved_place;  /* no request on it has been authenticated yet */
    h2o_socket_cb paused_read;  /* not NULL: reading is stopped by the buffer cap */
    int64_t paused_ns;          /* since when it waits, on the whole; 0: not in this request */
    size_t paused_bytes;        /* what had come by then */
    h2o_socket_cb refused_read; /* not NULL: a refusal is being written, then this ends it */
    int64_t refused_ns;
    struct arena *refusal; /* holds what is being written */
    bool is_http2;
    bool is_body_taken; /* what sock->input claims to hold is a job's */
    bool is_receiving;  /* HTTP/2: some stream's body is still coming */
    bool has_body;      /* a look found the body of the request that is being received */
    bool is_cut;        /* shut down by us; h2o will notice */
    int linger_fd;      /* >= 0: a duplicate that outlives h2o's close */
    int early_cancels;
    size_t stream_bytes; /* HTTP/2: estimate of what all streams' bodies hold, at the last look */
    uint64_t
        streams_base; /* HTTP/2: TCP_INFO's received bytes that are no body in memory; 0: none */
    int64_t accepted_ns;
    /* The sweep's memory. */
    uint64_t received_bytes, acked_bytes; /* TCP_INFO at the last sweep */
    int64_t progress_ns;                  /* when one of them last changed */
    int64_t window_ns;                    /* begin of the window for the minimal rate; 0: none */
    uint64_t window_bytes;                /* what had come of the request by then */
    int64_t taking_ns;                    /* begin of the window for taking an answer; 0: none */
    uint64_t taking_acked;                /* acked_bytes at that time */
};

/* One request on its way. Freed on the loop when neither h2o nor a worker has it any more. */
struct http_job {
    struct worker_job work;      /* first: the pool's pointer is ours */
    struct http_message message; /* MESSAGE_ANSWER */
    int reference_count;         /* the loop's */
    h2o_req_t *req;              /* the loop's; NULL when h2o has given the request up */
    struct http_loop *loop;
    struct http_connection *connection; /* the loop's; NULL when it is gone */
    h2o_linklist_t connection_link;
    atomic_bool is_cancelled;   /* nobody waits for the answer any more */
    bool is_answered;           /* the loop's: h2o has the head of the answer */
    int64_t queued_ns;          /* monotonic: when it was handed to a pool of workers */
    bool is_closing;            /* the connection ends after this answer */
    h2o_buffer_t *stolen_input; /* the loop's: holds request.body */
    struct request request;
    struct response response;
    struct err err; /* what the handler returned, for the log */
    h2o_generator_t generator;
    size_t charged_bytes;           /* of http_server.answer_bytes; set before the answer is sent */
    size_t shared_bytes;            /* and what this answer reads together with others */
    _Atomic uint32_t *reader_count; /* of those; NULL: none */
    uint64_t sent_bytes;
    uint64_t chunk_bytes; /* in chunk, read by a worker */
    bool has_failed;      /* reading the file */
    uint8_t *chunk;
    char user[48]; /* for the access log */
};

struct http_server {
    struct server *server;
    struct http_options options;
    h2o_globalconf_t config;
    struct worker_pool *workers;
    struct worker_pool *ingest_body; /* for routes with ROUTE_AGENT */
    struct worker_pool *probes;      /* for routes with ROUTE_PROBE */
    struct access_log *access_log;   /* NULL: none */
    SSL_CTX *tls;                    /* NULL without TLS listeners */
    bool sends_hsts;
    struct http_loop *loops;
    struct connection_table *connections;
    _Atomic int64_t limit_logged_ns[HTTP_LIMIT_COUNT]; /* monotonic; 0: never */
    _Atomic int connection_count; /* evicted ones included until they are closed */
    _Atomic int job_count;        /* requests between their arrival and the end of their answer */
    _Atomic size_t answer_bytes;  /* held by large answers that are being made or sent */
    struct http_readiness readiness;
    atomic_bool is_stopping;
    bool is_started;
    bool was_cut;
    sem_t has_started; /* posted by each loop */
    struct metric *refusals[REFUSAL_COUNT];
    struct metric *failed_reads;
};

/* http_tls.c: a context with the files of options. Handles: ERR_INVALID. */
enum err_code http_tls_load(const struct http_options *options, SSL_CTX **ret_tls,
                            struct err *err) MUST_USE;

/* http_connection.c */
void http_connection_accept(struct http_loop *loop, h2o_socket_t *listener,
                            h2o_accept_ctx_t *accept);
struct http_connection *http_connection_of(h2o_req_t *req);
/* A request begins; the request that jobs no longer lists has ended. */
void http_connection_begin(struct http_connection *connection, struct http_job *job);
void http_connection_end(struct http_connection *connection, struct http_job *job);
/* A request was authenticated: a reserved place, if it has one, is the connection's own now. */
void http_connection_authenticate(struct http_connection *connection);
/* Ends it and what its requests do: h2o notices at its next read or write. */
void http_connection_cut(struct http_connection *connection, enum http_refusal reason);
/* Answers 503 to a request that is still being read, and ends the connection; HTTP/2 is cut. */
void http_connection_refuse(struct http_connection *connection);
/* After the answer in progress, discard what the peer still sends, so that it reads the answer. */
void http_connection_linger(struct http_connection *connection);
/* Cheap; called after each turn of the loop: buffer cap and, when due, timeouts. */
void http_connection_watch(struct http_loop *loop, int64_t now_ns);
void http_connection_drop_lingering(struct http_loop *loop);
/* Logs that a limit was reached, at most once a minute for each. */
void http_connection_log_limit(struct http_server *http, enum http_limit limit,
                               const char *address);

/*
 * http_buffers.c: who may go on reading when uploads fill the buffers. The rule stands in http.h.
 */
/* Pauses, resumes and refuses the loop's uploads. */
void http_buffers_look(struct http_loop *loop);
void http_buffers_resume(struct http_connection *connection);
/* Does it hold what others wait for? */
bool http_buffers_are_wanted(const struct http_connection *connection);

/* http_request.c: the h2o handler */
int http_request_on_req(h2o_handler_t *self, h2o_req_t *req);
/* Copies the header's fields into the request's arena. */
void http_request_fill_fields(struct request *request, const h2o_req_t *req);
void http_job_release(struct http_job *job);

/*
 * http_job.c: what is done for a request: on a worker, aside until its turn comes, or not at all.
 * Its answer, if it ends on a worker or was aside, comes to the loop as MESSAGE_ANSWER.
 */
/* On the loop: hands the job to a worker. Handles: ERR_BUSY. */
enum err_code http_job_submit(struct http_job *job, struct err *err) MUST_USE;
/* Fills the response with the problem, and logs it; status 0: that of its code. */
void http_job_fail(struct http_job *job, int status, const struct err *err);
/* After the handler: compresses its answer, and charges what is held until the peer has it. */
void http_job_finish(struct http_job *job, enum err_code code, const struct err *err);
void http_job_uncharge(struct http_job *job);
/* On the loop: nobody waits for the answer any more. What only waits for its turn is over. */
void http_job_cancel(struct http_job *job);
/* On the loop: a request that waits for its turn gets 503 instead, if it has waited for long or the
 * server stops. */
void http_job_check_waiting(struct http_job *job, int64_t now_ns);

/* http_response.c */
/* Sends what is in job->response; on the loop, once. */
void http_response_send(struct http_job *job);
/* The bytes of a 503 for a request that is refused while it is being read, made in arena, and
 * logged; input is what has come of it. */
struct span http_response_to_refused(struct http_loop *loop, struct span input,
                                     struct arena *arena);
/* A worker has read the next piece of the file. */
void http_response_continue(struct http_job *job);
/* On a worker: reads the first or next piece of the file into job->chunk. */
void http_response_read_chunk(struct http_job *job);
/* Replaces h2o's own error texts (413, 400) by problem documents. */
void http_response_filter(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot);
/* The h2o logger: one access log line and the metrics for each finished request. */
void http_response_log(h2o_logger_t *self, h2o_req_t *req);

struct http_server *http_server_of(h2o_req_t *req);
/* Text of a new id. */
void http_request_new_id(struct http_loop *loop, char id[REQUEST_ID_BYTES]);

#endif
