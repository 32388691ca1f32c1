/* Forms: the first line is the content type, the rest the body. Parts lie in the body, one behind
 * the other, and none holds a delimiter; written anew they are read again as the same. */
#include "tests/fuzz/fuzz.h"

#include "lib/profile/multipart.h"

enum { OUTPUT_MAX = 1 << 20 };

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

static void write_part(const struct multipart_part *part, struct buf *body)
{
    buf_append_text(body, "--fuzz\r\nContent-Disposition: form-data; name=\"");
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
    buf_auto body;
    buf_init(&body, OUTPUT_MAX);
    for (uint32_t i = 0; i < parts->count; i++) {
        /* What our boundary would end, or a line in the name, is no fair question. */
        struct span content = parts->part[i].body;
        if (content.size && memmem(content.data, content.size, "\r\n--fuzz", 8))
            return;
        if (memmem(parts->part[i].name, parts->part[i].name_size, "\r\n", 2))
            return;
        write_part(&parts->part[i], &body);
    }
    buf_append_text(&body, "--fuzz--");
    struct parts *again = malloc(sizeof(*again));
    struct err err;
    fuzz_check(again);
    fuzz_check(!read_all(SPAN_LITERAL("multipart/form-data; boundary=fuzz"), buf_span(&body), again,
                         &err));
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
