#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/otlp/otlp_encode.h"
#include "lib/profile/otlp/otlp_wire.h"
#include "lib/profile/profile_builder.h"

/* Two resources, a location with a name and one without, a label; the tests decode the encoded
 * profile. */
static struct profile *make_profile(void)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    const uint32_t resource = profile_builder_string(builder, span_text(OTLP_RESOURCE_LABEL));
    const uint32_t thread = profile_builder_string(builder, SPAN_LITERAL("thread.name"));
    const uint32_t name = profile_builder_string(builder, SPAN_LITERAL("worker"));
    const struct profile_mapping mapping = {
        .start = 0x1000,
        .limit = 0x9000,
        .offset = 0x800,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/bin/app")),
        .build_id = profile_builder_string(builder, SPAN_LITERAL("0a1b2c3d"))};
    const struct profile_location bare = {.address = 0x1234,
                                          .mapping = profile_builder_mapping(builder, &mapping)};
    const uint32_t stack[] = {profile_builder_location(builder, &bare, NULL, 0),
                              profile_builder_frame(builder, &(struct profile_builder_frame){
                                                                 .name = SPAN_LITERAL("main")})};
    for (int64_t i = 0; i < 2; i++) {
        const int64_t values[] = {3 + i};
        const struct profile_label labels[] = {{.key = resource, .number = i, .is_numeric = true},
                                               {.key = thread, .text = name}};
        profile_builder_add_sample(builder, stack, 2, values, labels, i ? 1 : 2);
    }
    struct profile *fields = profile_builder_fields(builder);
    fields->period_type.type = profile_builder_string(builder, SPAN_LITERAL("cpu"));
    fields->period_type.unit = profile_builder_string(builder, SPAN_LITERAL("nanoseconds"));
    fields->period = 10;
    fields->time_ns = 1700000000000000000;
    fields->duration_ns = 5000000000;
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    return profile;
}

static const struct batch_text_label first[] = {{SPAN_LITERAL("service.name"), SPAN_LITERAL("a")},
                                                {SPAN_LITERAL("env"), SPAN_LITERAL("test")}};
static const struct batch_text_label second[] = {{SPAN_LITERAL("service.name"), SPAN_LITERAL("b")}};
static const struct otlp_resource resources[] = {{.attributes = first, .attribute_count = 2},
                                                 {.attributes = second, .attribute_count = 1}};

static void the_decoder_reads_what_was_encoded(void **state)
{
    (void)state;
    struct profile *profile = make_profile();
    batch_auto batch = NULL;
    struct otlp_result result;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    assert_int_equal(otlp_encode(profile, resources, 2, &raw, &err), 0);
    assert_int_equal(otlp_decode(buf_span(&raw), OTLP_PROTOBUF, NULL, &batch, &result, &err), 0);
    assert_string_equal(result.message, "");
    assert_int_equal(batch->profile_count, 2);
    assert_int_equal(batch->series_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct batch_profile *one = &batch->profiles[i];
        assert_int_equal(one->time_ns, 1700000000000000000);
        assert_int_equal(one->duration_ns, 5000000000);
        assert_int_equal(one->sample_count, 1);
        /* Samples times period: CPU time. */
        assert_int_equal(batch->samples[one->first_sample].value, 10 * (3 + i));
        const struct batch_label_set *set =
            &batch->label_sets[batch->samples[one->first_sample].label_set];
        assert_int_equal(set->label_count, i ? 0 : 1);
    }
    const struct profile *tables = batch->tables;
    const uint32_t stack = batch->samples[0].stack;
    assert_int_equal(batch->stack_start[stack + 1] - batch->stack_start[stack], 2);
    const struct profile_location *leaf =
        &tables->locations[batch->stack[batch->stack_start[stack]]];
    const struct profile_mapping *mapping = &tables->mappings[leaf->mapping];
    assert_int_equal(leaf->address, 0x1234);
    assert_int_equal(mapping->start, 0x1000);
    assert_int_equal(mapping->offset, 0x800);
    assert_true(span_equal_text(profile_string(tables, mapping->build_id), "0a1b2c3d"));
    assert_true(span_equal_text(profile_string(tables, mapping->filename), "/bin/app"));
    profile_destroy(profile);
}

