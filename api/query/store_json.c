#include "api/query/store_json.h"

#include "lib/base/clock.h"

#include <inttypes.h>

void store_json_append_statistics(struct buf *json, const struct store_statistics *statistics,
                                  int64_t begin_ns)
{
    buf_printf(json,
               "{\"blocks\":%" PRIu32 ",\"granules\":%" PRIu32 ",\"series\":%" PRIu32
               ",\"profiles\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"broken\":%" PRIu32 ",\"oversized\":%" PRIu32 ",\"unnamed\":%" PRIu32
               ",\"totals\":%" PRIu32 ",\"cut\":%" PRIu32 ",\"us\":%" PRId64 "}",
               statistics->block_count, statistics->granule_count, statistics->series_count,
               statistics->profile_count, statistics->row_count, statistics->bytes_read,
               statistics->broken_count, statistics->oversized_count,
               statistics->names.unknown_count, statistics->totals_count, statistics->cut_count,
               (clock_monotonic_ns() - begin_ns) / 1000);
}

void store_json_append_labels(struct buf *json, const struct store_label *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            buf_append_byte(json, ',');
        buf_append_json(json, labels[i].name);
        buf_append_byte(json, ':');
        buf_append_json(json, labels[i].value);
    }
}

void store_json_append_profile_id(struct buf *json, const struct store_profile_id *id)
{
    buf_printf(json, "%016" PRIx64 "%016" PRIx64, (uint64_t)id->time_ns, id->series);
}

bool store_json_parse_profile_id(struct span text, struct store_profile_id *ret_id)
{
    enum { DIGITS = 16 };
    uint64_t time_ns, series;
    if (text.size != 2 * DIGITS || !span_parse_hex(span_of(text.data, DIGITS), &time_ns) ||
        !span_parse_hex(span_of(text.data + DIGITS, DIGITS), &series) || time_ns >= INT64_MAX)
        return false;
    *ret_id = (struct store_profile_id){.time_ns = (int64_t)time_ns, .series = series};
    return true;
}

enum err_code store_json_respond(struct request *request, struct response *response,
                                 const struct buf *json, struct err *err)
{
    response->may_compress = true;
    response_add(request, response, "cache-control", "private, no-cache");
    return response_buf(request, response, 200, "application/json", json, err);
}
