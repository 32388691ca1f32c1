#include "api/http/byte_range.h"

#include "api/http/problem.h"
#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <inttypes.h>

static bool read_number(struct span text, uint64_t *ret_number)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0 && span_parse_u64(text, ret_number);
}

/* "-100": the last 100 bytes. */
static enum byte_range_kind read_suffix(struct span text, uint64_t file_bytes,
                                        struct byte_range *ret_range)
{
    uint64_t wanted;
    if (!read_number(text, &wanted))
        return BYTE_RANGE_WHOLE;
    if (wanted == 0 || file_bytes == 0)
        return BYTE_RANGE_NONE;
    ret_range->bytes = wanted < file_bytes ? wanted : file_bytes;
    ret_range->first = file_bytes - ret_range->bytes;
    return BYTE_RANGE_PART;
}

enum byte_range_kind byte_range_read(struct span field, uint64_t file_bytes,
                                     struct byte_range *ret_range)
{
    struct span unit, ranges, first_text, last_text;
    uint64_t first, last = UINT64_MAX;
    if (!span_split(span_trim(field), '=', &unit, &ranges) || !span_equal_text(unit, "bytes") ||
        !span_split(span_trim(ranges), '-', &first_text, &last_text))
        return BYTE_RANGE_WHOLE;
    if (first_text.size == 0)
        return read_suffix(last_text, file_bytes, ret_range);
    if (!read_number(first_text, &first) ||
        (last_text.size && (!read_number(last_text, &last) || last < first)))
        return BYTE_RANGE_WHOLE;
    if (first >= file_bytes)
        return BYTE_RANGE_NONE;
    if (last >= file_bytes)
        last = file_bytes - 1;
    *ret_range = (struct byte_range){.first = first, .bytes = last - first + 1};
    return BYTE_RANGE_PART;
}

/* Whether If-Range, if sent, names this version. A date in it names none. */
static bool is_of_this_version(const struct request *request, const char *etag)
{
    const struct span wanted = span_trim(request_field(request, "if-range"));
    return wanted.size == 0 || span_equal_text(wanted, etag);
}

void byte_range_respond(struct request *request, struct response *response,
                        const char *content_type, const char *etag, int fd, uint64_t file_bytes)
{
    struct byte_range range;
    enum byte_range_kind kind = BYTE_RANGE_WHOLE;
    const struct span field = request_field(request, "range");
    response_add(request, response, "accept-ranges", "bytes");
    if (request->method == HTTP_GET && field.size && is_of_this_version(request, etag))
        kind = byte_range_read(field, file_bytes, &range);
    if (kind == BYTE_RANGE_WHOLE) {
        response_file(response, 200, content_type, fd, file_bytes);
        return;
    }
    if (kind == BYTE_RANGE_NONE) {
        struct err err;
        os_close(fd);
        err_set(&err, ERR_INVALID, "the file has %" PRIu64 " bytes: the range is after its end",
                file_bytes);
        problem_respond(request, response, 416, &err);
        response_add(request, response, "content-range",
                     arena_printf(request->arena, "bytes */%" PRIu64, file_bytes));
        return;
    }
    response_add(request, response, "content-range",
                 arena_printf(request->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.first,
                              range.first + range.bytes - 1, file_bytes));
    response_file(response, 206, content_type, fd, range.bytes);
    response->file_offset = range.first;
}