/* Two samples, each with a value of another type. */
static void each_value_type_is_a_profile_of_the_samples_that_have_it(void **state)
{
    (void)state;
    static const int64_t values[][2] = {{7, 0}, {0, 9000}};
    static const char *const types[] = {"process_cpu", "off_cpu"};
    static const int64_t wanted[] = {70, 9000};
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    batch_auto batch = NULL;
    struct otlp_result result;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    profile_builder_add_value_type(builder, SPAN_LITERAL("off_cpu"), SPAN_LITERAL("nanoseconds"));
    const uint32_t key = profile_builder_string(builder, span_text(OTLP_RESOURCE_LABEL));
    for (uint32_t i = 0; i < 2; i++) {
        const struct profile_label label = {.key = key, .number = 0, .is_numeric = true};
        const uint32_t leaf = profile_builder_frame(
            builder, &(struct profile_builder_frame){.name = span_text(types[i])});
        profile_builder_add_sample(builder, &leaf, 1, values[i], &label, 1);
    }
    struct profile *fields = profile_builder_fields(builder);
    fields->period_type.type = profile_builder_string(builder, SPAN_LITERAL("cpu"));
    fields->period_type.unit = profile_builder_string(builder, SPAN_LITERAL("nanoseconds"));
    fields->period = 10;
    fields->time_ns = 1700000000000000000;
    fields->duration_ns = 5000000000;
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    assert_int_equal(otlp_encode(profile, resources, 1, &raw, &err), 0);
    assert_int_equal(otlp_decode(buf_span(&raw), OTLP_PROTOBUF, NULL, &batch, &result, &err), 0);
    assert_string_equal(result.message, "");
    assert_int_equal(batch->profile_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct batch_profile *one = &batch->profiles[i];
        const struct batch_type *type = &batch->series[one->series].type;
        assert_true(span_equal_text(profile_string(batch->tables, type->name), types[i]));
        assert_int_equal(one->sample_count, 1);
        assert_int_equal(batch->samples[one->first_sample].value, wanted[i]);
    }
    profile_destroy(profile);
}

/* The nth field with this id in a message whose fields must all be well-formed. */
static struct protobuf_field field_of(struct span message, uint32_t id, uint32_t nth)
{
    const uint8_t *at = message.data, *end = message.data + message.size;
    struct protobuf_field field;
    while (at < end) {
        at = protobuf_read_field(at, end, &field);
        assert_non_null(at);
        if (field.id == id && nth-- == 0)
            return field;
    }
    return (struct protobuf_field){0};
}

/* The value of profile.frame.type of a location in the dictionary, or empty. */
static struct span frame_type_of(struct span dictionary, uint32_t location)
{
    const struct span message = field_of(dictionary, TABLE_LOCATION, location).bytes;
    const uint64_t index = field_of(message, LOCATION_ATTRIBUTES, 0).number;
    if (!index)
        return (struct span){0};
    const struct span attribute = field_of(dictionary, TABLE_ATTRIBUTE, (uint32_t)index).bytes;
    const uint64_t key = field_of(attribute, ATTRIBUTE_KEY, 0).number;
    assert_true(span_equal_text(field_of(dictionary, TABLE_STRING, (uint32_t)key).bytes,
                                "profile.frame.type"));
    return field_of(field_of(attribute, ATTRIBUTE_VALUE, 0).bytes, ANY_STRING, 0).bytes;
}

static void frames_have_the_type_of_their_runtime(void **state)
{
    (void)state;
    static const char *const files[] = {"/bin/app", "[kernel.kallsyms]", "[cpython]", "[vdso]",
                                        "[ruby]"};
    static const char *const wanted[] = {"native", "kernel", "cpython", "", "ruby"};
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    for (uint32_t i = 0; i < 5; i++) {
        const struct profile_mapping mapping = {
            .filename = profile_builder_string(builder, span_text(files[i]))};
        const struct profile_location location = {
            .address = i + 1, .mapping = profile_builder_mapping(builder, &mapping)};
        (void)profile_builder_location(builder, &location, NULL, 0);
    }
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    assert_int_equal(otlp_encode(profile, NULL, 0, &raw, &err), 0);
    const struct span dictionary = field_of(buf_span(&raw), REQUEST_DICTIONARY, 0).bytes;
    for (uint32_t i = 0; i < 5; i++)
        assert_true(span_equal_text(frame_type_of(dictionary, i + 1), wanted[i]));
    profile_destroy(profile);
}

