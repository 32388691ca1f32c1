/* The second pass over profiles and their samples. */
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <stdio.h>
#include <stdlib.h>

/* A sample in the request. */
struct sample {
    uint64_t stack;
    uint64_t link;
    struct span attributes;
    struct span values;
    struct span timestamps;
};

/* The current profile. */
struct filling {
    const struct otlp_profile *profile;
    struct batch_type type;
    int64_t factor;         /* for values, of otlp_take_type */
    int64_t time_ns;        /* the earliest timestamp of its samples; 0: none yet */
    struct span attributes; /* the profile's own, a packed list */
    uint32_t owner;         /* as in otlp_label_entry */
    uint32_t first_sample;  /* index in decoder->samples */
    uint32_t first_variant;
    bool has_first_variant;    /* first_variant, that of the first sample, is set */
    bool has_several_variants; /* its samples have several variants */
};

static enum err_code malformed(struct otlp_decoder *decoder)
{
    return err_set(decoder->problem, ERR_INVALID, "is cut short or not encoded as expected");
}

/* ---- one sample ---- */

static bool add_field(struct otlp_decoder *decoder, const struct protobuf_field *field,
                      struct sample *sample)
{
    switch ((enum otlp_sample_field)decoder->sample_fields[field->id]) {
    case SAMPLE_STACK:
        sample->stack = field->number;
        return field->type == PROTOBUF_VARINT;
    case SAMPLE_LINK:
        sample->link = field->number;
        return field->type == PROTOBUF_VARINT;
    case SAMPLE_ATTRIBUTES:
        return otlp_list_add(&sample->attributes, &decoder->joined[0], field, PROTOBUF_VARINT);
    case SAMPLE_VALUES:
        return otlp_list_add(&sample->values, &decoder->joined[1], field, PROTOBUF_VARINT);
    case SAMPLE_TIMESTAMPS:
        return otlp_list_add(&sample->timestamps, &decoder->joined[2], field, PROTOBUF_FIXED64);
    case SAMPLE_NONE:
        break;
    }
    return true;
}

static bool read_sample(struct otlp_decoder *decoder, struct span bytes, struct sample *sample)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    *sample = (struct sample){0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at || (field.id < SAMPLE_FIELD_COUNT && !add_field(decoder, &field, sample)))
            return false;
    }
    return true;
}

