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
                          const struct batch_source *decoded)
{
    const uint64_t count = decoded->label_count;
    struct batch_text_label *labels =
        arena_new_raw(arena, struct batch_text_label, decoded->label_count);
    digest_stream_append(stream, span_of(&count, sizeof(count)));
    if (count == 0)
        return;
    memcpy(labels, decoded->labels, decoded->label_count * sizeof(*labels));
    qsort(labels, decoded->label_count, sizeof(*labels), compare_labels);
    for (size_t i = 0; i < decoded->label_count; i++) {
        append_sized(stream, labels[i].name);
        append_sized(stream, labels[i].value);
    }
}

static void append_number(struct digest_stream *stream, int64_t number)
{
    digest_stream_append(stream, span_of(&number, sizeof(number)));
}

static void append_value_type(struct digest_stream *stream, const struct profile *profile,
                              struct profile_value_type type)
{
    append_sized(stream, profile_string(profile, type.type));
    append_sized(stream, profile_string(profile, type.unit));
}

/* Hashed besides labels and content: everything that determines the profile types of the batch, and
 * the period. */
static void append_types(struct digest_stream *stream, const struct batch_source *decoded)
{
    const struct profile *profile = decoded->profile;
    append_sized(stream, decoded->name);
    append_number(stream, decoded->is_ready);
    append_value_type(stream, profile, profile->period_type);
    append_number(stream, profile->period);
    append_number(stream, profile->value_type_count);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        append_value_type(stream, profile, profile->value_types[i]);
        append_number(stream, decoded->kinds ? decoded->kinds[i] : BATCH_KIND_BY_RULE);
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
    *ret_has_id = given.size || (source->time_ns && !source->is_ambiguous);
    struct digest_stream *stream = digest_stream_create();
    append_sized(stream, given);
    if (given.size) {
        digest_stream_append(stream, span_of(&source->number, sizeof(source->number)));
    } else {
        if (source->decoded) {
            append_labels(request->arena, stream, source->decoded);
            append_types(stream, source->decoded);
        }
        append_sized(stream, source->decoded ? source->decoded->session : SPAN_LITERAL(""));
        if (source->sender_id.size) /* ids of protocols without one are those of older versions */
            append_sized(stream, source->sender_id);
        append_sized(stream, span_of(&source->time_ns, sizeof(source->time_ns)));
        append_sized(stream, span_of(&source->end_ns, sizeof(source->end_ns)));
        append_sized(stream, source->content);
    }
    digest_stream_finish(stream, ret_id);
    digest_stream_destroy(stream);
    return ERR_NONE;
}
