#include "lib/profile/report/export_labels.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/report/label_filter.h"
#include "lib/profile/report/labels.h"

#include <inttypes.h>

struct writer {
    const struct labels *labels;
    uint32_t limit;
    struct buf filter; /* of one value */
    struct buf *json;
};

static int64_t delta(const int64_t sides[VIEW_SIDE_COUNT])
{
    int64_t difference;
    if (__builtin_sub_overflow(sides[VIEW_SIDE_B], sides[VIEW_SIDE_A], &difference))
        return sides[VIEW_SIDE_A] > 0 ? INT64_MIN : INT64_MAX;
    return difference;
}

/* Appends ,"total":…,"samples":… or both sides of each; samples is the member's name. */
static void append_count(const struct writer *writer, const struct labels_count *count,
                         const char *samples)
{
    struct buf *json = writer->json;
    if (!writer->labels->view->is_diff) {
        buf_printf(json, ",\"total\":%" PRId64 ",\"%s\":%" PRIu32, count->total[VIEW_SIDE_B],
                   samples, count->samples[VIEW_SIDE_B]);
        return;
    }
    buf_printf(json,
               ",\"total_a\":%" PRId64 ",\"total_b\":%" PRId64 ",\"total_delta\":%" PRId64
               ",\"%s_a\":%" PRIu32 ",\"%s_b\":%" PRIu32,
               count->total[VIEW_SIDE_A], count->total[VIEW_SIDE_B], delta(count->total), samples,
               count->samples[VIEW_SIDE_A], samples, count->samples[VIEW_SIDE_B]);
}

static void append_head(const struct writer *writer)
{
    const struct view *view = writer->labels->view;
    struct buf *json = writer->json;
    buf_append_text(json, "{\"sample_type\":");
    buf_append_json(json, view_sample_type(view));
    buf_append_text(json, ",\"unit\":");
    buf_append_json(json, view_unit(view));
    buf_printf(json, ",\"sample_type_index\":%" PRIu32, view->value_type);
    if (view->is_diff)
        buf_printf(json,
                   ",\"mode\":\"%s\",\"total_a\":%" PRId64 ",\"total_b\":%" PRId64
                   ",\"kept_a\":%" PRId64 ",\"kept_b\":%" PRId64,
                   view->is_normalised ? "normalised" : "absolute", view->total[VIEW_SIDE_A],
                   view->total[VIEW_SIDE_B], view->kept[VIEW_SIDE_A], view->kept[VIEW_SIDE_B]);
    else
        buf_printf(json, ",\"total\":%" PRId64 ",\"kept\":%" PRId64, view->total[VIEW_SIDE_B],
                   view->kept[VIEW_SIDE_B]);
}

static void append_samples(const struct writer *writer)
{
    const uint32_t *samples = writer->labels->kept.samples;
    if (writer->labels->view->is_diff)
        buf_printf(writer->json, ",\"samples_a\":%" PRIu32 ",\"samples_b\":%" PRIu32,
                   samples[VIEW_SIDE_A], samples[VIEW_SIDE_B]);
    else
        buf_printf(writer->json, ",\"samples\":%" PRIu32, samples[VIEW_SIDE_B]);
}

static void append_filter(struct writer *writer, struct span key, struct span value)
{
    struct buf *filter = &writer->filter;
    if (key.size == 0)
        return; /* no rule can select it */
    buf_clear(filter);
    label_filter_append_key(key, filter);
    buf_append_byte(filter, '=');
    buf_append_span(filter, value);
    if (buf_failed(filter) || !span_is_utf8(buf_span(filter)))
        return;
    buf_append_text(writer->json, ",\"filter\":");
    buf_append_json(writer->json, buf_span(filter));
}

static void append_value(struct writer *writer, const struct labels_key *key,
                         const struct labels_value *value)
{
    struct buf *json = writer->json;
    if (!value->is_numeric) {
        buf_append_text(json, "{\"value\":");
        buf_append_json(json, value->word);
        append_count(writer, &value->count, "samples");
        append_filter(writer, key->name, value->word);
        buf_append_byte(json, '}');
        return;
    }
    buf_printf(json, "{\"value\":%" PRId64 ",\"unit\":", value->number);
    buf_append_json(json, value->word);
    append_count(writer, &value->count, "samples");
    buf_auto text;
    buf_init(&text, EXPORT_LABELS_FILTER_BYTES);
    buf_printf(&text, "%" PRId64, value->number);
    /* Without the unit if all numbers have the same. */
    if (!key->has_one_unit) {
        buf_append_byte(&text, ' ');
        buf_append_span(&text, value->word);
    }
    if (!buf_failed(&text))
        append_filter(writer, key->name, buf_span(&text));
    buf_append_byte(json, '}');
}

