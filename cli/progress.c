#include "cli/progress.h"

#include "cli/terminal.h"
#include "lib/io/http_client.h"

static bool on_upload(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                      uint64_t receive_total)
{
    const struct progress *progress = context;
    (void)send_total, (void)received, (void)receive_total;
    if (sent)
        terminal_progress(progress->terminal, progress->name, progress->before + sent,
                          progress->total);
    return true;
}

static bool on_download(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                        uint64_t receive_total)
{
    const struct progress *progress = context;
    (void)sent, (void)send_total;
    if (received)
        terminal_progress(progress->terminal, progress->name, received, receive_total);
    return true;
}

void progress_of_upload(struct progress *progress, struct http_client_request *request)
{
    request->progress = on_upload;
    request->progress_context = progress;
}

void progress_of_download(struct progress *progress, struct http_client_request *request)
{
    request->progress = on_download;
    request->progress_context = progress;
}
