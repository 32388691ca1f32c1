#include "api/report/report_body.h"

#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"

void report_body_init(struct report_body *body, const struct report *report)
{
    *body = (struct report_body){.is_zstd = false};
    buf_init(&body->bytes, report->max_bytes);
}

void report_body_fini(struct report_body *body)
{
    buf_fini(&body->bytes);
}

static void fini_body(void *body)
{
    report_body_fini(body);
}

struct report_body *report_body_create(struct arena *arena, const struct report *report)
{
    struct report_body *body = arena_new(arena, struct report_body, 1);
    report_body_init(body, report);
    arena_on_destroy(arena, fini_body, body);
    return body;
}

enum err_code report_body_write(struct report_body *body, const struct report *report,
                                const struct profile *const profiles[2], struct err *err)
{
    const enum err_code code = report_write_profiles(report, profiles, &body->bytes, err);
    if (code)
        return code;
    body->plain_bytes = body->bytes.size;
    return buf_failed(&body->bytes) ? report_too_large(report, err) : ERR_NONE;
}

enum err_code report_body_compress(struct report_body *body, int level, size_t max_bytes,
                                   struct err *err)
{
    struct buf plain = body->bytes;
    buf_init(&body->bytes, max_bytes);
    const enum err_code code = compress_zstd(buf_span(&plain), level, &body->bytes, err);
    buf_fini(&plain);
    body->is_zstd = true;
    return code;
}

/* Compressors reserve for the worst case. */
void report_body_shrink(struct report_body *body)
{
    struct buf *bytes = &body->bytes;
    if (bytes->capacity <= bytes->size + bytes->size / 4 + 4096)
        return;
    struct buf exact;
    buf_init(&exact, bytes->size);
    buf_append_span(&exact, buf_span(bytes));
    buf_fini(bytes);
    *bytes = exact;
}

void report_body_send(const struct report_body *body, const struct report_kind *kind,
                      struct request *request, struct response *response)
{
    if (body->is_zstd) {
        response_add(request, response, "content-encoding", "zstd");
        response_add(request, response, "vary", "accept-encoding");
    }
    response->may_compress = kind->compresses && !body->is_zstd;
    response_bytes(response, 200, kind->content_type, buf_span(&body->bytes));
}