static enum err_code sum_values(struct otlp_decoder *decoder, const struct sample *sample,
                                int64_t factor, int64_t *ret_value)
{
    const uint8_t *at = sample->values.data, *end = otlp_end(sample->values);
    int64_t sum = at < end ? 0 : (int64_t)(sample->timestamps.size / 8);
    if (at >= end && sum == 0)
        return err_set(decoder->problem, ERR_INVALID, "has neither values nor timestamps");
    while (at < end) {
        uint64_t number;
        at = protobuf_read_varint(at, end, &number);
        if (!at)
            return malformed(decoder);
        if (__builtin_add_overflow(sum, (int64_t)number, &sum))
            return err_set(decoder->problem, ERR_INVALID, "has values whose sum passes 2^63");
    }
    if (__builtin_mul_overflow(sum, factor, ret_value))
        return err_set(decoder->problem, ERR_INVALID,
                       "has a value that times the period passes 2^63");
    return ERR_NONE;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum err_code add_timestamps(struct otlp_decoder *decoder, struct filling *filling,
                                    struct span bytes)
{
    const size_t count = bytes.size / 8;
    bool is_ascending = true;
    if (count == 0)
        return ERR_NONE;
    int64_t *times = decoder->timestamps + decoder->timestamp_count;
    memcpy(times, bytes.data, count * 8);
    for (size_t i = 1; i < count; i++)
        is_ascending &= times[i - 1] <= times[i];
    if (!is_ascending)
        qsort(times, count, sizeof(times[0]), compare_times);
    if (times[0] < 0)
        return err_set(decoder->problem, ERR_INVALID, "has a time past the year 2262");
    decoder->timestamp_count += count;
    if (filling->time_ns == 0 || times[0] < filling->time_ns)
        filling->time_ns = times[0];
    return ERR_NONE;
}

static enum err_code find_stack(struct otlp_decoder *decoder, uint64_t index, uint32_t *ret_stack)
{
    *ret_stack = (uint32_t)index + decoder->stack_shift;
    if (otlp_is_right(decoder, TABLE_STACK, index))
        return ERR_NONE;
    *ret_stack = 0;
    if (index == 0 && decoder->counts.tables[TABLE_STACK] == 0)
        return ERR_NONE;
    const uint64_t count = decoder->counts.tables[TABLE_STACK];
    if (index >= count)
        return err_set(decoder->problem, ERR_INVALID,
                       "has stack %llu, but the dictionary has %llu of them",
                       (unsigned long long)index, (unsigned long long)count);
    return err_set(decoder->problem, ERR_INVALID,
                   "has stack %llu, which is deeper than %u, malformed or refers to what the "
                   "dictionary does not have",
                   (unsigned long long)index, decoder->limits.stack_depth);
}

static enum err_code fill_sample(struct otlp_decoder *decoder, struct filling *filling,
                                 struct span bytes)
{
    struct sample sample;
    struct batch_sample made;
    if (!read_sample(decoder, bytes, &sample))
        return malformed(decoder);
    struct otlp_label_entry entry = {.attributes = sample.attributes,
                                     .link = sample.link,
                                     .owner = filling->owner,
                                     .is_delta = filling->type.kind == BATCH_KIND_DELTA};
    enum err_code code = find_stack(decoder, sample.stack, &made.stack);
    if (code)
        return code;
    code = sum_values(decoder, &sample, filling->factor, &made.value);
    if (code)
        return code;
    code = otlp_take_labels(decoder, filling->attributes, &entry);
    if (code)
        return code;
    const uint32_t variant = entry.variant;
    if (!filling->has_first_variant)
        filling->first_variant = variant;
    filling->has_first_variant = true;
    if (made.value == 0)
        return ERR_NONE;
    made.label_set = entry.label_set;
    if (!profile_can_add(&decoder->magnitude, made.value))
        return err_set(decoder->problem, ERR_INVALID,
                       "has a value with which those of the request add up to more than 2^63");
    code = add_timestamps(decoder, filling, sample.timestamps);
    if (code)
        return code;
    filling->has_several_variants |= variant != filling->first_variant;
    decoder->sample_variants[decoder->sample_count - filling->first_sample] = variant;
    decoder->samples[decoder->sample_count++] = made;
    if (decoder->timestamp_start)
        decoder->timestamp_start[decoder->sample_count] = decoder->timestamp_count;
    return ERR_NONE;
}

static enum err_code fill_samples(struct otlp_decoder *decoder, struct filling *filling)
{
    struct otlp_range range = filling->profile->samples;
    struct span bytes;
    for (uint64_t i = 0; otlp_next_entry(&range, PROFILE_SAMPLES, &bytes); i++) {
        enum err_code code = fill_sample(decoder, filling, bytes);
        if (code)
            return err_add(decoder->problem, "sample %llu", (unsigned long long)i);
    }
    return ERR_NONE;
}

/* ---- samples of several series ---- */

struct sample_order {
    uint32_t variant;
    uint32_t sample;
};

static int compare_orders(const void *a, const void *b)
{
    const struct sample_order *x = a, *y = b;
    if (x->variant != y->variant)
        return x->variant < y->variant ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

/* Sorts the profile's samples, with their timestamps, by variant. */
static void sort_samples(struct otlp_decoder *decoder, const struct filling *filling)
{
    const uint32_t first = filling->first_sample, count = decoder->sample_count - first;
    arena_auto arena = arena_create();
    struct sample_order *order = arena_new_raw(arena, struct sample_order, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] =
            (struct sample_order){.variant = decoder->sample_variants[i], .sample = first + i};
    qsort(order, count, sizeof(order[0]), compare_orders);
    struct batch_sample *samples = arena_new_raw(arena, struct batch_sample, count);
    memcpy(samples, decoder->samples + first, count * sizeof(*samples));
    for (uint32_t i = 0; i < count; i++) {
        decoder->samples[first + i] = samples[order[i].sample - first];
        decoder->sample_variants[i] = order[i].variant;
    }
    if (!decoder->timestamp_start)
        return;
    uint64_t *starts = arena_new_raw(arena, uint64_t, count + (size_t)1);
    memcpy(starts, decoder->timestamp_start + first, (count + (size_t)1) * sizeof(*starts));
    const uint64_t base = starts[0];
    int64_t *times = arena_new_raw(arena, int64_t, (size_t)(starts[count] - base));
    memcpy(times, decoder->timestamps + base, (size_t)(starts[count] - base) * sizeof(*times));
    uint64_t used = base;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = order[i].sample - first;
        const uint64_t size = starts[from + 1] - starts[from];
        memcpy(decoder->timestamps + used, times + (starts[from] - base), size * sizeof(*times));
        used += size;
        decoder->timestamp_start[first + i + 1] = used;
    }
}

static enum err_code add_profile(struct otlp_decoder *decoder, const struct filling *filling,
                                 uint32_t variant, struct batch_profile *profile)
{
    const struct otlp_profile *from = filling->profile;
    enum err_code code = otlp_take_series(decoder, from, &filling->type, variant, &profile->series);
    if (code)
        return code;
    profile->duration_ns = (int64_t)from->duration_ns;
    profile->period = from->period;
    *(struct batch_profile *)otlp_array_add(decoder->scratch, &decoder->batch_profiles, 1,
                                            sizeof(*profile)) = *profile;
    return ERR_NONE;
}

/* The profile's time, else that of its earliest timestamp. Senders send a profile when it ends, so
 * a profile with neither began one duration before now. */
static int64_t begin_of(const struct otlp_decoder *decoder, const struct filling *filling)
{
    const int64_t now_ns = decoder->options->now_ns;
    const int64_t duration_ns = (int64_t)filling->profile->duration_ns;
    if (filling->profile->time_ns)
        return (int64_t)filling->profile->time_ns;
    if (filling->time_ns)
        return filling->time_ns;
    return duration_ns < now_ns ? now_ns - duration_ns : now_ns;
}

/* Adds one profile to the batch for each variant. Without samples, a gauge or counter is a
 * snapshot of 0, and a delta records an idle time. */
static enum err_code add_profiles(struct otlp_decoder *decoder, const struct filling *filling)
{
    const uint32_t first = filling->first_sample, count = decoder->sample_count - first;
    struct batch_profile profile = {.first_sample = first, .time_ns = begin_of(decoder, filling)};
    if (profile.time_ns >= BATCH_TIME_END_NS)
        return err_set(decoder->problem, ERR_INVALID, "its time is after 2262-04-10");
    if (count == 0)
        return add_profile(decoder, filling, filling->first_variant, &profile);
    for (uint32_t i = 0, end; i < count; i = end) {
        const uint32_t variant = decoder->sample_variants[i];
        for (end = i + 1; end < count && decoder->sample_variants[end] == variant;)
            end++;
        profile.first_sample = first + i;
        profile.sample_count = end - i;
        enum err_code code = add_profile(decoder, filling, variant, &profile);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* ---- one profile ---- */

static enum err_code read_attributes(struct otlp_decoder *decoder, struct filling *filling)
{
    const struct span bytes = filling->profile->bytes;
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (field.id == decoder->profile_attributes &&
            !otlp_list_add(&filling->attributes, &decoder->joined[3], &field, PROTOBUF_VARINT))
            return malformed(decoder);
    }
    return ERR_NONE;
}

static enum err_code fill_profile(struct otlp_decoder *decoder, uint32_t index)
{
    const struct otlp_profile *profile = &decoder->profiles[index];
    struct filling filling = {
        .profile = profile, .owner = PROFILE_NONE, .first_sample = decoder->sample_count};
    if (profile->is_malformed)
        return malformed(decoder);
    if (profile->time_ns > INT64_MAX || profile->duration_ns > INT64_MAX)
        return err_set(decoder->problem, ERR_INVALID, "its time is past the year 2262");
    enum err_code code = otlp_take_type(decoder, profile, &filling.type, &filling.factor);
    if (code)
        return code;
    /* Empties the cache: a list in decoder->joined has the same address as that of the profile
     * before. */
    decoder->own.list = NULL;
    if (profile->has_attributes)
        code = read_attributes(decoder, &filling);
    if (code)
        return code;
    if (filling.attributes.size)
        filling.owner = index;
    code = fill_samples(decoder, &filling);
    if (code)
        return code;
    if (filling.has_several_variants)
        sort_samples(decoder, &filling);
    return add_profiles(decoder, &filling);
}

/* ---- the message about dropped profiles ---- */

/* Adds the service of a dropped profile to the result, unless it is there already. */
static void note_service(struct otlp_decoder *decoder, uint32_t index)
{
    struct otlp_result *result = decoder->result;
    const struct span name = otlp_service_of(decoder, &decoder->profiles[index]);
    struct otlp_rejected_service made;
    (void)snprintf(made.name, sizeof(made.name), "%.*s", SPAN_PRINT(name));
    (void)snprintf(made.reason, sizeof(made.reason), "profile %u (resource %u): %s", index,
                   decoder->profiles[index].resource, decoder->problem->message);
    for (uint32_t i = 0; i < result->rejected_service_count; i++) {
        if (strcmp(result->rejected_services[i].name, made.name) == 0)
            return;
    }
    if (result->rejected_service_count < OTLP_REJECTED_SERVICES)
        result->rejected_services[result->rejected_service_count++] = made;
}

/* Counts a dropped profile, and appends its problem to the message if there is space. */
static void note_rejection(struct otlp_decoder *decoder, uint32_t index)
{
    struct otlp_result *result = decoder->result;
    enum { TAIL_BYTES = 64 };
    const size_t used = strlen(result->message);
    result->rejected_profiles++;
    if (used + strlen(decoder->problem->message) + TAIL_BYTES * 2 > sizeof(result->message))
        return;
    (void)snprintf(result->message + used, sizeof(result->message) - used,
                   "%sprofile %u (resource %u): %s", used ? "; " : "", index,
                   decoder->profiles[index].resource, decoder->problem->message);
}

/* Ends the message: the number of profiles that it does not name, and what was left out of
 * accepted ones. */
static void end_message(struct otlp_result *result, uint32_t named, const char *notice)
{
    size_t used = strlen(result->message);
    if (named < result->rejected_profiles)
        (void)snprintf(result->message + used, sizeof(result->message) - used,
                       "; %u more are not named here", result->rejected_profiles - named);
    used = strlen(result->message);
    if (notice && used + strlen(notice) + strlen("; ") < sizeof(result->message))
        (void)snprintf(result->message + used, sizeof(result->message) - used, "%s%s",
                       used ? "; " : "", notice);
}

void otlp_fill_profiles(struct otlp_decoder *decoder)
{
    struct batch *batch = decoder->batch;
    struct otlp_result *result = decoder->result;
    uint32_t named = 0;
    otlp_find_cpu_times(decoder);
    for (uint32_t i = 0; i < decoder->profile_count && otlp_charge(decoder, 0); i++) {
        const uint32_t sample_count = decoder->sample_count;
        const uint32_t profile_count = decoder->batch_profiles.count;
        const uint64_t timestamp_count = decoder->timestamp_count, magnitude = decoder->magnitude;
        if (!fill_profile(decoder, i)) {
            result->profile_count++;
            continue;
        }
        decoder->sample_count = sample_count;
        decoder->batch_profiles.count = profile_count;
        decoder->timestamp_count = timestamp_count;
        decoder->magnitude = magnitude;
        const size_t used = strlen(result->message);
        note_rejection(decoder, i);
        note_service(decoder, i);
        named += strlen(result->message) > used;
    }
    end_message(result, named, batch->notice);
    batch->samples = decoder->samples;
    batch->sample_count = decoder->sample_count;
    batch->timestamp_start = decoder->timestamp_count ? decoder->timestamp_start : NULL;
    batch->timestamps = decoder->timestamp_count ? decoder->timestamps : NULL;
}
