/*
 * response: the response of a handler, which the server sends (api/http/request.h).
 */
#ifndef API_HTTP_RESPONSE_H
#define API_HTTP_RESPONSE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct integrity_object;
struct request;

struct http_field {
    struct span name; /* lower case */
    struct span value;
};

enum response_body { RESPONSE_EMPTY, RESPONSE_BYTES, RESPONSE_FILE };

struct response {
    int status; /* 200 unless set */
    const char *content_type;
    enum response_body body_kind;
    struct span bytes; /* lives in the request's arena, or as long as the process */
    /* The number of responses that are sending these bytes now, so that memory which several
     * responses share is counted once (api/server/response_memory.h). It is stored beside the
     * bytes. NULL: no other response sends them. */
    _Atomic uint32_t *reader_count;
    int file_fd; /* owned by the response; -1 with stored_object */
    /* The stored object that is the body (a copy by integrity_copy); NULL: the body is file_fd.
     * Each piece is read from the store when it is sent, so that no worker waits for the whole
     * object and no copy fills the disk. */
    const struct integrity_object *stored_object;
    uint64_t file_bytes;
    uint64_t file_offset; /* sending starts there; 0 unless set */
    /* Compares the file, sent as a whole, with its digest: its last piece is sent only if they are
     * equal. NULL: not compared. api/core/integrity.h. */
    struct integrity_stream *file_check;
    bool may_compress;     /* lets the server compress with zstd or gzip as the client accepts */
    bool is_open_to_sites; /* with ROUTE_CORS_IF_OPEN: scripts of other sites may read it */
    bool may_be_framed;    /* HTML that pages of other sites may show in a frame */
    struct http_field *fields;
    size_t field_count;
    size_t field_capacity;
};

/* Adds a header field; both texts are copied into the arena. CR, LF and NUL are refused by
 * assertion: values from outside go through buf_append_url or are checked first. */
void response_add(struct request *request, struct response *response, const char *name,
                  const char *value);
/* Sets the status and the body. bytes must live in the request's arena or as long as the process.
 */
void response_bytes(struct response *response, int status, const char *content_type,
                    struct span bytes);
/* As response_bytes, with a copy of buf in the request's arena. Errors: ERR_TOO_LARGE if buf has
 * failed. */
enum err_code response_buf(struct request *request, struct response *response, int status,
                           const char *content_type, const struct buf *buf,
                           struct err *err) MUST_USE;

/* Adds the fields ETag (etag includes the quotes, such as "\"abc\"" or "W/\"abc\"") and
 * Cache-Control. Returns true if the client has that version already: the response is then a
 * complete 304, and the handler must return ERR_NONE. */
bool response_is_cached(struct request *request, struct response *response, const char *etag,
                        const char *cache_control);
/* Takes back what response_is_cached added: the response has no ETag, and no cache may store it. */
void response_forbid_storing(struct response *response);
/* Whether If-Match names that version, in a list or as "*". True without If-Match. */
bool response_if_match(const struct request *request, const char *etag);
/* Sets the file from offset 0 as the body; takes ownership of fd, even if the request fails later.
 */
void response_file(struct response *response, int status, const char *content_type, int fd,
                   uint64_t size);
/* Sets a stored object as the body, in place of the file of response_file. */
void response_stored(struct request *request, struct response *response,
                     const struct integrity_object *object);

#endif
