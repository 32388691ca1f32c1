/* Both APIs of Pyroscope. The first byte selects: 'p' a push in protobuf, 'j' a push in JSON, else
 * /ingest, whose query and content type are the first two lines. An accepted request becomes
 * batches with the invariants of lib/profile/batch/batch.h. */
#include "tests/fuzz/fuzz.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/pyroscope/pyroscope_ingest.h"
#include "lib/profile/pyroscope/pyroscope_push.h"

static const struct batch_limits limits = {.series_labels = 8,
                                           .name_bytes = 40,
                                           .value_bytes = 60,
                                           .types = 6,
                                           .series = 20,
                                           .profiles = 5};

static uint64_t entry_count(const struct batch *batch)
{
    return batch->stack_start[batch->stack_count];
}

static void check_series(const struct batch *batch)
{
    const struct profile *tables = batch->tables;
    fuzz_check(batch->series_count <= limits.series);
    for (uint32_t i = 0; i < batch->series_count; i++) {
        const struct batch_series *series = &batch->series[i];
        fuzz_check(series->type.name && series->type.name < tables->string_count);
        fuzz_check(series->label_count <= limits.series_labels);
        fuzz_check(series->first_label + series->label_count <= batch->series_label_count);
        for (uint32_t j = 0; j < series->label_count; j++) {
            const struct batch_label *label = &batch->series_labels[series->first_label + j];
            fuzz_check(label->name < tables->string_count && label->value < tables->string_count);
            fuzz_check(batch_labels_is_name(tables->strings[label->name]));
            fuzz_check(label->value && span_is_utf8(tables->strings[label->value]));
            fuzz_check(j == 0 || span_compare(tables->strings[label[-1].name],
                                              tables->strings[label->name]) < 0);
        }
    }
}

static void check_samples(const struct batch *batch)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        fuzz_check(batch->profiles[i].series < batch->series_count);
        const struct batch_profile *profile = &batch->profiles[i];
        fuzz_check(profile->first_sample == next); /* in a profile without samples, all are 0 */
        next += profile->sample_count;
    }
    fuzz_check(next == batch->sample_count);
    for (uint32_t i = 0; i < batch->sample_count; i++) {
        fuzz_check(batch->samples[i].value);
        fuzz_check(batch->samples[i].stack && batch->samples[i].stack < batch->stack_count);
        fuzz_check(batch->samples[i].label_set < batch->label_set_count);
    }
    for (uint32_t i = 0; i < batch->stack_count; i++)
        fuzz_check(batch->stack_start[i] <= batch->stack_start[i + 1]);
    fuzz_check(batch->stack_start[1] == 0);
    for (uint64_t i = 0; i < entry_count(batch); i++)
        fuzz_check(batch->stack[i] < batch->tables->location_count);
    for (uint32_t i = 0; i < batch->label_set_count; i++) {
        const struct batch_label_set *set = &batch->label_sets[i];
        fuzz_check(set->first_label + set->label_count <= batch->sample_label_count);
        fuzz_check((set->label_count == 0 && i == 0) || i > 0);
    }
}

/* Both sums overflow in the same way. */
static uint64_t sum_values(const struct profile *profile)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < (size_t)profile->sample_count * profile->value_type_count; i++)
        sum += (uint64_t)profile->values[i];
    return sum;
}

static bool has_repeat(const struct profile *profile)
{
    const struct profile_value_type *types = profile->value_types;
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (types[i].type == types[j].type && types[i].unit == types[j].unit)
                return true;
        }
    }
    return false;
}

static void convert(struct batch_source *source)
{
    static const struct span chosen[] = {SPAN_LITERAL("thread"), SPAN_LITERAL("service_name")};
    const struct batch_options options = {
        .limits = &limits, .series_labels = chosen, .series_label_count = 2};
    struct batch *batch;
    struct err err;
    fuzz_check_profile(source->profile);
    uint64_t sum = sum_values(source->profile), sum_of_batch = 0;
    enum err_code code = batch_from_profile(source, &options, &batch, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        profile_destroy(source->profile);
        return;
    }
    check_series(batch);
    check_samples(batch);
    for (uint32_t i = 0; i < batch->sample_count; i++)
        sum_of_batch += (uint64_t)batch->samples[i].value;
    fuzz_check(sum == sum_of_batch || has_repeat(batch->tables));
    batch_destroy(batch);
}

static void push(struct arena *arena, struct span body, enum connect_encoding encoding)
{
    const struct pyroscope_push *pushed;
    struct err err;
    enum err_code code =
        pyroscope_push_parse(arena, body, encoding, &limits, &fuzz_limits, &pushed, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return;
    }
    fuzz_check(pushed->profile_count <= limits.profiles && pushed->series_count <= limits.series);
    for (uint32_t i = 0; i < pushed->profile_count; i++) {
        const struct pyroscope_push_profile *profile = &pushed->profiles[i];
        fuzz_check(profile->series < pushed->series_count && profile->bytes.size);
        const struct pyroscope_push_series *series = &pushed->series[profile->series];
        struct batch_source source = {.name = series->name,
                                      .labels = series->labels,
                                      .label_count = series->label_count,
                                      .is_ready = series->is_ready};
        if (!format_decode(profile->bytes, &fuzz_limits, NULL, &source.profile, &err))
            convert(&source);
    }
}

static void ingest(struct arena *arena, struct span rest)
{
    struct span text = {0}, type = {0};
    span_take_line(&rest, &text);
    span_take_line(&rest, &type);
    struct pyroscope_ingest_query query;
    struct batch_source source;
    struct err err;
    enum err_code code =
        pyroscope_ingest_parse_query(arena, text, INT64_C(1767323045678901234), &query, &err);
    if (!code)
        code = pyroscope_ingest_decode(arena, &query, type, rest, &fuzz_limits, &source, &err);
    if (code)
        fuzz_check(fuzz_is_refusal(code, &err));
    else if (source.profile)
        convert(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena_auto arena = arena_create();
    struct span body = size ? span_of(data + 1, size - 1) : span_of(NULL, 0);
    if (size && data[0] == 'p')
        push(arena, body, CONNECT_PROTOBUF);
    else if (size && data[0] == 'j')
        push(arena, body, CONNECT_JSON);
    else
        ingest(arena, span_of(data, size));
    return 0;
}
