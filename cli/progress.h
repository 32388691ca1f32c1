/*
 * progress: shows a transfer as a progress bar on the terminal. It sets the callbacks of struct
 * http_client_request, with a struct progress as their context.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

struct http_client_request;
struct terminal;

struct progress {
    struct terminal *terminal;
    const char *name;
    uint64_t before; /* uploads only: bytes that earlier requests have sent */
    uint64_t total;  /* uploads only: bytes that all requests send together */
};

/* Makes the request show the bytes that it has sent (upload) or received (download). progress must
 * live as long as the request. The caller clears the bar (terminal_progress_end). */
void progress_of_upload(struct progress *progress, struct http_client_request *request);
void progress_of_download(struct progress *progress, struct http_client_request *request);

#endif
