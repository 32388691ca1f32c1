#include "api/http/response.h"

#include "api/core/integrity.h"
#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <assert.h>

static void assert_is_field_text(const char *text)
{
    for (; *text; text++)
        assert(*text != '\r' && *text != '\n');
}

void response_add(struct request *request, struct response *response, const char *name,
                  const char *value)
{
    assert_is_field_text(name);
    assert_is_field_text(value);
    arena_reserve(request->arena, response->fields, response->field_capacity,
                  response->field_count + 1);
    response->fields[response->field_count++] =
        (struct http_field){.name = span_text(arena_strdup(request->arena, name)),
                            .value = span_text(arena_strdup(request->arena, value))};
}

void response_bytes(struct response *response, int status, const char *content_type,
                    struct span bytes)
{
    response->status = status;
    response->content_type = content_type;
    response->body_kind = RESPONSE_BYTES;
    response->bytes = bytes;
}

enum err_code response_buf(struct request *request, struct response *response, int status,
                           const char *content_type, const struct buf *buf, struct err *err)
{
    if (buf_failed(buf))
        return err_set(
            err, ERR_TOO_LARGE,
            "the response would be larger than %zu bytes: reduce it with limit or a filter",
            buf->max_size);
    const char *copy = arena_strndup(request->arena, buf->data, buf->size);
    response_bytes(response, status, content_type, span_of(copy, buf->size));
    return ERR_NONE;
}

void response_file(struct response *response, int status, const char *content_type, int fd,
                   uint64_t size)
{
    response->status = status;
    response->content_type = content_type;
    response->body_kind = RESPONSE_FILE;
    response->file_fd = fd;
    response->file_bytes = size;
}

void response_stored(struct request *request, struct response *response,
                     const struct integrity_object *object)
{
    response->stored_object = integrity_copy(request->arena, object);
}

/* If-None-Match compares weakly: "W/" is ignored (RFC 9110 §13.1.2). */
static struct span strong_part(struct span tag)
{
    if (span_starts_with(tag, "W/"))
        return span_of(tag.data + 2, tag.size - 2);
    return tag;
}

static bool matches_etag(struct span wanted, struct span etag)
{
    if (span_equal_text(span_trim(wanted), "*"))
        return true;
    while (wanted.size > 0) {
        struct span tag = wanted, after = {0};
        span_split(wanted, ',', &tag, &after);
        wanted = after;
        if (span_equal(strong_part(span_trim(tag)), strong_part(etag)))
            return true;
    }
    return false;
}

bool response_if_match(const struct request *request, const char *etag)
{
    struct span wanted = request_field(request, "if-match");
    return wanted.size == 0 || matches_etag(wanted, span_text(etag));
}

void response_forbid_storing(struct response *response)
{
    size_t kept = 0;
    for (size_t i = 0; i < response->field_count; i++) {
        struct http_field field = response->fields[i];
        if (span_equal_text(field.name, "etag"))
            continue;
        if (span_equal_text(field.name, "cache-control"))
            field.value = span_text("no-store");
        response->fields[kept++] = field;
    }
    response->field_count = kept;
}

bool response_is_cached(struct request *request, struct response *response, const char *etag,
                        const char *cache_control)
{
    response_add(request, response, "etag", etag);
    response_add(request, response, "cache-control", cache_control);
    if (request->method != HTTP_GET && request->method != HTTP_HEAD)
        return false;
    struct span wanted = request_field(request, "if-none-match");
    if (wanted.size == 0 || !matches_etag(wanted, span_text(etag)))
        return false;
    response->status = 304;
    response->content_type = NULL;
    response->body_kind = RESPONSE_EMPTY;
    return true;
}
