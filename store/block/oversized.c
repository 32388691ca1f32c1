#include "store/block/oversized.h"

#include "lib/base/arena.h"
#include "store/block/block_read.h"

#include <inttypes.h>

enum { SERIES_TEXT_BYTES = 512, TEXT_BYTES = 60, LABELS_SHOWN = 6 };

static bool is_out_of_proportion(const struct block *block, size_t least_bytes)
{
    return oversized_is(block_dictionary(block)->string_bytes, block_footer(block)->row_count,
                        least_bytes);
}

bool oversized_in_query(const struct block *block)
{
    return is_out_of_proportion(block, OVERSIZED_QUERY_BYTES);
}

bool oversized_in_merge(const struct block *block)
{
    return is_out_of_proportion(block, OVERSIZED_MERGE_BYTES);
}

static void append_cut(struct buf *text, struct span word)
{
    const bool is_long = word.size > TEXT_BYTES;
    buf_append(text, word.data, is_long ? TEXT_BYTES : word.size);
    buf_append_text(text, is_long ? "..." : "");
}

static void append_series(const struct dictionary *dictionary, struct buf *text)
{
    const struct span *strings = dictionary->tables->strings;
    const struct batch_series *series = &dictionary->series[0];
    const uint32_t shown = series->label_count < LABELS_SHOWN ? series->label_count : LABELS_SHOWN;
    append_cut(text, strings[series->type.name]);
    buf_append_byte(text, '{');
    for (uint32_t i = 0; i < shown; i++) {
        const struct batch_label *label = &dictionary->series_labels[series->first_label + i];
        buf_append_text(text, i ? "," : "");
        append_cut(text, strings[label->name]);
        buf_append_text(text, "=\"");
        append_cut(text, strings[label->value]);
        buf_append_byte(text, '"');
    }
    buf_append_text(text, shown < series->label_count ? ",...}" : "}");
}

const char *oversized_describe(struct arena *arena, const struct block *block, size_t bytes)
{
    const struct dictionary *dictionary = block_dictionary(block);
    const uint64_t rows = block_footer(block)->row_count;
    const uint32_t others = dictionary->series_count ? dictionary->series_count - 1 : 0;
    buf_auto text;
    buf_init(&text, 2 * SERIES_TEXT_BYTES);
    buf_printf(&text, "%.1f MiB for %" PRIu64 " %s of ", (double)bytes / (1 << 20), rows,
               rows == 1 ? "sample" : "samples");
    if (dictionary->series_count)
        append_series(dictionary, &text);
    if (others)
        buf_printf(&text, " and %" PRIu32 " more series", others);
    return arena_strndup(arena, text.data, text.size);
}
