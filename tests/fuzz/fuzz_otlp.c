#include "tests/fuzz/fuzz.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/otlp/otlp_indexes.h"

static void check_labels(const struct batch *batch)
{
    const uint32_t string_count = batch->tables->string_count;
    fuzz_check(batch->label_set_count >= 1 && batch->label_sets[0].label_count == 0);
    for (uint32_t i = 0; i < batch->label_set_count; i++)
        fuzz_check((uint64_t)batch->label_sets[i].first_label + batch->label_sets[i].label_count <=
                   batch->sample_label_count);
    for (uint32_t i = 0; i < batch->sample_label_count; i++) {
        const struct profile_label *label = &batch->sample_labels[i];
        fuzz_check(label->key < string_count && label->text < string_count &&
                   label->unit < string_count);
    }
}

static void check_series(const struct batch *batch)
{
    const struct span *strings = batch->tables->strings;
    for (uint32_t i = 0; i < batch->series_count; i++) {
        const struct batch_series *series = &batch->series[i];
        fuzz_check((uint64_t)series->first_label + series->label_count <=
                   batch->series_label_count);
        const struct batch_label *labels = batch->series_labels + series->first_label;
        for (uint32_t j = 0; j < series->label_count; j++) {
            fuzz_check(labels[j].name < batch->tables->string_count && labels[j].value != 0 &&
                       labels[j].value < batch->tables->string_count);
            fuzz_check(batch_labels_is_name(strings[labels[j].name]));
            fuzz_check(span_is_utf8(strings[labels[j].value]));
            fuzz_check(j == 0 ||
                       span_compare(strings[labels[j - 1].name], strings[labels[j].name]) < 0);
        }
    }
}

static void check_stacks(const struct batch *batch)
{
    fuzz_check(batch->stack_count >= 1);
    fuzz_check(batch->stack_start[0] == 0 && batch->stack_start[1] == 0);
    for (uint32_t i = 0; i < batch->stack_count; i++)
        fuzz_check(batch->stack_start[i] <= batch->stack_start[i + 1]);
    for (uint64_t i = 0; i < batch->stack_start[batch->stack_count]; i++)
        fuzz_check(batch->stack[i] < batch->tables->location_count);
}

static void check_samples(const struct batch *batch)
{
    uint32_t next = 0;
    uint64_t magnitude = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const struct batch_profile *profile = &batch->profiles[i];
        fuzz_check(profile->series < batch->series_count);
        fuzz_check(profile->first_sample == next); /* in a profile without samples, all are 0 */
        next += profile->sample_count;
    }
    fuzz_check(next == batch->sample_count);
    for (uint32_t i = 0; i < batch->sample_count; i++) {
        const struct batch_sample *sample = &batch->samples[i];
        fuzz_check(sample->value != 0 && profile_can_add(&magnitude, sample->value));
        fuzz_check(sample->stack < batch->stack_count);
        fuzz_check(sample->label_set < batch->label_set_count);
        if (!batch->timestamp_start)
            continue;
        fuzz_check(batch->timestamp_start[i] <= batch->timestamp_start[i + 1]);
        for (uint64_t j = batch->timestamp_start[i] + 1; j < batch->timestamp_start[i + 1]; j++)
            fuzz_check(batch->timestamps[j - 1] <= batch->timestamps[j]);
    }
}

/* Both readers of packed indexes agree on any bytes; the inputs are too small for a request to use
 * the fast one. */
static void compare_indexes(struct span bytes)
{
    if (!otlp_indexes_can() || bytes.size == 0)
        return;
    arena_auto arena = arena_create();
    struct otlp_indexes *table = arena_new(arena, struct otlp_indexes, 1);
    const uint64_t limit = (uint64_t)bytes.data[0] * 256;
    uint32_t *one = arena_new(arena, uint32_t, bytes.size + OTLP_INDEXES_SLACK);
    uint32_t *other = arena_new(arena, uint32_t, bytes.size + OTLP_INDEXES_SLACK);
    otlp_indexes_init(table);
    const uint32_t *end = otlp_indexes_read(table, bytes, one, limit);
    const uint32_t *twin_end = otlp_indexes_read_portable(bytes, other, limit);
    fuzz_check((end != NULL) == (twin_end != NULL));
    if (!end)
        return;
    fuzz_check(end - one == twin_end - other);
    fuzz_check(memcmp(one, other, (size_t)(end - one) * sizeof(*one)) == 0);
}

/* The first byte selects the encoding: '{' begins JSON, anything else is protobuf. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span names[] = {SPAN_LITERAL("thread_name"), SPAN_LITERAL("a_b"),
                                 SPAN_LITERAL("region")};
    const struct otlp_options options = {.series_attributes = names,
                                         .series_attribute_count = 3,
                                         .limits = &fuzz_limits,
                                         .is_raw_kept = true};
    const bool is_json = size > 0 && data[0] == '{';
    struct batch *batch;
    struct otlp_result result;
    struct err err;
    compare_indexes(span_of(data, size));
    enum err_code code = otlp_decode(span_of(data, size), is_json ? OTLP_JSON : OTLP_PROTOBUF,
                                     &options, &batch, &result, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    /* The result has a message if, and only if, something was refused or left out. */
    fuzz_check((result.message[0] != 0) == (result.rejected_profiles > 0 || batch->notice));
    fuzz_check_profile(batch->tables);
    check_stacks(batch);
    check_labels(batch);
    check_series(batch);
    check_samples(batch);
    buf_auto body;
    buf_init(&body, 1 << 16);
    otlp_write_response(is_json ? OTLP_JSON : OTLP_PROTOBUF, &result, &body);
    fuzz_check(!buf_failed(&body) && span_is_utf8(span_text(result.message)));
    batch_destroy(batch);
    return 0;
}
