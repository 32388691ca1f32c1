#include "api/server/http_internal.h"

#include "api/core/integrity.h"
#include "api/core/metrics.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/object.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The last piece is not sent until the digest of the whole file has been verified. */
static enum err_code check_chunk(struct http_job *job, struct err *err)
{
    struct integrity_stream *check = job->response.file_check;
    if (!check)
        return ERR_NONE;
    integrity_stream_append(check, span_of(job->chunk, (size_t)job->chunk_bytes));
    const bool is_last = job->sent_bytes + job->chunk_bytes == job->response.file_bytes;
    return is_last ? integrity_stream_finish(check, err) : ERR_NONE;
}

static void fail_chunk(struct http_job *job)
{
    job->has_failed = true;
    metric_add(job->loop->http->failed_reads, 1);
    log_event(LOG_ERROR, "reading a file that is being sent failed",
              "request_id=%s offset=%llu err=\"%s\"", job->request.id,
              (unsigned long long)(job->sent_bytes + job->chunk_bytes), job->err.message);
}

/* Reads from the object store. */
static void read_stored_chunk(struct http_job *job, size_t wanted)
{
    const struct response *response = &job->response;
    buf_auto piece;
    buf_init(&piece, wanted);
    const enum err_code code =
        integrity_read_range(job->request.server, response->stored_object,
                             response->file_offset + job->sent_bytes, wanted, &piece, &job->err);
    if (code == ERR_NOT_FOUND)
        err_set(&job->err, ERR_GONE,
                "this file has just been deleted: ask its creator for another link");
    if (code) {
        fail_chunk(job);
        return;
    }
    memcpy(job->chunk, piece.data, wanted);
    job->chunk_bytes = wanted;
}

static void read_file_chunk(struct http_job *job, size_t wanted)
{
    while (job->chunk_bytes < wanted) {
        ssize_t size =
            pread(job->response.file_fd, job->chunk + job->chunk_bytes, wanted - job->chunk_bytes,
                  (off_t)(job->response.file_offset + job->sent_bytes + job->chunk_bytes));
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0) {
            if (size == 0)
                err_set(&job->err, ERR_CORRUPT, "the file ends early");
            else
                object_fail_reading(&job->err, "cannot read the file of request", job->request.id);
            fail_chunk(job);
            return;
        }
        job->chunk_bytes += (uint64_t)size;
    }
}

void http_chunk_read(struct http_job *job)
{
    uint64_t left = job->response.file_bytes - job->sent_bytes;
    size_t wanted = left < HTTP_CHUNK_BYTES ? left : HTTP_CHUNK_BYTES;
    if (!job->chunk)
        job->chunk = arena_new_raw(job->request.arena, uint8_t, wanted);
    job->chunk_bytes = 0;
    if (job->response.stored_object)
        read_stored_chunk(job, wanted);
    else
        read_file_chunk(job, wanted);
    if (job->has_failed)
        return;
    if (check_chunk(job, &job->err)) {
        job->has_failed = true;
        if (job->sent_bytes) /* otherwise the client gets a problem */
            log_event(LOG_ERROR, "a response was aborted: the file that was sent is damaged",
                      "request_id=%s", job->request.id);
    }
}
