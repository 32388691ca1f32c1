/*
 * http_client: HTTP/1.1 requests over one kept-alive libcurl handle.
 *
 * A request has no total deadline unless it sets one, so that a slow transfer of any size completes
 * while it makes progress; it fails when connecting takes too long or when no data moves for a
 * while. Proxies come from the environment as in curl (https_proxy, no_proxy, …), unless the
 * settings name one or disable them. Redirects are followed only if the settings allow it, over
 * http and https only, and the Authorization field is never sent to another host. The peer's
 * certificate and host name are always verified.
 *
 * A status of 400 and more is a response, not an error. Nothing is retried here: the caller knows
 * which requests may be repeated, and http_client_response.was_sent helps it decide. Only
 * http_client.c and http_url.c include libcurl. Threads: a client belongs to one thread.
 */
#ifndef LIB_IO_HTTP_CLIENT_H
#define LIB_IO_HTTP_CLIENT_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_client;
struct http_client_response;
struct sockaddr;

enum { HTTP_CLIENT_NO_FD = -1 };

struct http_client_settings {
    const char *ca_file;    /* PEM file to trust instead of the system's; NULL: the system's */
    bool keeps_system_cas;  /* trust ca_file in addition to the system's CAs */
    const char *user_agent; /* NULL: "perfolio" */
    int connect_timeout_ms; /* name lookup, TCP and TLS; 0: 15 s */
    int stall_timeout_s;    /* time with less than 64 bytes a second in both directions; 0: 60 s */
    int max_redirects;      /* 0: a 3xx response is returned */
    const char *proxy;      /* NULL: the environment's; "": none; else its URL */
    /* Called with the address of every connection before it is made (that of the proxy if one is
     * used); false refuses it. NULL: all addresses. For URLs from untrusted sources. */
    bool (*may_connect)(void *context, const struct sockaddr *address);
    void *may_connect_context;
};

/*
 * Concatenates both PEM files, for clients that trust them together. system_file may be NULL or
 * absent, because some systems have only a directory of CAs. The caller has initialised ret_cas.
 * Errors: ERR_NOT_FOUND, ERR_IO (ca_file cannot be read), ERR_TOO_LARGE.
 */
enum err_code http_client_join_cas(const char *system_file, const char *ca_file,
                                   struct buf *ret_cas, struct err *err) MUST_USE;

struct http_client_field {
    const char *name;
    /* Must not contain CR or LF: such a request fails with ERR_INVALID. NULL: suppresses the
     * field of that name that libcurl would add. */
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

    /* If a kept-alive connection breaks before a response, libcurl repeats the request by
     * itself, as browsers do. With this flag the request uses a fresh connection, on which libcurl
     * does not repeat it. */
    bool must_not_repeat;
    int64_t deadline_ms; /* for the whole request, then ERR_TIMEOUT; 0: none */
    /* The minimum average rate after the first two seconds, else ERR_TIMEOUT and
     * response->was_too_slow. It applies to the request body from its first byte, and to the
     * response, including its header, from its first byte (from its status line if the request
     * has a body). The time before the response begins does not count. 0: no minimum. */
    uint64_t min_bytes_per_s;
    bool accept_compressed;      /* offers gzip, zstd, …; the limit applies after decompression */
    uint64_t max_response_bytes; /* a larger response fails with ERR_TOO_LARGE; 0: 64 MiB */
    /* Bodies of 2xx responses are written to this descriptor, others to the response's body.
     * Zero is a valid descriptor, so initialise with http_client_request_init. */
    int response_fd;

    /* Called once after the response's header, before its body, with status and fields set; it may
     * lower *max_response_bytes. If it returns false, the request ends with ERR_CANCELLED. NULL:
     * not called. */
    bool (*head)(void *context, const struct http_client_response *response,
                 uint64_t *max_response_bytes);
    void *head_context;

    /* Called several times a second with bytes so far and totals (0: unknown). If it returns false,
     * the request ends with ERR_CANCELLED. NULL: not called. */
    bool (*progress)(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                     uint64_t receive_total);
    void *progress_context;
};

struct http_client_response {
    int status; /* 0 if there was no response */
    /* from Retry-After, seconds or date; 0: absent or past; at most a day */
    int retry_after_s;
    bool was_refused;   /* no program listens at the server's address (ECONNREFUSED) */
    bool was_too_slow;  /* below request->min_bytes_per_s */
    bool was_too_large; /* above request->max_response_bytes, or its header is too long */
    /* at least one byte of the request was sent: the peer may have acted on it */
    bool was_sent;
    struct buf body;         /* followed by a NUL that is not counted, for printing */
    struct buf fields;       /* header lines of the last response */
    uint64_t response_bytes; /* size of the body, also if it was written to response_fd */
};

/* Initialises a request without a body and without response_fd. */
void http_client_request_init(struct http_client_request *request, const char *method,
                              const char *url);

/* Copies ca_file, user_agent and proxy. Errors: ERR_NOT_FOUND or ERR_IO (ca_file is not
 * readable). */
enum err_code http_client_create(const struct http_client_settings *settings,
                                 struct http_client **ret_client, struct err *err) MUST_USE;
void http_client_destroy(struct http_client *client); /* NULL is a no-op */

/*
 * Sends request and reads the response into *response, which the caller has initialised with
 * http_client_response_init and may reuse. After a failure only the members that are known, such as
 * was_sent, are set. Errors: ERR_NETWORK (unknown name, no connection, connection lost),
 * ERR_UNAUTHENTICATED (the peer's certificate is not trusted), ERR_TIMEOUT (connect, stall or
 * deadline), ERR_TOO_LARGE (the response or its header exceeds its limit), ERR_FORBIDDEN
 * (may_connect returned false), ERR_CANCELLED (by progress or head), ERR_INVALID (URL or field),
 * ERR_IO (reading the body, writing response_fd).
 */
enum err_code http_client_send(struct http_client *client,
                               const struct http_client_request *request,
                               struct http_client_response *response, struct err *err) MUST_USE;

void http_client_response_init(struct http_client_response *response);
void http_client_response_fini(struct http_client_response *response);
/* A header field of the response, trimmed; empty if absent. name is case-insensitive. */
struct span http_client_response_field(const struct http_client_response *response,
                                       const char *name);
/* The Date of the response in seconds since 1970; 0 if absent. */
int64_t http_client_response_date(const struct http_client_response *response);

static inline void http_client_cleanup(struct http_client **client)
{
    http_client_destroy(*client);
}
static inline void http_client_response_cleanup(struct http_client_response *response)
{
    http_client_response_fini(response);
}
#define http_client_auto __attribute__((cleanup(http_client_cleanup))) struct http_client *
#define http_client_response_auto                                                                  \
    __attribute__((cleanup(http_client_response_cleanup))) struct http_client_response

#endif