static void add(struct labels_count *sum, const struct labels_count *count)
{
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        sum->total[side] = view_add(sum->total[side], count->total[side]);
        sum->samples[side] += count->samples[side];
    }
}

static void append_other(const struct writer *writer, const struct labels_key *key, uint32_t shown)
{
    struct labels_count other = {0};
    for (uint32_t i = shown; i < key->value_count; i++)
        add(&other, &key->values[i].count);
    buf_append_text(writer->json, ",\"other\":");
    if (shown < key->value_count) {
        buf_printf(writer->json, "{\"value_count\":%" PRIu32, key->value_count - shown);
        append_count(writer, &other, "samples");
        buf_append_byte(writer->json, '}');
    } else {
        buf_append_text(writer->json, "null");
    }
    const struct labels_count *rest = &key->uncounted;
    if (rest->samples[VIEW_SIDE_A] + (uint64_t)rest->samples[VIEW_SIDE_B] == 0)
        return;
    buf_printf(writer->json, ",\"uncounted\":{\"values_counted\":%" PRIu32, key->value_count);
    append_count(writer, rest, "samples");
    buf_append_byte(writer->json, '}');
}

static void append_bars(const struct writer *writer, const struct labels_key *key)
{
    struct buf *json = writer->json;
    buf_append_text(json, ",\"histogram\":[");
    for (uint32_t i = 0; i < key->bar_count; i++) {
        buf_printf(json, "%s{\"low\":%" PRId64 ",\"high\":%" PRId64, i ? "," : "", key->bars[i].low,
                   key->bars[i].high);
        append_count(writer, &key->bars[i].count, "samples");
        buf_append_byte(json, '}');
    }
    buf_append_byte(json, ']');
}

static void append_without(struct writer *writer, const struct labels_key *key)
{
    struct labels_count without;
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        int64_t kept = writer->labels->kept.total[side];
        if (__builtin_sub_overflow(kept, key->count.total[side], &without.total[side]))
            without.total[side] = kept < 0 ? INT64_MIN : INT64_MAX;
        without.samples[side] = writer->labels->kept.samples[side] - key->count.samples[side];
    }
    buf_append_text(writer->json, ",\"without\":{\"value\":null");
    append_count(writer, &without, "samples");
    append_filter(writer, key->name, span_of(NULL, 0));
    buf_append_byte(writer->json, '}');
}

static void append_key(struct writer *writer, const struct labels_key *key)
{
    struct buf *json = writer->json;
    uint32_t limit = writer->limit;
    uint32_t shown = limit && limit < key->value_count ? limit : key->value_count;
    buf_append_text(json, "{\"key\":");
    buf_append_json(json, key->name);
    buf_printf(json, ",\"is_numeric\":%s", key->is_numeric ? "true" : "false");
    if (key->has_one_unit) {
        buf_append_text(json, ",\"unit\":");
        buf_append_json(json, key->unit);
    }
    append_count(writer, &key->count, "samples_with");
    append_without(writer, key);
    buf_printf(json, ",\"value_count\":%" PRIu32 ",\"values\":[", key->value_count);
    for (uint32_t i = 0; i < shown && !buf_failed(json); i++) {
        buf_append_text(json, i ? "," : "");
        append_value(writer, key, &key->values[i]);
    }
    buf_append_byte(json, ']');
    append_other(writer, key, shown);
    if (key->bar_count)
        append_bars(writer, key);
    buf_append_byte(json, '}');
}

enum err_code export_labels(const struct labels *labels, uint32_t limit, struct buf *output,
                            struct err *err)
{
    struct writer writer = {.labels = labels, .limit = limit, .json = output};
    uint32_t shown = labels->key_count;
    if (limit && shown > EXPORT_LABELS_KEYS)
        shown = EXPORT_LABELS_KEYS;
    buf_init(&writer.filter, EXPORT_LABELS_FILTER_BYTES);
    append_head(&writer);
    append_samples(&writer);
    buf_append_text(output, ",\"labels\":[");
    for (uint32_t i = 0; i < shown; i++) {
        buf_append_text(output, i ? "," : "");
        append_key(&writer, &labels->keys[i]);
    }
    bool is_cut = shown < labels->key_count || labels->has_more_keys;
    buf_printf(output, "],\"label_count\":%" PRIu32 ",\"truncated\":%s}\n", labels->key_count,
               is_cut ? "true" : "false");
    buf_fini(&writer.filter);
    if (buf_failed(output))
        return err_set(err, ERR_TOO_LARGE, "labels of more than %zu bytes: set limit or key",
                       output->max_size);
    return ERR_NONE;
}
