#include "api/ingest/batch_id.h"

#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <assert.h>
#include <stdlib.h>

static int compare_labels(const void *a, const void *b)
{
    const struct batch_text_label *x = a, *y = b;
    const int order = span_compare(x->name, y->name);
    return order ? order : span_compare(x->value, y->value);
}

static void append_sized(struct digest_stream *stream, struct span bytes)
{
    const uint64_t size = bytes.size;
    digest_stream_append(stream, span_of(&size, sizeof(size)));
    digest_stream_append(stream, bytes);
}

static void append_labels(struct arena *arena, struct digest_stream *stream,
                          const struct batch_id_source *source)
{
    const uint64_t count = source->label_count;
    struct batch_text_label *labels =
        arena_new_raw(arena, struct batch_text_label, source->label_count);
    digest_stream_append(stream, span_of(&count, sizeof(count)));
    if (count == 0)
        return;
    memcpy(labels, source->labels, source->label_count * sizeof(*labels));
    qsort(labels, source->label_count, sizeof(*labels), compare_labels);
    for (size_t i = 0; i < source->label_count; i++) {
        append_sized(stream, labels[i].name);
        append_sized(stream, labels[i].value);
    }
}

enum err_code batch_id_find(const struct request *request, const struct batch_id_source *source,
                            uint8_t ret_id[STORE_BATCH_ID_BYTES], bool *ret_has_id, struct err *err)
{
    static_assert((int)STORE_BATCH_ID_BYTES == (int)DIGEST_BYTES, "a batch's id is a hash");
    const struct span given = request_field(request, "perfolio-batch-id");
    if (given.size > BATCH_ID_FIELD_MAX_BYTES)
        return err_set(err, ERR_INVALID, "Perfolio-Batch-Id is longer than %d bytes",
                       BATCH_ID_FIELD_MAX_BYTES);
    *ret_has_id = given.size || source->time_ns;
    struct digest_stream *stream = digest_stream_create();
    append_sized(stream, given);
    if (given.size) {
        digest_stream_append(stream, span_of(&source->number, sizeof(source->number)));
    } else {
        append_labels(request->arena, stream, source);
        append_sized(stream, source->name);
        append_sized(stream, source->session);
        append_sized(stream, span_of(&source->time_ns, sizeof(source->time_ns)));
        append_sized(stream, span_of(&source->end_ns, sizeof(source->end_ns)));
        append_sized(stream, source->content);
    }
    digest_stream_finish(stream, ret_id);
    digest_stream_destroy(stream);
    return ERR_NONE;
}
