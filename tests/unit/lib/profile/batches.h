/*
 * batches: a batch as text, the shortest form of its contents. For each profile a line with the
 * type and the labels of its series, time_ns, duration_ns and period, then a line per sample with
 * stack (root first), labels, link and value.
 */
#ifndef TESTS_UNIT_LIB_PROFILE_BATCHES_H
#define TESTS_UNIT_LIB_PROFILE_BATCHES_H

#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/profile/batch/batch_type.h"

#include <inttypes.h>
#include <stdlib.h>

static inline void put_string(const struct batch *batch, uint32_t string, struct buf *text)
{
    assert_true(string < batch->tables->string_count);
    buf_append_span(text, profile_string(batch->tables, string));
}

static inline void put_value_type(const struct batch *batch, const struct profile_value_type *type,
                                  struct buf *text)
{
    buf_append_byte(text, ':');
    put_string(batch, type->type, text);
    buf_append_byte(text, ':');
    put_string(batch, type->unit, text);
}

static inline void put_series(const struct batch *batch, uint32_t index, struct buf *text)
{
    assert_true(index < batch->series_count);
    const struct batch_series *series = &batch->series[index];
    put_string(batch, series->type.name, text);
    put_value_type(batch, &series->type.sample_type, text);
    put_value_type(batch, &series->type.period_type, text);
    buf_append_text(text, batch_type_suffix(series->type.kind));
    buf_append_byte(text, '{');
    assert_true(series->first_label + series->label_count <= batch->series_label_count);
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &batch->series_labels[series->first_label + i];
        buf_append_text(text, i ? "," : "");
        put_string(batch, label->name, text);
        buf_append_byte(text, '=');
        put_string(batch, label->value, text);
    }
    buf_append_byte(text, '}');
}

static inline void put_stack(const struct batch *batch, uint32_t stack, struct buf *text)
{
    assert_true(stack < batch->stack_count);
    const struct profile *tables = batch->tables;
    uint64_t start = batch->stack_start[stack], end = batch->stack_start[stack + 1];
    for (uint64_t i = end; i > start; i--) {
        const struct profile_location *location = &tables->locations[batch->stack[i - 1]];
        for (uint32_t j = location->line_count; j > 0; j--) {
            uint32_t function = tables->lines[location->first_line + j - 1].function;
            put_string(batch, tables->functions[function].name, text);
            buf_append_text(text, j > 1 || i - 1 > start ? ";" : "");
        }
    }
}

static inline void put_link(const struct batch_link *link, struct buf *text)
{
    char hex[40];
    static const struct batch_link none = {0};
    if (memcmp(link, &none, sizeof(none)) == 0)
        return;
    digest_hex(span_of(link->trace_id, sizeof(link->trace_id)), hex);
    buf_printf(text, " <%s", hex);
    digest_hex(span_of(link->span_id, sizeof(link->span_id)), hex);
    buf_printf(text, " %s>", hex);
}

static inline void put_label_set(const struct batch *batch, uint32_t index, struct buf *text)
{
    assert_true(index < batch->label_set_count);
    const struct batch_label_set *set = &batch->label_sets[index];
    assert_true(index || set->label_count == 0);
    assert_true(set->first_label + set->label_count <= batch->sample_label_count);
    for (uint32_t i = 0; i < set->label_count; i++) {
        const struct profile_label *label = &batch->sample_labels[set->first_label + i];
        buf_append_text(text, " ");
        put_string(batch, label->key, text);
        buf_append_byte(text, '=');
        if (label->is_numeric)
            buf_printf(text, "%" PRId64, label->number);
        put_string(batch, label->is_numeric ? label->unit : label->text, text);
    }
    put_link(&set->link, text);
}

/* Appends the whole batch; checks the invariants of batch.h. */
static inline void put_batch(const struct batch *batch, struct buf *text)
{
    assert_int_equal(batch->tables->sample_count, 0);
    assert_int_equal(batch->stack_start[0], 0);
    assert_int_equal(batch->stack_start[1], 0);
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const struct batch_profile *profile = &batch->profiles[i];
        put_series(batch, profile->series, text);
        buf_printf(text, " %" PRId64 " %" PRId64 " %" PRId64 "\n", profile->time_ns,
                   profile->duration_ns, profile->period);
        assert_true(profile->first_sample + profile->sample_count <= batch->sample_count);
        for (uint32_t j = 0; j < profile->sample_count; j++) {
            const struct batch_sample *sample = &batch->samples[profile->first_sample + j];
            assert_true(sample->value != 0);
            buf_append_text(text, "  ");
            put_stack(batch, sample->stack, text);
            put_label_set(batch, sample->label_set, text);
            buf_printf(text, " %" PRId64 "\n", sample->value);
        }
    }
}

static inline void assert_batch(const struct batch *batch, const char *expected)
{
    buf_auto text;
    buf_init(&text, 1 << 22);
    put_batch(batch, &text);
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

#endif
