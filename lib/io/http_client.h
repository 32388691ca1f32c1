/*
 * http_client: the door to libcurl: HTTP/1.1 requests over one kept-alive handle.
 *
 * There is no total deadline unless a request names one, so that a slow but moving transfer of any
 * size ends well: it fails when connecting takes too long or when nothing moves for a while.
 * Proxies are taken from the environment as curl does (https_proxy, no_proxy, …), unless the
 * settings name one or none. Redirects are followed only when the settings allow it, over http and
 * https only, and never with the Authorization field to another host. The peer's certificate and
 * host name are always checked.
 *
 * A status of 400 and more is an answer, not an error. Nothing is retried here: the caller knows
 * what is safe to repeat; http_client_answer.was_sent helps it decide.
 * Threads: a client belongs to one thread.
 */
#ifndef LIB_IO_HTTP_CLIENT_H
#define LIB_IO_HTTP_CLIENT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_client;
struct http_client_answer;
struct sockaddr;

enum { HTTP_CLIENT_NO_FD = -1 };

struct http_client_settings {
    const char *ca_file;    /* PEM file to trust instead of the system's; NULL: the system's */
    bool keeps_system_cas;  /* ca_file is trusted beside the system's bundle and folder of CAs */
    const char *user_agent; /* NULL: "perfolio" */
    int connect_timeout_ms; /* name look-up, TCP and TLS; 0: 15 s */
    int stall_timeout_s;    /* nothing sent or received for this long; 0: 60 s */
    int max_redirects;      /* 0: a 3xx is returned as it is */
    const char *proxy;      /* NULL: the environment's; "": none; else its URL */
    /* Asked with the address of every connection before it is made (of the proxy where one is
     * used); false refuses it. NULL: all addresses. For fetching what a stranger names. */
    bool (*may_connect)(void *context, const struct sockaddr *address);
    void *may_connect_context;
};

/*
 * Both PEM files, one behind the other, for clients that trust them together. system_file may be
 * NULL or absent, as where the system has a folder of CAs alone. The caller has initialised
 * ret_cas. Handles: ERR_NOT_FOUND, ERR_IO (ca_file cannot be read), ERR_TOO_LARGE.
 */
enum err_code http_client_join_cas(const char *system_file, const char *ca_file,
                                   struct buf *ret_cas, struct err *err) MUST_USE;

struct http_client_field {
    const char *name;
    /* No CR or LF: such a request is refused with ERR_INVALID. NULL: libcurl shall not send the
     * field of that name that it would add by itself. */
    const char *value;
};

enum http_client_body { HTTP_CLIENT_BODY_NONE, HTTP_CLIENT_BODY_BYTES, HTTP_CLIENT_BODY_FILE };

struct http_client_request {
    const char *method; /* "GET", "POST", … */
    const char *url;    /* http:// or https:// */
    const struct http_client_field *fields;
    size_t field_count;

    enum http_client_body body_kind; /* NONE sends no body; with POST a Content-Length of 0 */
    struct span body;                /* BYTES */
    int body_fd;                     /* FILE: body_bytes from body_offset, read with pread */
    uint64_t body_offset;
    uint64_t body_bytes;

    /* On a kept connection that dies before any answer, libcurl sends a request again by itself, as
     * browsers do. What must not act twice goes on a fresh connection, where that cannot be. */
    bool must_not_repeat;
    int64_t deadline_ms; /* the whole request, then ERR_TIMEOUT; 0: none */
    /* The body, from its first byte that is sent, and the answer, header and all, from its first
     * byte that comes (its first line where the request has a body), must each have moved so many
     * bytes for every second beyond the first two; else ERR_TIMEOUT and answer->was_too_slow.
     * Waiting for the answer to begin does not count. 0: any pace will do. */
    uint64_t min_bytes_per_s;
    bool accept_compressed; /* offers gzip, zstd, …; what arrives is decompressed and then capped */
    uint64_t max_answer_bytes; /* past it the request fails with ERR_TOO_LARGE; 0: 64 MiB */
    /* Bodies of 2xx answers go here as they arrive, others into the answer's body. Not for zero
     * initialisation: start from http_client_request_init. */
    int answer_fd;

    /* Called once when an answer's header is there and nothing of its body, with status and fields;
     * it may lower *max_answer_bytes. false cancels. NULL: not called. */
    bool (*head)(void *context, const struct http_client_answer *answer,
                 uint64_t *max_answer_bytes);
    void *head_context;

    /* Called several times a second with bytes so far and totals (0: unknown); false cancels. */
    bool (*progress)(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                     uint64_t receive_total);
    void *progress_context;
};

struct http_client_answer {
    int status;            /* 0 when no answer came */
    int retry_after_s;     /* of Retry-After, seconds or date; 0: absent or past; at most a day */
    bool was_refused;      /* no program listens at the server's address (ECONNREFUSED) */
    bool was_too_slow;     /* below request->min_bytes_per_s */
    bool was_too_large;    /* past request->max_answer_bytes, or its header is too long */
    bool was_sent;         /* at least one byte of the request went out: the peer may have acted */
    struct buf body;       /* followed by a NUL that is not counted, for printing */
    struct buf fields;     /* the last answer's header lines */
    uint64_t answer_bytes; /* of the body, also when it went to answer_fd */
};

/* GET without body, and no answer_fd. */
void http_client_request_init(struct http_client_request *request, const char *method,
                              const char *url);

/* ca_file, user_agent and proxy are copied. Handles: ERR_NOT_FOUND or ERR_IO (ca_file is not
 * readable). */
enum err_code http_client_create(const struct http_client_settings *settings,
                                 struct http_client **ret_client, struct err *err) MUST_USE;
void http_client_destroy(struct http_client *client); /* NULL is a no-op */

/*
 * Sends request and reads the answer into *answer, which the caller has initialised with
 * http_client_answer_init and may reuse; it is filled as far as known on failure too (was_sent).
 * Handles: ERR_NETWORK (no name, no connection, broken off), ERR_UNAUTHENTICATED (the peer's
 * certificate is not trusted), ERR_TIMEOUT (connect, stall or deadline), ERR_TOO_LARGE (answer past
 * its cap, or its header), ERR_FORBIDDEN (may_connect said no), ERR_CANCELLED (by progress or
 * head), ERR_INVALID (URL or field), ERR_IO (reading the body, writing answer_fd).
 */
enum err_code http_client_send(struct http_client *client,
                               const struct http_client_request *request,
                               struct http_client_answer *answer, struct err *err) MUST_USE;

void http_client_answer_init(struct http_client_answer *answer);
void http_client_answer_fini(struct http_client_answer *answer);
/* A header field of the answer, trimmed; empty when absent. name in any case. */
struct span http_client_answer_field(const struct http_client_answer *answer, const char *name);
/* The answer's Date in seconds since 1970; 0 when it has none. */
int64_t http_client_answer_date(const struct http_client_answer *answer);

static inline void http_client_cleanup(struct http_client **client)
{
    http_client_destroy(*client);
}
static inline void http_client_answer_cleanup(struct http_client_answer *answer)
{
    http_client_answer_fini(answer);
}
#define http_client_auto __attribute__((cleanup(http_client_cleanup))) struct http_client *
#define http_client_answer_auto                                                                    \
    __attribute__((cleanup(http_client_answer_cleanup))) struct http_client_answer

#endif
