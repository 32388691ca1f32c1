/* Runs the passes; tests/bench/bench_otlp.c measures them. */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <sys/random.h>

static void start(struct otlp_decoder *decoder)
{
    decoder->batch = arena_new(decoder->arena, struct batch, 1);
    decoder->tables = arena_new(decoder->arena, struct profile, 1);
    decoder->batch->arena = decoder->tables->arena = decoder->arena;
    decoder->batch->tables = decoder->tables;
    /* The hash tables also work without a random seed, but an attacker could make them slower. */
    if (getrandom(&decoder->seed, sizeof(decoder->seed), 0) != sizeof(decoder->seed))
        decoder->seed = (uint64_t)(uintptr_t)decoder->arena;
    /* joined[i] holds the numbers of one field (otlp_list_add). A number has at least two bytes in
     * the request, its tag and one byte, and at most ten here: five times the request is enough. */
    for (size_t i = 0; i < sizeof(decoder->joined) / sizeof(decoder->joined[0]); i++)
        buf_init(&decoder->joined[i], decoder->raw.size * 5 + 64);
}

static void allocate_samples(struct otlp_decoder *decoder)
{
    const struct otlp_counts *counts = &decoder->counts;
    decoder->samples = arena_new_raw(decoder->arena, struct batch_sample, (size_t)counts->samples);
    decoder->sample_variants = arena_new_raw(decoder->scratch, uint32_t, (size_t)counts->samples);
    if (counts->timestamps == 0)
        return;
    decoder->timestamp_start = arena_new_raw(decoder->arena, uint64_t, (size_t)counts->samples + 1);
    decoder->timestamp_start[0] = 0;
    decoder->timestamps = arena_new_raw(decoder->arena, int64_t, (size_t)counts->timestamps);
}

static void finish_profiles(struct otlp_decoder *decoder)
{
    struct batch *batch = decoder->batch;
    struct profile_value_type *type = arena_new(decoder->arena, struct profile_value_type, 1);
    batch->profiles =
        otlp_array_keep(decoder->arena, &decoder->batch_profiles, sizeof(struct batch_profile));
    batch->profile_count = decoder->batch_profiles.count;
    batch->series = otlp_array_keep(decoder->arena, &decoder->series, sizeof(struct batch_series));
    batch->series_count = decoder->series.count;
    batch->series_labels =
        otlp_array_keep(decoder->arena, &decoder->series_labels, sizeof(struct batch_label));
    batch->series_label_count = decoder->series_labels.count;
    /* decoder->tables has no samples, but a struct profile must have a value type: an empty one. */
    decoder->tables->value_types = type;
    decoder->tables->value_type_count = 1;
}

static enum err_code decode(struct otlp_decoder *decoder)
{
    enum err_code code = otlp_count(decoder);
    if (code)
        return code;
    otlp_fill_strings(decoder);
    otlp_fill_attributes(decoder);
    otlp_fill_tables(decoder);
    allocate_samples(decoder);
    otlp_start_labels(decoder);
    otlp_fill_profiles(decoder);
    if (!otlp_charge(decoder, 0))
        return err_set(decoder->err, ERR_TOO_LARGE,
                       "the OTLP request has %llu bytes of labels when decoded, the limit is %llu",
                       (unsigned long long)decoder->label_bytes,
                       (unsigned long long)decoder->limits.memory_bytes);
    otlp_finish_labels(decoder);
    finish_profiles(decoder);
    otlp_finish_strings(decoder);
    return ERR_NONE;
}

static enum err_code decode_wire(struct span raw, bool is_1_11, const struct otlp_options *options,
                                 struct batch **ret_batch, struct otlp_result *ret_result,
                                 struct err *err)
{
    arena_auto scratch = arena_create();
    struct err problem;
    struct otlp_result result = {0};
    struct otlp_decoder decoder = {.raw = raw,
                                   .options = options,
                                   .limits = profile_limits_resolve(options->limits),
                                   .series_limits = batch_limits_resolve(options->series_limits),
                                   .arena = arena_create(),
                                   .scratch = scratch,
                                   .result = &result,
                                   .err = err,
                                   .problem = &problem,
                                   .is_1_11 = is_1_11};
    start(&decoder);
    enum err_code code = decode(&decoder);
    map_bytes_fini(&decoder.series_map);
    map_bytes_fini(&decoder.variant_map);
    map_u64_fini(&decoder.parts);
    map_u64_fini(&decoder.type_names);
    map_u64_fini(&decoder.cpu_times);
    map_u64_fini(&decoder.sorted_labels);
    for (size_t i = 0; i < sizeof(decoder.joined) / sizeof(decoder.joined[0]); i++)
        buf_fini(&decoder.joined[i]);
    if (code) {
        arena_destroy(decoder.arena);
        return code;
    }
    *ret_batch = decoder.batch;
    *ret_result = result;
    return ERR_NONE;
}

enum err_code otlp_decode(struct span raw, enum otlp_encoding encoding,
                          const struct otlp_options *options, struct batch **ret_batch,
                          struct otlp_result *ret_result, struct err *err)
{
    static const struct otlp_options defaults = {0};
    if (!options)
        options = &defaults;
    const struct profile_limits limits = profile_limits_resolve(options->limits);
    if (raw.size > limits.raw_bytes)
        return err_set(err, ERR_TOO_LARGE, "the OTLP request has %zu bytes, the limit is %zu",
                       raw.size, limits.raw_bytes);
    if (encoding == OTLP_PROTOBUF)
        return decode_wire(raw, false, options, ret_batch, ret_result, err);
    buf_auto wire;
    buf_init(&wire, limits.raw_bytes);
    struct otlp_options of_wire = *options;
    of_wire.is_raw_kept = false;
    enum err_code code = otlp_json_to_wire(raw, &limits, &wire, err);
    return code ? code : decode_wire(buf_span(&wire), true, &of_wire, ret_batch, ret_result, err);
}
