/* Forms: the first line is the content type, the rest is the body. Parts are within the body, in
 * order, and contain no delimiter; encoded again they are decoded to the same parts. */
#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "lib/profile/pyroscope/multipart.h"

enum { OUTPUT_MAX = 1 << 20, BOUNDARY_BYTES = 16 };

struct parts {
    struct multipart_part part[MULTIPART_PARTS_MAX];
    uint32_t count;
};

static enum err_code read_all(struct span type, struct span body, struct parts *parts,
                              struct err *err)
{
    struct multipart multipart;
    bool is_end = false;
    parts->count = 0;
    enum err_code code = multipart_init(&multipart, type, body, err);
    while (!code) {
        struct multipart_part part;
        code = multipart_next(&multipart, &part, &is_end, err);
        if (code || is_end)
            break;
        fuzz_check(parts->count < MULTIPART_PARTS_MAX);
        parts->part[parts->count++] = part;
    }
    return code;
}

static bool is_in(const struct parts *parts, struct span text)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        struct span content = parts->part[i].body;
        if (content.size && memmem(content.data, content.size, text.data, text.size))
            return true;
    }
    return false;
}

/* Chooses, like a writer, a boundary that no part contains. */
static void choose_boundary(const struct parts *parts, char boundary[BOUNDARY_BYTES])
{
    for (unsigned number = 0;; number++) {
        snprintf(boundary, BOUNDARY_BYTES, "fuzz%u", number);
        if (!is_in(parts, span_text(boundary)))
            return;
    }
}

static void write_part(const struct multipart_part *part, const char *boundary, struct buf *body)
{
    buf_printf(body, "--%s\r\nContent-Disposition: form-data; name=\"", boundary);
    for (size_t i = 0; i < part->name_size; i++) {
        if (part->name[i] == '"' || part->name[i] == '\\')
            buf_append_byte(body, '\\');
        buf_append_byte(body, (uint8_t)part->name[i]);
    }
    buf_append_text(body, "\"\r\n\r\n");
    buf_append_span(body, part->body);
    buf_append_text(body, "\r\n");
}

static void check_again(const struct parts *parts)
{
    char boundary[BOUNDARY_BYTES], type[64];
    buf_auto body;
    buf_init(&body, OUTPUT_MAX);
    choose_boundary(parts, boundary);
    for (uint32_t i = 0; i < parts->count; i++) {
        /* A name with a line break cannot be encoded. */
        if (memmem(parts->part[i].name, parts->part[i].name_size, "\r\n", 2))
            return;
        write_part(&parts->part[i], boundary, &body);
    }
    buf_printf(&body, "--%s--", boundary);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
    struct parts *again = malloc(sizeof(*again));
    struct err err;
    fuzz_check(again);
    fuzz_check(!read_all(span_text(type), buf_span(&body), again, &err));
    fuzz_check(again->count == parts->count);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct multipart_part *a = &parts->part[i], *b = &again->part[i];
        fuzz_check(span_equal(span_of(a->name, a->name_size), span_of(b->name, b->name_size)));
        fuzz_check(span_equal(a->body, b->body));
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = span_of(data, size), type = {0};
    span_take_line(&body, &type);
    struct parts *parts = malloc(sizeof(*parts));
    struct err err;
    fuzz_check(parts);
    enum err_code code = read_all(type, body, parts, &err);
    fuzz_check(!code || fuzz_is_refusal(code, &err));
    const uint8_t *at = body.data;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct span content = parts->part[i].body;
        fuzz_check(content.data >= at && content.data + content.size <= body.data + body.size);
        at = content.data + content.size;
    }
    if (!code)
        check_again(parts);
    free(parts);
    return 0;
}
