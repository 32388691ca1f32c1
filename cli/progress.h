/*
 * progress: one transfer as a bar on the terminal: the callbacks that struct http_client_request
 * wants, with a struct progress as their context.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

struct http_client_request;
struct terminal;

struct progress {
    struct terminal *terminal;
    const char *name;
    uint64_t before; /* of an upload: bytes that went in earlier requests */
    uint64_t total;  /* of an upload: of all its requests */
};

/* Shows what is sent, or what arrives; progress lives as long as the request. The caller wipes the
 * bar (terminal_progress_end). */
void progress_of_upload(struct progress *progress, struct http_client_request *request);
void progress_of_download(struct progress *progress, struct http_client_request *request);

#endif
