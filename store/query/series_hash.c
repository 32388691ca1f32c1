#include "store/query/series_hash.h"

#include "lib/base/digest.h"
#include "store/block/dictionary.h"
#include "store/block/selector.h"
#include "store/types.h"

enum { TEXT_MAX_BYTES = 1 << 30 };

/* A size and its bytes: values of labels may contain zeros. */
static void append_sized(struct buf *text, struct span bytes)
{
    buf_append_u32(text, (uint32_t)bytes.size);
    buf_append_span(text, bytes);
}

size_t series_hash_append_text(const struct dictionary *dictionary, uint32_t series,
                               struct buf *text)
{
    const struct batch_series *one = &dictionary->series[series];
    const struct span *strings = dictionary->tables->strings;
    selector_append_type(dictionary, &one->type, text);
    const size_t type_size = text->size;
    buf_append_byte(text, 0);
    for (uint32_t i = 0; i < one->label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[one->first_label + i];
        append_sized(text, strings[label->name]);
        append_sized(text, strings[label->value]);
    }
    return type_size;
}

uint64_t series_hash_of(struct span text)
{
    uint8_t hash[DIGEST_BYTES];
    uint64_t number = 0;
    digest_sha256(text, hash);
    for (size_t i = 0; i < sizeof(number); i++)
        number = number << 8 | hash[i];
    return number;
}

uint64_t series_hash_of_batch(const struct batch *batch, uint32_t series)
{
    const struct dictionary dictionary = {
        .tables = batch->tables, .series = batch->series, .series_labels = batch->series_labels};
    buf_auto text;
    buf_init(&text, TEXT_MAX_BYTES);
    series_hash_append_text(&dictionary, series, &text);
    return series_hash_of(buf_span(&text));
}