static void all_strings_are_utf8(void **state)
{
    (void)state;
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    const struct profile_label labels[] = {
        {.key = profile_builder_string(builder, span_text(OTLP_RESOURCE_LABEL)),
         .is_numeric = true},
        {.key = profile_builder_string(builder, SPAN_LITERAL("thread.name")),
         .text = profile_builder_string(builder, SPAN_LITERAL("evil\xff\xfe"))}};
    const uint32_t frame = profile_builder_frame(
        builder, &(struct profile_builder_frame){.name = SPAN_LITERAL("caf\xc3")});
    profile_builder_add_sample(builder, &frame, 1, (const int64_t[]){1}, labels, 2);
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    assert_int_equal(otlp_encode(profile, resources, 1, &raw, &err), 0);
    const struct span dictionary = field_of(buf_span(&raw), REQUEST_DICTIONARY, 0).bytes;
    const uint32_t name = profile->functions[0].name, thread = profile->labels[1].text;
    assert_true(span_equal_text(field_of(dictionary, TABLE_STRING, name).bytes, "caf"));
    assert_true(span_equal_text(field_of(dictionary, TABLE_STRING, thread).bytes, "evil??"));
    const struct span attribute = field_of(dictionary, TABLE_ATTRIBUTE, 1).bytes;
    const struct span value = field_of(attribute, ATTRIBUTE_VALUE, 0).bytes;
    assert_true(span_equal_text(field_of(value, ANY_STRING, 0).bytes, "evil??"));
    profile_destroy(profile);
}

/* A resource gets a profile for each type of which it has no value, with an earlier time. */
static void idle_resources_have_profiles_without_samples(void **state)
{
    (void)state;
    const int64_t before_ns = 1600000000000000000;
    const struct otlp_resource with_idle[] = {
        {.attributes = first, .attribute_count = 2, .idle_types = 1},
        {.attributes = second,
         .attribute_count = 1,
         .idle_time_ns = before_ns,
         .idle_duration_ns = 60},
        {.attributes = second, .attribute_count = 1, .idle_types = 1},
        {.attributes = first, .attribute_count = 1}};
    struct profile *profile = make_profile();
    const struct batch_profile wanted[] = {
        {.series = 0, .time_ns = profile->time_ns, .sample_count = 1},
        {.series = 1, .time_ns = before_ns, .duration_ns = 60},
        {.series = 1, .time_ns = profile->time_ns, .sample_count = 1},
        {.series = 1, .time_ns = profile->time_ns}};
    batch_auto batch = NULL;
    struct otlp_result result;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    assert_int_equal(otlp_encode(profile, with_idle, 4, &raw, &err), 0);
    assert_int_equal(otlp_decode(buf_span(&raw), OTLP_PROTOBUF, NULL, &batch, &result, &err), 0);
    assert_string_equal(result.message, "");
    assert_int_equal(batch->series_count, 2);
    assert_int_equal(batch->profile_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(batch->profiles[i].series, wanted[i].series);
        assert_int_equal(batch->profiles[i].time_ns, wanted[i].time_ns);
        assert_int_equal(batch->profiles[i].duration_ns,
                         wanted[i].duration_ns ? wanted[i].duration_ns : profile->duration_ns);
        assert_int_equal(batch->profiles[i].sample_count, wanted[i].sample_count);
    }
    profile_destroy(profile);
}

static void a_label_without_a_resource_is_refused(void **state)
{
    (void)state;
    struct profile *profile = make_profile();
    struct err err;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    assert_int_equal(otlp_encode(profile, resources, 1, &raw, &err), ERR_INVALID);
    profile_destroy(profile);
}

static void a_batch_that_does_not_fit_is_an_error(void **state)
{
    (void)state;
    struct profile *profile = make_profile();
    struct err err;
    buf_auto raw;
    buf_init(&raw, 100);
    assert_int_equal(otlp_encode(profile, resources, 2, &raw, &err), ERR_TOO_LARGE);
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_decoder_reads_what_was_encoded),
        cmocka_unit_test(each_value_type_is_a_profile_of_the_samples_that_have_it),
        cmocka_unit_test(frames_have_the_type_of_their_runtime),
        cmocka_unit_test(all_strings_are_utf8),
        cmocka_unit_test(idle_resources_have_profiles_without_samples),
        cmocka_unit_test(a_label_without_a_resource_is_refused),
        cmocka_unit_test(a_batch_that_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
